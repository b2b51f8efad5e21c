#!/bin/sh
# Shells: redirections, pipelines, here-documents, scripts that lie on the shelf.
. "$(dirname "$0")/lib/lib.sh"

# each_shell NAME COMMANDS: by bash and by dash.
each_shell() {
	for shell in bash dash; do
		has $shell || continue
		printf '%s\n' "$2" >"$work/script"
		both "$1 ($shell)" "cp '$work/script' ./script; $shell ./script; echo status \$?"
	done
}

each_shell "redirections" '
echo one >a
echo two >>a
wc -l <a
cat a nothing 2>err
echo status $?
wc -c <err >count; cat count
{ echo x; echo y >&2; } >both 2>&1
cat both
exec 3<a 4>out
read line <&3; echo "$line" >&4
read line <&3; echo "$line" >&4
exec 3<&- 4>&-
cat out
echo tail >>out; cat <out
: >a; ls -s a | cut -d" " -f1
exec 5<>out; read l <&5; echo new >&5; exec 5<&-; cat out
set -C; echo no >out || echo kept
set +C; (echo in a subshell; exit 3) >sub; echo $?; cat sub
'

each_shell "here-documents" '
cat <<END >doc
line $((1 + 1))
END
cat <<"END" >>doc
not $expanded
END
cat doc
i=0; while read l; do i=$((i + 1)); echo "$i: $l"; done <doc >numbered
cat numbered
n=$(wc -l <numbered); echo "$n"
'

each_shell "a pipeline of 100 commands" '
seq 1000 >numbers
cmd="cat numbers"
i=0; while [ $i -lt 98 ]; do cmd="$cmd | cat"; i=$((i + 1)); done
eval "$cmd >copy"
cmp numbers copy && wc -l <copy
seq 1000 | sed s/5/x/ | sort | uniq | tee one two | grep x | wc -l >counted
cat counted; cksum one two
'

each_shell "scripts on the shelf" '
printf "#!/bin/sh\necho script \"\$0\" \"\$@\"\ncat \"\$0\" | wc -l\n" >run
chmod +x run; ./run a "b c"
printf "#!/bin/bash -e\ntrue; false; echo not here\n" >fails
chmod +x fails; ./fails; echo $?
printf "echo no interpreter line \$1\n" >plain; chmod +x plain; ./plain x
printf "#!%s/run inner\n" "$(pwd)" >nested; chmod +x nested; ./nested y
printf "#!/usr/bin/env bash\necho by env \$BASH_VERSINFO\n" >by_env; chmod +x by_env; ./by_env | cut -c 1-6
printf "#!/no/such\n" >bad; chmod +x bad; ./bad 2>/dev/null; echo $?
chmod -x run; ./run 2>/dev/null; echo $?
. ./plain; echo sourced
cp /bin/echo echo; ./echo an ELF file on the shelf
PATH=$PWD:$PATH; hash -r; by_env | wc -l
'

each_shell "tests, loops, globs, traps" '
mkdir d e; touch d/1 d/2 d/3; ln -s d link
for f in d/*; do echo "$f"; done
[ -f d/1 ] && [ -d d ] && [ -L link ] && [ ! -e none ] && [ -w d/1 ] && echo fine
[ d/1 -nt none ] ; echo $?
cd link; pwd; pwd -P; cd ..; cd -; cd ../e; pwd; cd ..
trap "echo trapped >trap" USR1; kill -USR1 $$; cat trap
(trap "echo bye >bye" EXIT; exit 0); cat bye
umask 027; echo x >masked; stat -c %a masked
ulimit -n 50; for i in 1 2 3 4 5 6 7 8; do eval "exec $i<d/1" 2>/dev/null; done
'

each_shell "children in the background" '
for i in 1 2 3 4 5 6 7 8; do (seq $((i * 100)) >f$i) & done; wait; wc -l f? | tail -1
mkfifo up; (echo >up; exec sleep 60) >held & p=$!; read x <up; echo x >>held
{ kill $p; wait $p; } 2>/dev/null; echo $?; cat held; rm up # what a shell says of it, and whether, is its own affair
echo start >log; for i in 1 2 3 4; do (j=0; while [ $j -lt 50 ]; do echo "line of some length $i" >>log; j=$((j + 1)); done) & done; wait
sort log | uniq -c; rm log
'

has bash && both "bash's own" '
diff <(seq 3) <(seq 4); echo $?
exec {fd}>f; echo $((fd >= 10)) >&$fd; exec {fd}>&-; cat f
mapfile -t a <f; echo ${#a[@]}
coproc cat; echo x >&${COPROC[1]}; read -u ${COPROC[0]} y; echo $y
cat <<<"a here-string" >hs; cat hs
shopt -s globstar; mkdir -p x/y/z; touch x/y/z/1 x/2; echo x/**
printf "%s\n" {1..5} > >(tac >reversed); wait $!; cat reversed
'

finish
