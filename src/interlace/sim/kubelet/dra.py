"""The kubelet's side of plugin registration and DRA, over real unix sockets.

The registrar folder is read again and again; a new socket is asked who it is and told that it
is registered, a socket that is gone takes its plugin with it. Invariant: a call goes to the
plugin that registered last under the driver's name, in the newest version both sides know; others of
that name stay, and answer the calls that they have.
"""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Any

import msgspec
from grpclib.client import Channel, UnaryUnaryMethod
from grpclib.exceptions import GRPCError, StreamTerminatedError

from interlace.kube.log import get_logger
from interlace.node.proto import dra_v1_pb2, dra_v1beta1_pb2, registration_pb2

_log = get_logger("simulated-kubelet")
_VERSIONS: tuple[tuple[str, Any], ...] = (("v1", dra_v1_pb2), ("v1beta1", dra_v1beta1_pb2))
_REGISTRATION_LIMIT = 5.0
_BROKEN = (GRPCError, StreamTerminatedError, OSError, TimeoutError, AttributeError)
"""What a call raises whose plugin is gone. AttributeError: grpclib has no ``_transport`` any more where the connection
closed after it was chosen for the call."""


class PluginError(Exception):
    """A claim could not be prepared or unprepared; the message is what kubelet would put into its event."""


class Claim(msgspec.Struct, frozen=True, kw_only=True):
    """What kubelet tells a driver about a claim."""

    namespace: str
    name: str
    uid: str


class _Plugin:
    """A registered plugin with its connection."""

    def __init__(self, name: str, *, socket: Path, endpoint: str, version: str) -> None:
        self.name = name
        self.socket = socket
        self.version = version
        self.messages = dict(_VERSIONS)[version]
        self.channel = Channel(path=endpoint)

    async def call(self, verb: str, claims: list[Claim], *, deadline: float) -> Any:
        request = getattr(self.messages, f"Node{verb}ResourcesRequest")
        reply = getattr(self.messages, f"Node{verb}ResourcesResponse")
        method = UnaryUnaryMethod(
            self.channel,
            f"/k8s.io.kubelet.pkg.apis.dra.{self.version}.DRAPlugin/Node{verb}Resources",
            request,
            reply,
        )
        body = request(claims=[self.messages.Claim(namespace=c.namespace, name=c.name, uid=c.uid) for c in claims])
        try:
            return await method(body, timeout=deadline)
        except _BROKEN as error:
            message = f"Node{verb}Resources of DRA driver {self.name} failed: {type(error).__name__}: {error}"
            raise PluginError(message) from error


