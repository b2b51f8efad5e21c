"""manifest.py DIR [LEAVE_OUT...]: all that is known of each file below DIR, one a line, in order of names.

LEAVE_OUT: words of owner, top, atime, holes.  Nothing is changed, access times neither.
"""
import hashlib
import os
import stat
import sys

top = os.fsencode(sys.argv[1])
leave_out = set(sys.argv[2:])
names = {}


def quiet_open(path, flags):
    try:
        return os.open(path, flags | os.O_NOATIME)
    except PermissionError:
        return os.open(path, flags)


def data_map(fd, size):
    found, at = [], 0
    while at < size:
        try:
            begin = os.lseek(fd, at, os.SEEK_DATA)
        except OSError:
            break
        at = os.lseek(fd, begin, os.SEEK_HOLE)
        found.append((begin, at))
    return found


def contents(path, st):
    fd = quiet_open(path, os.O_RDONLY)
    digest = hashlib.sha256()
    while block := os.read(fd, 1 << 20):
        digest.update(block)
    out = ['size', str(st.st_size), digest.hexdigest()[:16]]
    if 'holes' not in leave_out:
        out.append(str(data_map(fd, st.st_size)))
    os.close(fd)
    return out


def attributes(path):
    try:
        attrs = [a for a in os.listxattr(path, follow_symlinks=False)
                 if a != 'security.selinux']
    except OSError:
        return []
    return [a + '=' + os.getxattr(path, a, follow_symlinks=False).hex() for a in sorted(attrs)]


def describe(path, shown):
    st = os.lstat(path)
    kind = stat.S_IFMT(st.st_mode)
    out = [repr(shown), oct(st.st_mode), 'mtime', str(st.st_mtime_ns)]
    if 'owner' not in leave_out:
        out += ['owner', str(st.st_uid), str(st.st_gid)]
    if 'atime' not in leave_out and kind != stat.S_IFLNK:  # readlink changes it
        out += ['atime', str(st.st_atime_ns)]
    if kind != stat.S_IFDIR:
        first = names.setdefault((st.st_dev, st.st_ino), shown)
        out += ['first', repr(first)]
    if kind in (stat.S_IFCHR, stat.S_IFBLK):
        out += ['device', str(st.st_rdev)]
    if kind == stat.S_IFLNK:
        out += ['to', repr(os.readlink(path))]
    if kind == stat.S_IFREG:
        out += contents(path, st)
    out += attributes(path)
    if shown != b'.' or 'top' not in leave_out:
        print(*out)
    if kind == stat.S_IFDIR:
        fd = quiet_open(path, os.O_RDONLY | os.O_DIRECTORY)
        for name in sorted(os.fsencode(n) for n in os.listdir(fd)):
            describe(path + b'/' + name, name if shown == b'.' else shown + b'/' + name)
        os.close(fd)


describe(top, b'.')
