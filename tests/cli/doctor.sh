#!/bin/sh
# doctor and fds: what they tell of a machine that works, of one that does not, and of programs on a shelf.
. "$(dirname "$0")/lib/lib.sh"

root=$(cd "$lib/../../.." && pwd)
export SHELF_RUN_TABLES="$work/tables"
mkdir -m 700 tables shelf

# a machine that works
status 0 "doctor" "$SHELF" doctor
for line in 'libc.so.6 .*build id [0-9a-f]{40}: [0-9]+ system calls, [0-9]+ can be replaced' \
	'libc.so.6 .*left as it is at 0x[0-9a-f]+: returns from a signal handler' 'ld-linux-x86-64.so.2 .*can be replaced' \
	'good +attaching .* 0 wanted and left' 'good +self-check .*caught' 'membarrier' 'user dispatch' ; do
	check "doctor tells $line" grep -qE "$line" .out
done
check "its directory for the self-check is gone" [ -z "$(ls -d "${TMPDIR:-/tmp}"/shelf-doctor.* 2>/dev/null)" ]
check "it leaves no shelf" [ -z "$(ls -A "$SHELF_SHM_DIR")" ]
status 0 "doctor with tables" "$SHELF" doctor
printed "its table is kept in $work/tables" "the tables it made are found"
printed "ready copies" "and the copies made by them"
chmod g+w tables/*.so
status 0 "doctor with copies that others may write to" "$SHELF" doctor
check "has copies of its own beside them" [ "$(find tables -name '*.so' -perm 600 | wc -l)" = "$(find tables -name '*.so' -perm -020 | wc -l)" ]
chmod g+w tables/*.so
status 0 "doctor with none that it may use" "$SHELF" doctor
printed "by tables" "uses the tables"
status 0 "doctor --json" "$SHELF" doctor --json
check "is a list of verdicts" python3 -c '
import json, sys
told = json.load(open(sys.argv[1]))
assert {"libc.so.6", "attaching", "membarrier", "self-check"} <= {t["check"] for t in told}
assert {t["verdict"] for t in told} <= {"good", "limit"}, told' .out

# machines that do not
printf 'not a table' >"$(ls tables/*.sites | head -n 1)"
status 0 "a damaged table" "$SHELF" doctor
check "is told" grep -qE '^limit .*no table in' .out
status 1 "no place for shelves" env SHELF_SHM_DIR=/nonexistent "$SHELF" doctor
check "is told" grep -qE '^failed +/nonexistent .*SHELF_SHM_DIR' .out
check "and the self-check fails" grep -qE '^failed +self-check' .out
status 1 "a place for shelves that is not on a tmpfs" env SHELF_SHM_DIR=/proc "$SHELF" doctor
check "is told too" grep -qE '^failed +/proc +not on a tmpfs' .out
mkdir alone && cp "$SHELF" alone/shelf
status 1 "no commands" alone/shelf doctor
told "shelf-commands is not installed" "is told"
cp "$(dirname "$SHELF")/shelf-commands" alone
status 1 "no library" alone/shelf doctor
told "libshelf-run.so is not installed" "is told"
status 2 "doctor with an argument" "$SHELF" doctor x
status 1 "the self-check off a shelf" "$SHELF" doctor --self-check "$work"
printed "open: not caught" "fails"
rm -f file
status 0 "doctor on a shelf" "$SHELF" run --at shelf -- "$SHELF" doctor
printed "runs on a shelf already" "leaves the self-check out"

# the table of calls
check "docs/interposition.md has the table of calls" python3 "$root/scripts/calls-table" --check "$SHELF"

# fds
cat >hold.py <<'END'
import os, sys
top = sys.argv[1]
a = open(top + '/file name', 'wb', buffering=0)
a.write(b'12345678')
os.set_inheritable(a.fileno(), True)
b = os.open(top + '/file name', os.O_RDWR | os.O_APPEND)
c = os.open(top, os.O_RDONLY | os.O_DIRECTORY)
d = os.open(top, os.O_PATH)
gone = os.open(top + '/gone', os.O_CREAT | os.O_RDONLY)
os.unlink(top + '/gone')
print(os.getpid(), a.fileno(), b, c, d, gone, os.stat(top + '/file name').st_ino, flush=True)
sys.stdin.read()
END
mkfifo go said
"$SHELF" run --name held --size 64M --at shelf -- python3 hold.py shelf <go >said &
exec 7>go
read -r pid a b c d gone ino <said
status 0 "fds" "$SHELF" fds
check "the append descriptor" grep -qE "^python3 +$pid +${b}u +REG +AP,CX .* 8 +$ino held:/file name\$" .out
check "the writer, at its offset" grep -qE "^python3 +$pid +${a}w +REG +- +8 +8 +$ino held:/file name\$" .out
check "the directory" grep -qE "^python3 +$pid +${c}r +DIR .* held:/\$" .out
check "the O_PATH descriptor" grep -qE "^python3 +$pid +${d}- +DIR .* held:/\$" .out
check "the removed file" grep -qE "^python3 +$pid +${gone}r +REG .*\(deleted\)\$" .out
status 0 "fds of the process" "$SHELF" fds --name held --json "$pid"
check "as JSON" python3 -c '
import json, sys
rows = {r["fd"]: r for r in json.load(open(sys.argv[1])) if not r["own"]}
a, b, c, d, gone, ino = map(int, sys.argv[2:])
assert set(rows) == {a, b, c, d, gone}, rows
assert rows[a]["offset"] == 8 and rows[a]["mode"] == "w" and not rows[a]["cloexec"]
assert rows[b]["inode"] == ino and rows[b]["cloexec"] and rows[b]["path"] == "/file name"
assert rows[gone]["deleted"] and not rows[c]["deleted"]' .out "$a" "$b" "$c" "$d" "$gone" "$ino"
status 1 "fds of a process without" "$SHELF" fds $$
told "has nothing open" "says so"
status 1 "fds of a shelf that is not there" "$SHELF" fds --name none
status 2 "fds of two" "$SHELF" fds 1 2
status 2 "fds of a word" "$SHELF" fds x
exec 7>&-
wait
status 0 "fds of nothing" "$SHELF" fds
check "prints nothing" [ ! -s .out ]

# a child of a process that has nothing of the shelf open is no task of it, one that inherits a file is
mkfifo quiet
for inherit in '' 'exec 3<shelf/f; '; do
	"$SHELF" run --name held --at shelf -- bash -c "echo x >shelf/f; ${inherit}cat <quiet; exit 0" &
	exec 7>quiet
	status 0 "stat while a child waits" "$SHELF" stat held
	check "counts shelf run, the shell${inherit:+, and the child}" grep -qE "^tasks +$((2 + ${#inherit} / 16))\$" .out
	exec 7>&-
	wait
done

# whatever becomes of the environment
status 0 "a child with an empty environment" "$SHELF" run --at shelf -- sh -c 'echo kept >shelf/f; env -i /bin/cat shelf/f'
printed "kept" "is on the shelf"
status 0 "a child with another SHELF_SHM_DIR" "$SHELF" run --at shelf -- sh -c '
	echo kept >shelf/f; SHELF_SHM_DIR=/nonexistent sh -c "cat shelf/f; echo \$SHELF_SHM_DIR"'
printed "kept" "is on the shelf"
printed "/nonexistent" "and has its own variable"
status 0 "a program that writes over its environment" "$SHELF" run --at shelf -- python3 -c '
import ctypes, os
libc = ctypes.CDLL(None)
start = ctypes.c_void_p.in_dll(libc, "environ").value
first = ctypes.cast(start, ctypes.POINTER(ctypes.c_void_p))
i = 0
while first[i]:
    ctypes.memset(first[i], ord("x"), len(ctypes.string_at(first[i])))
    i += 1
open("shelf/f", "w").write("after")
assert open("shelf/f").read() == "after"
os.execve("/bin/cat", ["cat", "shelf/f"], {})'
printed "after" "is on the shelf"

# what /proc shows of itself
cat >self.c <<'END'
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/prctl.h>
#include <sys/stat.h>
int main(int argc, char **argv)
{
	char name[17] = "";
	struct stat a, b;
	prctl(PR_GET_NAME, name);
	return argc > 2 || strcmp((char *)getauxval(AT_EXECFN), argv[1]) || strcmp(name, "self") || stat("/proc/self/exe", &a) ||
	       stat(argv[1], &b) || a.st_ino != b.st_ino || a.st_dev != b.st_dev;
}
END
cat >list.py <<'END'
import os
files = [open('f%d' % i, 'w') for i in range(6)]
numbers = [f.fileno() for f in files]
for f in files[1:5]:
    f.close()
for folder in '/proc/self/fd', '/dev/fd', '/proc/self/fdinfo', '/proc/%d/fd' % os.getpid():
    listed = set(map(int, os.listdir(folder)))
    listed = {n for n in listed if n in numbers}
    # the listing itself takes the lowest
    assert listed == {numbers[0], numbers[1], numbers[5]}, (folder, numbers, listed)
assert os.readlink('/proc/self/fd/%d' % numbers[5]) == os.getcwd() + '/f5'
assert os.readlink('/proc/self/cwd') == os.getcwd() == os.path.realpath('/proc/self/cwd')
assert os.path.islink('/proc/self/cwd') and 'f0' in os.listdir('/proc/self/cwd')
END
check "self.c compiles" cc -o self self.c
status 0 "a program in the shelf knows its own path and name" "$SHELF" run --at shelf -- sh -c 'cp self shelf && shelf/self "$PWD/shelf/self"'
status 0 "its link names it" "$SHELF" run --at shelf -- sh -c 'cp "$(command -v readlink)" shelf/link && shelf/link /proc/self/exe'
printed "$work/shelf/link" "by its path in the shelf"
status 0 "and is not handed on" "$SHELF" run --at shelf -- sh -c 'cp "$(command -v env)" shelf/env && shelf/env readlink /proc/self/exe'
check "to a program outside" grep -q '/bin/' .out
status 0 "listings of descriptors, and the working directory" "$SHELF" run --at shelf -- sh -c 'cd shelf && python3 ../list.py'

# --strict: a call past libc is told, a program without is not
cat >raw.c <<'END'
#include <fcntl.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
static long raw(long n, long a, long b, long c)
{
	long r;
	__asm__ volatile("syscall" : "=a"(r) : "a"(n), "D"(a), "S"(b), "d"(c) : "rcx", "r11", "memory");
	return r;
}
int main(int argc, char **argv)
{
	int fd = open("shelf/f", O_CREAT | O_RDWR, 0600);
	if (!strcmp(argv[argc - 1], "write"))
		for (int i = 0; i < 3; i++)
			raw(SYS_write, fd, (long)"x", 1);
	if (!strcmp(argv[argc - 1], "open"))
		raw(SYS_open, (long)"shelf/f", O_RDONLY, 0);
	if (!strcmp(argv[argc - 1], "other"))
		return raw(SYS_getpid, 0, 0, 0) != getpid() || raw(SYS_open, (long)"/dev/null", O_RDONLY, 0) < 0;
	if (!strcmp(argv[argc - 1], "fork") && !raw(SYS_fork, 0, 0, 0))
		raw(SYS_write, fd, (long)"x", 1);
	return 0;
}
END
check "raw.c compiles" cc -o raw raw.c
for call in write open; do
	status 0 "a $call past libc" "$SHELF" run --at shelf --strict -- ./raw $call
	check "is told once" [ "$(grep -cE "shelf run --strict: $call at 0x[0-9a-f]+ \(the program\+0x[0-9a-f]+\)" .err)" = 1 ]
done
status 0 "calls past libc that do not concern the shelf" "$SHELF" run --at shelf --strict -- ./raw other
check "are not told" [ ! -s .err ]
status 0 "a fork past libc" "$SHELF" run --at shelf --strict -- ./raw fork
status 0 "a script with children and threads, strictly" "$SHELF" run --at shelf --strict -- sh -c '
	cd shelf && echo hi >f && cat f | wc -c >n && (ls -l >l; sleep 0.01 & wait) && python3 -c "
import subprocess, threading
t = threading.Thread(target=lambda: open(\"t\", \"w\").write(\"x\")); t.start(); t.join()
assert subprocess.run([\"cat\", \"t\"], capture_output=True).stdout == b\"x\"" && test "$(cat n)" = 3'
check "slips nowhere" [ ! -s .err ]
status 0 "the same call without --strict" "$SHELF" run --at shelf -- ./raw write
check "is not told" [ ! -s .err ]

finish
