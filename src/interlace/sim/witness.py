"""What a domain looks like from outside, so that it can be told whether anything of it changed meanwhile.

Invariant: a sight holds everything that our components could do to a domain that is at rest: versions of its
objects, our events about it, and the ``nvidia-imex`` processes of its nodes. Two equal sights mean that nothing
of that was written and nothing was restarted in between.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Final

import msgspec

from interlace.api.computedomain import DOMAIN_LABEL, ComputeDomain, ComputeDomainClique
from interlace.api.core import Event, Pod
from interlace.api.meta import Object
from interlace.api.resource import ResourceClaim
from interlace.sim.cluster import NAMESPACE, Cluster
from interlace.sim.kubelet.process import find_processes

_OURS: Final = "interlace"
_DAEMON: Final = "interlace-simulated/daemon"


class Sight(msgspec.Struct, frozen=True, kw_only=True):
    """One look."""

    objects: Mapping[str, str]
    """Kind, name and uid to version: the domain, its node maps, its claims and the Pods of its namespace."""
    events: Mapping[str, int]
    """Our events in its namespace: which one to how often."""
    processes: Mapping[str, tuple[int, ...]]
    """Node to process ids of its ``nvidia-imex``."""


async def look(cluster: Cluster, name: str, *, namespace: str) -> Sight:
    """The domain now, read from the API server; the namespace must be the domain's alone."""
    domain = await cluster.client.get(ComputeDomain, name, namespace=namespace)
    label = f"{DOMAIN_LABEL}={domain.metadata.uid}"
    async with asyncio.TaskGroup() as group:
        cliques = group.create_task(cluster.client.list(ComputeDomainClique, namespace=NAMESPACE, labels=label))
        claims = group.create_task(cluster.client.list(ResourceClaim, namespace=namespace, labels=label))
        pods = group.create_task(cluster.client.list(Pod, namespace=namespace))
        events = group.create_task(cluster.client.list(Event, namespace=namespace))
    objects: list[Object] = [domain, *cliques.result().items, *claims.result().items, *pods.result().items]
    nodes = sorted({pod.spec.node_name for pod in pods.result().items} & cluster.fleet.nodes.keys())
    return Sight(
        objects={_key(found): found.metadata.resource_version for found in objects},
        events={
            f"{event.involved_object.kind} {event.involved_object.name}: {event.reason}: {event.message}": event.count
            for event in events.result().items
            if (event.source.component or event.reporting_component).startswith(_OURS)
        },
        processes={node: tuple(find_processes(cluster.fleet.nodes[node].tray.root, program=_DAEMON)) for node in nodes},
    )


def changes(before: Sight, after: Sight) -> list[str]:
    """What became different, one sentence each."""
    pairs: tuple[tuple[str, Mapping[str, object], Mapping[str, object]], ...] = (
        ("", before.objects, after.objects),
        ("event on ", before.events, after.events),
        ("nvidia-imex of ", before.processes, after.processes),
    )
    return [
        f"{what}{key}: {old.get(key, 'nothing')} became {new.get(key, 'nothing')}"
        for what, old, new in pairs
        for key in sorted(old.keys() | new.keys())
        if old.get(key) != new.get(key)
    ]


def _key(found: Object) -> str:
    return f"{found.resource.kind} {found.metadata.name} {found.metadata.uid}"
