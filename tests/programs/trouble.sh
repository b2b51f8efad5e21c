#!/bin/sh
# No room, wrappers that preload their own, and many at once.
. "$(dirname "$0")/lib/lib.sh"

size=24M on_shelf "a full shelf: its writer is told, nobody else, and nothing is lost" '
set -e
seq 20000 >kept; sum=$(sha256sum <kept); mkfifo go
(read x <go; for i in $(seq 200); do grep -q "^$i\$" kept || exit 1; echo $i >>kept.$((i % 2)) || [ $i -gt 0 ]; done) & other=$!
exec 9<>kept
if dd if=/dev/zero of=big bs=64k 2>/dev/null; then exit 11; fi
echo go >go; wait $other
[ "$(sha256sum <kept)" = "$sum" ] || exit 12
if dd if=/dev/zero of=more bs=1M count=4 2>/dev/null; then exit 13; fi
rm big; rm -f more; sync
dd if=/dev/zero of=more bs=1M count=8 2>/dev/null || exit 14
cmp -n 8388608 more /dev/zero || exit 15
[ "$(sha256sum <kept)" = "$sum" ] || exit 16
'
size=24M on_shelf "a full shelf: no names are left of what had no room" '
for round in 1 2 3; do
	dd if=/dev/zero of=big bs=64k 2>/dev/null
	i=0; while echo $i 2>/dev/null >f$i && mkdir d$i 2>/dev/null && ln -s x l$i 2>/dev/null; do i=$((i + 1)); [ $i -lt 100000 ] || exit 21; done
	for f in f*; do [ -s $f ] || { [ $f = f$i ] || exit 22; }; done
	for d in d*; do [ ! -d $d ] || rmdir $d || exit 23; done
	rm -f f* l* big || exit 24
	[ -z "$(ls -A)" ] || exit 25
done
'
if has fakeroot; then
	work_of_root='
	mkdir d; echo x >d/f; chown 12:34 d/f; chmod 4755 d/f; ln -s f d/l; chown -h 5:6 d/l; mknod d/null c 1 3; cp -a d e; tar --sort=name -cf t.tar d
	find d e -printf "%p %U %G %m %y\n" | sort; tar tvf t.tar | cut -c 1-30; rm -r d; tar xpf t.tar; find d -printf "%p %U %G %m %y\n" | sort; rm -r d e t.tar'
	edit='s/[0-9]* 20..-..-..*//' both "fakeroot within" "fakeroot sh -c '$work_of_root'"
	mkdir -p "$base/outer" "$work/plain"
	rm -f "$base/shelf.o"
	(cd "$work/plain" && fakeroot sh -c "$work_of_root") 2>&1 | sed 's/[0-9]* 20..-..-..*//' >"$work/plain.out"
	fakeroot "$SHELF" run --size 64M --at "$base/outer" -- sh -c "cd '$base/outer'; $work_of_root" 2>&1 | sed 's/[0-9]* 20..-..-..*//' >"$work/outer.out"
	if diff "$work/plain.out" "$work/outer.out" >"$work/diff"; then pass; else fail "fakeroot outside (< without a shelf, > with)" "$work/diff"; fi
fi
finish
