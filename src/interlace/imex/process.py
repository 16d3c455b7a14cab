"""The nvidia-imex process: found, started, recognised again, watched, signalled.

It must survive the death of imex-host, so it gets a session of its own, writes its log to a file,
and is not a child in the sense of asyncio (which kills its children when it closes). Invariant: every
signal goes through a pidfd, so it can never hit another process that got the same number.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import select
import signal
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from interlace.imex.reasons import ImexError, Reason, explain

DAEMON = "nvidia-imex"
CONTROL = "nvidia-imex-ctl"
BINARY_FOLDERS = ("usr/bin", "usr/sbin", "bin", "sbin", "opt/bin")
LIBRARY_FOLDERS = (
    "usr/lib64",
    "usr/lib/x86_64-linux-gnu",
    "usr/lib/aarch64-linux-gnu",
    "lib64",
    "lib/x86_64-linux-gnu",
    "lib/aarch64-linux-gnu",
)
_LIBRARY = re.compile(r"(libnvidia-.*|libcuda)\.so.*", re.DOTALL)


def find_program(driver_root: Path, name: str) -> Path:
    """The program below the driver root; raises `ImexError` (BinaryMissing) naming where it was looked for."""
    for folder in BINARY_FOLDERS:
        candidate = driver_root / folder / name
        if candidate.is_file() and os.access(candidate, os.X_OK):
            return candidate
    looked = ", ".join(BINARY_FOLDERS)
    raise ImexError(
        Reason.BINARY_MISSING,
        explain(Reason.BINARY_MISSING, f"no program {name} below driver root {driver_root} (looked in {looked})"),
    )


def environment(driver_root: Path, run_dir: Path) -> dict[str, str]:
    """Environment for the programs.

    They must find the driver's libraries without finding the node's C library, which lies in the same
    folders and does not fit our loader: a folder of links to the driver's own ones is the search path.
    """
    plain = {"PATH": os.environ.get("PATH", os.defpath)}
    if driver_root == Path("/"):
        return plain
    links = run_dir / "lib"
    links.mkdir(parents=True, exist_ok=True)
    wanted = {
        library.name: library.resolve()
        for folder in reversed(LIBRARY_FOLDERS)
        for library in _libraries(driver_root / folder)
    }
    for old in links.iterdir():
        if old.name not in wanted or old.readlink() != wanted[old.name]:
            old.unlink()
    for name, target in wanted.items():
        with contextlib.suppress(FileExistsError):
            (links / name).symlink_to(target)
    return plain | {"LD_LIBRARY_PATH": str(links)} if wanted else plain


def _libraries(folder: Path) -> list[Path]:
    try:
        names = os.listdir(folder)  # noqa: PTH208  iterdir makes a path of each of a few thousand names
    except OSError:
        return []
    return [folder / name for name in names if _LIBRARY.fullmatch(name)]


def forget_libraries(run_dir: Path) -> None:
    """Remove the folder of links that ``environment`` made."""
    links = run_dir / "lib"
    with contextlib.suppress(OSError):
        for link in links.iterdir():
            link.unlink()
        links.rmdir()


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """One process for ever: its number, when it started, and the boot in which it did."""

    pid: int
    start_time: int
    """Clock ticks after boot, field 22 of /proc/<pid>/stat."""
    boot: str


def identify(pid: int) -> Identity | None:
    """The identity of a living process; None if there is none (a zombie does not live)."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_bytes()
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return None
    fields = stat.rpartition(b")")[2].split()
    return None if fields[0] in (b"Z", b"X") else Identity(pid=pid, start_time=int(fields[19]), boot=boot)


class Handle:
    """A living process held by a pidfd. ``fd`` becomes readable when the process has ended."""

    def __init__(self, pid: int, *, child: bool) -> None:
        self.pid = pid
        self.child = child
        self.fd = os.pidfd_open(pid)

    def send(self, number: signal.Signals) -> None:
        """Send a signal; nothing happens if the process has ended."""
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(self.fd, number)

    def close(self) -> str:
        """Reap after the end, close, and say how it ended ("" if that cannot be known: it was adopted)."""
        how = ""
        if self.child:
            with contextlib.suppress(ChildProcessError):
                result = os.waitid(os.P_PIDFD, self.fd, os.WEXITED | os.WNOHANG)
                if result is not None:
                    how = _how(result.si_code, result.si_status)
        os.close(self.fd)
        return how


