#!/bin/sh
# What `shelf run` refuses, passes on, and leaves alone.
. "$(dirname "$0")/lib/lib.sh"

at=$base/shelf
mkdir -p "$at"
run() {
	"$SHELF" run --size 64M --at "$at" -- "$@"
}
# ends STATUS NAME COMMAND...
ends() {
	wanted=$1 name=$2
	shift 2
	"$@" >"$work/out" 2>"$work/err" </dev/null
	got=$?
	if [ $got = "$wanted" ]; then pass; else fail "$name: status $got, not $wanted" "$work/err"; fi
}
says() {
	if grep -q -- "$1" "$work/err"; then pass; else fail "$2: '$1' is not said" "$work/err"; fi
}

ends 3 "exit status" run sh -c 'exit 3'
ends 143 "a signal" sh -c "'$SHELF' run --size 64M --at '$at' -- sh -c 'kill \$\$'; exit \$?"
ends 127 "no such program" run ./nothing
ends 3 "exit status, started with SIGCHLD ignored" /usr/bin/python3 -c "import os, signal, sys; signal.signal(signal.SIGCHLD, signal.SIG_IGN); os.execv(sys.argv[1], sys.argv[1:])" \
	"$SHELF" run --size 64M --at "$at" -- sh -c 'exit 3'
mkfifo "$work/fifo" && chmod 755 "$work/fifo"
ends 126 "a FIFO is no program" run "$work/fifo"
ends 126 "nor for a program" run sh -c "exec '$work/fifo'"
ends 0 "without a folder for tables" env -u XDG_CACHE_HOME HOME=/dev/null "$SHELF" run --size 64M --at "$at" -- sh -c "echo x >$at/f && cat $at/f"
ends 0 "a daemon that stays after its run goes on" sh -c "'$SHELF' run --at '$at' -- sh -c '(while [ -d /proc/\$PPID ]; do :; done; true | cat; /bin/true && echo well >$work/daemon) >/dev/null 2>&1 &'
	for i in \$(seq 400); do [ -s '$work/daemon' ] && exit 0; sleep 0.05; done; exit 1"
ends 126 "a shelf in a shelf" run "$SHELF" run --at "$at" true
says "not supported" "a shelf in a shelf"
if has busybox && ! ldd "$(command -v busybox)" >/dev/null 2>&1; then
	ends 0 "a static program" run busybox sh -c "echo x >$at/f && busybox grep -q x $at/f && [ \$(busybox readlink /proc/self/exe) = $(realpath "$(command -v busybox)") ]"
	ends 0 "one from a shell, in the shelf" run sh -c "cp $(command -v busybox) $at/busybox && cd $at && ./busybox ls busybox && ./busybox readlink /proc/self/exe | grep -qx $at/busybox"
	printf '#!%s sh\ntest -d %s\n' "$(command -v busybox)" "$at" >"$work/small"
	chmod +x "$work/small"
	ends 0 "its script" run sh -c "$work/small"
	ends 126 "its script as the first program" run "$work/small"
	says "statically linked interpreter" "its script as the first program"
	cp "$(command -v busybox)" "$work/plainbox" && chmod 644 "$work/plainbox"
	ends 126 "a static program that may not be run" run "$work/plainbox" true
	ends 126 "the same from a shell" run sh -c "$work/plainbox true"
	printf '#!/bin/sh\n' >"$work/plainscript" && chmod 644 "$work/plainscript"
	ends 126 "a script that may not be run" run sh -c "exec $work/plainscript"
	mkdir -p "$work/alone/cli" "$work/alone/run" && chmod -R 755 "$work/alone"
	cp "$SHELF" "$work/alone/cli/shelf" && cp "$(dirname "$SHELF")/../run/libshelf-run.so" "$work/alone/run"
	ends 126 "without what loads it" "$work/alone/cli/shelf" run --size 64M --at "$at" -- busybox true
	says "not beside the library" "without what loads it"
	ends 126 "without what loads it, from a shell" "$work/alone/cli/shelf" run --size 64M --at "$at" -- sh -c "busybox true"
	says "not beside the library" "without what loads it, from a shell"
fi
ends 0 "the command itself, on a shelf" run "$SHELF" ls
ends 0 "and by its name" env PATH="$(dirname "$SHELF"):$PATH" "$SHELF" run --size 64M --at "$at" -- sh -c 'shelf df'

