# What the tests of programs share; they begin with `. "$(dirname "$0")/lib/lib.sh"`.
#
# SHELF is the command.  `both NAME COMMANDS` has bash run COMMANDS in an empty directory twice, on a shelf by `shelf run`
# and on the kernel's tmpfs, and compares output, messages, exit status, and the tree that is left.  The tree on the shelf
# is got out by `shelf get`, so it is looked at by other means than it was made; `shelf check` looks at the rest.
# The two directories' names have the same length, and are taken out of the output.
#
# In COMMANDS: $D the directory, $HOST one beside it that is on another file system, $N this copy's number.
# SHELF_PROGRAMS_COPIES copies of them run at once, in directories of their own (1).

set -u
: "${SHELF:?SHELF must name the shelf command}"
export LC_ALL=C
unset TMPDIR LD_PRELOAD
here=$(cd "$(dirname "$0")" && pwd)
case $here in */long) here=${here%/long} ;; */lib) here=${here%/lib} ;; esac
lib=$here/lib
work=$(mktemp -d /var/tmp/shelf-programs.XXXXXX) || exit 1
base=$(mktemp -d /dev/shm/shelf-programs.XXXXXX) || exit 1
chmod 755 "$work" "$base"
SHELF_SHM_DIR=$base
export SHELF_SHM_DIR
copies=${SHELF_PROGRAMS_COPIES:-1}
passed=0 failed=0 skipped=0

# `shelf run` must not find its site tables with another user's rights.
export XDG_CACHE_HOME=$work/cache
mkdir -p "$work/cache"

clean() {
	chmod -R u+rwx "$work" "$base" 2>/dev/null
	rm -rf "$work" "$base"
}
trap clean EXIT
trap 'exit 1' INT TERM HUP
cd "$work" || exit 1

# need PROGRAM...: skips the whole test if one is missing.
need() {
	for program; do
		command -v "$program" >/dev/null 2>&1 && continue
		[ -e "$program" ] && continue
		echo "skipped: there is no $program"
		exit 77
	done
}

has() {
	command -v "$1" >/dev/null 2>&1 && return
	echo "skipped: there is no $1"
	skipped=$((skipped + 1))
	return 1
}

# scaled N: N times SHELF_TEST_SCALE, at least 1.
scaled() {
	awk -v n="$1" -v s="${SHELF_TEST_SCALE:-1}" 'BEGIN { n = int(n * s); print n < 1 ? 1 : n }'
}

pass() {
	passed=$((passed + 1))
}

fail() {
	failed=$((failed + 1))
	echo "FAILED: $1" >&2
	[ ! -s "${2:-/dev/null}" ] || cut -c -240 "$2" | head -n "${lines:-30}" | sed 's/^/    /' >&2
	[ -z "${SHELF_PROGRAMS_STOP:-}" ] || exit 1
}

# The commands, in as many copies as wanted.  Runs on either side.
copy_script='
copy() {
	N=$1
	mkdir -p "$TOP/$N" "$HOST.$N" || exit 98
	D=$TOP/$N HOST=$HOST.$N
	export D HOST N
	cd "$D" || exit 98
	eval "$COMMANDS"
}
if [ "$COPIES" = 1 ]; then
	copy 1
	exit
fi
for n in $(seq "$COPIES"); do
	(copy "$n" >"$OUT/out.$n" 2>"$OUT/err.$n"; echo "status $?" >>"$OUT/out.$n") &
done
wait
for n in $(seq "$COPIES"); do
	cat "$OUT/out.$n"
	cat "$OUT/err.$n" >&2
done
'

# side WAY COMMANDS: runs them; out, err, status, tree are left in $work/WAY.
side() {
	way=$1 top=$base/$1
	rm -rf "${work:?}/$way" "${top:?}" "$work"/host.*
	mkdir -p "$work/$way" "$top"
	set -- env TOP="$top" HOST="$work/host" OUT="$work/$way" COPIES="$copies" COMMANDS="$2" \
		timeout --foreground -s KILL "${limit:-120}" bash -c "$copy_script"
	if [ "$way" = shelf ]; then
		chmod 555 "$top"
		rm -f "$base/shelf.t" && "$SHELF" create --size "${size:-512M}" t >"$work/made" 2>&1 || cat "$work/made" >&2
		set -- "$SHELF" run ${SHELF_PROGRAMS_STRICT:+--strict} --name t --at "$top" -- "$@"
	fi
	"$@" >"$work/$way/out.raw" 2>"$work/$way/err.raw" </dev/null
	echo $? >"$work/$way/status"
	[ "$way" = tmpfs ] || nothing_past
	for what in out err; do
		sed "s,$top,@,g${edit:+;$edit}" "$work/$way/$what.raw" >"$work/$way/$what"
	done
	[ "${trees:-yes}" = yes ] || return 0
	if [ "$way" = shelf ]; then
		mkdir "$work/shelf/got"
		"$SHELF" get t "$work/shelf/got" >>"$work/shelf/err" 2>&1 || echo "shelf get: $?" >>"$work/shelf/err"
		top=$work/shelf/got
	fi
	manifest "$top" "$base/$way" >"$work/$way/tree"
}

# SHELF_PROGRAMS_STRICT=1: all runs are with --strict, and no call may go past the shelf.
nothing_past() {
	[ -n "${SHELF_PROGRAMS_STRICT:-}" ] || return 0
	"$SHELF" stat --json t >"$work/counters"
	if ! grep -q '"calls_past":0,' "$work/counters"; then
		grep 'shelf run --strict:' "$work/shelf/err.raw" "$work/shelf/out.raw" >"$work/past"
		fail "calls went past the shelf" "$work/past"
	fi
}

# manifest DIR: kind, mode, links, size, contents and name of each file below.
manifest() {
	python3 "$lib/manifest.py" "$@"
}

# both NAME COMMANDS.  Around it may be set: limit (seconds), size (of the shelf), edit (sed commands for the output),
# trees (no: the trees may differ), lines (shown of a difference).
both() {
	side tmpfs "$2"
	side shelf "$2"
	compare "$1"
	if ! "$SHELF" check t >"$work/checked" 2>&1; then
		fail "$1: the shelf's consistency" "$work/checked"
	fi
	"$SHELF" rm -f t >/dev/null 2>&1
}

compare() {
	ok=yes
	for what in status out err tree; do
		[ -e "$work/tmpfs/$what" ] || continue
		if ! diff "$work/tmpfs/$what" "$work/shelf/$what" >"$work/diff" 2>&1; then
			[ $ok = no ] || fail "$1" /dev/null
			ok=no
			echo "  $what (< tmpfs, > shelf):" >&2
			head -n "${lines:-30}" "$work/diff" | cut -c -240 | sed 's/^/    /' >&2
		fi
	done
	[ $ok = no ] || pass
}

# on_shelf NAME COMMANDS: on a shelf only; must end with 0.
on_shelf() {
	trees=no side shelf "$2"
	if [ "$(cat "$work/shelf/status")" = 0 ]; then
		pass
	else
		cat "$work/shelf/out" "$work/shelf/err" >"$work/said"
		fail "$1: status $(cat "$work/shelf/status")" "$work/said"
	fi
	"$SHELF" check t >"$work/checked" 2>&1 || fail "$1: the shelf's consistency" "$work/checked"
	"$SHELF" rm -f t >/dev/null 2>&1
}

finish() {
	echo "$passed passed, $failed failed${skipped:+, $skipped skipped}"
	[ $failed = 0 ]
	exit
}
