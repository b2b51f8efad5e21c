#!/bin/sh
# sqlite3 alone and by several processes, with a rollback journal and with a write-ahead log.
. "$(dirname "$0")/lib/lib.sh"
need sqlite3

each=$(scaled 100)
for mode in delete wal truncate persist; do
	limit=$((120 + each * 2)) both "sqlite3, journal $mode: 4 processes, $each transactions each" '
	sqlite3 db "pragma journal_mode='$mode'; create table t(who int, n int, text);" >mode; cat mode
	for who in 1 2 3 4; do
		(n=0; while [ $n -lt '"$each"' ]; do
			echo "begin immediate; insert into t values($who, $n, hex(zeroblob(100))); commit;"; n=$((n + 1))
		done | sqlite3 -cmd ".timeout 60000" db 2>"err.$who"; echo "$who: $?" >"status.$who") &
	done; wait
	cat status.* err.*; sqlite3 db "select who, count(*), sum(n) from t group by who; pragma integrity_check;"
	ls; rm -f db db-* err.* status.*
	'
done

both "sqlite3: indexes, vacuum, dump, rollback, attach" '
seq 3000 | sed "s/.*/insert into t values(&, \"name &\", & % 7);/" >inserts
(echo "create table t(a integer primary key, b text, c int); begin;"; cat inserts; echo "commit; create index i on t(c, b);") | sqlite3 db
sqlite3 db "select c, count(*), max(b) from t group by c; delete from t where c = 3; vacuum; pragma integrity_check; pragma page_count;"
sqlite3 db "begin; delete from t; rollback; select count(*) from t;"
sqlite3 db .dump | sqlite3 copy; sqlite3 copy "select count(*), sum(a) from t;"
sqlite3 db "attach \"other\" as o; create table o.u as select * from t; select count(*) from o.u;"
sqlite3 db ".backup kept"; sqlite3 kept "select sum(c) from t"; sqlite3 db ".mode csv" ".output list.csv" "select * from t limit 5"; cat list.csv
sqlite3 -cmd "pragma temp_store_directory=\"$D\"" db "select count(*) from (select distinct b || c from t order by 1)"; rm -f db copy other kept
'
finish
