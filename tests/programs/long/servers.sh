#!/bin/sh
# nginx, redis and PostgreSQL with all their files on the shelf.
. "$(dirname "$0")/../lib/lib.sh"
limit=600 trees=no lines=20
export PATH="$PATH:/usr/sbin:/usr/lib/postgresql/15/bin"

# Ports are taken from the process's number: both sides never run at once, other tests may.
port=$((20000 + $$ % 10000))

if has nginx && has curl; then
	both "nginx serves the tree: 2 workers, sendfile, 4 clients" '
	mkdir www tmp; for i in $(seq 200); do seq $i >www/f$i; done; head -c 3000000 /dev/zero | tr "\0" y >www/big
	cat >conf <<END
worker_processes 2;
daemon off;
pid $D/pid;
error_log $D/error.log;
events { worker_connections 64; }
http { access_log $D/access.log; sendfile on; client_body_temp_path $D/tmp; proxy_temp_path $D/tmp; fastcgi_temp_path $D/tmp; uwsgi_temp_path $D/tmp; scgi_temp_path $D/tmp;
server { listen 127.0.0.1:'"\$(($port + N))"'; root $D/www; location /list/ { alias $D/www/; autoindex on; } } }
END
	chmod -R a+rX .; nginx -p "$D" -c "$D/conf" & p=$!
	url=http://127.0.0.1:'"\$(($port + N))"'
	curl -s --retry 50 --retry-connrefused --retry-delay 0 -o /dev/null $url/f1
	for c in 1 2 3 4; do (for i in $(seq 50); do curl -s $url/f$((i * 4 - c + 1)); done | cksum >sum$c) & c$c=; done 2>/dev/null; wait $(jobs -p | tail -4)
	cat sum?; curl -s $url/big | cksum; curl -s -r 100-199 $url/big | wc -c; curl -s -o /dev/null -w "%{http_code}\n" $url/none; curl -s $url/list/ | grep -c href
	echo changed >www/f1; curl -s $url/f1; kill -QUIT $p; wait $p; echo $?; wc -l <access.log; sed "s/[0-9]*#[0-9]*//" error.log | wc -c
	'
fi

if has redis-server && has redis-cli; then
	both "redis: appends, snapshots, restart" '
	sock=$HOST/s; start() { redis-server --port 0 --unixsocket "$sock" --dir "$D" --appendonly yes --appendfsync always --logfile "$D/log" --save "" & p=$!; until redis-cli -s "$sock" ping 2>/dev/null | grep -q PONG; do read -t 0.05 _ <> <(:); done; }
	start
	for c in 1 2 3; do (for i in $(seq 300); do echo "set k$c:$i $i"; echo "incr n"; echo "rpush l$c $i"; done | redis-cli -s "$sock" | sort | uniq -c | wc -l) >c$c & cs="$cs $!"; done; wait $cs
	redis-cli -s "$sock" get n; redis-cli -s "$sock" bgrewriteaof; until redis-cli -s "$sock" info persistence | grep -q "aof_rewrite_in_progress:0"; do read -t 0.05 _ <> <(:); done
	redis-cli -s "$sock" save; kill -9 $p; wait $p 2>/dev/null; start
	redis-cli -s "$sock" get n; redis-cli -s "$sock" llen l2; redis-cli -s "$sock" dbsize; redis-cli -s "$sock" shutdown nosave; wait $p; echo $?; ls; redis-check-aof appendonlydir/*.manifest >/dev/null && echo good
	'
fi

# PostgreSQL refuses root: as the user postgres, whose shelf it then is.
if has initdb && has pgbench && id postgres >/dev/null 2>&1 && [ "$(id -u)" = 0 ]; then
	mkdir "$base/pg" && chown postgres "$base/pg"
	as_postgres() {
		way=$1 top=$base/pg_$1
		mkdir -p "$top" "$work/$way" "$work/pg.host"
		chown postgres "$top" "$work/pg.host"
		set -- bash -c '
		exec 2>&1
		cd '"$top"'; export PATH="$PATH:/usr/lib/postgresql/15/bin" PGHOST='"$work"'/pg.host PGPORT=5999 PGUSER=postgres
		initdb -D data -A trust -N >init.log || { cat init.log; exit 1; }
		pg_ctl -D data -w -l log -o "-k $PGHOST -h \"\"" start >/dev/null || { cat log; exit 1; }
		pgbench -q -i -s 2 postgres >/dev/null 2>&1; pgbench -c 4 -j 2 -t '"$(scaled 250)"' postgres 2>/dev/null | grep -E "actually|failed"
		psql -qAt postgres -c "select count(*), sum(bid) from pgbench_accounts" -c "select count(*) from pgbench_history" -c "create table x as select generate_series(1, 50000) as n; create index on x(n); vacuum full x; select sum(n) from x; checkpoint"
		pg_ctl -D data -m immediate stop >/dev/null; pg_ctl -D data -w -l log start -o "-k $PGHOST -h \"\"" >/dev/null; psql -qAt postgres -c "select count(*) from x"
		pg_ctl -D data -w stop >/dev/null; echo $?; pg_checksums -D data --check 2>&1 | grep -c Bad; grep -c -E "PANIC|FATAL:  (could|data)" log'
		[ "$way" = tmpfs ] || set -- "$SHELF" run --size 1G --at "$top" -- "$@"
		setpriv --reuid postgres --regid postgres --init-groups env -u XDG_CACHE_HOME HOME="$base/pg" SHELF_SHM_DIR="$base/pg" "$@" \
			>"$work/$way/out" 2>"$work/$way/err" </dev/null
		echo $? >"$work/$way/status"
	}
	rm -rf "$work/tmpfs" "$work/shelf"
	as_postgres tmpfs
	as_postgres shelf
	compare "PostgreSQL: initdb, pgbench, crash, restart"
fi
finish
