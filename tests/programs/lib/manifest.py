"""manifest.py DIR [AS]: kind, mode, owner, links, size and contents of each file below DIR, one a line, in order of names.

AS is where the tree was when it was made; that name is left out of links and contents.
"""
import hashlib
import os
import stat
import sys

top = os.fsencode(sys.argv[1])
made_at = os.fsencode(sys.argv[-1])


def contents(path, st):
    if stat.S_ISLNK(st.st_mode):
        return os.fsencode(os.readlink(path)).replace(made_at, b'@')
    if not stat.S_ISREG(st.st_mode):
        return b''
    with open(path, 'rb') as f:
        return hashlib.sha256(f.read().replace(made_at, b'@')).hexdigest()[:16].encode()


def show(path, name):
    st = os.lstat(path)
    links = 0 if stat.S_ISDIR(st.st_mode) else st.st_nlink
    size = 0 if stat.S_ISDIR(st.st_mode) else st.st_size
    print(name, oct(st.st_mode), st.st_uid, st.st_gid, links, size, contents(path, st))
    if stat.S_ISDIR(st.st_mode):
        for entry in sorted(os.listdir(path)):
            show(path + b'/' + entry, (name + b'/' + entry) if name else entry)


for entry in sorted(os.listdir(top)):
    show(top + b'/' + entry, entry)
