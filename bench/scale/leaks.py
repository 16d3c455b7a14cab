"""What is left behind when all jobs of a cluster are gone: objects, CDI files, sockets, processes, tasks, files.

Invariant: a cluster at rest is compared with the same cluster at rest; the platform's own clearing is waited for.
"""

from __future__ import annotations

import asyncio
import time
from typing import Final

import msgspec

from bench.scale.ground import files
from interlace.node.checkpoint import decode
from interlace.sim import snapshot
from interlace.sim.cluster import Cluster
from interlace.sim.kubelet.node import PLUGINS

CLEARING: Final = 60.0
"""Seconds that clearing may take: closing nodes 2 s, the platform's garbage collector some more."""
QUIET: Final = 5.0
"""Seconds from the end of the last job until a cluster is at rest."""
CHECKPOINTS: Final = "*/checkpoint.json"
SLACK: Final = 0.01
"""Part by which the number of tasks and files may differ: connections come and go."""
NAMED: Final = 5


class Rest(msgspec.Struct, frozen=True, kw_only=True):
    """A cluster without jobs."""

    things: frozenset[str]
    """Objects of every kind, CDI files, sockets and processes, by name."""
    slices: frozenset[str]
    """What each node offers."""
    prepared: int
    """Claims in the checkpoints of all agents."""
    tasks: int
    files: frozenset[str]


async def look(cluster: Cluster) -> Rest:
    """The cluster now."""
    things = await snapshot.list_objects(cluster.client) | await asyncio.to_thread(
        snapshot.list_machines, cluster.fleet
    )
    offers = frozenset(
        f"{found.spec.node_name}: {len(found.spec.devices)} of {found.spec.devices[0].attributes['domain'].string!r}"
        for found in cluster.slices.items()
    )
    return Rest(
        things=frozenset(things),
        slices=offers,
        prepared=_prepared(cluster),
        tasks=len(asyncio.all_tasks()),
        files=frozenset(files(cluster)),
    )


def _prepared(cluster: Cluster) -> int:
    """Damaged checkpoints are raised, not counted."""
    files = (path for node in cluster.fleet.nodes.values() for path in (node.tray.root / PLUGINS).glob(CHECKPOINTS))
    return sum(len(decode(path.read_bytes())[1]) for path in files)


def leaks(before: Rest, after: Rest) -> list[str]:
    """What is there now and was not, one sentence each."""
    found = [f"left behind: {thing}" for thing in sorted(after.things - before.things)]
    found += [f"a node offers something else: {offer}" for offer in sorted(after.slices - before.slices)]
    if after.prepared > before.prepared:
        found.append(f"{after.prepared - before.prepared} claims are left in the checkpoints of agents")
    if _more(before.tasks, after.tasks):
        found.append(f"{after.tasks} tasks where there were {before.tasks}")
    if _more(len(before.files), len(after.files)):
        new = ", ".join(sorted(after.files - before.files)[:NAMED])
        found.append(f"{len(after.files)} files where there were {len(before.files)}, among them {new}")
    return found


def _more(before: int, after: int) -> bool:
    return after > before * (1 + SLACK) + 2


async def settled(cluster: Cluster, before: Rest, *, within: float = CLEARING) -> list[str]:
    """The leaks that are there after ``within`` seconds, none as soon as there are none."""
    end = time.monotonic() + within
    while True:
        found = leaks(before, await look(cluster))
        if not found or time.monotonic() > end:
            return found
        await asyncio.sleep(1)  # nothing tells when the platform is done
