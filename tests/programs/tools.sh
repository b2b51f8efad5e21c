#!/bin/sh
# coreutils, findutils, grep, sed, awk, tar, rsync: on trees of some size.
. "$(dirname "$0")/lib/lib.sh"

make_tree='
mkdir -p t/a/b/c t/empty "t/with space"
for i in $(seq 40); do seq $i >t/f$i; seq $((i * 3)) >t/a/b/g$i; done
ln -s ../f1 t/a/link; ln -s none t/dangling; ln t/f2 t/a/hard
head -c 300000 /dev/zero | tr "\0" x >t/big; truncate -s 1M t/sparse
echo x >"t/with space/ü"; chmod 600 t/f3; chmod 755 t/f4; mkfifo t/fifo 2>/dev/null; rm -f t/fifo
find t -exec touch -h -d "2020-02-02 02:02:02.123456789" {} +
'

both "cp, mv, rm, ls, install, touch" "$make_tree"'
cp -a t u; cp -r t v; cp --sparse=always t/sparse s; cp --reflink=auto t/big r
find u -printf "%P %y %m %s %n %l %T+\n" | grep -v "^a/b d" | sort | head -60
mv u w; mv w/a w/z; mv -n w/f1 w/f2; mv w/f1 w/f2; mv t/f5 "$HOST"/; mv "$HOST"/f5 .
ls -l --time-style=full-iso t | cut -c 1-200 | grep -v ^total | sed "s/ [0-9]* 2026.*//"
ls -laR w | wc -l
install -D -m 751 t/f4 new/dir/prog; stat -c "%a %s" new/dir/prog
touch -d "2001-01-01" f; touch -r t/big g; stat -c "%n %y" f g
rm -r v; rm -rf w/z "w/with space"; rm w/none; echo $?
ln -sfn t l; readlink -f l/a/link; realpath l/../t/f1
mkdir -m 700 -p p/q/r; rmdir -p p/q/r; tmp=$(mktemp -d ./XXXXXX); echo ${#tmp}; rmdir $tmp
dd if=t/big of=d bs=1000 count=100 skip=3 seek=2 conv=notrunc 2>/dev/null; cksum d
split -b 50000 t/big part.; cat part.* | cmp - t/big; shred -u part.aa; ls part.*
truncate -s 5 f; truncate -s +3 f; stat -c %s f; sync f; df . >/dev/null; stat -f -c %l .
chmod -R g+w t; chown -R 12:34 t; stat -c "%u %g %a" t/f3
'
both "find, du, grep, xargs, sort" "$make_tree"'
find t -type f -newermt 2019-01-01 -size -2k | sort | tail -5
find t -name "f1*" -print0 | sort -z | xargs -0 -n 3 wc -l
find -L t -maxdepth 3 -type l; find t -samefile t/f2 | sort; find t -empty | sort; find t -links 2 -type f | sort
find t -type f | xargs sha256sum | sort | sha256sum
find t -name "g*" -delete; find t | wc -l
find t -type f | sort | xargs du -b | sed -n 1,10p; du -k t/big t/sparse
grep -r 17 t | sort | head; grep -c x t/big; grep -rl "^3$" t | sort | head -3
sort -n -r t/f40 | head -2; sort -S 100k -T . t/big t/f1 | wc -l; sort -o t/f40 -r t/f40; head -1 t/f40
sed -i s/1/one/ t/f10 t/f11; cat t/f10; awk "{ print > \"out\" NR % 3 }" t/f30; wc -l out*
comm t/f3 t/f4; join t/f3 t/f4; paste t/f3 t/f4; tac t/f3; cut -c 1 t/f12 | uniq -c; diff -r t/a t/a; cmp t/f1 t/f2
tail -n 2 -f t/f20 --pid=$$ & sleep 0.1; kill $!; wait $! 2>/dev/null; tee -a t/f1 t/f2 <t/f3 >/dev/null; cat t/f1
'
if has tar; then
	both "tar" "$make_tree"'
	i=0; while [ $i -lt 1000 ]; do echo $i >t/a/b/c/n$i; i=$((i + 1)); done
	find t -exec touch -h -d "2020-02-02 02:02:02.123456789" {} +
	tar --sort=name -cf a.tar t; mkdir x; tar xpf a.tar -C x; diff -r --no-dereference t x/t && echo equal
	tar tvf a.tar | grep -v "/n[0-9]" | sed "s/[^ ]*\/[^ ]*  *//" | head -20
	find x ! -type d -printf "%P %T@ %m %n\n" | sort | sha256sum
	tar czf a.tgz t; tar xzOf a.tgz t/f9; tar --delete -f a.tar t/big; tar rf a.tar a.tgz; tar tf a.tar | wc -l
	tar cS t/sparse | tar x -C x; stat -c %s x/t/sparse; tar df a.tar --exclude=t/a | head -3; rm a.tgz a.tar
	(cd t && tar c .) | (mkdir y && cd y && tar x); diff -r --no-dereference t y && echo equal
	'
fi
if has rsync; then
	both "rsync" "$make_tree"'
	rsync -aH t/ r/; diff -r --no-dereference t r && echo equal
	echo changed >t/f7; rm t/f8; rsync -aHi --delete t/ r/; find r ! -type d -printf "%P %T@ %m %n\n" | grep -v f7 | sort | sha256sum
	rsync -aHc --inplace t/ r/ ; rsync -a --link-dest="$PWD/r" t/ s/; stat -c %h s/f1
	rsync -a t/ "$HOST/h/"; rsync -a "$HOST/h/" back/; diff -r --no-dereference t back && echo equal
	dd if=/dev/zero of=t/big bs=1 seek=1000 count=10 conv=notrunc 2>/dev/null; rsync -a --no-whole-file t/ r/; cmp t/big r/big && echo equal
	'
fi
both "files between the shelf and elsewhere" "$make_tree"'
cp -a t "$HOST/"; diff -r --no-dereference t "$HOST/t" && echo equal
cp -a "$HOST/t" u; diff -r --no-dereference t u && echo equal
mv t "$HOST/m"; ls; mv "$HOST/m" .; diff -r --no-dereference m u && echo equal
cat m/big >"$HOST/big"; cat "$HOST/big" >>m/f1; wc -c <m/f1; ln m/f1 "$HOST/x" 2>/dev/null; echo $?
ln -s "$PWD/m" "$HOST/into"; ls "$HOST/into" | wc -l; cat "$HOST/into/f9"; echo new >"$HOST/into/made"; cat m/made; rm "$HOST/into"
'
if has perl; then
	both "perl" '
	perl -e "open F, q(>), q(f) or die; print F qq(line \$_\n) for 1..1000; close F; open F, q(f); @l = <F>; print scalar(@l), qq(\n); print -s q(f), qq(\n)"
	perl -i.bak -pe "s/1/one/" f; diff f f.bak | wc -l; perl -MFile::Find -e "find(sub { print qq(\$File::Find::name\n) }, q(.))" | sort
	perl -MFile::Temp=tempfile -e "(\$h, \$n) = tempfile(DIR => q(.), UNLINK => 1); print \$h q(x); print -e \$n ? 1 : 0, qq(\n)"; ls
	perl -MFcntl=:flock -e "open A, q(f); open B, q(f); print flock(A, LOCK_EX), qq(\n); print flock(B, LOCK_EX | LOCK_NB) ? 1 : 0, qq(\n)"
	perl -MFile::Copy -e "copy(q(f), q(g)); move(q(g), q(h)); rename(q(h), q(i)); link(q(i), q(j)); symlink(q(i), q(k)); print join q( ), sort glob(q(*)); print qq(\n); utime 1, 2, q(i); print +(stat q(i))[9], qq(\n)"
	perl -MCwd=abs_path,cwd -e "mkdir q(d); chdir q(d); print cwd(), abs_path(q(..)), qq(\n); system(q(pwd)); print \`ls .. | wc -l\`; rmdir q(../d); print \$!+0, qq(\n)"
	perl -e "\$p = fork; if (!\$p) { open F, q(>>f); print F q(child); exit 3 } waitpid \$p, 0; print \$? >> 8, qq(\n); print -s q(f), qq(\n); unlink glob q(*)"; ls
	'
fi
finish
