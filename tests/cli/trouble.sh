#!/bin/sh
# put and get when something goes wrong: what is said, what stays, what is removed.
. "$(dirname "$0")/lib/lib.sh"

chmod 755 "$work"
as_user() {
	if [ "$(id -u)" = 0 ]; then
		setpriv --reuid 65534 --regid 65534 --clear-groups -- "$@"
	else
		"$@"
	fi
}

# sources that cannot be read
mkdir -p part/closed part/open && echo 1 >part/open/a && echo 2 >part/secret && echo 3 >part/closed/in && echo 4 >part/z
chmod 000 part/secret part/closed
chmod 755 part part/open
mine=$SHELF_SHM_DIR
SHELF_SHM_DIR=$(mktemp -d /dev/shm/shelf-cli.XXXXXX) && chmod 777 "$SHELF_SHM_DIR"
if as_user true 2>/dev/null; then
	status 1 "unreadable files" as_user "$SHELF" put --create --size 64M u part
	told "part/secret: open: Permission denied" "the file is named with the call"
	told "part/closed: open directory: Permission denied" "the directory is named"
	told "2 could not be put; 2 were" "they are counted"
	mkdir -m 777 got
	status 1 "a directory closed in the shelf too" as_user "$SHELF" get u got
	told "u:/closed: open directory: Permission denied" "is named"
	check "the rest is there" [ "$(cat got/open/a got/z)" = "1
4" ]
	check "the unreadable are not" [ ! -e got/secret ]
	mkdir -m 755 wall
	status 1 "a target that cannot be written" as_user "$SHELF" get u wall
	told "Permission denied" "says why"
fi
rm -rf "$SHELF_SHM_DIR"
SHELF_SHM_DIR=$mine
chmod -R 755 part
status 1 "a source that is missing" "$SHELF" put --create m none
told "none: open: No such file" "is named"
check "and makes no shelf" [ ! -e "$SHELF_SHM_DIR/shelf.m" ]
status 1 "a source that is no tree" "$SHELF" put --create m /dev/null
status 1 "a target that is a file" "$SHELF" get m part/z
"$SHELF" create --size 64M m
status 1 "a target below a file" "$SHELF" get m part/z/x
told "part/z/x" "is named"

# paths longer than a system call takes
python3 - <<'END'
import os
os.mkdir('deep')
os.chdir('deep')
open('top', 'w').close()
for i in range(60):
    os.mkdir('d' * 100)
    os.chdir('d' * 100)
    open('f', 'w').close()
END
status 1 "paths longer than 4095 bytes" "$SHELF" put --create --size 64M deep deep
told "longer than 4095 bytes" "says so"
status 0 "the rest of them" "$SHELF" get deep shallow
check "is there" [ -e shallow/top ]
check "forty levels of it" [ "$(find shallow -name f | wc -l)" = 40 ]

# kinds in each other's way
mkdir -p kinds/dir_over_file kinds/file_over_dir.d && echo x >kinds/file_over_dir
rmdir kinds/file_over_dir.d
mkdir -p other/file_over_dir/full && echo x >other/dir_over_file
"$SHELF" put --create --size 64M k kinds
status 1 "a file where a directory is" "$SHELF" get k other
told "other/file_over_dir: create: Is a directory" "is named"
check "a directory takes a file's place" [ -d other/dir_over_file ]
check "the directory is not touched" [ -d other/file_over_dir/full ]
mkfifo pipe && rm -f other/x && mkdir t2 && mkfifo t2/file_over_dir
status 0 "a FIFO in the way of a file is replaced, not opened" timeout 20 "$SHELF" get k t2
check "it is a file now" [ -f t2/file_over_dir ]

# no space in the shelf
head -c 20000000 /dev/zero | tr '\0' x >part/zz_large
i=0
while [ $i -lt 300 ]; do
	head -c 100000 part/zz_large >part/m$i
	i=$((i + 1))
done
status 1 "a shelf that is full" "$SHELF" put --create --size 16M full part
told "No space left on device" "names the reason"
told "the shelf full is full: remove files from it, or make a larger one" "says what to do"
check "stops at once" [ "$(grep -c 'No space' .err)" = 1 ]
status 0 "a full shelf has no faults" "$SHELF" check full
status 0 "what fitted" "$SHELF" get full fitted
check "has no half file" sh -c 'cd fitted && for f in *; do [ -d "$f" ] || cmp -s "$f" "../part/$f" || exit 1; done'

# no space on the host
mkdir small
if [ "$(id -u)" = 0 ] && mount -t tmpfs -o size=1M none small 2>/dev/null; then
	status 1 "a target that is full" "$SHELF" get full small
	told "No space left on device" "names the reason"
	told "there is no space left there" "says what to do"
	check "no half file there" sh -c 'cd small && for f in *; do [ -d "$f" ] || cmp -s "$f" "../part/$f" || exit 1; done'
	umount small
	mount -t tmpfs -o size=8M none small
	status 1 "a shelf below its limit, where there is no memory" env SHELF_SHM_DIR="$work/small" "$SHELF" put --create --size 64M roomy part
	told "there is no memory left in $work/small, the shelf roomy is not at its limit" "says which of both is full"
	umount small
fi

# the shelf that the command itself is run on
status 0 "a command in a run that does not use the shelf" "$SHELF" run --name inside --at prefix -- "$SHELF" stat inside
for c in "stat inside" "ls inside" "df inside" "check inside" "fds --name inside" "get inside out" "put inside ../part"; do
	status 1 "shelf $c from a place in it" "$SHELF" run --name inside --at prefix -- sh -c "cd prefix && \"\$SHELF\" $c 2>&1"
	printed "inside: in use here by \`shelf run\`" "says what has it"
done
status 0 "another shelf from there" "$SHELF" run --at prefix -- sh -c 'cd prefix && "$SHELF" stat inside'
status 0 "interruption and progress" python3 "$lib/interrupt.py" "$SHELF"
finish
