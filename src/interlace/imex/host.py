"""The imex-host program: settings, the socket for agents, health endpoints, around one `Runner`.

Several agents may be connected (the old and the new one during an upgrade): the last order wins
and every one hears each state. Invariant: nothing that comes in over the socket ends the program or
grows without bound; a bad line gets a `Refusal` and the connection goes on.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import ipaddress
import logging
import os
import socket
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from interlace.imex.order import MAX_LINE, Order, ProtocolError, Refusal, Release, State, decode, encode
from interlace.imex.runner import Places, Runner
from interlace.imex.supervisor import Ordered, Released
from interlace.kube.meters import Family, Sample, render
from interlace.kube.serving import Serving

MAX_AGENTS = 16
MAX_UNSENT = 1 << 20
"""Bytes that may wait for an agent that does not read, before it is dropped."""
CHUNK = 1 << 16
CLOSE_PATIENCE = 5.0
RESUME_PATIENCE = 60.0
"""Seconds that an agent waits for the first state while old processes are taken up or ended."""

log = logging.getLogger(__name__)


class HostError(Exception):
    """imex-host cannot serve; one sentence that says what and why."""


class SettingsError(ValueError):
    """imex-host was told something impossible; one sentence that names the flag or variable."""


class HostSettings(msgspec.Struct, frozen=True, kw_only=True):
    """What imex-host is told by flags and environment."""

    socket: Path = Path("/run/interlace/imex/host.sock")
    run_dir: Path = Path("/run/interlace/imex/run")
    """Config, log and stored order; on the host, so that a restart of the container finds them."""
    driver_root: Path = Path("/driver-root")
    """Where the NVIDIA driver's programs and libraries lie, as seen in the container."""
    hosts_file: Path = Path("/etc/hosts")
    address: str = ""
    """Own pod IP."""
    http_port: int = 8080
    """Port of /healthz, /readyz and /metrics; 0 takes a free one, -1 none."""

    @classmethod
    def parse(cls, argv: Sequence[str], env: Mapping[str, str]) -> HostSettings:
        """Settings from flags (``--name value`` or ``--name=value``), else from the environment, else defaults.

        Raises `SettingsError` for a flag that is not known, a value that is missing or one that cannot be.
        """
        given = _flags(argv)
        values: dict[str, Any] = {}
        for field, (flag, variable) in _NAMES.items():
            text = given.get(flag, env.get(variable, ""))
            if text:
                values[field] = _value(field, text, f"--{flag}" if flag in given else variable)
        return cls(**values)


_NAMES = {
    "socket": ("imex-socket", "INTERLACE_IMEX_SOCKET"),
    "run_dir": ("imex-run-dir", "INTERLACE_IMEX_RUN_DIR"),
    "driver_root": ("container-driver-root", "DRIVER_ROOT_CTR_PATH"),
    "hosts_file": ("hosts-path", "HOSTS_PATH"),
    "address": ("pod-ip", "POD_IP"),
    "http_port": ("healthcheck-port", "HEALTHCHECK_PORT"),
}


def _flags(argv: Sequence[str]) -> dict[str, str]:
    known = {flag for flag, _ in _NAMES.values()}
    given: dict[str, str] = {}
    words = list(argv)
    while words:
        word = words.pop(0)
        flag, separator, value = word.removeprefix("--").partition("=")
        if not word.startswith("--") or flag not in known:
            raise SettingsError(f"imex-host: unknown argument {word!r}; known are --{', --'.join(sorted(known))}")
        if not separator:
            if not words:
                raise SettingsError(f"imex-host: flag --{flag} needs a value")
            value = words.pop(0)
        given[flag] = value
    return given


def _value(field: str, text: str, source: str) -> object:
    if field == "http_port":
        if text.isascii() and text.removeprefix("-").isdigit() and -1 <= int(text) <= 65535:
            return int(text)
        raise SettingsError(f"imex-host: {source} is {text!r}, must be a port number, 0 or -1")
    if field == "address":
        try:
            return str(ipaddress.ip_address(text))
        except ValueError as error:
            raise SettingsError(f"imex-host: {source} is {text!r}, must be an IP address") from error
    path = Path(text)
    if not path.is_absolute():
        raise SettingsError(f"imex-host: {source} is {text!r}, must be an absolute path")
    return path


class Lines:
    """Splits what a connection sends into lines. Holds at most one line of `MAX_LINE` bytes."""

    def __init__(self) -> None:
        self._rest = b""
        self._skipping = False

    def feed(self, data: bytes) -> list[bytes | None]:
        """The lines that are now complete, without their newline; None stands for one that was too long."""
        found: list[bytes | None] = []
        *lines, rest = (self._rest + data).split(b"\n")
        for line in lines:
            if not self._skipping:
                found.append(line if len(line) <= MAX_LINE else None)
            self._skipping = False
        if len(rest) > MAX_LINE and not self._skipping:
            found.append(None)
            self._skipping = True
        self._rest = b"" if self._skipping else rest
        return found


