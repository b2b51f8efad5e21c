#!/bin/sh
# Modules of python3's own test suite with TMPDIR on the shelf and on tmpfs: nothing fails that passes there.
. "$(dirname "$0")/../lib/lib.sh"
python=/usr/bin/python3.11
need $python /usr/lib/python3.11/test/test_os.py

# outcomes WAY: each test's outcome, by name.
outcomes() {
	sed -n 's/^\(test[A-Za-z0-9_]*\) (\([^)]*\)).*\.\.\. *\(.*\)$/\2 \1 \3/p' "$work/$1/out" "$work/$1/err" |
		sed 's/ skipped .*/ skipped/' | sort >"$work/$1/outcomes"
}

for module in ${SHELF_PYTHON_MODULES:-test_os test_posix test_io test_shutil test_subprocess test_mmap test_fcntl test_tempfile test_glob \
	test_fileio test_pathlib test_largefile test_zipfile test_tarfile test_genericpath test_posixpath test_select test_dbm_dumb test_sqlite3}; do
	[ -e /usr/lib/python3.11/test/$module.py ] || [ -e /usr/lib/python3.11/test/$module ] || continue
	size=3G
	[ $module != test_largefile ] || size=9G # it wants 2.5 times a file of more than 2 GiB
	for way in tmpfs shelf; do
		trees=no limit=1200 side $way "mkdir tmp; TMPDIR=\$D/tmp timeout -s KILL 900 $python -m unittest -v test.$module 2>&1; ls tmp"
		outcomes $way
	done
	"$SHELF" check t >"$work/checked" 2>&1 || fail "$module: the shelf's consistency" "$work/checked"
	"$SHELF" rm -f t
	for way in tmpfs shelf; do
		for word in ok skipped FAIL ERROR; do
			grep -c " $word\$" "$work/$way/outcomes"
		done | tr '\n' ' ' >"$work/$way/counts"
	done
	echo "$module (ok skipped failed errors): tmpfs $(cat "$work/tmpfs/counts")$(tail -n 1 "$work/tmpfs/out" | cut -c 1-30) shelf $(cat "$work/shelf/counts")"
	grep -E " (ok|skipped|expected failure)\$" "$work/tmpfs/outcomes" >"$work/good"
	grep -E " (ok|skipped|expected failure)\$" "$work/shelf/outcomes" >"$work/got"
	if comm -23 "$work/good" "$work/got" >"$work/worse" && [ ! -s "$work/worse" ] && [ -s "$work/good" ]; then
		pass
	else
		cp "$work/shelf/out" "${SHELF_PROGRAMS_KEEP:-$work}/$module.shelf" 2>/dev/null
		fail "$module: passes on tmpfs, not on the shelf" "$work/worse"
	fi
done
finish