# a limit on the size of files is for the program's own
mkdir "$work/limited"
small="ulimit -S -f 10;" write="echo x >$at/f && [ -s $at/f ]"
ends 0 "a shelf is made by a program with a limit on the size of files" run sh -c "$small $write"
ends 0 "and one that was only promised" "$SHELF" run --at "$at" -- sh -c "$small $write"
ends 0 "all is made under such a limit" env XDG_CACHE_HOME="$work/limited" sh -c "$small exec '$SHELF' run --at '$at' -- sh -c '$write'"
ends 0 "a named one, too" sh -c "$small '$SHELF' run --name limited --size 64M --at '$at' -- sh -c '$write' && '$SHELF' rm limited"
ends 0 "a program in the shelf that is larger" run sh -c "cp /bin/bash $at/bash; $small $at/bash -c '[ \$(ulimit -S -f) -lt 100 ]'"
sh -c "ulimit -f 10; exec '$SHELF' run --at '$at' -- sh -c '$write'" >"$work/out" 2>"$work/err"
case $? in 0) pass ;; 126) says "ulimit -f" "a limit that may not be raised" ;; *) fail "a limit that may not be raised: status $?" "$work/err" ;; esac

# how programs are named and found, and how options are written
mkdir -p "$work/path/dir" "$work/path/sub/tool"
printf 'echo "$0 $1 $#"; exit 5\n' >"$work/path/script"
chmod +x "$work/path/script"
printf '#!/bin/sh\nexit 6\n' >"$work/path/dir/tool"
cp "$work/path/dir/tool" "$work/path/plain"
chmod +x "$work/path/dir/tool"
ends 5 "a script without #!" run "$work/path/script" a b
if grep -qx "$work/path/script a 2" "$work/out"; then pass; else fail "its name and arguments" "$work/out"; fi
ends 6 "a program of PATH behind a folder of its name" env PATH="$work/path/sub:$work/path/dir:$PATH" "$SHELF" run --at "$at" tool
ends 126 "a file that is not executable" env PATH="$work/path:$PATH" "$SHELF" run --at "$at" plain
ends 127 "a program that PATH has not" env PATH="$work/path" "$SHELF" run --at "$at" tool
ends 127 "a program without a name" run ""
ends 0 "many arguments" run sh -c '[ $# = 20000 ]' sh $(seq 20000)
ends 7 "options with =, and shortened" "$SHELF" run --si=64M --a "$at" --stri sh -c 'exit 7'
ends 2 "a beginning of two options" "$SHELF" run --s 64M true
ends 2 "--strict with a value" "$SHELF" run --strict=1 true
says "no value is wanted" "--strict with a value"
ends 0 "calls past the shelf, with nobody to tell" "$SHELF" run --strict --name past --at "$at" -- sh -c "echo x >$at/f && $SRC_BIN/past_shelf $at/f 2>/dev/null"
"$SHELF" stat past >"$work/err"
says "2 system calls, told by shelf run --strict" "calls past the shelf"
"$SHELF" rm past
ends 0 "calls past the shelf" "$SHELF" run --strict --at "$at" -- sh -c "echo x >$at/f && $SRC_BIN/past_shelf $at/f"
says "openat at 0x" "calls past the shelf"
ends 2 "--name without one" "$SHELF" run --name
says "a value is wanted" "--name without one"
ends 2 "a bad size" "$SHELF" run --size 12Q true
ends 126 "a file in the prefix's place" "$SHELF" run --at "$work/path/script" true
ends 126 "a prefix with something in it" "$SHELF" run --at "$work/path" true
says "is not empty" "a prefix with something in it"
ln -s "$at" "$work/link"
ends 0 "a prefix by a link" "$SHELF" run --size 64M --at "$work/link" sh -c "echo x >$at/f && cat $work/link/f"
ends 0 "a prefix that is made" "$SHELF" run --size 64M --at "$work/path/made" sh -c "echo x >$work/path/made/f"
for fd in 0 1 2; do
	ends 0 "descriptor $fd was closed, and is to the program" sh -c "'$SHELF' run --at '$at' sh -c '[ ! -e /proc/self/fd/$fd ]' $fd>&-"
done
ends 0 "nothing open but what is held" sh -c "'$SHELF' run --size 64M --at '$at' sh -c 'echo x >$at/f; test -s $at/f' <&- >&- 2>&-"

