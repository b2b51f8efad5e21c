"""interrupt.py SHELF: Ctrl-C in the middle of a copy, and the line of progress on a terminal."""
import io
import os
import pty
import signal
import subprocess
import sys
import tarfile
import time

shelf = sys.argv[1]


def run(*args, **named):
    return subprocess.run([shelf, *args], capture_output=True, **named)


def header(name, size):
    t = tarfile.TarInfo(name)
    t.size = size
    return t.tobuf(tarfile.PAX_FORMAT)


def expect(what, condition):
    if not condition:
        sys.exit('not so: ' + what)


# a stream that stops in the middle of a file
expect('create', run('create', '--size', '64M', 'i').returncode == 0)
p = subprocess.Popen([shelf, 'put', 'i', '-'], stdin=subprocess.PIPE, stderr=subprocess.PIPE)
p.stdin.write(header('whole', 4) + b'data' + b'\0' * 508 + header('half', 10 << 20) + b'x' * (5 << 20))
p.stdin.flush()
time.sleep(0.5)
p.send_signal(signal.SIGINT)
time.sleep(0.2)
expect('it ends without another byte', p.wait(10) == 130)
p.stdin.close()
said = p.stderr.read().decode()
expect('says interrupted: ' + said, 'interrupted' in said)
expect('half a file does not count: ' + said, '1 files, 4B were put and stay' in said)
expect('get', run('get', 'i', 'after').returncode == 0)
expect('what was whole stays', open('after/whole').read() == 'data')
expect('what was half is gone', not os.path.exists('after/half'))
expect('check', run('check', 'i').returncode == 0)

# a reader that reads no more
expect('put', run('put', 'i', 'part').returncode == 0)
p = subprocess.Popen([shelf, 'get', 'i', '-'], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
p.stdout.read(512)
time.sleep(0.3)
p.send_signal(signal.SIGINT)
status = p.wait(10)
expect('get ends while it waits for its reader: %d, %r' % (status, p.stderr.read()), status == 130)

# a tree, at some moment
status = 0
for attempt in range(40):
    subprocess.run(['rm', '-rf', 'tree_i'])
    run('rm', '-f', 'j')
    p = subprocess.Popen([shelf, 'put', '--create', '--size', '256M', 'j', 'part'], stderr=subprocess.PIPE)
    time.sleep(0.002 * attempt)
    p.send_signal(signal.SIGTERM if attempt & 1 else signal.SIGINT)
    status = p.wait(20)
    if status in (130, 143):
        break
expect('a tree is interrupted', status in (130, 143))
expect('check of it', run('check', 'j').returncode == 0)
expect('get of it', run('get', 'j', 'tree_i').returncode == 0)
for here, _, files in os.walk('tree_i'):
    for f in files:
        path = os.path.join(here, f)
        expect(path + ' is whole', os.path.getsize(path) == os.path.getsize(path.replace('tree_i', 'part', 1)))

# progress on a terminal only, and only after a second
control, terminal = pty.openpty()
p = subprocess.Popen([shelf, 'put', 'i', '-'], stdin=subprocess.PIPE, stderr=terminal)
os.close(terminal)
for i in range(16):
    p.stdin.write(header('slow\x1b[31m%d' % i, 512) + b'x' * 512)
    p.stdin.flush()
    time.sleep(0.1)
p.stdin.write(b'\0' * 1024)
p.stdin.close()
shown = b''
try:
    while block := os.read(control, 65536):
        shown += block
except OSError:
    pass
expect('good end', p.wait(10) == 0)
expect('progress: %r' % shown, b'files, ' in shown and b'slow' in shown)
expect('names cannot steer the terminal', b'\x1b[31m' not in shown)
expect('the line is wiped', shown.rstrip().endswith(b'\x1b[K'))
p = run('put', 'i', 'part')
expect('quick work shows nothing', p.returncode == 0 and not p.stderr)
