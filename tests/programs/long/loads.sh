#!/bin/sh
# dbench, db_bench, fio with verification, stress-ng's file stressors, node and npm.
. "$(dirname "$0")/../lib/lib.sh"
limit=600 trees=no size=2G

if has dbench; then
	on_shelf "dbench, 10 clients" 'dbench -D "$D" -t 10 -c /usr/share/dbench/client.txt 10 | tail -n 20; [ ${PIPESTATUS[0]} = 0 ]'
fi
if has db_bench; then
	on_shelf "rocksdb: fill, compact, overwrite, read while writing" '
	db_bench --db="$D/db" --benchmarks=fillseq,fillrandom,readrandom,readseq,compact,overwrite,readwhilewriting \
		--num=20000 --threads=2 --value_size=100 --verify_checksum=1 >log 2>&1 || { tail -n 5 log; exit 1; }
	ldb --db="$D/db" checkconsistency && [ "$(ldb --db="$D/db" scan --hex | wc -l)" -gt 10000 ]
	db_bench --db="$D/db" --use_existing_db=1 --benchmarks=overwrite --num=1000000 --mmap_read=1 --mmap_write=1 >log 2>&1 & pid=$!
	while [ "$(ls "$D/db" | wc -l)" -lt 12 ]; do :; done
	kill -9 $pid; wait $pid 2>/dev/null; ldb --db="$D/db" checkconsistency'
fi
if has fio; then
	for rw in randwrite write randrw; do
		on_shelf "fio psync $rw with verification" "fio --name=j --directory=\"\$D\" --ioengine=psync --rw=$rw --bs=4k --size=16M --numjobs=2 --verify=crc32c --verify_fatal=1 --minimal >/dev/null"
	done
fi
if has stress-ng; then
	for s in access chattr chdir chmod chown copy-file dentry dir dirdeep dirmany dup fallocate fcntl fiemap file-ioctl filename flock \
		fpunch fstat getdent hdd io iomix lease link locka lockf lockofd open readahead rename revio seek sendfile splice symlink sync-file touch unlink utime \
		verity xattr vforkmany fork close handle inode-flags mknod pipe; do
		both "stress-ng $s" "stress-ng --temp-path \"\$D\" --$s 2 --$s-ops $(scaled 200) --verify -q -t 20 2>&1 | sed 's/.*\\[[0-9]*\\]//' | sort -u; ls -A"
	done
fi
if has node; then
	both "node: promises, streams, watch of nothing, worker threads" '
	cat >p.js <<"END"
const fs = require("fs"), fsp = fs.promises, path = require("path"), { Worker, isMainThread, workerData, parentPort } = require("worker_threads");
if (!isMainThread) { for (let i = 0; i < 200; i++) fs.writeFileSync(`w${workerData}_${i}`, "x".repeat(i)); parentPort.postMessage(0); return; }
(async () => {
	await fsp.mkdir("a/b/c", { recursive: true });
	await Promise.all([...Array(300).keys()].map(i => fsp.writeFile(`a/b/f${i}`, String(i))));
	console.log((await fsp.readdir("a/b")).length, (await Promise.all([...Array(300).keys()].map(i => fsp.readFile(`a/b/f${i}`, "utf8")))).reduce((s, t) => s + Number(t), 0));
	await new Promise(r => fs.createReadStream(process.execPath, { end: 5000000 }).pipe(fs.createWriteStream("copy")).on("finish", r));
	console.log(fs.statSync("copy").size);
	await Promise.all([1, 2, 3].map(n => new Promise(r => new Worker(__filename, { workerData: n }).on("exit", r))));
	console.log(fs.readdirSync(".").length, fs.realpathSync("a/../a/b") === path.join(process.cwd(), "a/b"));
	const { spawnSync } = require("child_process");
	for (let i = 0; i < 20; i++) spawnSync("sh", ["-c", "echo x >>log"]);
	console.log(fs.readFileSync("log", "utf8").length);
	fs.cpSync("a", "d", { recursive: true }); fs.rmSync("a", { recursive: true }); console.log(fs.readdirSync("d/b").length);
})();
END
	node p.js; UV_USE_IO_URING=1 node -e "require(\"fs\").promises.readFile(\"log\", \"utf8\").then(t => console.log(t.length))"'
fi
if has npm; then
	both "npm: pack and install from the tree" '
	export npm_config_cache=$D/cache npm_config_update_notifier=false npm_config_audit=false npm_config_fund=false HOME=$D
	for p in one two three; do mkdir -p src/$p/lib; for i in $(seq 30); do echo "exports.n = $i" >src/$p/lib/f$i.js; done; echo "{\"name\":\"$p\",\"version\":\"1.0.0\",\"main\":\"lib/f1.js\"}" >src/$p/package.json; (cd src/$p; npm pack -s --pack-destination "$D"); done
	mkdir app; cd app; echo "{\"name\":\"app\",\"version\":\"1.0.0\"}" >package.json; npm install -s --offline ../one-1.0.0.tgz ../two-1.0.0.tgz ../three-1.0.0.tgz; echo $?
	node -p "[\"one\", \"two\", \"three\"].map(n => require(n).n)"; find node_modules -type f | grep -v package-lock | wc -l; npm ls --offline 2>&1 | tail -4; npm uninstall -s --offline one; ls node_modules'
fi
finish
