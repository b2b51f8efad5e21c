#!/bin/sh
# put and get of trees: everything that a file has comes through, in both directions and through an archive.
. "$(dirname "$0")/lib/lib.sh"

python3 "$lib/make_tree.py" tree || exit 1
manifest tree >tree.list || exit 1

status 0 "a tree is put into a new shelf" "$SHELF" put --create --size 256M a tree
status 0 "a shelf with everything in it has no faults" "$SHELF" check a
status 0 "a tree is got into a new directory" "$SHELF" get a got
manifest got >got.list
check "everything is as it was" diff -u tree.list got.list

status 0 "a tree is put over itself" "$SHELF" put a got
status 0 "a shelf put twice has no faults" "$SHELF" check a
status 0 "a tree is got over another" "$SHELF" get a got
manifest tree top atime >tree.list
manifest got top atime >got.list
check "everything is as it was after the second time" diff -u tree.list got.list

rm -f tree/socket
manifest tree top >tree.list
"$SHELF" rm -f a
status 0 "a tree without sockets is put" "$SHELF" put --create --size 256M a tree
"$SHELF" get a - >a.tar 2>tar.err
check "an archive is written" [ $? = 0 ]
check "nothing is said of a good archive" [ ! -s tar.err ]
check "GNU tar reads the archive" tar tf a.tar
"$SHELF" create --size 256M b
"$SHELF" put b - <a.tar 2>tar.err
check "an archive is read" [ $? = 0 ]
check "nothing is said of reading it" [ ! -s tar.err ]
status 0 "what was read from an archive has no faults" "$SHELF" check b
status 0 "what was read from an archive is got" "$SHELF" get b got2
manifest got2 top >got.list
check "everything is as it was, through an archive" diff -u tree.list got.list
check "holes are not in the archive" [ "$(stat -c %s a.tar)" -lt 30000000 ]

for how in --gzip --zstd; do
	"$SHELF" get $how a - >a.tar.z
	check "$how: written" [ $? = 0 ]
	check "$how: smaller" [ "$(stat -c %s a.tar.z)" -lt "$(stat -c %s a.tar)" ]
	"$SHELF" rm -f b
	status 0 "$how: read as a file" "$SHELF" put --create --size 256M b a.tar.z
	status 0 "$how: got" "$SHELF" get b got$how
	manifest tree top atime >tree.list
	manifest got$how top atime >got.list
	check "$how: everything is as it was" diff -u tree.list got.list
done

mkdir t
tar cf t.tar --format=gnu --sparse --xattrs -C tree . 2>/dev/null
"$SHELF" rm -f b
status 0 "GNU tar's own format is read" "$SHELF" put --create --size 256M b t.tar
status 0 "and got" "$SHELF" get b t
check "GNU tar's files have their contents" sh -c 'cmp tree/large t/large && cmp tree/sparse t/sparse && cmp tree/one t/one'
check "GNU tar's holes stay holes" [ "$(stat -c %b t/sparse)" -lt 1000 ]

# parts
status 0 "--to makes the directory" "$SHELF" put --to x/y/z b tree/dir
status 0 "--from takes a part" "$SHELF" get --from /x/y/z b part
manifest tree/dir top atime >1
manifest part top atime >2
check "a part is as it was" diff -u 1 2
status 1 "--from of nothing fails" "$SHELF" get --from /none b part2
told "b:/none" "it is named"
status 1 "--to below a file fails" "$SHELF" put --to one/x b tree/dir

# a directory that was there keeps its own mode
mkdir -m 0751 kept
status 0 "get into a directory that was there" "$SHELF" get --from /x/y/z b kept
check "its mode is its own" [ "$(stat -c %a kept)" = 751 ]

if [ "$(id -u)" = 0 ]; then
	status 0 "--no-owner" "$SHELF" get --no-owner a noowner
	check "files are the caller's" [ "$(stat -c %u:%g noowner/one)" = 0:0 ]
	check "set-ID bits of others are not kept" [ "$(stat -c %a noowner/suid_other)" = 755 ]
fi

# a default list of the target is not handed down
if setfacl -m d:u:1234:rwx kept 2>/dev/null; then
	status 0 "get below a default list" "$SHELF" get --from /x/y/z b kept
	manifest kept top atime >2
	check "nothing is inherited" diff -u 1 2
fi

status 0 "/usr/include is put" "$SHELF" put --create --size 50% inc /usr/include
status 0 "and got" "$SHELF" get inc include
[ "$(id -u)" = 0 ] && owner= || owner=owner
manifest /usr/include holes atime $owner >1
manifest include holes atime $owner >2
check "/usr/include is as it was" diff -u 1 2
finish