cp "$SHELF" "$work/alone"
ends 126 "the library is not there" "$work/alone" run --at "$at" touch "$at/made"
if [ -z "$(ls -A "$at")" ]; then pass; else fail "nothing is written to the host's directory" /dev/null; fi
ends 0 "files go to the shelf" run sh -c "echo x >$at/f && [ -s $at/f ]"
if [ -z "$(ls -A "$at")" ]; then pass; else fail "nothing of the shelf is in the host's directory" /dev/null; fi
for lib in libjemalloc.so.2 libeatmydata.so; do
	path=$(find /usr/lib -name "$lib" 2>/dev/null | head -1)
	[ "$path" ] || continue
	LD_PRELOAD=$path ends 0 "LD_PRELOAD=$lib" run sh -c "echo x >$at/f; grep -q $lib /proc/self/maps && cat $at/f"
	LD_PRELOAD=$path ends 0 "$lib in children" run sh -c "env -i sh -c 'cat </dev/null >$at/g'; [ -e $at/g ]"
done
if [ "$(id -u)" = 0 ] && command -v setpriv >/dev/null; then
	mkdir "$base/nobody" && chown 65534:65534 "$base/nobody"
	chmod 711 "$work"
	ends 0 "without rights" env -u XDG_CACHE_HOME HOME=/nonexistent SHELF_SHM_DIR="$base/nobody" setpriv --reuid 65534 --regid 65534 --clear-groups \
		"$SHELF" run --size 64M --at "$at" -- sh -c "echo x >$at/f; cat $at/f; ls -l $at; id -u"
fi
# One that becomes another user goes on: in its next image it asks `shelf run` for the segment, which it may not open.
if [ "$(id -u)" = 0 ] && command -v setpriv >/dev/null; then
	export SHELF_RUN_TABLES="$work/tables" # others may not look into it
	mkdir -m 700 "$work/tables"
	as="setpriv --reuid 65534 --regid 65534 --clear-groups"
	ends 0 "rights that are given up" run sh -c "chmod 1777 $at; echo root >$at/f; $as sh -c 'env -i cat $at/f && echo mine >$at/g && ! echo no 2>/dev/null >$at/f' &&
		[ \$(stat -c %u $at/g) = 65534 ] && [ \$(cat $at/f) = root ]"
	ends 0 "and a file of the shelf inherited" run sh -c "echo 12345 >$at/f; chmod 600 $at/f; exec 5<$at/f; $as sh -c 'read x <&5; [ \$x = 12345 ] && ! cat $at/f 2>/dev/null'"
	if has su; then ends 0 "su" run su nobody -s /bin/sh -c "[ \$(id -u) = 65534 ] && ls -ld $at"; fi
	ends 0 "no descriptor is left for an asker: it waits, and nobody is busy meanwhile" run /usr/bin/python3 -c "
import os, resource, socket, sys, time
run = os.environ['SHELF_RUN']; key = run[run.index(',') + 1:run.index(':')]; keeper = os.getppid()
def ticks(): return sum(int(n) for n in open('/proc/%d/stat' % keeper).read().rsplit(')')[-1].split()[11:13])
old = resource.prlimit(keeper, resource.RLIMIT_NOFILE)
resource.prlimit(keeper, resource.RLIMIT_NOFILE, (1 + max(int(n) for n in os.listdir('/proc/%d/fd' % keeper)), old[1]))
s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET); s.connect(b'\\0shelf-run-' + key[:16].encode()); s.send(key[16:].encode())
before = ticks(); time.sleep(1); idle = ticks() - before < os.sysconf('SC_CLK_TCK') // 8
resource.prlimit(keeper, resource.RLIMIT_NOFILE, old)
s.settimeout(20)
sys.exit(not (idle and len(socket.recv_fds(s, 10, 4)[1]) == 1))"
	ends 0 "without the secret" run sh -c "$as /usr/bin/python3 - <<-'END'
		import os, socket, sys
		run = os.environ['SHELF_RUN']; key = run[run.index(',') + 1:run.index(':')]
		def ask(secret):
		    s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET); s.connect(b'\\0shelf-run-' + key[:16].encode()); s.send(secret)
		    return socket.recv_fds(s, 10, 4)[1]
		ok = ask(b'0' * 32) == [] and ask(b'') == [] and ask(key[16:].encode() + b'0') == [] and len(ask(key[16:].encode())) == 1
		sys.exit(not ok)
	END"
	unset SHELF_RUN_TABLES
