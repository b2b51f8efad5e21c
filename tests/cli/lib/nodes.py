"""nodes.py DIR: FIFOs, sockets, devices, and descriptors in messages, in DIR; says what went wrong."""
import array, errno, os, select, signal, socket, stat, subprocess, sys, threading

os.chdir(sys.argv[1])
failed = 0


def check(what, holds):
    global failed
    if not holds:
        failed += 1
        print('not so:', what)


def error(call, *args):
    try:
        call(*args)
    except OSError as e:
        return errno.errorcode[e.errno]
    return None


# FIFOs
os.mkfifo('p', 0o640)
st = os.stat('p')
check('a FIFO is one', stat.S_ISFIFO(st.st_mode) and st.st_mode & 0o777 == 0o640)
check('no reader', error(os.open, 'p', os.O_WRONLY | os.O_NONBLOCK) == 'ENXIO')
r = os.open('p', os.O_RDONLY | os.O_NONBLOCK)
w = os.open('p', os.O_WRONLY)
check('nothing yet', error(os.read, r, 1) == 'EAGAIN')
ep = select.epoll()
ep.register(r, select.EPOLLIN)
check('epoll waits', ep.poll(0) == [])
os.write(w, b'hello')
check('epoll sees it', ep.poll(1) == [(r, select.EPOLLIN)])
f = open('plain', 'w+')
ready = select.select([r, f], [], [], 1)
check('select of a FIFO and a file', set(ready[0]) == {r, f})
check('what was written', os.read(r, 9) == b'hello')
os.close(w)
check('the end', os.read(r, 1) == b'')
os.close(r)
p = subprocess.Popen(['sh', '-c', 'echo from a child >p'])
with open('p') as f2:
    check('open waits for the other end', f2.read() == 'from a child\n')
p.wait()
os.rename('p', 'q')
os.link('q', 'q2')
p = subprocess.Popen(['cat', 'q2'], stdout=subprocess.PIPE)
with open('q', 'w') as f2:
    f2.write('by another name')
check('one FIFO by two names', p.communicate()[0] == b'by another name')
os.unlink('q')
os.unlink('q2')
os.mkfifo('q')
check('a new one is another', error(os.open, 'q', os.O_WRONLY | os.O_NONBLOCK) == 'ENXIO')
check('O_CREAT opens it', os.close(os.open('q', os.O_RDWR | os.O_CREAT, 0o600)) is None)
check('O_EXCL does not', error(os.open, 'q', os.O_RDWR | os.O_CREAT | os.O_EXCL) == 'EEXIST')
os.symlink('q', 'ql')
check('by a link', os.close(os.open('ql', os.O_RDWR)) is None)

# sockets
s = socket.socket(socket.AF_UNIX)
s.bind('sock')
check('the name is a socket', stat.S_ISSOCK(os.stat('sock').st_mode))
check('its own name', s.getsockname() == 'sock')
check('in use', error(socket.socket(socket.AF_UNIX).bind, 'sock') == 'EADDRINUSE')
check('not listening', error(socket.socket(socket.AF_UNIX).connect, 'sock') == 'ECONNREFUSED')
s.listen(5)
c = socket.socket(socket.AF_UNIX)
c.connect(os.path.abspath('sock'))
a, name = s.accept()
check('the peer has no name', name == '')
check('the peer of the client', c.getpeername() == 'sock')
c.sendall(b'ping')
check('data', a.recv(9) == b'ping')
check('no file is a socket', error(socket.socket(socket.AF_UNIX).connect, 'plain') == 'ECONNREFUSED')
check('none there', error(socket.socket(socket.AF_UNIX).connect, 'nowhere') == 'ENOENT')
check('no directory', error(socket.socket(socket.AF_UNIX).bind, 'nowhere/x') == 'ENOENT')
check('open of a socket', error(os.open, 'sock', os.O_RDONLY) == 'ENXIO')
os.unlink('sock')
check('a removed name', error(socket.socket(socket.AF_UNIX).connect, 'sock') == 'ENOENT')
os.mkdir('d' * 60)
deep = 'd' * 60 + '/' + 's' * 40
d1, d2 = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
d1.bind(deep)
d2.bind('d2')
d2.sendto(b'x', deep)
check('recvfrom tells who', d1.recvfrom(9) == (b'x', 'd2'))
d1.sendmsg([b'y'], [], 0, 'd2')
m = d2.recvmsg(9)
check('recvmsg tells who', (m[0], m[3]) == (b'y', deep))
check('a file is no socket', error(lambda: socket.socket(fileno=f.fileno())) == 'ENOTSOCK')

