"""Condition ``PeersConnected``: when this node says something about its IMEX peers, and what.

False names the nodes that are away, once they have been away for a while: while a domain forms, peers are
away for a moment and nobody is told. True is written by the member with the lowest index alone, or to take back
an own False, so a healthy domain costs one write.
"""

from __future__ import annotations

import asyncio
import contextlib

import msgspec

from interlace.imex.order import State
from interlace.node.cdi import PreparedClaim
from interlace.node.membership import Membership, away_from
from interlace.node.report import Reporter
from interlace.node.settings import AgentSettings
from interlace.node.standing import Verdict
from interlace.node.state import NodeState

CONNECTED, DISCONNECTED = "Connected", "Disconnected"


class Watched(msgspec.Struct, frozen=True, kw_only=True):
    """How the peers of the running domain have been; loop times in seconds."""

    domain: str = ""
    index: int = -1
    ready_since: float = 0.0
    away_since: float | None = None
    """None: nobody is away, or it is not known."""
    was_connected: bool = False


def observe(before: Watched, host: State | None, *, now: float) -> Watched:
    """Follow the host's state. Another domain, index or a restart of IMEX begins anew."""
    if host is None:
        return before
    if host.phase != "Ready":
        return Watched(domain=host.domain, index=host.index, ready_since=now)
    if (host.domain, host.index) != (before.domain, before.index):
        before = Watched(domain=host.domain, index=host.index, ready_since=now)
    if host.peers == "Disconnected":
        away = before.away_since if before.away_since is not None else now
        return msgspec.structs.replace(before, away_since=away)
    return msgspec.structs.replace(
        before, away_since=None, was_connected=before.was_connected or host.peers == "Connected"
    )


def due_at(watched: Watched, *, grace: float, first_grace: float) -> float | None:
    """When the absence of a peer is to be told; None: nobody is away."""
    if watched.away_since is None:
        return None
    if watched.was_connected:
        return watched.away_since + grace
    return max(watched.away_since + grace, watched.ready_since + first_grace)


def verdict(host: State | None, membership: Membership | None, *, said: Verdict | None, tell: bool) -> Verdict | None:
    """What to say of the peers now; ``said`` if there is nothing new. ``tell``: an absence has lasted long enough."""
    if host is None or membership is None or membership.own is None or host.phase != "Ready":
        return said
    away = away_from(host, membership)
    if away and tell:
        names = ", ".join(membership.node_at(index) for index in away)
        return Verdict(
            good=False,
            reason=DISCONNECTED,
            message=f"IMEX on node {membership.own.node} has no connection to {names}; check TCP port 50000 between "
            "the imex-host pods and nvidia-imex on those nodes.",
        )
    lowest = membership.own.index == min(row.index for row in membership.rows)
    if host.peers != "Unknown" and not away and (lowest or said is not None):
        return Verdict(
            good=True, reason=CONNECTED, message=f"IMEX on node {membership.own.node} is connected to all its peers."
        )
    return said


class PeersWatch:
    """Keeps the condition of the prepared claims current."""

    def __init__(self, settings: AgentSettings, *, state: NodeState, reporter: Reporter) -> None:
        self._settings = settings
        self._state = state
        self._reporter = reporter
        self._watched = Watched()

    async def run(self) -> None:
        """Until cancelled."""
        loop = asyncio.get_running_loop()
        while True:
            changed = self._state.next_change()
            host = self._state.host
            self._watched = observe(self._watched, host, now=loop.time())
            due = due_at(self._watched, grace=self._settings.peers_grace, first_grace=self._settings.peers_first_grace)
            tell = due is not None and due <= loop.time()
            for held in self._state.prepared:
                self._say(held, host, tell=tell)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout_at(None if due is None or tell else due):
                    await changed.wait()

    def _say(self, held: PreparedClaim, host: State | None, *, tell: bool) -> None:
        if host is None or not held.injected or held.imex_domain != host.domain:
            return
        said = self._reporter.peers_of(held.claim.uid)
        now = verdict(host, self._state.memberships.get(held.domain), said=said, tell=tell)
        if now != said:
            self._reporter.want_peers(held.claim.uid, now)
