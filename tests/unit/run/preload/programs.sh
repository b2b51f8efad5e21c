#!/bin/bash
# SPDX-License-Identifier: MIT
# Programs with every system call of libc and the loader going through the dispatcher, compared with
# the same programs without: output, messages, exit status, files left behind.
#
# Ways: patched, each start scans and patches; with, by tables and ready copies; strict, the same, and the kernel tells of
# calls past the dispatcher.
#
#   PROBE  the library to preload        STEPS  the program of steps.c
set -u

export LC_ALL=C
work=$(mktemp -d "${TMPDIR:-/tmp}/shelf-run.XXXXXX") || exit 99
trap 'rm -rf "$work"' EXIT
mkdir "$work/tables"
passed=0 failed=0 skipped=0

# one WAY: runs $commands in a fresh folder of the same name, leaves out, err, status, files
one() {
	rm -rf "$work/dir" && mkdir "$work/dir" "$work/$1"
	(
		cd "$work/dir" || exit 99
		[ "$1" = without ] || export LD_PRELOAD=$PROBE
		exec bash -c "$commands"
	) >"$work/$1/out" 2>"$work/$1/err" </dev/null
	echo $? >"$work/$1/status"
	(cd "$work/dir" && find . -type f ! -path '*/.git/*' -exec sha256sum {} + | sort -k 2) >"$work/$1/files"
}

# compare NAME PROGRAM COMMANDS
compare() {
	local name=$1 program=$2 ok=1 way
	commands=$3
	if ! command -v "$program" >/dev/null; then
		echo "skip $name: no $program"
		skipped=$((skipped + 1))
		return
	fi
	rm -rf "$work"/without "$work"/patched "$work"/with "$work"/strict "$work/counts" "$work/missed"
	one without
	PROBE_OUT=$work/missed one patched
	PROBE_TABLES=$work/tables PROBE_OUT=$work/counts one with
	PROBE_TABLES=$work/tables PROBE_OUT=$work/missed PROBE_STRICT=1 one strict
	for way in patched with strict; do
		for what in out err status files; do
			[ "$what" = err ] && [ "$program" = "$STEPS" ] && continue
			cmp -s "$work/without/$what" "$work/$way/$what" && continue
			echo "-- $name: $what differs ($way):"
			diff "$work/without/$what" "$work/$way/$what" | head -20
			ok=0
		done
	done
	if grep -q '^failed' "$work/counts" "$work/missed" || ! grep -q '^attach' "$work/counts"; then
		echo "-- $name: did not attach"
		ok=0
	fi
	if grep -h -E '^(missed|wrong)' "$work/missed" "$work/counts"; then
		echo "-- $name: calls past the dispatcher, or other numbers than the tables say"
		ok=0
	fi
	awk -v name="$name" -v ok=$ok '
		$1 == "attach" { n++; if (!best || $5 < best) best = $5 }
		$1 == "count" { calls += $3; seen[$2] = 1 }
		END {
			for (nr in seen) kinds++
			printf "%s %s: %d programs, %d calls of %d kinds, attached in %.0f us at best\n",
				ok ? "ok" : "FAIL", name, n, calls, kinds, best / 1000
		}' "$work/counts"
	if [ $ok = 1 ]; then passed=$((passed + 1)); else failed=$((failed + 1)); fi
}

# A site that is left out must be seen, or the search for calls past the dispatcher finds nothing.
PROBE_LEAVE=1 PROBE_STRICT=1 PROBE_OUT=$work/left LD_PRELOAD=$PROBE cat /etc/passwd >"$work/text"
if ! cmp -s /etc/passwd "$work/text"; then
	echo "FAIL a call past the dispatcher is made all the same"
	failed=$((failed + 1))
elif grep -q '^missed 257 ' "$work/left"; then
	echo "ok a site left unpatched is noticed"
	passed=$((passed + 1))
elif [ "$(uname -r | awk -F. '{ print ($1 * 100 + $2 >= 511) }')" = 1 ]; then
	echo "FAIL a site left unpatched is noticed"
	failed=$((failed + 1))
else
	echo "skip a site left unpatched is noticed: the kernel has no Syscall User Dispatch"
	skipped=$((skipped + 1))
fi

compare 'unwinding from each instruction of a call' "$STEPS" '"$STEPS" unwind'
compare 'calls and stack use in a handler at each instruction' "$STEPS" '"$STEPS" nest'
compare 'asynchronous cancellation runs clean-ups' "$STEPS" '"$STEPS" cancel'

compare dash dash '
dash -c "
	for i in 1 2 3; do echo line \$i; done >list
	while read a b; do echo \"\$b:\$a\"; done <list | sort -r
	n=\$(wc -l <list); echo \"\$n lines\"; cat <<END
here \$n
END
	trap \"echo caught\" USR1; kill -USR1 \$\$; (exit 3); echo \$?
	sleep 0.1 & wait \$!; echo \$?; exec 5>fd; echo five >&5; exec 5>&-; cat fd nothing; exit 7"'

