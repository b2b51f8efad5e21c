#!/bin/sh
# What `shelf run` refuses, passes on, and leaves alone.
. "$(dirname "$0")/lib/lib.sh"

at=$base/shelf
mkdir -p "$at"
run() {
	"$SHELF" run --size 64M --at "$at" -- "$@"
}
# ends STATUS NAME COMMAND...
ends() {
	wanted=$1 name=$2
	shift 2
	"$@" >"$work/out" 2>"$work/err" </dev/null
	got=$?
	if [ $got = "$wanted" ]; then pass; else fail "$name: status $got, not $wanted" "$work/err"; fi
}
says() {
	if grep -q -- "$1" "$work/err"; then pass; else fail "$2: '$1' is not said" "$work/err"; fi
}

ends 3 "exit status" run sh -c 'exit 3'
ends 143 "a signal" sh -c "'$SHELF' run --size 64M --at '$at' -- sh -c 'kill \$\$'; exit \$?"
ends 127 "no such program" run ./nothing
ends 1 "a shelf in a shelf" run "$SHELF" run --at "$at" true
says "not supported" "a shelf in a shelf"
if has busybox && ! ldd "$(command -v busybox)" >/dev/null 2>&1; then
	ends 126 "a static program" run busybox ls "$at"
	run sh -c "busybox ls $at" >"$work/out" 2>"$work/err"
	says "statically linked" "a static program from a shell"
fi
cp "$SHELF" "$work/alone"
ends 126 "the library is not there" "$work/alone" run --at "$at" touch "$at/made"
if [ -z "$(ls -A "$at")" ]; then pass; else fail "nothing is written to the host's directory" /dev/null; fi
ends 0 "files go to the shelf" run sh -c "echo x >$at/f && [ -s $at/f ]"
if [ -z "$(ls -A "$at")" ]; then pass; else fail "nothing of the shelf is in the host's directory" /dev/null; fi
for lib in libjemalloc.so.2 libeatmydata.so; do
	path=$(find /usr/lib -name "$lib" 2>/dev/null | head -1)
	[ "$path" ] || continue
	LD_PRELOAD=$path ends 0 "LD_PRELOAD=$lib" run sh -c "echo x >$at/f; grep -q $lib /proc/self/maps && cat $at/f"
	LD_PRELOAD=$path ends 0 "$lib in children" run sh -c "env -i sh -c 'cat </dev/null >$at/g'; [ -e $at/g ]"
done
if [ "$(id -u)" = 0 ] && command -v setpriv >/dev/null; then
	mkdir "$base/nobody" && chown 65534:65534 "$base/nobody"
	chmod 711 "$work"
	ends 0 "without rights" env -u XDG_CACHE_HOME HOME=/nonexistent SHELF_SHM_DIR="$base/nobody" setpriv --reuid 65534 --regid 65534 --clear-groups \
		"$SHELF" run --size 64M --at "$at" -- sh -c "echo x >$at/f; cat $at/f; ls -l $at; id -u"
fi
n=$(scaled 20)
ends 0 "$n named runs keep their files" sh -c "for i in \$(seq $n); do '$SHELF' run --name kept --size 64M --at '$at' -- sh -c \"echo \$i >>$at/f\" || exit 1; done
	[ \"\$('$SHELF' run --name kept --at '$at' -- cat $at/f | wc -l)\" = $n ] && '$SHELF' check kept && '$SHELF' rm kept"
finish
