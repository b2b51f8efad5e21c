#!/bin/sh
# A scratch shelf is made by who first needs it, once, and is gone with its run.
. "$(dirname "$0")/lib/lib.sh"

export SHELF_RUN_TABLES="$work/tables"
mkdir -m 700 tables shelf
nothing_left() {
	check "$1: nothing is left" [ -z "$(ls -A "$SHELF_SHM_DIR")" ]
}
run() {
	"$SHELF" run --at shelf -- "$@"
}

# who needs none makes none
status 0 "a program that does not use the shelf" run sh -c 'echo "$SHELF_SHM_DIR"/*'
check "has a promise, and no shelf" grep -qxE '[^ ]*/shelf-promise\.run-[0-9]+-[0-9a-f]+' .out
nothing_left "a promise"
status 0 "one that does" run sh -c 'echo x >shelf/f && ls "$SHELF_SHM_DIR"'
check "has one" grep -qxE 'shelf\.run-[0-9]+-[0-9a-f]+' .out
nothing_left "a shelf"
status 0 "a shelf of its own size" "$SHELF" run --size 64M --at shelf -- "$SHELF" ls
check "is made at once" grep -qE 'run-.*64M' .out
status 0 "the shelf's root" run stat -c '%u %g %a' shelf
printed "$(id -u) $(id -g) 1777" "is the user's"
status 0 "strictly" "$SHELF" run --strict --at shelf -- sh -c 'echo x >shelf/f && cat shelf/f'
printed x "the same"

# the first one who needs it has given up the rights to make it: shelf run does
if [ "$(id -u)" = 0 ] && command -v setpriv >/dev/null; then
	chmod 755 "$work" "$SHELF_SHM_DIR"
	status 0 "another user comes first" run setpriv --reuid=65534 --regid=65534 --clear-groups sh -c 'echo x >shelf/f; stat -c "%u %s" shelf/f'
	printed "65534 2" "and has the shelf"
	status 0 "the shelf's root, then" run setpriv --reuid=65534 --regid=65534 --clear-groups stat -c '%u %g %a' shelf
	printed "0 0 1777" "is who started it's"
	nothing_left "another user"
fi

# many at once: all meet in one
for round in 1 2 3 4 5; do
	status 0 "first users at once, $round" run sh -c '
		for i in 1 2 3 4 5 6 7 8; do sh -c "echo $i >>shelf/f" & done; wait; wc -l <shelf/f; exit 0'
	printed 8 "all are in one shelf"
done
nothing_left "many"

# what is in flight between processes has a keeper from the first message on
cat >send.py <<'END'
import os, socket
a, b = socket.socketpair()
if os.fork() == 0:
    for i in range(3):
        fd = os.open("shelf/f%d" % i, os.O_RDWR | os.O_CREAT)
        os.write(fd, b"sent %d" % i)
        socket.send_fds(a, [b"x"], [fd])
    os._exit(0)
os.wait()
for i in range(3):
    fds = socket.recv_fds(b, 9, 4)[1]
    assert os.pread(fds[0], 9, 0) == b"sent %d" % i
END
status 0 "files sent by a process that has ended" run python3 send.py
nothing_left "the sent"

# a maker that died left a file, empty, with a length, or half a header
cat >left.py <<'END'
import os, sys
name = os.environ["SHELF_RUN"].split(":")[1].split("/")[0]
path = os.path.join(os.environ["SHELF_SHM_DIR"], "shelf." + name)
if sys.argv[1] == "folder":
    os.mkdir(path)
else:
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
    if sys.argv[1] != "empty":
        os.truncate(fd, 1 << 26)
    if sys.argv[1] == "header":
        os.pwrite(fd, bytes(range(1, 201)), 8)
    os.utime(fd, (1, 1))
open("shelf/f", "w").write("made")
print(open("shelf/f").read())
END
for left in empty length header; do
	status 0 "what a dead maker left: $left" run python3 left.py $left
	printed made "is thrown away, and the shelf made"
done
status 126 "a file of another kind in its place" run python3 left.py folder
told "shelf.run-" "is told"
check "and left alone" rmdir "$SHELF_SHM_DIR"/shelf.*

# a maker that is killed while it makes: the next one does
cat >killer.py <<'END'
import os, signal, sys, time
ready, go = os.pipe()
pid = os.fork()
if pid == 0:
    os.write(go, b"x")
    open("shelf/f", "w").close()
    signal.pause()
os.read(ready, 1)
until = time.perf_counter_ns() + int(sys.argv[1]) * 5000
while time.perf_counter_ns() < until:
    pass
os.kill(pid, signal.SIGKILL)
os.waitpid(pid, 0)
for i in range(2):
    if os.fork() == 0:
        fd = os.open("shelf/g", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        os.write(fd, b"y")
        os._exit(0)
for i in range(2):
    assert os.wait()[1] == 0
assert open("shelf/g").read() == "yy"
END
for after in $(seq 0 3 90); do
	status 0 "a maker that is killed after $after" run python3 killer.py $after
done
nothing_left "the killed"

# a process that outlives its run and comes late
mkfifo go ended
"$SHELF" run --at shelf -- sh -c '(read line <go; echo late >shelf/f; echo used) >ended 2>late & exit 0' &
exec 8<ended 7>go
wait
echo >&7
check "who comes after the run has no shelf" [ -z "$(cat <&8)" ]
check "and is told" grep -q 'no such shelf' late
exec 7>&- 8<&-
nothing_left "the late"

# where shelves cannot be
status 126 "no place for shelves" env SHELF_SHM_DIR=/nonexistent "$SHELF" run --at shelf -- true
told "/nonexistent" "is told at once"

finish
