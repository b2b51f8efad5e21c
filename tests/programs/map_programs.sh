#!/bin/bash
# Real programs that map files and make asynchronous requests: each prints the same on a shelf as on tmpfs.
. "$(dirname "$0")/lib/same.sh"

for program in fio mdb_load sqlite3 /usr/bin/python3 git gcc; do
	command -v "$program" >/dev/null || { echo "$program is not installed"; exit 77; }
done
[ -e /usr/lib/python3.11/test/test_mmap.py ] || { echo "python3's tests are not installed"; exit 77; }

run_fio() {
	cd "$1" || return
	shift
	fio --name=data --directory=. --verify=crc32c --rw=randrw --minimal "$@" >/dev/null && echo verified
	rm -f data*
}

run_lmdb() {
	cd "$1" || return
	{
		printf 'VERSION=3\nformat=print\ntype=btree\nmapsize=67108864\nHEADER=END\n'
		for ((i = 0; i < 20000; i++)); do
			printf ' key%08d\n value %d\n' $i $((i * 7))
		done
		echo DATA=END
	} >in.txt
	mkdir db copy
	mdb_load -f in.txt db && mdb_stat db && mdb_dump db | md5sum && mdb_copy db copy && mdb_dump copy | md5sum
}

run_sqlite() {
	cd "$1" || return
	sqlite3 t.db "pragma journal_mode=wal; pragma mmap_size=268435456; create table t(a integer primary key, b text);
		with recursive c(x) as (select 1 union all select x + 1 from c where x < 20000) insert into t select x, hex(x) from c;"
	for i in 0 1 2 3; do
		sqlite3 -cmd '.timeout 60000' t.db "pragma mmap_size=268435456; begin immediate; update t set b = 'p$i' where a % 4 = $i; commit;" &
	done
	wait
	sqlite3 t.db "pragma mmap_size=268435456; select b, count(*) from t group by b; pragma integrity_check;"
}

run_python() {
	cd "$1" && export TMPDIR=$1
	/usr/bin/python3 -m test -v test_mmap 2>&1 | grep -E '^test_|^FAILED|^OK|^ERROR'
}

run_git() {
	cd "$1" && export HOME=$1
	git init -q r && cd r && git config user.email a@example.org && git config user.name n || return
	for ((i = 0; i < 200; i++)); do seq $i 2000 >f$i; done
	git add . && git commit -qm all && git gc -q && git fsck && git clone -q . ../copy && cd ../copy && git status --short &&
		git verify-pack .git/objects/pack/*.idx && ls | wc -l
}

run_library() {
	cd "$1" || return
	echo 'int table[100000] = {1, 2, 3}; __thread int tls = 39; int answer(void) { return table[2] + tls; }' >lib.c
	cat >main.c <<'C'
#include <dlfcn.h>
#include <stdio.h>
int main(int argc, char **argv)
{
	void *h = dlopen(argv[argc - 1], RTLD_NOW);
	int (*answer)(void) = h ? dlsym(h, "answer") : NULL;

	puts(h ? "opened" : dlerror());
	return answer ? answer() : 1;
}
C
	gcc -shared -fPIC -o liba.so lib.c && gcc -o main main.c && ./main "$PWD/liba.so"
	echo "answer $?"
}

# As programs, since `shelf run` starts programs.
export -f run_fio run_lmdb run_sqlite run_python run_git run_library
in_bash() {
	what=$1 function=$2
	shift 2
	printf '#!/bin/bash\n%s "$@"\n' "$function" >"$work/$function"
	chmod +x "$work/$function"
	same "$what" "$work/$function" "$@"
}

in_bash 'fio maps the file' run_fio --ioengine=mmap --bs=4k --size=8m
in_bash 'fio maps a file of holes, twice at once' run_fio --ioengine=mmap --bs=8k --size=4m --numjobs=2 --fallocate=none
in_bash 'fio with libaio' run_fio --ioengine=libaio --iodepth=8 --bs=4k --size=8m
in_bash 'fio with POSIX aio' run_fio --ioengine=posixaio --iodepth=8 --bs=4k --size=4m
in_bash 'lmdb' run_lmdb
in_bash 'sqlite, four processes, write-ahead log, mapped' run_sqlite
in_bash 'test_mmap of python3' run_python
in_bash 'git with packs' run_git
in_bash 'a library in the shelf' run_library
finish
