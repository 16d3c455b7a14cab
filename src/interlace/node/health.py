"""Health of the channels in use, which kubelet shows in the status of the Pods that have them.

Kubelet opens one stream and believes a report for as long as the report says. Invariant: each message names all
devices of prepared claims, is sent when one of them changed, and again before it is too old.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncGenerator, Iterable

import msgspec

from interlace.imex.order import State
from interlace.node.cdi import PreparedClaim
from interlace.node.fabric import Fabric
from interlace.node.outage import HOST_GRACE
from interlace.node.proto import dra_health_pb2 as pb
from interlace.node.rpc import Feed, Service
from interlace.node.state import NodeState

REFRESH = 60.0
"""Seconds after which an unchanged report is sent again."""
BELIEVED = 180
"""Seconds that kubelet believes a report; then it shows Unknown."""


class Health(msgspec.Struct, frozen=True, kw_only=True):
    """Of one device."""

    pool: str
    device: str
    good: bool | None
    """None: not known."""
    message: str = ""
    """One sentence, empty where all is well."""


def report(prepared: Iterable[PreparedClaim], *, host: State | None, fabric: Fabric) -> tuple[Health, ...]:
    """Health of every device of the prepared claims; ``host`` is None where it has been silent for too long."""
    found: dict[tuple[str, str], Health] = {}
    for held in prepared:
        good, message = _judge(held, host=host, fabric=fabric)
        for device in held.devices:
            health = Health(pool=device.pool, device=device.device, good=good, message=message)
            found[device.pool, device.device] = health
    return tuple(found[key] for key in sorted(found))


def _judge(held: PreparedClaim, *, host: State | None, fabric: Fabric) -> tuple[bool | None, str]:
    if held.inherited:
        return None, "The channel was given by another driver, whose IMEX daemon this agent does not see."
    if not held.injected:
        return True, ""
    if not fabric.healthy:
        return False, fabric.message
    if host is None:
        return None, "The imex-host of this node does not answer; check its imex-host pod."
    if (host.domain, host.phase) == (held.imex_domain, "Ready"):
        return True, ""
    detail = f" ({host.reason}): {host.message}" if host.message else ""
    return False, f"nvidia-imex of this node is {host.phase.lower()}{detail}."


def health_service(state: NodeState, *, after: asyncio.Event) -> Service:
    """``DRAResourceHealth``, the service that kubelet looks for on the DRA socket; silent until ``after`` is set."""

    async def watch(_: pb.NodeWatchResourcesRequest) -> AsyncGenerator[pb.NodeWatchResourcesResponse]:
        await after.wait()
        async with contextlib.aclosing(reports(state)) as found:
            async for each in found:
                yield _message(each)

    feed = Feed(watch, request=pb.NodeWatchResourcesRequest, response=pb.NodeWatchResourcesResponse)
    return Service("v1alpha1.DRAResourceHealth", {"NodeWatchResources": feed})


async def reports(state: NodeState) -> AsyncGenerator[tuple[Health, ...]]:
    """The report now, at each change, and every ``REFRESH`` seconds.

    An imex-host that is away for a moment is being upgraded, and its process goes on: what it said last holds for
    ``HOST_GRACE`` seconds, and where it said nothing yet, nothing is reported so long.
    """
    loop = asyncio.get_running_loop()
    host = state.host
    away_since: float | None = None
    told: tuple[Health, ...] | None = None
    again = 0.0
    while True:
        changed, now = state.next_change(), loop.time()
        if state.host is not None:
            host, away_since = state.host, None
        elif away_since is None:
            away_since = now
        back_by = None if away_since is None else away_since + HOST_GRACE
        if back_by is not None and back_by <= now:
            host = back_by = None
        found = report(state.prepared, host=host, fabric=state.fabric)
        if (host is not None or back_by is None) and (found != told or again <= now):
            told, again = found, now + REFRESH
            yield found
        due = again if told is not None else None
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout_at(min((each for each in (due, back_by) if each is not None), default=None)):
                await changed.wait()


def _message(found: tuple[Health, ...]) -> pb.NodeWatchResourcesResponse:
    now = int(time.time())
    words = {None: pb.HealthStatus.UNKNOWN, True: pb.HealthStatus.HEALTHY, False: pb.HealthStatus.UNHEALTHY}
    message = pb.NodeWatchResourcesResponse()
    for health in found:
        message.devices.add(
            device=pb.DeviceIdentifier(pool_name=health.pool, device_name=health.device),
            health=words[health.good],
            last_updated_time=now,
            health_check_timeout_seconds=BELIEVED,
            message=health.message,
        )
    return message
