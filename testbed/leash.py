"""Starts a program of the testbed so that nothing can be left behind; run by path, standard library only.

    python -I -S leash.py PIDFILE OWNER COMMAND...

Writes PIDFILE (pid and start time) *before* it becomes COMMAND, so that there is no moment in which a
running program is unknown to the next run. With OWNER, a process id, the kernel kills the program when
the owner's thread that started it dies, however it dies. With OWNER 0 the program is a daemon: this
process ends as soon as COMMAND runs, and the pid file is how it is found again.
"""

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1
START_TIME = 19  # field 22 of /proc/PID/stat, counted from the one after the command's name


def main(pidfile: str, owner: int, command: list[str]) -> None:
    """Never returns: becomes ``command`` or exits with 127."""
    os.setsid()
    report = -1
    if owner:
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0):
            sys.exit(f"prctl: {os.strerror(ctypes.get_errno())}")
        if os.getppid() != owner:
            sys.exit(f"process {owner}, which wanted {command[0]}, is gone")
    else:
        read, report = os.pipe()
        if os.fork():
            os.close(report)
            # Empty when the other end closes because the child became COMMAND.
            os._exit(127 if os.read(read, 1) else 0)
    with open("/proc/self/stat") as file:  # noqa: PTH123 - pathlib would double the start-up time
        start = file.read().rsplit(")", 1)[1].split()[START_TIME]
    with open(f"{pidfile}.new", "w") as file:  # noqa: PTH123
        file.write(f"{os.getpid()} {start}\n")
    os.rename(f"{pidfile}.new", pidfile)  # noqa: PTH104
    try:
        os.execv(command[0], command)  # noqa: S606 - that is its job
    except OSError as error:
        os.write(2, f"{command[0]}: {error.strerror}\n".encode())
        if report >= 0:
            os.write(report, b"!")
        os._exit(127)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), sys.argv[3:])
