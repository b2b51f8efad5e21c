"""make_archives.py: archives in the current directory, good, hostile and large."""
import io
import os
import random
import subprocess
import tarfile
import zipfile


def entry(name, kind=tarfile.REGTYPE, link='', mode=0o644):
    t = tarfile.TarInfo(name)
    t.type, t.linkname, t.mode = kind, link, mode
    return t


def make(file, *entries, how='w', form=tarfile.PAX_FORMAT, data=b'data\n'):
    with tarfile.open(file, how, format=form) as tar:
        for t in entries:
            if t.type == tarfile.REGTYPE:
                t.size = len(data)
                tar.addfile(t, io.BytesIO(data))
            else:
                tar.addfile(t)


make('dotdot.tar', entry('../outside/dotdot'), entry('a/../../outside/file'), entry('..'), entry('after'))
make('absolute.tar', entry('/tmp/absolute'), entry('//tmp//./other'))
make('through_symlink.tar', entry('s', tarfile.SYMTYPE, '../../outside'), entry('s/made'), entry('s/file'))
make('through_symlink_absolute.tar', entry('t', tarfile.SYMTYPE, '/outside'), entry('t/made'),
     entry('u', tarfile.SYMTYPE, '/'), entry('u/outside/file'))
make('hardlink_out.tar', entry('hl', tarfile.LNKTYPE, '../../outside/file'),
     entry('hs', tarfile.SYMTYPE, '../../outside'), entry('hl2', tarfile.LNKTYPE, 'hs/file'), entry('hl2'))
make('hardlink_to_symlink.tar', entry('a', tarfile.SYMTYPE, '../../outside/file'),
     entry('b', tarfile.LNKTYPE, 'a'), entry('b'))
make('replaced_symlink.tar', entry('victim', tarfile.SYMTYPE, '../../outside/file'), entry('victim'),
     entry('dirlink', tarfile.SYMTYPE, '../../outside'), entry('dirlink', tarfile.DIRTYPE, mode=0o755),
     entry('dirlink/made'))
make('long_names.tar', entry('n' * 300), entry('/'.join(['d' * 200] * 25)), entry('after'))
good = [entry('d', tarfile.DIRTYPE, mode=0o755), entry('d/f'), entry('d/l', tarfile.SYMTYPE, 'f')]
for ending, how in (('gz', 'w:gz'), ('xz', 'w:xz'), ('bz2', 'w:bz2')):
    make('plain.tar.' + ending, *good, how=how)
make('plain.tar', *good)
subprocess.run('zstd -q plain.tar -o plain.tar.zst', shell=True, stderr=subprocess.DEVNULL)
with zipfile.ZipFile('zip.zip', 'w') as z:
    z.writestr('d/f', 'data\n')
with open('cpio.cpio', 'wb') as out:  # newc, by hand: cpio is not everywhere
    def member(name, mode, body, ino, nlink=1):
        head = [ino, mode, 0, 0, nlink, 1, len(body), 0, 0, 0, 0, len(name) + 1, 0]
        raw = b'070701' + b''.join(b'%08x' % v for v in head) + name.encode() + b'\0'
        raw += b'\0' * (-len(raw) % 4) + body
        out.write(raw + b'\0' * (-len(raw) % 4))
    member('d', 0o40755, b'', 1, 2)
    member('d/first', 0o100644, b'', 2, 2)
    member('d/f', 0o100644, b'data\n', 2, 2)
    member('d/l', 0o120777, b'f', 3)
    member('TRAILER!!!', 0, b'', 0)
noise = random.Random(1).randbytes(4 << 20)
for how, name in (('w', 'big.tar'), ('w:gz', 'big.tar.gz')):
    make(name, entry('big'), how=how, data=noise)
