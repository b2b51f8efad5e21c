#!/bin/sh
# Programs linked to libraries that lie in the shelf: the loader finds and maps them there.
. "$(dirname "$0")/lib/lib.sh"
need gcc

sources='
mkdir lib bin
cat >answer.c <<"END"
int answer(void) { return 42; }
END
cat >twice.c <<"END"
#include <stdio.h>
static __thread char much[2000] __attribute__((tls_model("initial-exec")));
int answer(void);
static char first[8];
__attribute__((constructor)) static void begin(void) { FILE *f = fopen("word", "r"); if (f && fgets(first, sizeof(first), f)) fclose(f); }
int twice(void) { much[1999]++; return 2 * answer() + (first[0] == 0 ? 1000 : 0); }
END
cat >main.c <<"END"
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>
int twice(void); int answer(void);
static int cleaned, p[2];
static void clean(void *arg) { (void)arg; cleaned++; }
static void *reader(void *arg) { char c; (void)arg; pthread_cleanup_push(clean, NULL); twice(); (void)!read(p[0], &c, 1); pthread_cleanup_pop(0); return NULL; }
int main(void)
{
	pthread_t t;
	void *result, *lib = dlopen("$ORIGIN/../lib/libmore.so", RTLD_NOW);
	int (*more)(void) = lib ? (int (*)(void))dlsym(lib, "answer") : NULL;
	if (pipe(p) || pthread_create(&t, NULL, reader, NULL)) return 1;
	pthread_cancel(t);
	pthread_join(t, &result);
	printf("%d %d %d cancelled %d cleaned %d\n", answer(), twice(), more ? more() : -1, result == PTHREAD_CANCELED, cleaned);
	return 0;
}
END
echo word >word
gcc -shared -fPIC answer.c -o lib/libanswer.so -Wl,-soname,libanswer.so; cp lib/libanswer.so lib/libmore.so
gcc -shared -fPIC twice.c -o lib/libtwice.so -Llib -lanswer -Wl,-rpath,"\$ORIGIN"
link() { out=$1; shift; gcc main.c -o $out -pthread -Llib -ltwice -lanswer "$@"; }
link bin/origin -Wl,-rpath,"\$ORIGIN/../lib"
link bin/rpath -Wl,--disable-new-dtags,-rpath,"\$ORIGIN/../lib"
link bin/absolute -Wl,-rpath,"$PWD/lib"
link bin/plain -Wl,-rpath-link,lib
'
both "found by the program's own folders" "$sources"'
for p in origin rpath absolute; do bin/$p; (cd bin; ./$p); sh -c "exec bin/$p"; sh -c "bin/$p; :"; done
ln -s ../bin/origin lib/link; lib/link; cp bin/absolute "$HOST/"; "$HOST/absolute"; PATH=bin:$PATH origin
LD_PRELOAD=$PWD/lib/libanswer.so bin/origin; cp bin/origin "$HOST/"; "$HOST/origin" 2>&1 | sed "s/.*shared/shared/"; rm bin/absolute'
both "found by the environment's folders" "$sources"'
LD_LIBRARY_PATH=lib bin/plain; LD_LIBRARY_PATH=$PWD/lib bin/plain; LD_LIBRARY_PATH=/none:$PWD/lib/ sh -c "bin/plain; cp bin/plain $HOST/; $HOST/plain"
(cd lib; LD_LIBRARY_PATH=: ../bin/plain; LD_LIBRARY_PATH=. ../bin/plain)
bin/plain 2>&1 | sed "s/.*shared/shared/"; LD_LIBRARY_PATH=$PWD bin/plain 2>&1 | sed "s/.*shared/shared/"
LD_LIBRARY_PATH=$PWD/lib LD_TRACE_LOADED_OBJECTS=1 bin/plain | sed "s/(0x.*//" | grep -v vdso
LD_LIBRARY_PATH=$PWD/lib env -u LD_LIBRARY_PATH sh -c "bin/plain 2>&1 | sed s/.*shared/shared/; cat word"; rm bin/absolute'
# It says otherwise where it has found $ORIGIN.
edit='s,=> .*/\(lib[a-z]*\.so\) ,=> \1 ,;s,(0x.*,,' both "by the loader run by its name, as ldd does" "$sources"'
cat >name.c <<"END"
#include <stdio.h>
#include <unistd.h>
#include <sys/auxv.h>
int main(int argc, char **argv) { printf("%s %d:", argv[0], argc); for (int fd = 3; fd < 64; fd++) if (lseek(fd, 0, SEEK_CUR) != -1) printf(" %d", fd); puts(""); return 0; }
END
gcc name.c -o name; L=/lib64/ld-linux-x86-64.so.2; ln -s name link; ln -s /bin/true out; ln -s "$HOST/none" nowhere
$L ./name a; $L $PWD/name; $L --argv0 other ./name a b; (cd lib; $L ../link); sh -c "exec $L ./name"; $L --inhibit-cache --library-path lib bin/plain; $L bin/origin
for p in ./name lib/libtwice.so $PWD/name link out bin/absolute bin/origin main.c none nowhere lib; do ldd $p 2>&1; echo "$? $p"; $L --verify $p 2>/dev/null; echo $?; done
$L ./none 2>&1; $L --list ./name | grep -c libc; ldd name link; rm bin/absolute name'
both "and the environment stays the program's own" '
export LD_LIBRARY_PATH=$PWD GLIBC_TUNABLES=glibc.malloc.check=0
sh -c "env -u LD_LIBRARY_PATH env | grep -E ^GLIBC_TUNABLES"; unset GLIBC_TUNABLES; sh -c "unset LD_LIBRARY_PATH; env | grep -cE \"^(GLIBC_TUNABLES|LD_AUDIT)\""
sh -c "echo x >f; cat f; exec ls"'
on_shelf "threads, children, C++ exceptions through calls" "$sources"'
cat >e.cc <<"END"
#include <cstdio>
#include <fcntl.h>
#include <pthread.h>
#include <thread>
#include <unistd.h>
#include <vector>
extern "C" int answer(void);
int main() {
	std::vector<std::thread> v;
	int caught = 0;
	for (int k = 0; k < 8; k++)
		v.emplace_back([k] { char name[8]; sprintf(name, "t%d", k); for (int i = 0; i < 200; i++) { int fd = open(name, O_CREAT | O_RDWR, 0644); if (write(fd, "x", 1) != 1) _exit(9); close(fd); unlink(name); } });
	for (auto &t : v) t.join();
	try { throw answer(); } catch (int n) { caught = n; }
	return caught == 42 ? 0 : 1;
}
END
g++ -O1 e.cc -o bin/e -pthread -Llib -lanswer -Wl,-rpath,"\$ORIGIN/../lib" && bin/e && for i in $(seq 20); do bin/e & done; wait; bin/e'
finish
