"""What the node knows, in one place, and the order that follows from it.

Invariant: whenever something changed, ``poke`` has run: the imex-host was told what is wanted now and
every waiter looks again. Nothing here waits or writes a file, so no reader sees half a change.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Protocol

from interlace.imex.order import Order, State
from interlace.imex.order import Refusal as HostRefusal
from interlace.imex.reasons import ImexError
from interlace.kube.log import get_logger
from interlace.node.cdi import PreparedClaim
from interlace.node.checkpoint import Checkpoint
from interlace.node.fabric import Fabric
from interlace.node.gate import View
from interlace.node.membership import Membership
from interlace.node.orders import order, wanted_imex

log = get_logger(__name__)

UNREAD = Fabric(
    healthy=False, settled=False, reason="FactsUnread", message="The GPUs of this node have not been read yet."
)


class Link(Protocol):
    """The part of ``HostLink`` in use."""

    @property
    def state(self) -> State | None: ...

    @property
    def refusal(self) -> HostRefusal | None: ...

    def order(self, order: Order) -> None: ...

    def release(self, domain: str) -> None: ...

    def on_state(self, handler: Callable[[State | None], None]) -> None: ...


class NodeState:
    """Fabric, memberships, prepared claims, waiting claims and the host's state."""

    def __init__(self, *, node: str, slots: int, link: Link, checkpoint: Checkpoint) -> None:
        self.node = node
        self.fabric: Fabric = UNREAD
        self.synced = False
        self.memberships: dict[str, Membership] = {}
        self.waiting: dict[str, str] = {}
        """Domain of each claim that kubelet waits for, by claim uid, in order of arrival."""
        self._slots = slots
        self._link = link
        self._checkpoint = checkpoint
        self._ordered = ""
        self._fault = ""
        self._changed = asyncio.Event()
        self._handlers: list[Callable[[], None]] = []
        self._addresses: tuple[str, list[str]] | None = None
        self._peers_outdated = False
        link.on_state(self._heard)

    @property
    def host(self) -> State | None:
        """What the imex-host said last; None while it does not answer."""
        return self._link.state

    @property
    def prepared(self) -> list[PreparedClaim]:
        """The completed claims."""
        return [held for held in self._checkpoint if held.completed]

    def view(self) -> View:
        """This moment, for the gate."""
        refusal = self._link.refusal
        return View(
            node=self.node,
            fabric=self.fabric,
            synced=self.synced,
            memberships=self.memberships,
            prepared=self.prepared,
            host=self.host,
            order_fault=self._fault or (refusal.message if refusal is not None else ""),
            peers_outdated=self._peers_outdated,
        )

    def next_change(self) -> asyncio.Event:
        """An event that is set at the next change. Take it before looking."""
        return self._changed

    def on_change(self, handler: Callable[[], None]) -> None:
        """Call ``handler`` at each change; it must not block or raise."""
        self._handlers.append(handler)

    def poke(self) -> None:
        """Something changed: order or release IMEX, wake the waiters."""
        if self.synced:
            self._order()
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()
        for handler in self._handlers:
            handler()

    def _heard(self, state: State | None) -> None:
        if state is None or state.peers == "Unknown":
            self._peers_outdated = False
        self.poke()

    def _order(self) -> None:
        host = self.host
        running = host.domain if host is not None else self._ordered
        wanted = wanted_imex(
            self.memberships,
            prepared=[held.imex_domain for held in self.prepared if held.injected],
            waiting=list(self.waiting.values()),
            running=running,
        )
        if not wanted:
            self._fault = ""
            if running or self._ordered:
                self._link.release(running or self._ordered)
            self._ordered = ""
            return
        try:
            made = order(self.memberships.values(), imex=wanted, slots=self._slots)
        except ImexError as error:
            if error.message != self._fault:
                log.warning("the clique gives no node map", domain=wanted, cause=error.message)
            self._fault = error.message
            return
        if made is not None:
            # Without a row (the domain was deleted under a running pod) the last order stands.
            self._link.order(made)
            self._ordered = wanted
            before, self._addresses = self._addresses, (made.domain, made.addresses)
            if before is not None and before != self._addresses and host is not None and host.peers != "Unknown":
                self._peers_outdated = True  # the host forgets what it knows of the peers when it has read the order
        self._fault = ""
