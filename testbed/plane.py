"""A real control plane that belongs to a Python process: the real counterpart of the embedded API server.

Invariant: its programs die with the process that started it, however that dies, and ports stay claimed
as long as one of them runs. What it answers is what etcd, kube-apiserver, kube-scheduler and
kube-controller-manager of the pinned version answer; nothing here is simulated.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import shutil
import ssl
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Literal, Self

import aiohttp
import msgspec
import yaml

from interlace.kube.config import Config
from interlace.sim.plane import AuditRecord
from testbed import build, certs, flags, metrics, ports, process
from testbed.audit import AuditLog
from testbed.errors import BedError, Refused
from testbed.programs import Programs, cache_root

START_LIMIT = 60.0
"""Seconds until the whole plane must be ready; a start takes 3 to 5 on two idle cores."""
GRACE = 10.0
"""Seconds that a component has to end by itself."""
POLL = 0.03
ATTEMPTS = 3
"""Starts with other ports, if somebody outside took one between claim and use."""


class ControlPlane:
    """Async context manager around one control plane with its state in ``state_dir``.

    A ``daemon`` plane is left running when all went well; its pid files in the folder say what runs.
    """

    def __init__(
        self,
        *,
        state_dir: Path,
        settings: flags.Settings | None = None,
        programs: Programs | None = None,
        daemon: bool = False,
    ) -> None:
        self.state_dir = state_dir.absolute()
        self.settings = settings or flags.Settings()
        self._programs = programs
        self._daemon = daemon
        self._processes: dict[str, process.Process] = {}
        self._claims: list[ports.Claim] = []
        self._ports: flags.Ports | None = None
        self._authority: certs.Authority | None = None
        self._audit = AuditLog(self.state_dir / "audit.log")
        self._version = ""
        self._session: aiohttp.ClientSession | None = None

    @property
    def kind(self) -> Literal["embedded", "real"]:
        """``real``."""
        return "real"

    @property
    def url(self) -> str:
        """Base URL of kube-apiserver."""
        return f"https://127.0.0.1:{self._known_ports.apiserver}"

    @property
    def version(self) -> str:
        """As kube-apiserver reports it."""
        return self._version

    @property
    def kubeconfig(self) -> Path:
        """For a member of ``system:masters``."""
        return self.state_dir / "admin.kubeconfig"

    @property
    def kubectl(self) -> Path:
        """The kubectl of the same version."""
        return self._known_programs.path("kubectl")

    def credentials(self, user: str, *, groups: Sequence[str] = ()) -> Config:
        """A client certificate for ``user``; nothing is asked of the server."""
        if self._authority is None:
            raise Refused(f"the control plane in {self.state_dir} is not started; enter its context first")
        pair = self._authority.user(user, groups=groups)
        return Config(
            server=self.url, ca=self._authority.certificate, client_cert=pair.certificate, client_key=pair.key
        )

    def write_kubeconfig(self, path: Path, user: str, *, groups: Sequence[str] = (), server: str = "") -> None:
        """Write ``credentials`` as a file for kubectl and the components; ``server`` for who sees it elsewhere."""
        config = self.credentials(user, groups=groups)
        if not isinstance(config.client_cert, bytes) or not isinstance(config.client_key, bytes) or config.ca is None:
            raise TypeError("credentials of a control plane are certificates in memory")
        write = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "testbed",
            "clusters": [
                {
                    "name": "testbed",
                    "cluster": {"server": server or config.server, "certificate-authority-data": _b64(config.ca)},
                }
            ],
            "users": [
                {
                    "name": user,
                    "user": {
                        "client-certificate-data": _b64(config.client_cert),
                        "client-key-data": _b64(config.client_key),
                    },
                }
            ],
            "contexts": [{"name": "testbed", "context": {"cluster": "testbed", "user": user}}],
        }
        certs.write_private(path, yaml.safe_dump(write, sort_keys=False).encode())

    def audit(self) -> list[AuditRecord]:
        """All requests since the start. A record is written a moment after the client has the answer."""
        return self._audit.read()

    async def watch_bytes(self) -> dict[str, int]:
        """Bytes of watch events sent so far, by plural (``pods``, ``computedomaincliques.resource.nvidia.com``)."""
        return metrics.watch_bytes(await self._get("kube-apiserver", "/metrics"))

    def running(self, component: str) -> bool:
        """Whether the program of ``component`` runs."""
        return component in self._processes and self._processes[component].running

    async def stop(self, component: str, *, kill: bool = False) -> None:
        """End one component, with SIGKILL at once if ``kill``; its state and its port are kept for ``start``."""
        await self._processes.pop(component).stop(grace=0 if kill else GRACE)

    async def start(self, component: str) -> None:
        """Start one component again and wait until it is ready. Raises ``BedError``."""
        if self.running(component):
            raise Refused(f"{component} of {self.state_dir} runs already; stop it first")
        async with self._deadline():
            await self._launch(component)
            await self._ready(component)

    async def __aenter__(self) -> Self:
        self._programs = self._programs or await build.built(cache_root())
        for attempt in range(1, ATTEMPTS + 1):
            try:
                async with self._deadline():
                    await self._begin()
                return self
            except BaseException as error:
                await self.end()
                if not isinstance(error, BedError) or not self._collided() or attempt == ATTEMPTS:
                    raise
        raise AssertionError("unreachable")

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._daemon and error is None:
            for running in self._processes.values():
                running.release()
            await self._let_go()
        else:
            await self.end()

    async def end(self) -> None:
        """End all components, last started first. Data and logs stay in ``state_dir``."""
        try:
            for name in reversed(flags.COMPONENTS):
                if name in self._processes:
                    await self.stop(name)
        finally:
            # Reached with processes left only when cancelled in the middle of a graceful stop.
            for name in list(self._processes):
                await self.stop(name, kill=True)
            await self._let_go()

    async def _let_go(self) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None
        self._processes.clear()
        for claim in self._claims:
            claim.release()
        self._claims.clear()

    async def _begin(self) -> None:
        await clear(self.state_dir)
        self._claims = [ports.claim() for _ in range(5)]
        self._ports = flags.Ports(
            etcd=self._claims[0].port,
            etcd_peer=self._claims[1].port,
            apiserver=self._claims[2].port,
            scheduler=self._claims[3].port,
            controller_manager=self._claims[4].port,
        )
        self._authority = certs.Authority.make()
        self._audit = AuditLog(self.state_dir / "audit.log")
        self._write_files(self._authority)
        self._session = self._open_session()
        # The API server waits for etcd by itself, and loads meanwhile.
        await self._launch("etcd")
        await self._launch("kube-apiserver")
        await self._ready("kube-apiserver")
        for name in self.settings.components[2:]:
            await self._launch(name)
        for name in self.settings.components[2:]:
            await self._ready(name)
        if self.settings.controller_manager:
            await self._until_served("/api/v1/namespaces/default/serviceaccounts/default")
        answer = msgspec.json.decode(await self._get("kube-apiserver", "/version"), type=dict[str, str])
        self._version = answer["gitVersion"]

    def _write_files(self, authority: certs.Authority) -> None:
        pki = self.state_dir / "pki"
        pki.mkdir()
        authority.save(pki)
        probe = authority.user(flags.PROBE, groups=["system:masters"])
        for name, pair in (("server", authority.server()), ("probe", probe)):
            (pki / f"{name}.crt").write_bytes(pair.certificate)
            certs.write_private(pki / f"{name}.key", pair.key)
        signing = certs.signing_pair()
        (pki / "sa.pub").write_bytes(signing.certificate)
        certs.write_private(pki / "sa.key", signing.key)
        for name, (user, groups) in flags.USERS.items():
            self.write_kubeconfig(self.state_dir / f"{name}.kubeconfig", user, groups=groups)
        for name, content in (
            ("audit-policy.yaml", dict(flags.AUDIT_POLICY)),
            ("scheduler.yaml", flags.scheduler_configuration(self.state_dir, self.settings)),
        ):
            (self.state_dir / name).write_text(yaml.safe_dump(content))

    async def _launch(self, name: str) -> None:
        arguments = flags.arguments(name, state=self.state_dir, ports=self._known_ports, settings=self.settings)
        command = [str(self._known_programs.path(name)), *arguments]
        keep = [claim.fileno() for claim in self._claims]
        self._processes[name] = await process.launch(
            name, command, state=self.state_dir, daemon=self._daemon, keep=keep
        )

    async def _ready(self, component: str) -> None:
        path = {"etcd": "/health", "kube-controller-manager": "/healthz"}.get(component, "/readyz")
        await self._until(component, path)

    async def _until_served(self, path: str) -> None:
        await self._until("kube-apiserver", path)

    async def _until(self, component: str, path: str) -> None:
        """Ask until the answer is good; the caller has set the deadline."""
        while True:
            with contextlib.suppress(aiohttp.ClientError, TimeoutError):
                await self._get(component, path)
                return
            for name, running in self._processes.items():
                if not running.running:
                    raise BedError(f"{name} ended while it was started: {self._last_words(name)}")
            await asyncio.sleep(POLL)

    async def _get(self, component: str, path: str) -> bytes:
        """Body of a good answer; ``aiohttp.ClientError`` or ``TimeoutError`` otherwise."""
        if self._session is None:
            raise Refused(f"the control plane in {self.state_dir} is not started; enter its context first")
        scheme = "http" if component == "etcd" else "https"
        url = f"{scheme}://127.0.0.1:{self._known_ports.of(component)}{path}"
        async with self._session.get(url) as answer:
            return await answer.read()

    def _open_session(self) -> aiohttp.ClientSession:
        """Asks as a user whom the audit log leaves out."""
        pki = self.state_dir / "pki"
        trust = ssl.create_default_context(cafile=pki / "ca.crt")
        trust.load_cert_chain(pki / "probe.crt", pki / "probe.key")
        # A component that is restarted on purpose must not be met through a dead connection.
        connector = aiohttp.TCPConnector(ssl=trust, force_close=True)
        limit = aiohttp.ClientTimeout(total=5)
        return aiohttp.ClientSession(connector=connector, timeout=limit, raise_for_status=True)

    @contextlib.asynccontextmanager
    async def _deadline(self) -> AsyncIterator[None]:
        try:
            async with asyncio.timeout(START_LIMIT):
                yield
        except TimeoutError:
            raise BedError(
                f"the control plane in {self.state_dir} was not ready within {START_LIMIT:.0f} s; "
                f"read the logs there, kube-apiserver's ends with: {self._last_words('kube-apiserver')}"
            ) from None

    def _last_words(self, name: str) -> str:
        log = self.state_dir / f"{name}.log"
        lines = log.read_text(errors="replace").splitlines() if log.exists() else []
        complaints = [line for line in lines if line[:1] in "EF" or "rror" in line]
        return (complaints or lines or ["nothing"])[-1].strip()

    def _collided(self) -> bool:
        logs = (self.state_dir / f"{name}.log" for name in flags.COMPONENTS)
        return any(b"address already in use" in log.read_bytes() for log in logs if log.exists())

    @property
    def _known_ports(self) -> flags.Ports:
        if self._ports is None:
            raise Refused(f"the control plane in {self.state_dir} is not started; enter its context first")
        return self._ports

    @property
    def _known_programs(self) -> Programs:
        if self._programs is None:
            raise Refused(f"the control plane in {self.state_dir} is not started; enter its context first")
        return self._programs


async def clear(state: Path) -> None:
    """End what still runs from an earlier use of ``state`` and remove what it left there; make the folder."""
    for name in reversed(flags.COMPONENTS):
        if (leftover := process.find(name, state=state)) is not None:
            await leftover.stop(grace=0)
    for name in ("etcd", "pki"):
        if (state / name).exists():
            await asyncio.to_thread(shutil.rmtree, state / name)
    for pattern in ("*.log", "*.kubeconfig", "*.yaml"):
        for path in state.glob(pattern):
            path.unlink()
    state.mkdir(parents=True, mode=0o700, exist_ok=True)


def _b64(content: bytes) -> str:
    return base64.b64encode(content).decode()
