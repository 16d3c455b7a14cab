"""Pods that met on a node which belongs to another domain, and which of them has to go.

The scheduler keeps domains apart; two schedulers, a claim written by hand without our selector or a Pod that
is deleted by force while its node is opened can still bring two domains onto one node. The agent then
prepares one of them and refuses the other, whose Pod would wait for as long as the first one runs.

Invariant: the loser is a Pod that does not run yet, and only while a Pod of another domain has its channel
there. All claims come out of one watch, so what looks allocated at once was allocated at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import msgspec

from interlace.api.computedomain import DOMAIN_LABEL
from interlace.api.resource import ResourceClaim
from interlace.domains.status import claim_ready

PATIENCE = 1.0
"""Seconds that a collision lasts until it is ended: a Pod that has just finished gives its node back by itself."""
LONGEST = 64.0
"""The patience doubles with each collision of a domain up to this: its next Pod may end on such a node again."""
AGAIN = 10.0
"""Seconds until an eviction that was not allowed is tried again."""


class Collision(msgspec.Struct, frozen=True, kw_only=True):
    """A claim whose Pod cannot start on its node."""

    claim: ResourceClaim
    node: str
    holder: str
    """Uid of the domain that has the node."""


def domain_of(claim: ResourceClaim) -> str:
    """Uid of the domain by the label, ``""`` for none."""
    return claim.metadata.labels.get(DOMAIN_LABEL, "")


def crowded(claims: Sequence[ResourceClaim]) -> bool:
    """Whether claims of several domains are allocated on one node."""
    return len({domain_of(claim) for claim in claims}) > 1


def losers(claims: Sequence[ResourceClaim], *, node: str, group: Callable[[str], str]) -> list[Collision]:
    """The claims of a node that cannot be prepared there; ``group`` says with which uids one may share a node."""
    served = {group(domain_of(claim)): domain_of(claim) for claim in claims if claim_ready(claim)}
    if len(served) != 1:
        return []  # nobody is served yet, or a node changes hands
    ((mine, holder),) = served.items()
    return [
        Collision(claim=claim, node=node, holder=holder)
        for claim in claims
        if group(domain_of(claim)) != mine and claim.metadata.deletion_timestamp is None
    ]


class Grace:
    """Remembers since when each collision of one domain has lasted, and which were dealt with."""

    def __init__(self) -> None:
        self._since: dict[str, float] = {}
        self._done: set[str] = set()
        self._patience = PATIENCE
        self._last = float("-inf")

    def due(self, found: Iterable[Collision], *, now: float) -> list[Collision]:
        """Those to end now; each is returned until ``settled``."""
        known = {collision.claim.metadata.uid: collision for collision in found}
        if not self._since and self._last + 2 * LONGEST <= now:
            self._patience = PATIENCE  # the last one is long over, whether or not anybody looked meanwhile
        self._since = {uid: self._since.get(uid, now) for uid in known}
        self._done &= known.keys()
        return [known[uid] for uid in self._open() if self._since[uid] + self._patience <= now]

    def settled(self, found: Sequence[Collision], *, now: float) -> None:
        """These collisions were dealt with."""
        if found:
            self._done |= {collision.claim.metadata.uid for collision in found}
            self._patience, self._last = min(2 * self._patience, LONGEST), now

    def postponed(self, found: Iterable[Collision], *, now: float) -> None:
        """These could not be dealt with: they are due again in ``AGAIN`` seconds."""
        for collision in found:
            self._since[collision.claim.metadata.uid] = now + AGAIN - self._patience

    def next_in(self, *, now: float) -> float | None:
        """Seconds until there is something to end, None while there is nothing."""
        times = [self._since[uid] + self._patience - now for uid in self._open()]
        return max(0.0, min(times)) if times else None

    def _open(self) -> list[str]:
        return [uid for uid in self._since if uid not in self._done]
