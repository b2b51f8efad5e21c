#!/bin/sh
# put of archives: hostile ones lead nowhere, broken ones are told, other formats are read.
. "$(dirname "$0")/lib/lib.sh"

python3 "$lib/make_archives.py" || exit 1
mkdir outside && echo safe >outside/file

hostile() {
	status "$1" "$2: put" "$SHELF" put --create --size 64M --to in/side h "$2"
}

"$SHELF" put --create --size 64M --to outside h outside
hostile 1 dotdot.tar
told "has '..' in it" "an entry with .. is named"
hostile 0 absolute.tar
told "leading '/'" "an absolute name is told"
status 0 "got" "$SHELF" get h out1
check "an absolute name lands below" [ "$(cat out1/in/side/tmp/absolute)" = data ]
check "so does what comes after an entry left out" [ "$(cat out1/in/side/after)" = data ]
check "nothing is above" [ "$(ls out1)" = "in
outside" ]
hostile 1 through_symlink.tar
hostile 1 through_symlink_absolute.tar
hostile 1 hardlink_out.tar
hostile 0 hardlink_to_symlink.tar
hostile 0 replaced_symlink.tar
hostile 1 long_names.tar
told "longer than 255 bytes" "a name that is too long is told"
told "longer than 4095 bytes" "a path that is too long is told"
status 0 "no faults after hostile archives" "$SHELF" check h
status 0 "got again" "$SHELF" get h out2
check "no hostile archive changed a file outside" [ "$(cat out2/outside/file)" = safe ]
check "nor made one" [ "$(ls out2/outside)" = file ]
check "a file in place of a link is a file" [ "$(cat out2/in/side/victim)" = data ] &&
	check "and no link" [ ! -L out2/in/side/victim ]
check "what a long path follows is there" [ "$(cat out2/in/side/after)" = data ]

# the same links on the host's side: they come from the shelf, and what is there already is not followed
mkdir target && ln -s ../outside target/in
status 0 "a directory in place of a link of the target" "$SHELF" get h target
check "the link's target is untouched" [ "$(ls outside)" = file ]

for kind in cpio.cpio zip.zip plain.tar.gz plain.tar.xz plain.tar.bz2 plain.tar.zst; do
	[ -s "$kind" ] || continue
	"$SHELF" rm -f k
	status 0 "$kind: from standard input" sh -c "exec \"\$0\" put --create --size 64M k - <$kind" "$SHELF"
	status 0 "$kind: as a file" "$SHELF" put k "$kind"
	rm -rf k
	status 0 "$kind: got" "$SHELF" get k k
	check "$kind: data" [ "$(cat k/d/f)" = data ]
	case $kind in zip.zip) ;; *) check "$kind: link" [ "$(readlink k/d/l)" = f ] ;; esac
done
check "a hard link whose data comes last" [ "$(cat k/d/f)" = data ]

for cut in 600 5000 200000; do
	head -c $cut big.tar.gz >cut.tar.gz
	"$SHELF" rm -f c
	status 1 "an archive cut at $cut" "$SHELF" put --create --size 64M c cut.tar.gz
	told "cut.tar.gz" "is named"
	status 0 "an archive cut at $cut leaves no faults" "$SHELF" check c
	rm -rf c
	"$SHELF" get c c
	check "an archive cut at $cut leaves no half file" [ ! -e c/big ]
done
head -c 300000 big.tar >cut.tar
status 1 "a tar stream that ends" sh -c 'exec "$0" put c - <cut.tar' "$SHELF"
told "what came before is copied" "it is told"

head -c 4000 /dev/urandom >noise
status 1 "noise is no archive" "$SHELF" put c noise
told "noise" "the file is named"
: >nothing
status 1 "an empty file is no archive" "$SHELF" put c nothing
told "is empty" "it is told"
printf '#mtree\n./x type=file contents=/etc/hostname\n' >list.mtree
status 1 "a list of the host's files is no archive" "$SHELF" put c list.mtree
finish
