#!/bin/sh
# Options, names, exit statuses, JSON, closed and broken outputs of every command.
. "$(dirname "$0")/lib/lib.sh"

commands="create rm ls df stat check put get bench run fds doctor"
json() {
	"$SHELF" "$@" | python3 -m json.tool
}

# help and version
status 0 "--help" "$SHELF" --help
for c in $commands; do
	printed "  $c " "--help lists $c"
done
status 0 "--version" "$SHELF" --version
check "--version is one line" grep -qxE 'shelf [0-9]+\.[0-9]+\.[0-9]+' .out
status 2 "no command" "$SHELF"
told "usage: shelf" "no command shows the usage"
status 2 "an unknown command" "$SHELF" frobnicate
told "frobnicate" "an unknown command is named"
status 2 "help of an unknown command" "$SHELF" help frobnicate
status 2 "an empty command" "$SHELF" ""
for c in $commands; do
	status 0 "help $c" "$SHELF" help "$c"
	printed "usage: shelf $c" "help $c shows its usage"
	printed "Exit status" "help $c tells the exit statuses"
	check "help $c tells that of wrong use" grep -q '2 usage' .out
	status 0 "$c --help" "$SHELF" "$c" --help
	status 0 "$c -h" "$SHELF" "$c" -h
	status 2 "$c with an unknown option" "$SHELF" "$c" --frobnicate x
	told "--frobnicate" "$c names the unknown option"
	status 2 "$c with an unknown letter" "$SHELF" "$c" -Z x
	told "-Z" "$c names the unknown letter"
done
for c in create rm stat check put get bench run; do
	status 2 "$c without a name" "$SHELF" "$c"
	told "wanted" "$c says what is wanted"
done

# values
for bad in 0 -1 +1 "" x 1x 1e9 101% 0% 99999999999999999999 9999999999T 0x10 "1 " " 1" 1.5G; do
	status 2 "create --size '$bad'" "$SHELF" create --size "$bad" n
	status 2 "put --size '$bad'" "$SHELF" put --create --size "$bad" n
done
for bad in 0 8 77777 -1 x "" 4294967296777 40000000777; do
	status 2 "create --mode '$bad'" "$SHELF" create --mode "$bad" n
done
status 1 "a size beyond all addresses" "$SHELF" create --size 8000000T n
told "too large" "is told"
status 2 "create --size without a value" "$SHELF" create n --size
told "a value is wanted" "is told"
status 2 "ls --json=x" "$SHELF" ls --json=x
told "no value is wanted" "is told"
status 2 "two names" "$SHELF" create a b
status 2 "put of two sources" "$SHELF" put a b c
status 2 "get to two targets" "$SHELF" get a b c
status 2 "put --size without --create" "$SHELF" put --size 1G a
status 2 "doctor --json --calls" "$SHELF" doctor --json --calls
told "--json" "names what does not go"
status 2 "get --gzip to a directory" "$SHELF" get --gzip a dir
for bad in 0 65 x -1 "" 1x 99999999999999999999; do
	status 2 "bench --runs '$bad'" "$SHELF" bench names --runs "$bad"
	status 2 "bench --ms '$bad'" "$SHELF" bench names --ms "${bad}z"
done
for bad in 0 1, 1,x 1025 "" , 1,2,3,4,5,6,7,8,9; do
	[ "$bad" = 1, ] || status 2 "bench --threads '$bad'" "$SHELF" bench names --threads "$bad"
done
status 2 "bench --bytes 1" "$SHELF" bench tiobench --bytes 1
status 2 "bench of a part of a word" "$SHELF" bench get
status 2 "bench of an unknown engine" "$SHELF" bench names --engine what
status 2 "bench of an unknown case" "$SHELF" bench names --case what
status 2 "bench of two" "$SHELF" bench names fdget
status 1 "bench --json to nowhere" "$SHELF" bench names --json /nonexistent/x
told "/nonexistent/x" "is named"
status 1 "bench without its programs" env SHELF_BENCH_DIR=/nonexistent "$SHELF" bench names --runs 1 --ms 1 --engine borrow --case stat
told "/nonexistent/files_borrow" "names the program"

# names
long=$(printf 'n%.0s' $(seq 300))
for bad in ../x a/b / "" "$long"; do
	for c in create put get rm stat check; do
		status 1 "$c '$bad'" "$SHELF" $c -- "$bad"
		check "$c '$bad' says why" [ -s .err ]
	done
done
status 1 "put --create of a bad name" "$SHELF" put --create ../x .
check "nothing was made anywhere" [ -z "$(ls -A "$SHELF_SHM_DIR")" ]
status 0 "a name like an option, behind --" "$SHELF" create --size 8M -- -x
status 0 "a name with a newline" "$SHELF" create --size 8M "new
line"
check "ls --json with odd names" json ls --json
check "ls has them" [ "$("$SHELF" ls --json | python3 -c 'import json,sys; print(len(json.load(sys.stdin)))')" = 2 ]
status 0 "rm behind --" "$SHELF" rm -- -x "new
line"

# the directory of the shelves
mkdir relative
for c in "ls" "df" "fds" "create x" "rm x" "stat x" "check x"; do
	status 1 "shelf $c with a relative directory" sh -c "SHELF_SHM_DIR=relative \"\$SHELF\" $c"
	told "SHELF_SHM_DIR is 'relative'; set it to an absolute path" "says so"
