"""Required pod affinity and anti-affinity over a topology key.

Counts are made once per pod (``survey``), then every node is one look-up. The first pod of a group that asks to
be near itself may go anywhere (self-match rule), else no such group could ever start.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from interlace.sim.platform.kinds import PodAffinityTerm
from interlace.sim.platform.scheduling.snapshot import NodeInfo, PodInfo, Snapshot
from interlace.sim.platform.selectors import selects

Place = tuple[str, str]
"""Topology key and value."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Neighbourhood:
    """Where the pods are that one pod must be near to, or away from."""

    near: frozenset[Place]
    """Places with a pod that meets all affinity terms."""
    first: bool
    """No such pod exists anywhere and the pod itself meets its terms."""
    away: frozenset[Place]
    """Places with a pod that the pod's own anti-affinity refuses."""
    unwelcome: frozenset[Place]
    """Places with a pod whose anti-affinity refuses this pod."""


def survey(pod: PodInfo, snapshot: Snapshot) -> Neighbourhood:
    """Look at every pod of the snapshot once."""
    near: set[Place] = set()
    away: set[Place] = set()
    unwelcome: set[Place] = set()
    namespaces = snapshot.namespaces
    for node in snapshot.nodes:
        for other in node.pods:
            if pod.affinity and all(term_selects(term, pod, other, namespaces) for term in pod.affinity):
                near.update(_places(node, pod.affinity))
            away.update(
                _places(node, tuple(term for term in pod.anti_affinity if term_selects(term, pod, other, namespaces)))
            )
            if other.anti_affinity:
                refusing = tuple(term for term in other.anti_affinity if term_selects(term, other, pod, namespaces))
                unwelcome.update(_places(node, refusing))
    first = not near and all(term_selects(term, pod, pod, namespaces) for term in pod.affinity)
    return Neighbourhood(near=frozenset(near), first=first, away=frozenset(away), unwelcome=frozenset(unwelcome))


def term_selects(
    term: PodAffinityTerm, owner: PodInfo, other: PodInfo, namespaces: Mapping[str, Mapping[str, str]]
) -> bool:
    """Whether a term of ``owner`` means the pod ``other``."""
    if term.namespaces or term.namespace_selector is not None:
        in_scope = other.namespace in term.namespaces or selects(
            term.namespace_selector, namespaces.get(other.namespace, {})
        )
    else:
        in_scope = other.namespace == owner.namespace
    return in_scope and selects(term.label_selector, other.labels)


def _places(node: NodeInfo, terms: tuple[PodAffinityTerm, ...]) -> list[Place]:
    return [(term.topology_key, node.labels[term.topology_key]) for term in terms if term.topology_key in node.labels]


def objection(pod: PodInfo, node: NodeInfo, around: Neighbourhood) -> str | None:
    """Why the neighbours rule the node out, in kube-scheduler's words; None if they do not."""
    for term in pod.affinity:
        value = node.labels.get(term.topology_key)
        if value is None or not (around.first or (term.topology_key, value) in around.near):
            return "node(s) didn't match pod affinity rules"
    if any(place in around.away for place in _places(node, pod.anti_affinity)):
        return "node(s) didn't match pod anti-affinity rules"
    if any(node.labels.get(key) == value for key, value in around.unwelcome):
        return "node(s) didn't satisfy existing pods anti-affinity rules"
    return None