class Plugins:
    """All DRA plugins of one node."""

    def __init__(self, registrar: Path) -> None:
        self.registrar = registrar
        self._plugins: dict[str, list[_Plugin]] = {}
        """By name of the driver, in the order in which they registered."""
        self._seen: dict[Path, tuple[int, int]] = {}
        """Socket path to inode and time of its making: a socket made anew is registered anew."""
        self._settled: tuple[int, int] | None = None
        """The same of the folder when everything in it was registered."""

    async def run(self, *, every: float) -> None:
        """Keep registrations in step with the registrar folder, until cancelled."""
        while True:
            await self.scan()
            await asyncio.sleep(every)

    async def scan(self) -> None:
        """Look at the folder once; not into it while it stays as it was when all of it was registered."""
        looked, changed = time.time_ns(), _made(self.registrar)
        if changed is not None and changed == self._settled:
            return
        sockets = {path: made for path in self.registrar.glob("*.sock") if (made := _made(path)) is not None}
        for path in set(self._seen) - set(sockets):
            self._forget(path)
        for path, made in sockets.items():
            if self._seen.get(path) != made and await self._register(path):
                self._seen[path] = made
        settled = changed is not None and looked - changed[1] > _TIME_GRAIN and self._seen == sockets
        self._settled = changed if settled else None

    def names(self) -> list[str]:
        """Registered drivers."""
        return sorted(self._plugins)

    async def prepare(self, driver: str, claims: list[Claim], *, deadline: float) -> list[str]:
        """CDI ids of all claims. Raises PluginError if the driver is not there or refuses one of them."""
        reply = await self.find(driver).call("Prepare", claims, deadline=deadline)
        ids: list[str] = []
        for claim in claims:
            if claim.uid not in reply.claims:
                message = f"NodePrepareResources left out claim {claim.namespace}/{claim.name}"
                raise PluginError(message)
            answer = reply.claims[claim.uid]
            if answer.error:
                message = f"Failed to prepare dynamic resources: claim {claim.namespace}/{claim.name}: {answer.error}"
                raise PluginError(message)
            ids += [cdi_id for device in answer.devices for cdi_id in device.cdi_device_ids]
        return ids

    async def unprepare(self, driver: str, claims: list[Claim], *, deadline: float) -> None:
        """Release all claims. Raises PluginError if the driver is not there or could not."""
        reply = await self.find(driver).call("Unprepare", claims, deadline=deadline)
        for claim in claims:
            if claim.uid not in reply.claims or reply.claims[claim.uid].error:
                error = reply.claims[claim.uid].error if claim.uid in reply.claims else "left out of the answer"
                message = f"Failed to unprepare dynamic resources: claim {claim.namespace}/{claim.name}: {error}"
                raise PluginError(message)

    async def close(self) -> None:
        """Close all connections."""
        self._settled = None
        for path in list(self._seen):
            self._forget(path)
        for plugins in self._plugins.values():
            for plugin in plugins:
                plugin.channel.close()
        self._plugins.clear()

    def find(self, driver: str) -> _Plugin:
        """The plugin that a call goes to. Raises PluginError."""
        plugins = self._plugins.get(driver)
        if not plugins:
            message = f"DRA driver {driver} is not registered"
            raise PluginError(message)
        return plugins[-1]

    def _forget(self, path: Path) -> None:
        self._seen.pop(path, None)
        for name, plugins in list(self._plugins.items()):
            for plugin in [each for each in plugins if each.socket == path]:
                plugin.channel.close()
                plugins.remove(plugin)
            if not plugins:
                del self._plugins[name]

    async def _register(self, path: Path) -> bool:
        channel = Channel(path=str(path))
        try:
            ask = UnaryUnaryMethod(
                channel,
                "/pluginregistration.Registration/GetInfo",
                registration_pb2.InfoRequest,
                registration_pb2.PluginInfo,
            )
            info = await ask(registration_pb2.InfoRequest(), timeout=_REGISTRATION_LIMIT)
            offered = set(info.supported_versions)
            version = next((name for name, _ in _VERSIONS if f"{name}.DRAPlugin" in offered), None)
            problem = "" if version else f"no common version among {sorted(offered)}"
            if info.type != "DRAPlugin":
                problem = f"plugin type {info.type} is not served here"
            tell = UnaryUnaryMethod(
                channel,
                "/pluginregistration.Registration/NotifyRegistrationStatus",
                registration_pb2.RegistrationStatus,
                registration_pb2.RegistrationStatusResponse,
            )
            await tell(
                registration_pb2.RegistrationStatus(plugin_registered=not problem, error=problem),
                timeout=_REGISTRATION_LIMIT,
            )
        except _BROKEN as error:
            _log.debug("registration socket does not answer yet", socket=str(path), error=str(error))
            return False
        finally:
            channel.close()
        if version is not None and not problem:
            self._forget(path)
            plugin = _Plugin(info.name, socket=path, endpoint=info.endpoint, version=version)
            self._plugins.setdefault(info.name, []).append(plugin)
        return True


_TIME_GRAIN = 1_000_000_000
"""Nanoseconds within which a file system may give two changes the same time, with much to spare."""


def _made(path: Path) -> tuple[int, int] | None:
    """Inode and time of a file: the number alone comes back at once where a file system reuses it."""
    try:
        found = path.stat()
    except FileNotFoundError:
        return None
    return found.st_ino, found.st_mtime_ns
