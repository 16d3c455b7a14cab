"""Keeps the node's offer in step with who uses it; ``offer`` decides, ``slices`` publishes."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Protocol

from interlace.api.resource import ResourceSlice
from interlace.kube.log import get_logger
from interlace.node.offer import CLOSING, FREE, Offer, Seen, closes, offer_of, settle
from interlace.node.state import NodeState

log = get_logger(__name__)


class Shelf(Protocol):
    """The part of ``SlicePublisher`` in use."""

    seen: asyncio.Event
    published: bool

    @property
    def own(self) -> ResourceSlice | None: ...

    def offer(self, offer: Offer) -> None: ...


class Offering:
    """One for an agent."""

    def __init__(self, *, state: NodeState, shelf: Shelf) -> None:
        self._state = state
        self._shelf = shelf

    async def run(self) -> None:
        """Until cancelled."""
        loop = asyncio.get_running_loop()
        await self._shelf.seen.wait()
        own = self._shelf.own
        offer = offer_of(own) if own is not None else None
        quiet_since: float | None = None
        while True:
            changed = self._state.next_change()
            seen = self._seen()
            if closes(offer, seen) and self._shelf.published:
                quiet_since = loop.time() if quiet_since is None else quiet_since
            else:
                quiet_since = None
            quiet = 0.0 if quiet_since is None else loop.time() - quiet_since
            after = settle(offer, seen, quiet=quiet)
            if after is None and not self._state.fabric.healthy:
                # Nobody can take an unhealthy node, but people can read in its slice why.
                self._shelf.offer(FREE)
            elif after is not None:
                self._shelf.offer(after)
                if after != offer:
                    log.info("offer", holder=after.holder, slots=after.slots)
                    offer, quiet_since = after, None
                    continue
            due = None if quiet_since is None else quiet_since + CLOSING
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout_at(due):
                    await changed.wait()

    def _seen(self) -> Seen:
        state, rows = self._state, dict[str, bool]()
        for found in state.memberships.values():
            if found.own is not None:
                rows[found.holder] = rows.get(found.holder, False) or found.own.shared
        return Seen(
            prepared=[held.holder for held in state.prepared],
            begun=[
                asked.holder if (asked := state.memberships.get(domain)) is not None else domain
                for domain in state.waiting.values()
            ],
            rows=rows,
            synced=state.synced,
        )
