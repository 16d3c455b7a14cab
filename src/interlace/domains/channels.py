"""The node map that all domains with isolation Channel share in one fabric clique, and the channel of each.

Such domains are kept apart by the driver, which lets a process import only what was exported under a channel
that it may open; their nodes form one IMEX domain. Invariants: those of ``cliques`` for rows; in one clique no
two domains have the same channel, and a domain keeps its channel while a claim of it is allocated there, also
after it was deleted. Channel 0 is left to domains of their own. Freed channels are taken again last.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

import msgspec

from interlace.api.computedomain import (
    CLIQUE_LABEL,
    SHARED,
    ComputeDomainChannel,
    ComputeDomainClique,
    ComputeDomainDaemonInfo,
    PeerCount,
)
from interlace.domains import cliques
from interlace.domains.cliques import HISTORY_ANNOTATION, Plan, history
from interlace.domains.indexes import Indexes, assign
from interlace.domains.places import Place

CHANNEL_HISTORY_ANNOTATION: Final = "interlace.dev/channel-history"
"""``[[domain uid, channel], ...]`` of domains that left, longest ago first, as compact JSON."""
CHANNELS: Final = range(1, 2048)
"""Numbers that are given; a driver has 2048 channels unless it is told otherwise."""
_PREFIX: Final = f"{SHARED}."


class Tenant(msgspec.Struct, frozen=True, kw_only=True):
    """One domain, as far as one clique is concerned."""

    uid: str
    name: str
    namespace: str
    nodes: frozenset[str]
    """Nodes of the clique with a claim of the domain."""
    barrier: PeerCount | None = None


class Draft(msgspec.Struct, frozen=True, kw_only=True):
    """What the object should hold; without rows it should not exist."""

    clique: str
    rows: tuple[ComputeDomainDaemonInfo, ...] = ()
    """By index."""
    channels: tuple[ComputeDomainChannel, ...] = ()
    """By number."""
    left: tuple[tuple[str, int], ...] = ()
    channels_left: tuple[tuple[str, int], ...] = ()


def shared_name(clique: str) -> str:
    """Name of the object, which is also what agents call the IMEX domain."""
    return f"{_PREFIX}{clique}"


def clique_of(name: str) -> str | None:
    """The fabric clique of a shared object by its name; None for the name of anything else."""
    return name.removeprefix(_PREFIX) if name.startswith(_PREFIX) else None


def draft(
    clique: str,
    tenants: Sequence[Tenant],
    *,
    places: Mapping[str, Place],
    current: ComputeDomainClique | None,
    slots: int,
    share: bool = False,
) -> Draft:
    """The shared map of ``clique``; with ``share`` its nodes are opened for more Pods of all these domains."""
    now = {clique: current} if current is not None else {}
    members = dict.fromkeys(node for tenant in tenants for node in tenant.nodes)
    found = cliques.plan(members, places=places, current=now, slots=slots, share=share).drafts.get(clique)
    if found is None:
        return Draft(clique=clique)
    indexes = {row.node_name: row.index for row in found.rows}
    given = assign(_given(current), nodes=[tenant.uid for tenant in tenants], slots=len(CHANNELS)).indexes
    entries = [
        ComputeDomainChannel(
            domain=tenant.uid,
            name=tenant.name,
            namespace=tenant.namespace,
            channel=CHANNELS[given.held[tenant.uid]],
            indexes=sorted(indexes[node] for node in tenant.nodes if node in indexes),
            wait_for_peers=tenant.barrier,
        )
        for tenant in tenants
        if tenant.uid in given.held
    ]
    return Draft(
        clique=clique,
        rows=found.rows,
        channels=tuple(sorted(entries, key=lambda entry: entry.channel)),
        left=found.left,
        channels_left=tuple((uid, CHANNELS[index]) for uid, index in given.left),
    )


def changed(wanted: Draft, current: ComputeDomainClique | None) -> bool:
    """Whether the object has to be written."""
    if current is None:
        return bool(wanted.rows)
    return (wanted.rows, wanted.channels) != (_rows(current), _channels(current))


def grows(wanted: Draft, current: ComputeDomainClique | None) -> bool:
    """Whether the write brings something that a Pod waits for."""
    if current is None:
        return True
    before = {entry.domain: entry for entry in current.channels}
    joined = any(_joined(entry, before.get(entry.domain)) for entry in wanted.channels)
    return joined or not {*wanted.rows} <= {*current.daemons}


def _joined(entry: ComputeDomainChannel, before: ComputeDomainChannel | None) -> bool:
    """Whether the domain has a new node, here or, as far as it waits for its peers, in another clique."""
    if before is None:
        return True
    return bool({*entry.indexes} - {*before.indexes}) or entry.wait_for_peers != before.wait_for_peers


def opens(wanted: Draft, current: ComputeDomainClique | None) -> bool:
    """Whether the write opens a node that a claim waits for."""
    return cliques.newly_opened(wanted.rows, before=current.daemons if current is not None else ())


def body(wanted: Draft, *, namespace: str, current: ComputeDomainClique | None) -> dict[str, Any]:
    """The whole object, to create or, with ``current``, to replace exactly that version of it."""
    annotations = {
        key: msgspec.json.encode(value).decode()
        for key, value in (
            (HISTORY_ANNOTATION, wanted.left),
            (CHANNEL_HISTORY_ANNOTATION, wanted.channels_left),
        )
        if value
    }
    made = cliques.whole(
        shared_name(wanted.clique),
        namespace=namespace,
        labels={CLIQUE_LABEL: wanted.clique},
        annotations=annotations,
        rows=wanted.rows,
        current=current,
    )
    return {**made, "channels": list(wanted.channels)}


def view(
    members: Mapping[str, Any],
    *,
    places: Mapping[str, Place],
    shared: Mapping[str, ComputeDomainClique],
    slots: int,
) -> Plan:
    """Who of one domain cannot be placed and why; the maps themselves are not the domain's, so there are no drafts."""
    found = cliques.plan(members, places=places, current=shared, slots=slots)
    full = {}
    for node in members:
        place = places.get(node, Place())
        current = shared.get(place.clique or "")
        if current is None or len(current.daemons) < slots:
            continue
        if all(row.node_name != node for row in current.daemons):
            full[node] = cliques.clique_id(current)
    return msgspec.structs.replace(found, drafts={}, full=full)


def to_open(shared: Mapping[str, ComputeDomainClique], *, mine: Collection[str]) -> list[str]:
    """Cliques to open for a domain that waits: those where it is, all at once, else the first one that is not open."""
    closed = [clique for clique in sorted(shared) if any(not row.shared for row in shared[clique].daemons)]
    return [clique for clique in closed if clique in mine] or closed[:1]


def _rows(current: ComputeDomainClique) -> tuple[ComputeDomainDaemonInfo, ...]:
    return tuple(sorted(current.daemons, key=lambda row: row.index))


def _channels(current: ComputeDomainClique) -> tuple[ComputeDomainChannel, ...]:
    return tuple(sorted(current.channels, key=lambda entry: entry.channel))


def _given(current: ComputeDomainClique | None) -> Indexes:
    if current is None:
        return Indexes()
    held = {entry.domain: entry.channel - CHANNELS.start for entry in current.channels}
    left = history(current, annotation=CHANNEL_HISTORY_ANNOTATION, taken={*held.values()}, start=CHANNELS.start)
    return Indexes(held=held, left=left)
