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
finish
