#!/bin/sh
# Programs that are killed at random under load: the others go on, the shelf adds up, nothing stays open.
. "$(dirname "$0")/../lib/lib.sh"

kills=$(scaled 30)
limit=$((60 + kills * 4))
cat >"$work/load" <<'END'
i=0
mkdir -p w$1; cd w$1
while :; do
	i=$((i + 1))
	echo "some text $i" >f; cat f >>log; mv f g; ln g h; rm -f h; mkdir d; (cd d && echo x >y); cp g d/z; rm -r d; : >log
done
END
on_shelf "$kills processes killed at random" '
end() {
	kill -9 -- -$1 2>/dev/null || kill -9 $1 # it has no session of its own yet
	wait $1 2>/dev/null
}
for n in 1 2 3 4; do setsid bash '"$work"'/load $n & pids[$n]=$!; done
RANDOM=${SHELF_SEED:-1}
for k in $(seq '"$kills"'); do
	read -t 0.0$((RANDOM % 10))$((RANDOM % 10)) _ <> <(:)
	n=$((RANDOM % 4 + 1))
	end ${pids[$n]}
	SECONDS=0
	rm -rf w$n; mkdir other.$k && echo x >other.$k/f && rm -r other.$k || exit 1
	[ $SECONDS -le 5 ] || { echo "stuck for $SECONDS s after kill $k"; exit 1; }
	setsid bash '"$work"'/load $n & pids[$n]=$!
done
for n in 1 2 3 4; do end ${pids[$n]}; done
rm -rf w*; [ "$(ls)" = "" ]
'

on_shelf "Ctrl-C and SIGTERM in the middle of calls" '
for k in $(seq '"$kills"'); do
	# bash goes on if the command that Ctrl-C met ended of itself: hence the second signal
	timeout -k 1 -s $([ $((k % 2)) = 0 ] && echo INT || echo TERM) 0.0$((k % 9 + 1)) bash '"$work"'/load 1 2>/dev/null
	rm -rf w1 || exit 1
done
'
finish
