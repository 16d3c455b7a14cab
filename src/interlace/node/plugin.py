"""The two services that kubelet calls: plugin registration and DRA in both versions.

Invariant: an answer names every claim of the request, each with its devices or with an error; what goes
wrong with one claim, whatever it is, does not touch the others.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Protocol

from interlace.api.computedomain import DRIVER
from interlace.kube.log import get_logger
from interlace.node.cdi import PreparedClaim, qualified_ids
from interlace.node.demand import ClaimRef
from interlace.node.errors import AgentError, Refusal, StateError
from interlace.node.metrics import PREPARE, UNPREPARE, Metrics
from interlace.node.proto import dra_v1_pb2, dra_v1beta1_pb2, registration_pb2
from interlace.node.rpc import Method, Service

QUIET = 1.0
"""Seconds without a call after which kubelet is taken to call the next agent."""
_MESSAGES: dict[str, Any] = {"v1": dra_v1_pb2, "v1beta1": dra_v1beta1_pb2}
log = get_logger(__name__)


class Claims(Protocol):
    """What ``Preparer`` does."""

    async def prepare(self, ref: ClaimRef) -> PreparedClaim: ...

    async def unprepare(self, ref: ClaimRef) -> None: ...


class Registration:
    """``pluginregistration.Registration``: tells kubelet who we are, and remembers what it made of it."""

    def __init__(
        self, endpoint: Path, *, on_status: Callable[[], None], versions: Sequence[str] = tuple(_MESSAGES)
    ) -> None:
        self._endpoint = endpoint
        self._versions = versions
        self._on_status = on_status
        self.problem: str | None = "kubelet has not registered this plugin yet"
        """None once kubelet has registered us."""
        self.registered = asyncio.Event()
        """Set from then on."""

    @property
    def service(self) -> Service:
        """For ``rpc.listen``."""
        return Service(
            "pluginregistration.Registration",
            {
                "GetInfo": Method(
                    self._get_info, request=registration_pb2.InfoRequest, response=registration_pb2.PluginInfo
                ),
                "NotifyRegistrationStatus": Method(
                    self._notify,
                    request=registration_pb2.RegistrationStatus,
                    response=registration_pb2.RegistrationStatusResponse,
                ),
            },
        )

    async def _get_info(self, _: registration_pb2.InfoRequest) -> registration_pb2.PluginInfo:
        return registration_pb2.PluginInfo(
            type="DRAPlugin",
            name=DRIVER,
            endpoint=str(self._endpoint),
            supported_versions=[f"{version}.DRAPlugin" for version in self._versions],
        )

    async def _notify(self, status: registration_pb2.RegistrationStatus) -> registration_pb2.RegistrationStatusResponse:
        if status.plugin_registered:
            self.problem = None
            self.registered.set()
            log.info("registered with kubelet")
        else:
            self.problem = f"kubelet refused this plugin: {status.error or 'no cause given'}"
            log.error("kubelet refused this plugin", cause=status.error)
        self._on_status()
        return registration_pb2.RegistrationStatusResponse()


class Calls:
    """Calls for claims: they wait until this agent works, and it ends when none is left."""

    def __init__(self, claims: Claims, *, limit: float) -> None:
        self._claims = claims
        self._limit = limit
        self._moved = asyncio.Event()
        self._running = 0
        self.begun = asyncio.Event()
        """Set once the agent works."""

    async def prepare(self, ref: ClaimRef) -> PreparedClaim:
        """As ``Claims``."""
        async with self._call(ref):
            return await self._claims.prepare(ref)

    async def unprepare(self, ref: ClaimRef) -> None:
        """As ``Claims``."""
        async with self._call(ref):
            await self._claims.unprepare(ref)

    @asynccontextmanager
    async def _call(self, ref: ClaimRef) -> AsyncIterator[None]:
        try:
            async with asyncio.timeout(self._limit):
                await self.begun.wait()
        except TimeoutError:
            raise StateError(
                f"{ref}: the agent that this one replaces has not handed over within {self._limit:g} s; kubelet calls "
                "again."
            ) from None
        self._running += 1
        self._moved.set()
        try:
            yield
        finally:
            self._running -= 1
            self._moved.set()

    async def ended(self) -> None:
        """Wait until no call is in progress and none has come for ``QUIET`` seconds. A Prepare ends in time."""
        while True:
            self._moved.clear()
            try:
                async with asyncio.timeout(None if self._running else QUIET):
                    await self._moved.wait()
            except TimeoutError:
                return


def dra_services(claims: Claims, metrics: Metrics) -> list[Service]:
    """``DRAPlugin`` in each version; one set of handlers."""
    return [
        Service(
            f"k8s.io.kubelet.pkg.apis.dra.{version}.DRAPlugin",
            {
                "NodePrepareResources": Method(
                    _Prepare(claims, metrics, messages),
                    request=messages.NodePrepareResourcesRequest,
                    response=messages.NodePrepareResourcesResponse,
                ),
                "NodeUnprepareResources": Method(
                    _Unprepare(claims, metrics, messages),
                    request=messages.NodeUnprepareResourcesRequest,
                    response=messages.NodeUnprepareResourcesResponse,
                ),
            },
        )
        for version, messages in _MESSAGES.items()
    ]


class _Prepare:
    def __init__(self, claims: Claims, metrics: Metrics, messages: Any) -> None:
        self._claims = claims
        self._metrics = metrics
        self._messages = messages

    async def __call__(self, request: Any) -> Any:
        response = self._messages.NodePrepareResourcesResponse()

        async def one(ref: ClaimRef) -> None:
            held = await self._claims.prepare(ref)
            for device in held.devices:
                response.claims[ref.uid].devices.add(
                    request_names=[device.request],
                    pool_name=device.pool,
                    device_name=device.device,
                    cdi_device_ids=qualified_ids(held, device),
                )

        failures = await _each(request, one, metrics=self._metrics, operation=PREPARE)
        for uid, message in failures.items():
            response.claims[uid].error = message
        return response


class _Unprepare:
    def __init__(self, claims: Claims, metrics: Metrics, messages: Any) -> None:
        self._claims = claims
        self._metrics = metrics
        self._messages = messages

    async def __call__(self, request: Any) -> Any:
        response = self._messages.NodeUnprepareResourcesResponse()
        failures = await _each(request, self._claims.unprepare, metrics=self._metrics, operation=UNPREPARE)
        for claim in request.claims:
            response.claims[claim.uid].error = failures.get(claim.uid, "")
        return response


async def _each(
    request: Any, work: Callable[[ClaimRef], Awaitable[None]], *, metrics: Metrics, operation: str
) -> dict[str, str]:
    """Do the work for all claims at once; the messages of those that failed, by uid."""
    failures: dict[str, str] = {}

    async def guarded(ref: ClaimRef) -> None:
        try:
            await work(ref)
        except AgentError as error:
            reason = error.reason if isinstance(error, Refusal) else type(error).__name__
            log.warning(
                "claim failed", operation=operation, claim=str(ref), uid=ref.uid, reason=reason, cause=str(error)
            )
            failures[ref.uid] = str(error)
            metrics.failure(operation, reason)
        except Exception as error:
            log.exception("claim failed", operation=operation, claim=str(ref), uid=ref.uid)
            failures[ref.uid] = f"{ref}: fault in the agent: {type(error).__name__}: {error}; see its log."
            metrics.failure(operation, "Internal")
        else:
            log.info("claim done", operation=operation, claim=str(ref), uid=ref.uid)

    with metrics.call(operation):
        async with asyncio.TaskGroup() as group:
            for claim in request.claims:
                group.create_task(guarded(ClaimRef(namespace=claim.namespace, name=claim.name, uid=claim.uid)))
    if not failures:
        metrics.success(operation)
    return failures