class Agents:
    """The connected agents: takes their lines, pushes each state to all of them."""

    def __init__(self, runner: Runner) -> None:
        self._runner = runner
        self._writers: set[asyncio.StreamWriter] = set()
        self._alone = asyncio.Event()
        self._alone.set()

    def publish(self, state: State) -> None:
        """Send a state to every agent; one that does not read is dropped."""
        line = encode(state)
        for writer in list(self._writers):
            self._send(writer, line)

    async def close(self) -> None:
        """End all connections, as the end of the process would, and wait until nothing of them runs."""
        for writer in list(self._writers):
            writer.transport.abort()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(CLOSE_PATIENCE):
                await self._alone.wait()

    async def talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection, until it ends."""
        try:
            if len(self._writers) >= MAX_AGENTS:
                self._send(writer, encode(Refusal(message=f"{MAX_AGENTS} agents are connected already")))
                return
            self._writers.add(writer)
            self._alone.clear()
            async with asyncio.timeout(RESUME_PATIENCE):
                await self._runner.resumed.wait()
            self._send(writer, encode(self._runner.state))
            lines = Lines()
            while data := await reader.read(CHUNK):
                for line in lines.feed(data):
                    refusal = self._take(line)
                    if refusal is not None:
                        log.warning("agent refused: %s", refusal)
                        self._send(writer, encode(Refusal(message=refusal)))
        except (OSError, TimeoutError) as error:
            log.debug("agent lost: %s", error)
        finally:
            self._writers.discard(writer)
            if not self._writers:
                self._alone.set()
            writer.close()

    def _take(self, line: bytes | None) -> str | None:
        """Act on a line; returns why it was refused."""
        if line is None:
            return f"a line is longer than {MAX_LINE} bytes"
        if not line.strip():
            return None
        try:
            message = decode(line)
        except ProtocolError as error:
            return str(error)
        match message:
            case Order():
                self._runner.submit(Ordered(message))
            case Release(domain=domain):
                self._runner.submit(Released(domain))
            case _:
                return "only an order or a release can be sent to imex-host"
        return None

    def _send(self, writer: asyncio.StreamWriter, line: bytes) -> None:
        if writer.is_closing():
            return
        if writer.transport.get_write_buffer_size() > MAX_UNSENT:
            log.warning("agent dropped: it does not read")
            writer.transport.abort()
            return
        writer.write(line)


def listen(path: Path) -> socket.socket:
    """A listening unix socket at ``path``, for its owner alone. A stale one is replaced; raises `HostError`
    if another imex-host answers there or the path cannot be used.
    """
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
            probe.settimeout(1.0)
            with contextlib.suppress(ConnectionRefusedError, FileNotFoundError):
                probe.connect(str(path))
                raise HostError(f"imex-host: another imex-host serves {path}; only one may run on a node")
        path.unlink(missing_ok=True)
        mask = os.umask(0o177)
        try:
            sock.bind(str(path))
        finally:
            os.umask(mask)
        sock.listen(MAX_AGENTS)
    except OSError as error:
        sock.close()
        raise HostError(f"imex-host: cannot listen on {path}: {error.strerror or error}") from error
    except HostError:
        sock.close()
        raise
    return sock


@contextlib.contextmanager
def _sole_owner(run_dir: Path) -> Iterator[None]:
    """Hold the run directory: two hosts on one would each start an nvidia-imex."""
    try:
        run_dir.mkdir(parents=True, exist_ok=True)
        lock = os.open(run_dir / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise HostError(f"imex-host: run directory {run_dir}: {error.strerror or error}") from error
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    except BlockingIOError as error:
        raise HostError(f"imex-host: another imex-host uses {run_dir}; only one may run on a node") from error
    finally:
        os.close(lock)


async def serve(settings: HostSettings) -> None:
    """The whole program, until cancelled; then nvidia-imex is stopped and the order stays stored.

    Raises `HostError` if it cannot start.
    """
    places = Places(
        run_dir=settings.run_dir,
        driver_root=settings.driver_root,
        hosts_file=settings.hosts_file,
        address=settings.address,
    )
    runner = Runner(places)
    agents = Agents(runner)
    runner.on_state(agents.publish)
    with _sole_owner(settings.run_dir):
        server = await asyncio.start_unix_server(agents.talk, sock=listen(settings.socket))
        try:
            async with contextlib.AsyncExitStack() as stack:
                if settings.http_port >= 0:
                    await _open_endpoints(settings, runner, stack)
                log.info("imex-host serves %s", settings.socket)
                await runner.run()
        finally:
            server.close()
            await agents.close()
            settings.socket.unlink(missing_ok=True)


async def _open_endpoints(settings: HostSettings, runner: Runner, stack: contextlib.AsyncExitStack) -> None:
    endpoints = Serving(
        host=settings.address,
        port=settings.http_port,
        ready=lambda: _not_ready(runner.state),
        metrics=lambda: metrics(runner),
    )
    try:
        await stack.enter_async_context(endpoints)
    except OSError as error:
        # The Pod then is not ready, which is seen; that is no reason to leave a job without IMEX.
        log.error("imex-host: no health endpoints on port %d: %s", settings.http_port, error.strerror or error)  # noqa: TRY400
    else:
        log.info("health endpoints on port %d", endpoints.port)


def _not_ready(state: State) -> str | None:
    return f"{state.reason}: {state.message}" if state.phase == "Failed" else None


def metrics(runner: Runner) -> str:
    """The text of /metrics."""
    state, phases = runner.state, ("Idle", "Starting", "Ready", "Stopping", "Failed")
    phase = [Sample("interlace_imex_phase", {"phase": name}, name == state.phase) for name in phases]
    return render(
        [
            Family("interlace_imex_phase", "gauge", "1 for the phase that nvidia-imex is in.", phase),
            *(
                Family(f"interlace_imex_{name}", kind, text, [Sample(f"interlace_imex_{name}", {}, value)])
                for name, kind, text, value in (
                    ("restarts", "gauge", "Ends of nvidia-imex by itself, of the order.", state.restarts),
                    ("reloads_total", "counter", "SIGUSR1 sent to nvidia-imex.", runner.reloads),
                    ("start_seconds", "gauge", "Last start of nvidia-imex until READY.", runner.start_seconds),
                    ("disconnected_peers", "gauge", "Present peers without a connection.", len(state.disconnected)),
                )
            ),
        ]
    )