done
status 126 "shelf run with a relative directory" env SHELF_SHM_DIR=relative "$SHELF" run --at prefix -- true
told "SHELF_SHM_DIR is 'relative'; set it to an absolute path" "says so"
check "nothing was made there" [ -z "$(ls -A relative)" ]

# a directory that is not on a tmpfs: /proc always, and ours mostly
for c in "create x" "put --create x relative"; do
	status 1 "shelf $c where there is no tmpfs" sh -c "SHELF_SHM_DIR=/proc \"\$SHELF\" $c"
	told "/proc: is not on a tmpfs" "is refused"
done
mkdir prefix disk
for c in "" "--name x" "--size 8M"; do
	# shellcheck disable=SC2086 # words
	status 126 "shelf run $c where there is no tmpfs" env SHELF_SHM_DIR=/proc "$SHELF" run $c --at prefix -- true
	told "/proc: is not on a tmpfs" "is refused"
done
if [ "$(stat -f -c %T disk)" != tmpfs ]; then
	status 1 "create on a disk" env SHELF_SHM_DIR="$work/disk" "$SHELF" create --size 8M x
	told "SIGBUS; mount a tmpfs there, or set SHELF_SHM_DIR" "says why, and what to do"
	check "nothing was made there" [ -z "$(ls -A disk)" ]
	"$SHELF" create --size 8M kept && echo text | "$SHELF" run --name kept --at prefix -- cp /dev/stdin prefix/f
	mv "$SHELF_SHM_DIR/shelf.kept" disk
	status 0 "a shelf that lies there already" env SHELF_SHM_DIR="$work/disk" "$SHELF" get kept out
	check "can be copied out" [ "$(cat out/f)" = text ]
	status 0 "and removed" env SHELF_SHM_DIR="$work/disk" "$SHELF" rm kept
fi
status 126 "a run in a run" "$SHELF" run --at prefix -- "$SHELF" run --at prefix -- true
told "a shelf in a shelf is not supported" "says so"

# JSON and tables
status 0 "ls of nothing" "$SHELF" ls
check "ls --json of nothing" json ls --json
status 0 "create" "$SHELF" create --size 64M --mode 750 one
status 1 "create again" "$SHELF" create one
told "exists already" "says so"
status 0 "create another" "$SHELF" create --size 1% two
printf 'no shelf' >"$SHELF_SHM_DIR/shelf.junk"
chmod 600 "$SHELF_SHM_DIR/shelf.junk"
for c in ls df; do
	status 1 "$c with a file that is no shelf" "$SHELF" $c
	printed "one" "$c lists the good"
	printed "junk" "$c lists the bad"
	check "$c --json with one bad" sh -c "\"$SHELF\" $c --json >j; [ \$? = 1 ] && python3 -m json.tool <j"
done
rm "$SHELF_SHM_DIR/shelf.junk"
for c in ls df stat; do
	check "$c --json" json $c --json one two
	status 0 "$c" "$SHELF" $c one
	status 1 "$c of one that is missing" "$SHELF" $c one none
done
status 1 "stat of one that is missing" "$SHELF" stat none
told "no such shelf" "says so"
told "shelf ls" "says what to do"
check "the size is what was asked" [ "$("$SHELF" stat --json one | python3 -c 'import json,sys; print(json.load(sys.stdin)[0]["size"])')" = 67108864 ]
status 0 "check" "$SHELF" check one two
printed "one: 0 faults" "check tells the number"
status 1 "check of one that is missing" "$SHELF" check one none
status 1 "rm of one that is missing" "$SHELF" rm none
status 0 "rm -f of one that is missing" "$SHELF" rm -f none
status 1 "put into one that is missing" "$SHELF" put none .
told "put --create" "says how to make it"
status 1 "get from one that is missing" "$SHELF" get none .

# outputs that are closed, full or broken
if [ -e /dev/full ]; then
	for c in "ls" "ls --json" "df" "stat one" "check one" "--help" "--version" "help put" "get one -"; do
		status 1 "shelf $c to a full disk" sh -c "\"$SHELF\" $c >/dev/full"
		told "standard output: write: No space left on device" "shelf $c says so"
	done
fi
for c in "ls" "stat one" "check one" "--help"; do
	status 1 "shelf $c with a closed output" sh -c "\"$SHELF\" $c >&-"
done
status 0 "all outputs closed" sh -c '"$SHELF" create --size 8M three <&- >&- 2>&-'
status 0 "the shelf has not been written to" "$SHELF" check one two three
broken() {
	python3 - "$SHELF" "$@" <<'END'
import os, signal, subprocess, sys
r, w = os.pipe()
os.close(r)
p = subprocess.run(sys.argv[1:], stdout=w, stderr=subprocess.PIPE,
                   preexec_fn=lambda: signal.signal(signal.SIGPIPE, signal.SIG_IGN))
assert p.returncode == 1 and b'Broken pipe' in p.stderr, p
p = subprocess.run(sys.argv[1:], stdout=w, stderr=subprocess.PIPE, restore_signals=True)
assert p.returncode == -signal.SIGPIPE and not p.stderr, p
END
}
for c in "ls" "ls --json" "stat one" "--help" "get one -"; do
	# shellcheck disable=SC2086 # words
	check "shelf $c into a broken pipe" broken $c
done
status 0 "rm of all" "$SHELF" rm one two three
check "nothing is left" [ -z "$(ls -A "$SHELF_SHM_DIR")" ]
finish
