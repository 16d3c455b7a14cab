"""Condition ``Ready`` of a claim that is prepared: its IMEX stops serving, and serves again.

Nothing is taken from a running container; but what it imported is void once IMEX has restarted, so
both are said. An imex-host that is away for a moment (an upgrade adopts the running process) is not
an outage. Invariant: a claim whose IMEX process never changed is never written.
"""

from __future__ import annotations

import asyncio
import contextlib

import msgspec

from interlace.imex.order import State
from interlace.node.cdi import PreparedClaim
from interlace.node.errors import Reason
from interlace.node.report import Reporter
from interlace.node.standing import Verdict
from interlace.node.state import NodeState

HOST_GRACE = 5.0
"""Seconds that an imex-host may be away before its claims say so."""


class Served(msgspec.Struct, frozen=True, kw_only=True):
    """How the prepared claims were served last; loop times in seconds."""

    pid: int = 0
    """nvidia-imex that was ready last, 0 if none was seen."""
    domain: str = ""
    away_since: float | None = None
    """Since when the imex-host has not answered."""


def observe(before: Served, host: State | None, *, now: float) -> Served:
    """Follow the host's state."""
    if host is None:
        return msgspec.structs.replace(before, away_since=now if before.away_since is None else before.away_since)
    if host.phase == "Idle":
        return Served()
    if host.phase == "Ready":
        return Served(pid=host.pid, domain=host.domain)
    return msgspec.structs.replace(before, away_since=None)


def verdict(
    held: PreparedClaim, host: State | None, *, node: str, said: Verdict, before: Served, away: bool
) -> Verdict:
    """What to say of ``held`` now; ``said`` if there is nothing new.

    ``before`` is how it was served until now, ``away`` whether the host has been silent for too long.
    """
    if host is None:
        if not away:
            return said
        return Verdict(
            good=False,
            reason=Reason.IMEX_HOST_UNREACHABLE,
            message=f"The imex-host of node {node} does not answer; check its imex-host pod.",
        )
    if (host.domain, host.phase) != (held.imex_domain, "Ready"):
        detail = f" ({host.reason}): {host.message}" if host.message else ""
        return Verdict(
            good=False,
            reason=Reason.IMEX_FAILED if host.phase == "Failed" else Reason.IMEX_STARTING,
            message=f"nvidia-imex on node {node} was interrupted and is {host.phase.lower()}{detail}.",
        )
    restarted = before.domain == held.imex_domain and before.pid not in {0, host.pid}
    if said.good and not restarted:
        return said
    return Verdict(
        good=True,
        reason=Reason.RESTORED,
        message=f"nvidia-imex on node {node} was interrupted and is ready again (process {host.pid}); memory that was "
        "imported before is no longer valid, so a job that reports invalid handles has to restart.",
    )


class OutageWatch:
    """Keeps the condition of the prepared claims current."""

    def __init__(self, *, state: NodeState, reporter: Reporter) -> None:
        self._state = state
        self._reporter = reporter

    async def run(self) -> None:
        """Until cancelled."""
        loop = asyncio.get_running_loop()
        served = Served()
        while True:
            changed = self._state.next_change()
            host, before = self._state.host, served
            served = observe(before, host, now=loop.time())
            due = None if served.away_since is None else served.away_since + HOST_GRACE
            away = due is not None and due <= loop.time()
            for held in self._state.prepared:
                said = self._reporter.ready_of(held.claim.uid)
                # While its Prepare is being written down, what is said of a claim is what it waited for.
                if said is not None and held.injected and held.claim.uid not in self._state.waiting:
                    now = verdict(held, host, node=self._state.node, said=said, before=before, away=away)
                    self._reporter.want_ready(held.claim.uid, now)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout_at(None if away else due):
                    await changed.wait()