def _how(code: int, status: int) -> str:
    if code == os.CLD_EXITED:
        return f"status {status}"
    try:
        return signal.Signals(status).name
    except ValueError:
        return f"signal {status}"


def spawn(argv: Sequence[str | Path], *, log: Path, env: dict[str, str]) -> Handle:
    """Start a program in a session of its own with both outputs appended to ``log``; raises `ImexError`."""
    outputs = [
        (os.POSIX_SPAWN_OPEN, 1, str(log), os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600),
        (os.POSIX_SPAWN_DUP2, 1, 2),
    ]
    try:
        return _spawn(argv, outputs=outputs, env=env, session=True)
    except OSError as error:
        raise ImexError(Reason.START_FAILED, f"cannot start {argv[0]}: {error.strerror or error}") from error


def spawn_piped(argv: Sequence[str | Path], *, env: dict[str, str]) -> tuple[Handle, int]:
    """Start a program whose output comes out of the returned descriptor, which the caller closes; raises OSError."""
    output, given = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
    try:
        # The program has the other end in blocking mode: what O_NONBLOCK marks is the pipe's end, not the pipe.
        os.set_blocking(given, True)
        outputs = [(os.POSIX_SPAWN_DUP2, given, 1), (os.POSIX_SPAWN_OPEN, 2, "/dev/null", os.O_WRONLY, 0)]
        return _spawn(argv, outputs=outputs, env=env, session=False), output
    except BaseException:
        os.close(output)
        raise
    finally:
        os.close(given)


def _spawn(argv: Sequence[str | Path], *, outputs: list[Any], env: dict[str, str], session: bool) -> Handle:
    words = [str(word) for word in argv]
    pid = os.posix_spawn(
        words[0],
        words,
        env,
        file_actions=[(os.POSIX_SPAWN_OPEN, 0, "/dev/null", os.O_RDONLY, 0), *outputs],
        setsid=session,
        setsigmask=[],
        # Python ignores these; a program that inherits that would never see a broken pipe.
        setsigdef=[signal.SIGPIPE, signal.SIGXFSZ],
    )
    try:
        return Handle(pid, child=True)
    except OSError:
        # A process that nobody holds would keep the node's session from every later one.
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        raise


def has_ended(fd: int) -> bool:
    """Whether a pidfd says that its process has ended."""
    poll = select.poll()
    poll.register(fd, select.POLLIN)
    return bool(poll.poll(0))


async def ended(fd: int) -> None:
    """Wait until a pidfd says that its process has ended. Cancelling is safe; not for two waiters of one fd."""
    if has_ended(fd):
        return
    loop, over = asyncio.get_running_loop(), asyncio.Event()
    loop.add_reader(fd, over.set)
    try:
        await over.wait()
    finally:
        loop.remove_reader(fd)


async def ended_within(fd: int, *, seconds: float) -> bool:
    """Wait until a pidfd says that its process has ended; False if it did not in time."""
    try:
        async with asyncio.timeout(seconds):
            await ended(fd)
    except TimeoutError:
        return False
    return True


def bury(handle: Handle) -> None:
    """Close the handle once its process has ended: now, or when the loop sees it. Nobody else may watch its fd."""
    if has_ended(handle.fd):
        handle.close()
        return
    loop = asyncio.get_running_loop()

    def over() -> None:
        loop.remove_reader(handle.fd)
        handle.close()

    loop.add_reader(handle.fd, over)


def adopt(identity: Identity) -> Handle | None:
    """The process of an identity if it still lives; None if it ended or its number is another process now."""
    try:
        handle = Handle(identity.pid, child=False)
    except OSError:
        return None
    # Looked at after the pidfd is open: from here on the number cannot change hands unseen.
    if identify(identity.pid) != identity:
        os.close(handle.fd)
        return None
    return handle


def find_strays(folder: Path) -> list[int]:
    """Process ids that run with a config file below ``folder``."""
    needle = b"\0-c\0" + os.fsencode(folder) + b"/"
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                if needle in (entry / "cmdline").read_bytes():
                    found.append(int(entry.name))
    return found
