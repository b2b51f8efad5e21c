#!/bin/sh
# bench report: a page from files of results; hostile files are refused by name and line.
. "$(dirname "$0")/lib/lib.sh"

python3 - <<'END' || exit 1
import json
machine = {'cpu': 'A <CPU> & more', 'cores': 2, 'memory_mib': 4096, 'kernel': '6.1', 'compiler': '12',
           'flags': '-O2', 'commit': 'abc'}
rows = [{'workload': w, 'case': c, 'engine': e, 'threads': t, 'unit': 'op/s',
         'samples': [1e6 * (i + 1) + s * 1e4 for s in range(5)], 'mean': 1, 'stdev': 0}
        for w, cs in (('fdget', ('shared', 'unshared')), ('names', ('stat',)))
        for c in cs for t in (1, 2) for i, e in enumerate(('spinlock', 'borrow', 'tmpfs'))]
good = {'machine': machine, 'results': rows}
json.dump(good, open('good.json', 'w'))


def bad(name, text):
    open('bad_' + name, 'w').write(text)


row = dict(rows[0])
bad('empty', '')
bad('cut', json.dumps(good)[:700])
bad('tail', json.dumps(good) + 'x')
bad('array', '[]')
bad('no_results', json.dumps({'machine': machine, 'results': []}))
bad('type', json.dumps({'results': [dict(row, samples='x')]}))
bad('negative', json.dumps({'results': [dict(row, samples=[-1])]}))
bad('nan', '{"results":[{"samples":[NaN]}]}')
bad('huge', '{"results":[{"samples":[1e999]}]}')
bad('long', json.dumps({'results': [dict(row, engine='e' * 1000)]}))
bad('many', json.dumps({'results': [dict(row, samples=[1] * 1000)]}))
bad('deep', '{"results":' + '[' * 100000)
bad('deep2', '{"a":' * 100000)
bad('threads', json.dumps({'results': [dict(row, threads=1.5)]}))
bad('threads0', json.dumps({'results': [dict(row, threads=0)]}))
bad('lacks', json.dumps({'results': [{'samples': [1]}]}))
bad('leading_zero', '{"results":[{"samples":[01]}]}')
bad('comma', '{"machine":{},"results":[],}')
bad('escape', r'{"\x":1}')
bad('control', '{"a\nb":1}')
open('bad_bytes', 'wb').write(bytes(range(256)) * 10)
open('bad_nul', 'wb').write(b'{"machine":{}\0}')
evil = dict(row, workload="w'`<b>$(x)", case='<script>alert(1)</script>', engine="';system 'id>pwned'#",
            unit="'\n!x")
json.dump({'machine': machine, 'results': [evil]}, open('evil.json', 'w'))
END

status 0 "a page is made" "$SHELF" bench report good.json -o page.html
check "it has the machine, escaped" grep -q 'A &lt;CPU&gt; &amp; more' page.html
check "a table for each case" [ "$(grep -c '<table>' page.html)" = 6 ]
if command -v gnuplot >/dev/null; then
	check "a plot for each workload" [ "$(grep -c '<svg' page.html)" = 2 ]
	check "pictures stand without a declaration" sh -c '! grep -q "<?xml\|<!DOCTYPE svg" page.html'
fi
check "nothing is fetched from elsewhere" sh -c '! grep -qE "(src|href)=\"?(https?:)?//" page.html'
check "the page is well formed" python3 -c '
import html.parser, sys
void = {"meta", "br", "link", "img"}
class P(html.parser.HTMLParser):
    stack = []
    def handle_starttag(self, t, a):
        if t not in void: self.stack.append(t)
    def handle_endtag(self, t):
        if t not in void: assert self.stack.pop() == t, t
p = P(); p.feed(open("page.html").read()); p.close(); assert not p.stack'
status 0 "two files on one page" "$SHELF" bench report good.json good.json -o two.html
check "both are there" [ "$(grep -c 'class="machine"' two.html)" = 2 ]
status 0 "the page on standard output" "$SHELF" bench report good.json -o -
printed "</html>" "it is whole"
mkdir empty
status 0 "without gnuplot" env PATH="$work/empty" "$SHELF" bench report good.json -o plain.html
check "it says so" grep -q 'gnuplot is not installed' plain.html
check "tables are there" [ "$(grep -c '<table>' plain.html)" = 6 ]

for file in bad_*; do
	rm -f never.html
	status 1 "$file is refused" "$SHELF" bench report "$file" -o never.html
	told "$file: line" "$file is named with a line"
	check "$file makes no page" [ ! -e never.html ]
done
status 0 "odd names are only names" "$SHELF" bench report evil.json -o evil.html
check "they run nothing" [ ! -e pwned ]
check "they are no markup" sh -c '! grep -q "<script\|<b>" evil.html'
status 1 "a file that is missing" "$SHELF" bench report none.json -o never.html
told "none.json: read: No such file" "is named"
status 1 "a directory" "$SHELF" bench report empty -o never.html
status 1 "a page that cannot be written" "$SHELF" bench report good.json -o /nonexistent/page.html
told "/nonexistent/page.html: open" "is named"
[ -e /dev/full ] && status 1 "a full disk" "$SHELF" bench report good.json -o /dev/full
# from the samples to the page, with engine programs that only print
mkdir fake
for e in borrow spinlock tmpfs; do
	cat >fake/files_$e <<'END'
#!/bin/sh
while [ $# -gt 0 ]; do
	[ "$1" = --case ] && echo "$2 12345.5" | tr , '\n' | sed 's/$/ 12345.5/; s/ 12345.5 12345.5$/ 12345.5/'
	shift
done
END
	chmod +x fake/files_$e
done
export SHELF_BENCH_DIR="$work/fake"
status 0 "bench writes JSON" "$SHELF" bench names --engine borrow,spinlock,tmpfs --case stat,rename --runs 3 --ms 1 --json b.json
check "which is JSON" python3 -m json.tool b.json
status 0 "a page of it" "$SHELF" bench report b.json -o b.html
check "has its tables" [ "$(grep -c '<table>' b.html)" = 4 ]
check "and its machine" grep -q 'kernel: ' b.html
status 0 "JSON on standard output" "$SHELF" bench names --engine borrow --case stat --threads 1 --runs 1 --ms 1 --json -
check "alone" python3 -m json.tool .out
echo 'exit 3' >fake/files_borrow
status 1 "an engine program that fails" "$SHELF" bench names --engine borrow --case stat --runs 1 --ms 1
told "files_borrow ended with status" "is named"

status 2 "no -o" "$SHELF" bench report good.json
status 2 "no file" "$SHELF" bench report -o x
status 2 "an unknown option" "$SHELF" bench report --what good.json -o x
finish
