#!/bin/sh
# FIFOs, sockets, devices and descriptors in messages: the same on a shelf as on tmpfs; nothing stays behind.
. "$(dirname "$0")/lib/lib.sh"

mkdir shelf
mkdir "$SHELF_SHM_DIR/tmpfs"
status 0 "on tmpfs" python3 "$lib/nodes.py" "$SHELF_SHM_DIR/tmpfs"
rm -rf "$SHELF_SHM_DIR/tmpfs"
status 0 "on a shelf" "$SHELF" run --size 64M --at shelf -- python3 "$lib/nodes.py" shelf
printed "0 failed" "all holds"
check "nothing stays behind" [ -z "$(ls -A "$SHELF_SHM_DIR")" ]
status 0 "strictly" "$SHELF" run --size 64M --at shelf --strict -- python3 "$lib/nodes.py" shelf
check "no call slips past" [ ! -s .err ]

# a shelf that stays
status 0 "on a shelf that stays" "$SHELF" run --name kept --size 64M --at shelf -- python3 "$lib/nodes.py" shelf
status 0 "its check" "$SHELF" check kept
status 0 "nothing is in flight any more" "$SHELF" fds --name kept
check "at all" [ ! -s .out ]
check "nor is a carrier left" [ -z "$(find "$SHELF_SHM_DIR" -name 'c-*')" ]
status 0 "a FIFO from before" "$SHELF" run --name kept --at shelf -- sh -c 'echo again >shelf/q & cat shelf/q'
printed "again" "works again"
status 0 "a FIFO that is removed" "$SHELF" run --name kept --at shelf -- sh -c 'rm shelf/q shelf/d2'
check "takes its hidden file along" [ "$(find "$SHELF_SHM_DIR"/shelf-nodes.* -type p | wc -l)" = 0 ]
status 0 "rm" "$SHELF" rm kept
check "takes the folder along" [ -z "$(ls -A "$SHELF_SHM_DIR")" ]

# to a program that is not on the shelf a number is nothing
cat >outside.py <<'END'
import errno, os, socket, sys
s = socket.socket(socket.AF_UNIX)
s.bind('meet')
s.listen(1)
print('ready', flush=True)
c = s.accept()[0]
fd = socket.recv_fds(c, 1, 1)[1][0]
for what in (lambda: os.read(fd, 1), lambda: os.write(fd, b'x'), lambda: os.lseek(fd, 0, 0), lambda: os.ftruncate(fd, 0)):
    try:
        what()
        sys.exit('it works')
    except OSError as e:
        print(errno.errorcode[e.errno])
END
cat >inside.py <<'END'
import socket
f = open('shelf/f', 'w+')
c = socket.socket(socket.AF_UNIX)
c.connect('meet')
socket.send_fds(c, [b'x'], [f.fileno()])
c.recv(1)
END
mkfifo said
python3 outside.py >said &
exec 7<said
read -r _ <&7
status 0 "a number for a program outside" "$SHELF" run --size 64M --at shelf -- python3 inside.py
check "is of no use there" [ "$(cat <&7 | tr '\n' ' ')" = "EINVAL ENOTCONN ESPIPE EINVAL " ]
check "and fails clearly" wait $!
exec 7<&-
check "nothing stays behind after all" [ -z "$(ls -A "$SHELF_SHM_DIR")" ]

finish
