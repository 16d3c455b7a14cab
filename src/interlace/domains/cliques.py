"""The node maps of a domain: one ComputeDomainClique for each fabric clique that it touches.

Invariants: within a clique, indexes and addresses are unique; a row keeps its index as long as the
node is a member; a row whose facts have gone missing for a moment (no slice, no imex-host Pod) stays
as it is. Nodes without a fabric have no clique. The indexes of nodes that left are kept in an
annotation of the clique, so a new leader assigns as the old one would have. A clique without rows
is deleted, and its memory with it: nobody is left who holds a handle.

What agents do with a clique: they start IMEX when their node's row appears, and pass on changed
rows. They stop IMEX after the last Unprepare of the node, not when a row or the whole clique is
gone: a domain may be deleted while its Pods run, and their claims keep the node.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from typing import Any, Final

import msgspec

from interlace.api.computedomain import (
    CLIQUE_LABEL,
    DOMAIN_LABEL,
    DOMAIN_NAME_ANNOTATION,
    DOMAIN_NAMESPACE_ANNOTATION,
    ComputeDomain,
    ComputeDomainClique,
    ComputeDomainDaemonInfo,
    PeerBarrier,
    PeerCount,
)
from interlace.domains.indexes import Indexes, assign
from interlace.domains.places import Place

HISTORY_ANNOTATION = "interlace.dev/index-history"
"""``[[node, index], ...]`` of nodes that left, longest ago first, as compact JSON."""

_NOWHERE: Final = Place()


class Draft(msgspec.Struct, frozen=True, kw_only=True):
    """What one clique should hold; without rows it should not exist."""

    clique: str
    rows: tuple[ComputeDomainDaemonInfo, ...]
    """By index."""
    left: tuple[tuple[str, int], ...] = ()
    barrier: PeerCount | None = None


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """What all cliques of a domain should hold, and who could not be placed."""

    drafts: Mapping[str, Draft]
    """By clique id; those that exist or should."""
    fabricless: tuple[str, ...] = ()
    """Members on nodes without a fabric."""
    no_agent: tuple[str, ...] = ()
    """Members whose node has published no clique."""
    no_host: tuple[str, ...] = ()
    """Members whose node has no imex-host Pod with an address."""
    full: Mapping[str, str] = {}
    """Members for which their clique, the value, has no free slot."""


def clique_name(uid: str, clique: str) -> str:
    """Name of the object."""
    return f"{uid}.{clique}"


def clique_id(clique: ComputeDomainClique) -> str:
    """Fabric clique of the object, by its label."""
    return clique.metadata.labels.get(CLIQUE_LABEL, "")


def plan(
    members: Mapping[str, Any],
    *,
    places: Mapping[str, Place],
    current: Mapping[str, ComputeDomainClique],
    slots: int,
    share: bool = False,
    wait: PeerBarrier | None = None,
) -> Plan:
    """Node maps for ``members`` (their names), given what is known of the nodes and what stands now.

    ``current`` by clique id; ``slots`` is the most nodes that one clique may hold; with ``share`` all nodes are
    opened for more Pods of the domain. ``wait`` is what the domain says of its peers.
    """
    rows_now = {row.node_name: (clique, row) for clique, object_ in current.items() for row in object_.daemons}
    wanted: dict[str, dict[str, str]] = {clique: {} for clique in current}
    fabricless, no_agent, no_host = [], [], []
    for node in members:
        place = places.get(node, _NOWHERE)
        home, row = rows_now.get(node, (None, None))
        clique = place.clique if place.clique is not None else home
        if clique is None:
            no_agent.append(node)
        elif not clique:
            fabricless.append(node)
        elif place.address or (row and home == clique):
            wanted.setdefault(clique, {})[node] = place.address or (row.ip_address if row else "")
        else:
            no_host.append(node)
    drafts: dict[str, Draft] = {}
    full: dict[str, str] = {}
    for clique, addresses in sorted(wanted.items()):
        assignment = assign(_indexes(current.get(clique)), nodes=addresses, slots=slots)
        full |= dict.fromkeys(assignment.refused, clique)
        live = {places[node].address for node in addresses if node in places}
        opened = {row.node_name for row in current[clique].daemons if row.shared} if clique in current else set()
        rows = [
            ComputeDomainDaemonInfo(
                node_name=node,
                # An address that was handed to another node's host since is no longer this node's.
                ip_address=addresses[node] if places.get(node, _NOWHERE).address or addresses[node] not in live else "",
                clique_id=clique,
                index=index,
                shared=share or node in opened,
            )
            for node, index in assignment.indexes.held.items()
        ]
        drafts[clique] = Draft(
            clique=clique, rows=tuple(sorted(rows, key=lambda row: row.index)), left=assignment.indexes.left
        )
    barrier = peer_count(wait, present=sum(len(draft.rows) for draft in drafts.values()) + len(fabricless))
    return Plan(
        drafts={clique: msgspec.structs.replace(draft, barrier=barrier) for clique, draft in drafts.items()},
        fabricless=tuple(fabricless),
        no_agent=tuple(no_agent),
        no_host=tuple(no_host),
        full=full,
    )


def peer_count(wait: PeerBarrier | None, *, present: int) -> PeerCount | None:
    """What agents are told of the peers that a domain waits for; ``present`` is how many nodes it has."""
    if wait is None:
        return None
    return PeerCount(nodes=wait.nodes, timeout_seconds=wait.timeout_seconds, present=min(present, wait.nodes))


def changed(draft: Draft, current: ComputeDomainClique | None) -> bool:
    """Whether the clique has to be written; not for the history, which changes only with the rows."""
    return draft.rows != _rows(current) or (bool(draft.rows) and draft.barrier != _barrier(current))


def grows(draft: Draft, current: ComputeDomainClique | None) -> bool:
    """Whether the write brings something that a member waits for: a node, an address or the last peer."""
    return not {*draft.rows} <= {*_rows(current)} or draft.barrier != _barrier(current)


def opens(draft: Draft, current: ComputeDomainClique | None) -> bool:
    """Whether the write opens a node that a claim waits for."""
    return newly_opened(draft.rows, before=_rows(current))


def newly_opened(rows: Iterable[ComputeDomainDaemonInfo], *, before: Iterable[ComputeDomainDaemonInfo]) -> bool:
    """Whether a node of ``before`` is opened; one that only joins cannot be, until a claim is prepared there."""
    closed = {row.node_name for row in before if not row.shared}
    return any(row.shared and row.node_name in closed for row in rows)


def body(draft: Draft, *, domain: ComputeDomain, namespace: str, current: ComputeDomainClique | None) -> dict[str, Any]:
    """The whole object, to create or, with ``current``, to replace exactly that version of it."""
    meta = domain.metadata
    annotations = {DOMAIN_NAME_ANNOTATION: meta.name, DOMAIN_NAMESPACE_ANNOTATION: meta.namespace}
    if draft.left:
        annotations[HISTORY_ANNOTATION] = msgspec.json.encode(draft.left).decode()
    made = whole(
        clique_name(meta.uid, draft.clique),
        namespace=namespace,
        labels={DOMAIN_LABEL: meta.uid, CLIQUE_LABEL: draft.clique},
        annotations=annotations,
        rows=draft.rows,
        current=current,
    )
    return made if draft.barrier is None else {**made, "waitForPeers": draft.barrier}


def whole(
    name: str,
    *,
    namespace: str,
    labels: Mapping[str, str],
    annotations: Mapping[str, str],
    rows: Sequence[ComputeDomainDaemonInfo],
    current: ComputeDomainClique | None,
) -> dict[str, Any]:
    """A clique object with these rows.

    An empty entry in managedFields clears them on replacement: they would double what each agent
    of the clique is sent, and nobody applies to this object.
    """
    metadata: dict[str, Any] = {"name": name, "namespace": namespace, "labels": labels, "annotations": annotations}
    if current is not None:
        metadata["resourceVersion"] = current.metadata.resource_version
        metadata["uid"] = current.metadata.uid
        metadata["managedFields"] = [{}]
    resource = ComputeDomainClique.resource
    return {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": metadata, "daemons": list(rows)}


def _barrier(current: ComputeDomainClique | None) -> PeerCount | None:
    return current.wait_for_peers if current is not None else None


def _rows(current: ComputeDomainClique | None) -> tuple[ComputeDomainDaemonInfo, ...]:
    return tuple(sorted(current.daemons, key=lambda row: row.index)) if current else ()


def _indexes(current: ComputeDomainClique | None) -> Indexes:
    if current is None:
        return Indexes()
    held = {row.node_name: row.index for row in current.daemons}
    return Indexes(held=held, left=history(current, annotation=HISTORY_ANNOTATION, taken=set(held.values())))


def history(
    current: ComputeDomainClique, *, annotation: str, taken: Container[int], start: int = 0
) -> tuple[tuple[str, int], ...]:
    """Who left which number, less ``start``, by the annotation; nothing where somebody damaged it: the order of
    reuse is a preference.
    """
    try:
        entries = msgspec.json.decode(current.metadata.annotations.get(annotation, "[]"), type=list[tuple[str, int]])
    except msgspec.DecodeError:
        return ()
    return tuple((who, number - start) for who, number in entries if number >= start and number - start not in taken)


__all__ = [
    "HISTORY_ANNOTATION",
    "Draft",
    "Plan",
    "body",
    "changed",
    "clique_id",
    "clique_name",
    "grows",
    "history",
    "newly_opened",
    "opens",
    "peer_count",
    "plan",
    "whole",
]
