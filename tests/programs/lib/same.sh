# What the map*.sh scripts share: the same program on tmpfs and on a shelf.  SHELF: the command; SRC_BIN: where the programs of
# src/ are.  `same WHAT PROGRAM ARGUMENT...`: the directory comes first among its arguments; `finish` ends with the count.
set -u
: "${SHELF:?}" "${SRC_BIN:?}"
work=$(mktemp -d "${TMPDIR:-/var/tmp}/shelf-map.XXXXXX") && tmpfs=$(mktemp -d /dev/shm/shelf-map.XXXXXX) || exit 1
trap 'rm -rf "$work" "$tmpfs"' EXIT
mkdir "$work/at" || exit 1
passed=0 failed=0

# same WHAT PROGRAM [ARGUMENT...]: the directory comes first among its arguments
same() {
	what=$1 program=$2
	shift 2
	rm -rf "${tmpfs:?}"/*
	"$program" "$tmpfs" "$@" >"$work/tmpfs.out" 2>&1
	echo "status $?" >>"$work/tmpfs.out"
	"$SHELF" run ${SHELF_PROGRAMS_STRICT:+--strict} --size 128M --at "$work/at" -- "$program" "$work/at" "$@" >"$work/shelf.out" 2>&1
	echo "status $?" >>"$work/shelf.out"
	if cmp -s "$work/tmpfs.out" "$work/shelf.out"; then
		passed=$((passed + 1))
	else
		failed=$((failed + 1))
		echo "FAILED: $what"
		diff -a "$work/tmpfs.out" "$work/shelf.out" | head -n 20
	fi
}

finish() {
	echo "$passed passed, $failed failed"
	[ $failed = 0 ]
}
