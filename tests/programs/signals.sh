#!/bin/sh
# Signals sent to `shelf run` are for its program: as if it were run by `env`, which is no process of its own.
. "$(dirname "$0")/lib/lib.sh"
need python3

at=$base/shelf
mkdir -p "$at"
/usr/bin/python3 "$lib/signals.py" env >"$work/env" 2>&1 || fail "the test runs" "$work/env"
# as: another user has no helper (preload/ask.c), and waits in another way
compare_runs() {
	what=$1
	shift
	"$@" /usr/bin/python3 "$lib/signals.py" "$SHELF" run --size 64M --at "$at" -- >"$work/shelf" 2>&1
	if diff "$work/env" "$work/shelf" >"$work/diff"; then pass; else fail "signals, $what (< env, > shelf run)" "$work/diff"; fi
	if ls "$SHELF_SHM_DIR"/shelf[.-]* >"$work/left" 2>/dev/null; then fail "what runs leave, $what" "$work/left"; else pass; fi
}
compare_runs "as this user" env
if [ "$(id -u)" = 0 ] && command -v setpriv >/dev/null; then
	mkdir "$base/nobody" && chown 65534:65534 "$base/nobody"
	chmod 711 "$work"
	export HOME=/nonexistent SHELF_SHM_DIR="$base/nobody"
	unset XDG_CACHE_HOME
	compare_runs "as another" setpriv --reuid 65534 --regid 65534 --clear-groups
fi
finish