compare bash bash '
bash -c "
	diff <(echo a; echo b) <(echo a; echo c)
	coproc tr a-z A-Z; echo hello >&\${COPROC[1]}; eval \"exec \${COPROC[1]}>&-\"; cat <&\${COPROC[0]}
	echo {1..5} | while read -a w; do echo \${#w[@]}; done; shopt -s nullglob; touch f{1..3}; echo f*
	ulimit -n 200; ulimit -n; timeout 0.1 sleep 5; echo \$?; kill -TERM \$\$"; echo $?'

compare coreutils sort '
mkdir -p a/b/c; seq 1000 >a/numbers; cp -a a copy; ln -s ../numbers a/b/link; ln a/numbers a/hard
ls -R; sort -rn a/numbers | head -3; sha256sum a/numbers; wc a/numbers; stat -c "%n %s %h %a" a/*
dd if=a/numbers of=part bs=7 skip=3 count=10 status=none; cat part; split -l 300 a/numbers s.; ls
mv part a/b; rm -r copy; mkfifo pipe; cat pipe & echo through >pipe; wait; tail -c 5 a/numbers; du --apparent-size -b a/numbers
env -i PATH="$PATH" LD_PRELOAD="${LD_PRELOAD-}" printenv PATH | wc -l; chmod 600 a/numbers; touch -d @1000000000 t; stat -c %Y t
truncate -s 100K t; rmdir a; echo $?; ls nothing'

compare python3 python3 '
cat >p.py <<"END"
import asyncio, mmap, multiprocessing, os, select, signal, socket, subprocess, tempfile, threading
total, lock = [0], threading.Lock()
def work(n):
    for i in range(200):
        with open(f"t{n}", "w") as f: f.write(str(i))
        with open(f"t{n}") as f, lock: total[0] += int(f.read())
threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
[t.start() for t in threads]; [t.join() for t in threads]
print(total[0])
print(subprocess.run(["sh", "-c", "cat; exit 4"], input=b"in", capture_output=True))
print([subprocess.check_output(["echo", str(i)], close_fds=i % 2 == 0) for i in range(4)])
with multiprocessing.Pool(2) as pool: print(pool.map(abs, range(-5, 0)))
a, b = socket.socketpair(); a.send(b"x"); print(select.select([b], [], [], 5)[0] == [b], b.recv(9))
signal.signal(signal.SIGALRM, lambda *_: print("alarm")); signal.setitimer(signal.ITIMER_REAL, 0.05); signal.pause()
with tempfile.TemporaryFile() as f:
    f.truncate(8192); m = mmap.mmap(f.fileno(), 8192); m[:4] = b"abcd"; print(os.pread(f.fileno(), 4, 0))
async def child():
    p = await asyncio.create_subprocess_exec("echo", "async", stdout=-1); return await p.communicate()
print(asyncio.run(child()))
pid = os.fork()
if pid == 0: os._exit(9)
print(os.waitpid(pid, 0)[1]); print(sorted(os.listdir()))
try: os.open("none", 0)
except OSError as e: print(e)
print(subprocess.run(["sh", "-c", "kill -9 $$"]).returncode)
END
python3 p.py; echo $?'

compare perl perl '
perl -e '\''use Socket; use IO::Handle; $| = 1;
	open(my $f, ">", "out") or die; print $f "$_\n" for 1 .. 100; close $f; print -s "out", "\n";
	socketpair(my $a, my $b, AF_UNIX, SOCK_STREAM, 0); $a->autoflush(1); print $a "word\n"; print scalar <$b>;
	for my $i (1 .. 3) { my $p = fork; exit $i unless $p; waitpid $p, 0; print $? >> 8, "\n"; }
	print `ls`; $SIG{USR1} = sub { print "caught\n" }; kill USR1 => $$; open(my $p, "-|", "cat out | tail -1"); print <$p>;
	eval { local $SIG{ALRM} = sub { die "late\n" }; alarm 1; select undef, undef, undef, 5 while 1; }; print $@; die "end\n"'\''; echo $?'

compare tar tar '
mkdir -p t/deep/er; for i in 1 2 3 4 5; do seq $((i * 500)) >t/f$i; done; ln -s f1 t/link; ln t/f2 t/deep/hard
find t -exec touch -h -d @1000000000 {} +; tar --sort=name --owner=0 --group=0 --numeric-owner -cf - t | tee t.tar | gzip -n | zcat | tar -tvf -
mkdir x; tar -xf t.tar -C x; diff -r t x/t && echo same; tar -xf none; echo $?'

compare git git '
export HOME=$PWD GIT_CONFIG_NOSYSTEM=1 GIT_AUTHOR_DATE="1000000000 +0000" GIT_COMMITTER_DATE="1000000000 +0000"
git config --global user.name t; git config --global user.email t@t; git config --global gc.auto 0
git init -q -b main r; cd r; for i in 1 2 3; do seq $((i * 300)) >f$i; git add .; git commit -q -m c$i; done
git log --stat; git mv f1 g1; git commit -q -am moved; git diff HEAD~1 | head -5; git gc -q; git fsck; cd ..
git clone -q r s; cd s; git log --format=%H; git status; git checkout -q HEAD~2; ls; git show nothing; echo $?'

compare gcc gcc '
printf "#include <stdio.h>\nint main(void) { printf(\"%%d\\\\n\", 42); return 5; }\n" >m.c
gcc -O2 -frandom-seed=1 -c m.c -o m.o && gcc m.o -o m -Wl,--build-id=none; ./m; echo $?; echo "int x = ;" >b.c; gcc -c b.c; echo $?
printf "all: m2\nm2: m.o\n\tgcc -o \$@ \$<\n" >Makefile; make 2>&1; ./m2; gcc -v 2>&1 | tail -1'

compare node node '
node -e '\''const fs = require("fs"), cp = require("child_process"), { Worker } = require("worker_threads");
	fs.mkdirSync("d"); fs.writeFileSync("d/f", "text"); console.log(fs.readdirSync("d"), fs.statSync("d/f").size);
	console.log(cp.execSync("echo child").toString());
	new Worker("require(\"worker_threads\").parentPort.postMessage(7)", { eval: true }).on("message", m => {
		console.log(m); fs.promises.readFile("d/f", "utf8").then(t => { console.log(t); process.exitCode = 6; }); });'\''; echo $?'

echo "$passed passed, $failed failed, $skipped skipped"
[ $failed = 0 ]
