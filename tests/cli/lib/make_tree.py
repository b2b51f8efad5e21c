"""make_tree.py DIR: a tree with one of everything; what the file system or the user cannot have is left out."""
import os
import socket
import stat
import struct
import subprocess
import sys

top = sys.argv[1]
os.umask(0)
os.mkdir(top)
os.chdir(top)
root = os.geteuid() == 0


def write(name, data=b'', mode=0o644):
    with open(name, 'wb') as f:
        f.write(data)
    os.chmod(name, mode)


def attempt(call, *args, **named):
    try:
        call(*args, **named)
    except OSError as e:
        print('left out:', args[0], e, file=sys.stderr)


def acl(*lines):
    return struct.pack('<I', 2) + b''.join(struct.pack('<HHI', *line) for line in lines)


ANY = 0xffffffff
os.makedirs('dir/sub/deep')
write('empty')
write('one', b'x')
write('page', os.urandom(4096))
write('odd', os.urandom(123457))
write('large', os.urandom(5 << 20))
for mode in (0o000, 0o400, 0o200, 0o111, 0o777, 0o755 | stat.S_ISUID, 0o755 | stat.S_ISGID, 0o644 | stat.S_ISVTX):
    if root or mode & 0o400:  # else it can be put by nobody
        write('mode%05o' % mode, b'mode', mode)
for mode in (0o700, 0o1777, 0o2775, 0o555, 0o500):
    os.mkdir('dir%05o' % mode)
    write('dir%05o/in' % mode, b'in')
    os.chmod('dir%05o' % mode, mode)
with open('sparse', 'wb') as f:
    f.truncate(40 << 20)
    f.seek(8 << 20)
    f.write(b'middle' * 4096)
    f.seek((30 << 20) + 4096)
    f.write(b'later')
with open('all_hole', 'wb') as f:
    f.truncate(9 << 20)
with open('hole_first', 'wb') as f:
    f.seek(1 << 20)
    f.write(b'end')
os.symlink('one', 'link')
os.symlink('/etc/passwd', 'link_out')
os.symlink('nowhere/at/all', 'link_dangling')
os.symlink('../..' * 300, 'link_long')
os.symlink('dir', 'link_dir')
write('hard1', b'hard')
os.link('hard1', 'hard2')
os.link('hard1', 'dir/sub/hard3')
os.link('link', 'hard_link')
os.mkfifo('fifo', 0o640)
with socket.socket(socket.AF_UNIX) as s:
    s.bind('socket')
if root:
    attempt(os.mknod, 'char', 0o620 | stat.S_IFCHR, os.makedev(1, 3))
    attempt(os.mknod, 'block', 0o660 | stat.S_IFBLK, os.makedev(7, 200))
    os.chown('one', 12, 34)
    os.chown('dir', 4000000000, 3000000000)
    os.chown('link', 5, 6, follow_symlinks=False)
    write('suid_other', b'suid', 0o755)
    os.chown('suid_other', 77, 88)
    os.chmod('suid_other', 0o6755)
write('n' * 255, b'long name')
write(b'bytes \xff\xfe \n newline', b'odd name')
write('ünïcödé', b'utf8')
write(' space ', b'')
write('-dash', b'')
write('back\\slash', b'')
deep = 'deep'
while len(deep) < 1500:
    os.mkdir(deep)
    write(deep + '/file', deep.encode())
    deep += '/' + 'd' * 100
attempt(os.setxattr, 'one', 'user.short', b'v')
attempt(os.setxattr, 'one', 'user.binary', bytes(range(256)))
attempt(os.setxattr, 'dir', 'user.dir', b'on a directory')
attempt(os.setxattr, 'empty', 'user.empty', b'')
if root:
    attempt(os.setxattr, 'page', 'trusted.shelf', b'trusted')
    attempt(os.setxattr, 'page', 'security.capability',
            struct.pack('<IIIII', 0x02000001, 1 << 10, 0, 0, 0))
access = acl((1, 7, ANY), (2, 7, 1234), (4, 4, ANY), (8, 5, 99), (16, 7, ANY), (32, 0, ANY))
attempt(os.setxattr, 'odd', 'system.posix_acl_access', access)
attempt(os.setxattr, 'dir/sub', 'system.posix_acl_access', access)
attempt(os.setxattr, 'dir/sub', 'system.posix_acl_default', access)
write('dir/sub/inherited', b'has a list of its own from the directory')
write('dir/sub/plain', b'has none')
attempt(os.removexattr, 'dir/sub/plain', 'system.posix_acl_access')
for here, dirs, files in os.walk('.', topdown=False):
    for i, name in enumerate(sorted(dirs + files)):
        os.utime(os.path.join(here, name), follow_symlinks=False,
                 ns=(1500000000123456789 + i, 1400000000987654321 - i))
os.utime('one', ns=(-5 * 10**9 + 7, -(10**9) + 1))
os.utime('page', ns=(2**33 * 10**9 + 3, 2**33 * 10**9 + 5))
os.utime('.', ns=(1500000000000000001, 1400000000000000002))
