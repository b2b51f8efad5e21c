#!/bin/sh
# run_cases.sh PROGRAM [CASE...]: a program of lib/cases.h on a shelf and on tmpfs; each case's output is compared.
program=$(realpath "$1") || exit 99
shift
. "$(dirname "$0")/lib.sh"

limit=$(scaled 600)
size=${size:-512M}

run="mkdir -p \$OUT/cases/\$N; $program \$OUT/cases/\$N $*"
side tmpfs "$run"
side shelf "$run"
compare "the run as a whole"
[ "$(cat "$work/tmpfs/status")" = 0 ] || fail "the cases ran at all" "$work/tmpfs/err"
for log in "$work"/tmpfs/cases/*/*; do
	name=${log#"$work/tmpfs/cases/"}
	for way in tmpfs shelf; do
		sed -e "s,$base/$way,@,g" "$work/$way/cases/$name" >"$work/$way/said" 2>/dev/null
		echo "--" >>"$work/$way/said"
	done
	if grep -q 'not so:' "$work/tmpfs/said"; then
		fail "$name: does not hold on tmpfs" "$work/tmpfs/said"
	elif diff "$work/tmpfs/said" "$work/shelf/said" >"$work/diff"; then
		pass
	else
		fail "$name (< tmpfs, > shelf)" "$work/diff"
	fi
done
if "$SHELF" check t >"$work/checked" 2>&1; then pass; else fail "the shelf's consistency" "$work/checked"; fi
"$SHELF" rm -f t
finish
