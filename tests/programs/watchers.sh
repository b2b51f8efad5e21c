#!/bin/sh
# Programs that wait for changes: inotifywait, tail, python; by changes of their own and of others.
. "$(dirname "$0")/lib/lib.sh"

# until_said FILE TEXT: waits for that, 20 s at most.
wait_for='
until_said() {
	i=0
	while ! grep -q "$2" "$1" 2>/dev/null; do
		i=$((i + 1)); [ $i -lt 2000 ] || { echo "never said: $2"; return 1; }
		sleep 0.01
	done
}
'
# Whether equal events in a row are one depends on how fast they are read: uniq.  The other directory is there to be compared, and leaves nothing behind.
if has inotifywait; then
	both "inotifywait" "$wait_for"'
	mkdir -p w/sub "$HOST.w"
	inotifywait -m -r --format "%w %e %f" w "$HOST.w" >"$HOST.said" 2>"$HOST.err" &
	until_said "$HOST.err" established
	echo a >w/f; cat w/f >w/copy; mv w/f w/sub/g; chmod 600 w/sub/g; ln w/sub/g w/hard; rm w/sub/g; mv w/hard "$HOST.w/"
	echo b >"$HOST.w/hard"; ls w >/dev/null; touch w/end
	until_said "$HOST.said" "CLOSE_WRITE,CLOSE end"
	kill $!; wait $! 2>/dev/null
	grep "^w" "$HOST.said" | uniq; echo; grep -v "^w" "$HOST.said" | sed "s,.*\.w/,," | uniq; rm -r "$HOST".*
	'
	both "inotifywait, once, and by other processes" "$wait_for"'
	mkdir d
	for i in 1 2 3; do inotifywait -e close_write --format "%e %f" d >"$HOST.$i" 2>"$HOST.e$i" & until_said "$HOST.e$i" established; done
	(exec sh -c "echo x >d/other")
	wait; cat "$HOST.1" "$HOST.2" "$HOST.3"
	inotifywait -q -t 1 d; echo $?
	inotifywait -q none; echo $?
	'
fi
both "tail -f" "$wait_for"'
: >log; tail -f -n +1 log >"$HOST.out" & p=$!
for i in 1 2 3; do echo line $i >>log; until_said "$HOST.out" "line $i" || break; done
sh -c "echo by another >>log"; until_said "$HOST.out" "by another"
ls -l /proc/$p/fd | grep -c inotify
kill $p; wait $p 2>/dev/null; cat "$HOST.out"
'
both "python" '
cat >w.py <<"EOF"
import ctypes, os, select, struct, subprocess, sys
libc = ctypes.CDLL(None, use_errno=True)
fd = libc.inotify_init1(os.O_NONBLOCK)
poll = select.epoll()
poll.register(fd, select.EPOLLIN)
os.mkdir("d")
host = os.environ["HOST"] + ".d"
os.mkdir(host)
watches = {libc.inotify_add_watch(fd, p.encode(), 0xfff): n for n, p in (("shelf", "d"), ("host", host))}
print(watches, poll.poll(0))
def events():
    got = []
    while poll.poll(0):
        data, at = os.read(fd, 4096), 0
        while at < len(data):
            wd, mask, cookie, n = struct.unpack_from("iIII", data, at)
            got.append((watches[wd], hex(mask), data[at + 16:at + 16 + n].rstrip(b"\0").decode()))
            at += 16 + n
    return got
with open("d/f", "w") as f:
    f.write("x" * 100000)
print(events())
subprocess.run(["sh", "-c", "echo x >d/g; rm d/g"])
print(len(poll.poll(20)), events())
with open(host + "/h", "w") as f:
    f.write("x")
print(events())
os.rename("d/f", "d/e"); os.listdir("d"); os.unlink("d/e"); os.rmdir("d")
print(events())
os.unlink(host + "/h"); os.rmdir(host)
EOF
python3 w.py
'
if [ "$(id -u)" = 0 ] && command -v setpriv >/dev/null && has inotifywait; then
	both "changes by another user" "$wait_for"'
	other="setpriv --reuid 65534 --regid 65534 --clear-groups"
	mkdir -m 777 d
	inotifywait -e create --format "%e %f" d >"$HOST.1" 2>"$HOST.e1" & until_said "$HOST.e1" established
	$other sh -c "echo x >d/theirs"; wait $!; cat "$HOST.1"
	$other inotifywait -e create --format "%e %f" d >"$HOST.2" 2>"$HOST.e2" & until_said "$HOST.e2" established
	echo x >d/ours; wait $!; cat "$HOST.2"
	'
	[ -z "$(find "$base" -name "shelf-wake*")" ] || fail "tokens are left" /dev/null
fi
finish
