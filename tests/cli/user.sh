#!/bin/sh
# What everybody can run: nobody but root can make /shelf, so the measurements name a directory of their own.
. "$(dirname "$0")/lib/lib.sh"

bench=$lib/../../../bench
cat >user <<'END'
#!/bin/sh
[ "$1" != run ] || [ "$2" = --at ] || { echo "/shelf: cannot be made" >&2; exit 126; }
exec "$SHELF" "$@"
END
chmod +x user
status 0 "programs, without /shelf" "$bench/programs" --runs 1 --case python ./user
check "has both sides" grep -qE '^python +[0-9.e+]+ .* [0-9.]+$' .out
status 0 "starts, without /shelf" "$bench/starts" --runs 1 ./user
printed "each, in" "has all cases"

# without a tmpfs of its own
as_user() {
	if [ "$(id -u)" = 0 ]; then setpriv --reuid 65534 --regid 65534 --clear-groups -- "$@"; else "$@"; fi
}
chmod 755 "$work"
mkdir -m 777 "$SHELF_SHM_DIR/in" && chmod 777 "$SHELF_SHM_DIR/in" && chmod 755 "$SHELF_SHM_DIR"
if as_user test -x "$(dirname "$SHELF")/../../bench/files_tmpfs"; then
	for workload in "names --case stat" "threadperf --case processes" "tiobench --case seqwrite --bytes 64K"; do
		# shellcheck disable=SC2086 # words
		status 0 "bench $workload on a tmpfs that is there" as_user "$SHELF" bench $workload --engine tmpfs --runs 1 --ms 1 --dir "$SHELF_SHM_DIR/in"
		check "leaves nothing there" [ -z "$(ls -A "$SHELF_SHM_DIR/in")" ]
	done
fi
finish
