# What the tests of the command share; they begin with `. "$(dirname "$0")/lib/lib.sh"`.
# SHELF is the command.  Shelves go to a directory of the test's own, files to $work; both are removed.
# `check "what holds" COMMAND...` counts; `finish` ends with the count.

set -u
: "${SHELF:?SHELF must name the shelf command}"
lib=$(cd "$(dirname "$0")/lib" && pwd)
work=$(mktemp -d "${TMPDIR:-/var/tmp}/shelf-cli.XXXXXX") || exit 1
SHELF_SHM_DIR=$(mktemp -d /dev/shm/shelf-cli.XXXXXX) || exit 1
export SHELF_SHM_DIR
trap 'chmod -R u+rwx "$work" 2>/dev/null; rm -rf "$work" "$SHELF_SHM_DIR"' EXIT
trap 'exit 1' INT TERM HUP
cd "$work" || exit 1
passed=0 failed=0

pass() {
	passed=$((passed + 1))
}

fail() {
	failed=$((failed + 1))
	echo "FAILED: $1" >&2
	for file in ${2:-out err}; do
		[ -s "$work/.$file" ] && sed "s/^/  $file: /" "$work/.$file" | cut -c -240 | head -n 12 >&2
	done
}

check() {
	what=$1
	shift
	if "$@" >"$work/.said" 2>&1; then pass; else fail "$what" said; fi
}

# ends STATUS COMMAND...: runs it, output in $work/.out and .err; is that its status?
ends() {
	wanted=$1
	shift
	"$@" >"$work/.out" 2>"$work/.err" </dev/null
	got=$?
	[ $got = "$wanted" ] || { echo "status $got, not $wanted: $*" >>"$work/.err"; return 1; }
}

# status STATUS "what holds" COMMAND...
status() {
	s=$1 what=$2
	shift 2
	if ends "$s" "$@"; then pass; else fail "$what"; fi
}

# told TEXT "what holds": the last `status` said so on standard error.
told() {
	if grep -qF -- "$1" "$work/.err"; then pass; else fail "$2 (wanted: $1)"; fi
}

# printed TEXT "what holds": the same on standard output.
printed() {
	if grep -qF -- "$1" "$work/.out"; then pass; else fail "$2 (wanted: $1)"; fi
}

manifest() {
	python3 "$lib/manifest.py" "$@"
}

finish() {
	echo "$passed passed, $failed failed"
	[ $failed = 0 ]
	exit
}
