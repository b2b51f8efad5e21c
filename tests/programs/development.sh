#!/bin/sh
# git, a compiler, make, dlopen, a debugger and a tracer on a tree that lies on the shelf.
. "$(dirname "$0")/lib/lib.sh"

if has git; then
	edit='s,[0-9a-f]\{7\,40\},HASH,g;s/in [0-9.]*s/in TIME/' trees=no both "git" '
	export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_NOSYSTEM=1 GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@a GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@a
	export GIT_AUTHOR_DATE="2020-01-01T00:00:00Z" GIT_COMMITTER_DATE="2020-01-01T00:00:00Z"
	git init -q -b main r; cd r; for d in a b c; do mkdir $d; for i in $(seq 60); do seq $i >$d/f$i; done; done
	git add .; git commit -qm one; git status --short; git log --format=%T | sha256sum; git rev-parse HEAD >../head
	echo changed >a/f1; git rm -q b/f2; git mv c/f3 c/moved; git status --short; git commit -qam two; git show --stat HEAD
	git checkout -qb side HEAD~1; echo side >a/new; git add a/new; git commit -qm side; git checkout -q main; git merge -q -m merge side; git log --oneline --graph | wc -l
	git gc -q; git fsck --full; git count-objects; ls .git/objects/pack | wc -l; git repack -adfq; git prune; git fsck
	cd ..; git clone -q r clone; cd clone; git log --format=%s; diff -r --exclude=.git . ../r && echo equal; echo more >>a/f5; git commit -qam three; git push -q origin main:pushed
	cd ../r; git branch -a; git grep -c 5$ pushed -- a | wc -l; git stash -q; git bisect start -q 2>/dev/null; git worktree add -q ../tree side; ls ../tree/a | wc -l; git clean -fdxq; git reset -q --hard HEAD~1; git status --short
	cd ..; git clone -q --bare r bare; git -C bare fsck; git clone -q "file://$PWD/bare" over; git -C over rev-list --all | wc -l; git -C r archive HEAD | tar t | wc -l
	git clone -q r "$HOST/out"; git -C "$HOST/out" fsck; git clone -q "$HOST/out" back; git -C back status --short; rm -rf r clone tree; ls
	'
fi

if has gcc && has make; then
	limit=200 both "configure, make, run" '
	cat >configure <<"END"
#!/bin/sh
# what configure scripts do: try to compile, look at the outcome, write Makefile and config.h
set -e
exec 5>config.log
try() { cat >conftest.c; if gcc $2 conftest.c -o conftest $3 >&5 2>&1 && ./conftest >&5 2>&1; then echo "#define $1 1"; else echo "/* no $1 */"; fi >>config.h; rm -f conftest conftest.c; }
: >config.h
try HAVE_PRINTF <<"C"
#include <stdio.h>
int main(void) { printf("x"); return 0; }
C
try HAVE_NOTHING <<"C"
#include <nothing.h>
int main(void) { return 0; }
C
try HAVE_SIN "" -lm <<"C"
#include <math.h>
#include <stdlib.h>
int main(int c, char **v) { (void)v; return sin(c) < 0; }
C
sed "s/@CC@/gcc/" Makefile.in >Makefile
echo "status: done" >config.status
END
	chmod +x configure
	cat >Makefile.in <<"END"
CC = @CC@
OBJS = $(patsubst %.c,%.o,$(wildcard m*.c))
prog: main.o libp.a plug.so
	$(CC) -rdynamic -o $@ main.o -L. -lp -ldl
libp.a: $(OBJS)
	ar rcs $@ $^
%.o: %.c config.h
	$(CC) -O1 -g -pipe -c $< -o $@
plug.so: plug.c
	$(CC) -shared -fPIC -o $@ $<
clean:
	rm -f *.o *.a prog
END
	for i in $(seq 8); do echo "int f$i(void) { return $i; }" >m$i.c; done; mv m1.c m01.c
	cat >main.c <<"END"
#include "config.h"
#include <dlfcn.h>
#include <stdio.h>
int f1(void); int f8(void);
int main(int argc, char **argv)
{
	void *h = dlopen("./plug.so", RTLD_NOW);
	int (*p)(void) = h ? (int (*)(void))dlsym(h, "plugged") : 0;
	FILE *self = fopen(argv[0], "r");
	printf("%d %d %d %s %d\n", argc, f1() + f8(), p ? p() : -1, h ? "" : dlerror(), self != 0);
	return HAVE_PRINTF;
}
END
	sed -i "/patsubst/s/m\*/m[0-9]*/" Makefile.in
	echo "int plugged(void) { return 42; }" >plug.c
	./configure; cat config.h; make -s -j2 2>&1; ./prog a b; echo $?; cd /; "$D/prog"; cd "$D";
	touch m8.c; make -s; make -q && echo up to date; strip prog; ./prog; file prog 2>/dev/null | grep -c ELF; nm libp.a | grep -c " T "; make -s clean; ls
	'
fi

if has gdb && has gcc; then
	edit='/[Ww]arning/d;s/0x[0-9a-f]*/ADDR/g;/libthread_db/d;/debuginfod/d;/^$/d;/process/d;s/Thread ADDR (LWP [0-9]*)/T/' limit=100 trees=no both "gdb" '
	printf "#include <stdio.h>\nint twice(int n)\n{\n\treturn 2 * n;\n}\nint main(void)\n{\n\tFILE *f = fopen(\"made\", \"w\");\n\tfprintf(f, \"%%d\", twice(21));\n\tfclose(f);\n\treturn 3;\n}\n" >p.c
	gcc -g p.c -o "$HOST/p"; gdb -q -nx -batch -ex "set confirm off" -ex "set debuginfod enabled off" -ex "break twice" -ex run -ex "print n" -ex "info frame" -ex finish -ex next -ex step -ex continue "$HOST/p" </dev/null 2>&1 | grep -v -E "frame|rip|saved|Stack|caller|Arg|Loc|called"
	cat made
	'
fi

if has strace; then
	trees=no on_shelf "strace" '
	echo x >f; strace -f -o "$HOST/trace" sh -c "cat f >g; cat g; cat /etc/hostname >/dev/null"
	grep -q "+++ exited with 0" "$HOST/trace" && grep -q execve "$HOST/trace" && cmp f g
	'
fi
finish