fi
# Programs that the loader would keep us out of.
if [ "$(id -u)" = 0 ] && command -v setpriv >/dev/null; then
	as="setpriv --reuid 65534 --regid 65534 --clear-groups"
	cp /bin/true "$work/capable" && cp /bin/true "$work/hidden" && chmod 4711 "$work/hidden" && cp /usr/bin/id "$base/owned" && chown 65534 "$base/owned" && chmod 4755 "$base/owned"
	/usr/bin/python3 -c "import os, struct, sys; os.setxattr(sys.argv[1], 'security.capability', struct.pack('<5I', 0x02000001, 1 << 13, 0, 0, 0))" "$work/capable"
	ends 0 "capabilities of a file, for root" run "$work/capable"
	ends 126 "capabilities of a file, for another" run $as "$work/capable"
	says "other rights" "capabilities of a file"
	ends 126 "a set-ID program that may not be read" run $as "$work/hidden"
	says "other rights" "a set-ID program that may not be read"
	ends 0 "a set-ID program of the user's own" run sh -c "cp /bin/true '$work/mine' && chown 65534 '$work/mine' && chmod 4755 '$work/mine' && $as '$work/mine'"
	for ids in "65534, 0, 0" "0, 65534, 0"; do
		ends 5 "ids in force that are not the real ones: $ids" run /usr/bin/python3 -c "
import os
os.setresuid($ids)
try: os.execv('/bin/true', ['true'])
except PermissionError: os._exit(5)"
		says "other rights" "ids in force that are not the real ones: $ids"
	done
	if [ "$("$base/owned" -u)" = 0 ]; then # mounted nosuid
		ends 0 "a set-ID program where that does not count" run "$base/owned"
	else
		ends 126 "a set-ID program" run "$base/owned"
	fi
	ends 0 "and one that no program may gain by" run setpriv --no-new-privs sh -c "cp '$base/owned' '$work/owned' && chown 65534 '$work/owned' && chmod 4755 '$work/owned' && '$work/owned'"
	rm "$base/owned"
fi

# A run that is killed leaves its promise and its shelf to the next one, or to `shelf ls`.
remains() {
	ls "$base" | grep -c "^shelf[-a-z]*\.run-"
}
is_left() {
	n=$(remains)
	if [ "$n" = "$1" ]; then pass; else ls "$base" >"$work/said"; fail "$2: $n files are left, not $1" "$work/said"; fi
}
is_left 0 "runs that ended"
ends 0 "a run that goes on keeps its shelf" run sh -c "echo x >$at/f && '$SHELF' ls && '$SHELF' rm -f none && sh -c 'cat $at/f' && ls $base/shelf-promise.run-*"
ends 137 "a run is killed that used no shelf" "$SHELF" run --at "$at" -- sh -c 'kill -9 $PPID'
is_left 1 "a run is killed that used no shelf"
ends 0 "the next one" "$SHELF" run --at "$at" true
is_left 0 "the next one"
mkfifo "$work/go" "$work/said.go"
for size in "" "--size 64M"; do
	rm -f "$work/pid"
	# shellcheck disable=SC2086
	ends 137 "a run is killed whose program goes on" "$SHELF" run $size --at "$at" -- sh -c "echo kept >$at/f
		sh -c 'exec 5<$at/f; echo \$\$ >$work/pid; read x <$work/go; cat $at/f >$work/said.go' & until [ -s $work/pid ]; do :; done; kill -9 \$PPID"
	"$SHELF" ls >/dev/null
	"$SHELF" run --at "$at" true
	is_left 2 "a shelf that is used"
	if timeout 60 sh -c "echo go >'$work/go'" && [ "$(timeout 60 cat "$work/said.go")" = kept ]; then pass; else fail "its files" /dev/null; fi
	while grep -q "^State:[[:space:]]*[^Z]" "/proc/$(cat "$work/pid")/status" 2>/dev/null; do :; done # nobody may wait for it
	"$SHELF" ls >/dev/null
	is_left 0 "a shelf that is not used any more"
done
n=$(scaled 20)
ends 0 "$n named runs keep their files" sh -c "for i in \$(seq $n); do '$SHELF' run --name kept --size 64M --at '$at' -- sh -c \"echo \$i >>$at/f\" || exit 1; done
	[ \"\$('$SHELF' run --name kept --at '$at' -- cat $at/f | wc -l)\" = $n ] && '$SHELF' check kept && '$SHELF' rm kept"
finish