# devices
if os.geteuid() == 0:
    os.mknod('null', 0o666 | stat.S_IFCHR, os.makedev(1, 3))
    with open('null', 'w') as f2:
        f2.write('x')
    with open('null') as f2:
        check('the null device', f2.read() == '')
    os.mknod('odd', 0o666 | stat.S_IFCHR, os.makedev(250, 77))
    check('no such device', error(os.open, 'odd', os.O_RDONLY) in ('ENXIO', 'ENODEV'))

# descriptors in messages
f.write('0123456789')
f.flush()
f.seek(0)
one, two = socket.socketpair()
pid = os.fork()
if pid == 0:
    one.close()
    msg, fds, flags, addr = socket.recv_fds(two, 100, 8)
    ok = len(fds) == 3 and os.read(fds[0], 3) == b'012' and os.fstat(fds[0]).st_ino == os.stat('plain').st_ino
    ok = ok and os.read(fds[1], 4) == b'host' and os.listdir(fds[2]) == os.listdir('.')
    new = os.open('plain', os.O_RDONLY)
    ok = ok and new not in fds
    two.sendall(b'good' if ok else b'bad: %r' % [fds])
    two.recv(1)
    os._exit(0)
hr, hw = os.pipe()
os.write(hw, b'host')
here = os.open('.', os.O_RDONLY)
socket.send_fds(one, [b'three'], [f.fileno(), hr, here])
two.close()
check('descriptors arrive', one.recv(100) == b'good')
check('with one offset', os.lseek(f.fileno(), 0, os.SEEK_CUR) == 3)
one.sendall(b'x')
os.waitpid(pid, 0)

# in flight while the sender closes it, and ends
one, two = socket.socketpair()
if os.fork() == 0:
    g = os.open('gone', os.O_CREAT | os.O_RDWR, 0o600)
    os.write(g, b'kept alive')
    os.lseek(g, 4, os.SEEK_SET)
    os.unlink('gone')
    socket.send_fds(one, [b'x'], [g])
    os.close(g)
    os._exit(0)
os.wait()
fds = socket.recv_fds(two, 10, 1)[1]
check('a file without name, sender or number', os.read(fds[0], 20) == b' alive')
os.close(fds[0])

# never received: 300 times
for i in range(300):
    x, y = socket.socketpair()
    socket.send_fds(x, [b'x'], [f.fileno()])
    x.close()
    y.close()
# back and forth within one process, numbers as the kernel gives them
x, y = socket.socketpair()
socket.send_fds(x, [b'x'], [f.fileno()])
low = os.dup(0)
os.close(low)
fds = socket.recv_fds(y, 1, 1)[1]
check('the lowest number', fds == [low])
with open('other', 'w') as f2:
    check('and the next is above', f2.fileno() > low)
os.close(fds[0])

# pidfd_getfd
if hasattr(os, 'pidfd_open'):
    import ctypes
    libc = ctypes.CDLL(None, use_errno=True)
    rd, wr = os.pipe()
    pid = os.fork()
    if pid == 0:
        g = os.open('plain', os.O_RDONLY)
        os.lseek(g, 7, os.SEEK_SET)
        os.write(wr, bytes([g]))
        signal.pause()
    g = os.read(rd, 1)[0]
    pfd = os.pidfd_open(pid)
    got = libc.syscall(438, pfd, g, 0)
    check('pidfd_getfd', got >= 0 and os.read(got, 3) == b'789')
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
print('%d failed' % failed)
sys.exit(failed != 0)
