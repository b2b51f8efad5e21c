#!/bin/bash
# Files of a shelf in memory, and asynchronous requests: each program prints the same on a shelf as on tmpfs.
. "$(dirname "$0")/lib/same.sh"

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

finish
