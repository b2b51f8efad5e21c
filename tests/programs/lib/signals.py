"""signals.py WRAPPER...: what becomes of signals sent to WRAPPER while it runs a program.  WRAPPER is `env`, which is the program by
then, or `shelf run`; what is printed must be the same.

Who waits in the program counts what it got, and tells it when SIGTERM comes; as signals are passed on in their order, a second one of
another kind would have come before.
"""
import os
import pty
import signal
import sys

WRAPPER = sys.argv[1:]
NAMES = 'HUP INT QUIT USR1 USR2 ALRM TERM'.split()

COUNT = r'''
import os, signal, sys
got = {}
def count(sig, frame):
    name = signal.Signals(sig).name
    got[name] = got.get(name, 0) + 1
    if name == 'SIGTERM':
        os.write(1, ('%s\n' % sorted(got.items())).encode())
        os._exit(23)
    os.write(1, b'.\n')
for name in 'HUP INT QUIT USR1 USR2 ALRM TERM'.split():
    signal.signal(getattr(signal, 'SIG' + name), count)
signal.pthread_sigmask(signal.SIG_SETMASK, [])
'''
WAIT = r'''
os.write(1, b'ready\n')
while True:
    signal.pause()
'''
PLAIN = r'''
import os, signal
signal.signal(signal.SIGINT, signal.SIG_DFL)
signal.pthread_sigmask(signal.SIG_SETMASK, [])
''' + WAIT


class Run:
    """WRAPPER with a program in a session of its own; before(): what is done there first."""

    def __init__(self, program, before=lambda: None, terminal=False):
        self.out, out = os.pipe()
        self.master, slave = pty.openpty() if terminal else (-1, -1)
        self.pid = os.fork()
        if not self.pid:
            os.setsid()
            for name in NAMES:
                signal.signal(getattr(signal, 'SIG' + name), signal.SIG_DFL)
            if terminal:
                os.close(self.master)
                os.close(os.open(os.ttyname(slave), os.O_RDWR))
                os.dup2(slave, 0)
            os.dup2(out, 1)
            before()
            os.execvp(WRAPPER[0], WRAPPER + [sys.executable, '-c', program])
        os.close(out)
        if terminal:
            os.close(slave)
        self.lines = os.fdopen(self.out)

    def line(self):
        return self.lines.readline().rstrip('\n')

    def kill(self, name):
        os.kill(self.pid, getattr(signal, 'SIG' + name))

    def end(self):
        rest = self.lines.read().split('\n')
        return rest, os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])


def caught(name, how, before=lambda: None):
    run = Run(COUNT + WAIT, before)
    run.line()
    run.kill(name)
    if name != 'TERM':
        run.line()
        run.kill('TERM')
    print(name, how, *run.end())


def to_the_wrapper(name):
    caught(name, 'is caught:')


def uncaught(name):
    run = Run(PLAIN)
    run.line()
    run.kill(name)
    print(name, 'ends it:', *run.end())


def ignored(name):
    run = Run('import os, signal\n' + WAIT, lambda: signal.signal(getattr(signal, 'SIG' + name), signal.SIG_IGN))
    run.line()
    run.kill(name)
    run.kill('TERM' if name != 'TERM' else 'USR1')
    print(name, 'was ignored:', *run.end())
    caught(name, 'was ignored, and is caught:', lambda: signal.signal(getattr(signal, 'SIG' + name), signal.SIG_IGN))


def blocked(name):
    run = Run(PLAIN, lambda: signal.pthread_sigmask(signal.SIG_SETMASK, [getattr(signal, 'SIG' + name)]))
    run.line()
    run.kill(name)
    print(name, 'was blocked:', *run.end())


def key(byte, name):
    run = Run(COUNT + WAIT, terminal=True)
    run.line()
    os.write(run.master, byte)
    run.line()
    run.kill('TERM')
    print(name, 'by its key:', *run.end())
    os.close(run.master)


def hang_up():
    run = Run(COUNT + WAIT, terminal=True)
    run.line()
    os.close(run.master)
    run.line()
    run.kill('TERM')
    print('the terminal is gone:', *run.end())


def of_the_program():
    child = r'''
r, w = os.pipe()
os.dup2(r, 0)
os.spawnlp(os.P_NOWAIT, 'sh', 'sh', '-c', 'trap : USR1; kill -USR1 0; cat') # which is there until we are gone
while not got:
    os.sched_yield()
'''
    for who, text in ('the program', 'os.kill(0, signal.SIGUSR1)'), ('its child', child):
        run = Run(COUNT + text + WAIT)
        while run.line() != 'ready':
            pass
        run.kill('TERM')
        print('the group by', who, run.end())


def alarm_of_before():
    run = Run(PLAIN, lambda: signal.setitimer(signal.ITIMER_REAL, 0.2))
    print('an alarm that was set before:', run.end()[1])


def storm():
    run = Run(COUNT + WAIT)
    run.line()
    for _ in range(300):
        run.kill('USR1')
        run.kill('USR2')
    run.kill('TERM')
    rest, status = run.end()
    print('many:', rest[-2].count('SIGUSR1') + rest[-2].count('SIGUSR2'), status)


for one in NAMES:
    to_the_wrapper(one)
    uncaught(one)
    ignored(one)
    blocked(one)
key(b'\x03', 'INT')
key(b'\x1c', 'QUIT')
hang_up()
of_the_program()
alarm_of_before()
storm()
