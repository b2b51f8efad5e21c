#!/bin/bash
# Files of a shelf in memory, and asynchronous requests: each program prints the same on a shelf as on tmpfs.
# SHELF: the command; SRC_BIN: where the programs of src/ are.
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
	"$SHELF" run --size 128M --at "$work/at" -- "$program" "$work/at" "$@" >"$work/shelf.out" 2>&1
	echo "status $?" >>"$work/shelf.out"
	if cmp -s "$work/tmpfs.out" "$work/shelf.out"; then
		passed=$((passed + 1))
	else
		failed=$((failed + 1))
		echo "FAILED: $what"
		diff -a "$work/tmpfs.out" "$work/shelf.out" | head -n 20
	fi
}

same 'maps in every way' "$SRC_BIN/map_basics"
same 'asynchronous requests, mixed with the kernel'"'"'s' "$SRC_BIN/aio_mix"
for seed in 1 2 3 ${SHELF_TEST_SEED:-4}; do
	same "random steps, seed $seed" "$SRC_BIN/map_steps" "$seed" $((5000 * ${SHELF_TEST_SCALE:-1}))
done

# Nothing stays behind: pages that were kept for a map are free once the processes are gone, however they went.
left_over() {
	name=map-test-$$
	"$SHELF" create --size 64M "$name" || return 1
	"$SHELF" run --name "$name" --at "$work/at" -- "$SRC_BIN/map_basics" "$work/at" >/dev/null
	"$SHELF" run --name "$name" --at "$work/at" -- bash -c '
		exec 3< <(exec "$0" "$1" 1 100000000)
		read -r -u 3
		kill -KILL $!' "$SRC_BIN/map_steps" "$work/at"
	"$SHELF" check "$name"
	rc=$?
	"$SHELF" rm "$name"
	return $rc
}
if left_over >"$work/left" 2>&1; then
	passed=$((passed + 1))
else
	failed=$((failed + 1))
	echo 'FAILED: nothing stays behind'
	head -n 20 "$work/left"
fi

echo "$passed passed, $failed failed"
[ $failed = 0 ]
