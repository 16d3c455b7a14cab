"""Whether the node pools of a cluster file can be made. Pure.

Invariant: what contradicts itself inside one pool, or between two, is named here and with its pointer.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from typing import Final

from interlace.gke.cluster import SYSTEM_POOL, FabricCluster, Pool
from interlace.gke.errors import SpecError
from interlace.rules.pointer import pointer as join

_NODE_KEY: Final = re.compile(
    r"([a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?\Z"
)
_NODE_VALUE: Final = re.compile(r"([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?\Z")


def check_pools(cluster: FabricCluster) -> Iterator[SpecError]:
    """All that stands against the node pools."""
    spec = cluster.spec
    if not spec.pools:
        yield SpecError("there is no node pool with GPUs", pointer="/spec/pools", remedy="add one")
    counts = Counter([SYSTEM_POOL, *(pool.name for pool in spec.pools)])
    for index, pool in enumerate(spec.pools):
        at = f"/spec/pools/{index}"
        if counts[pool.name] > 1:
            yield SpecError(
                "two node pools have this name",
                pointer=f"{at}/name",
                value=pool.name,
                cause=f"the pool without GPUs is {SYSTEM_POOL}, the others are listed here",
                remedy="give each a name of its own",
            )
        yield from _pool(pool, at)
    yield from _node_labels(spec.system.labels, at="/spec/system/labels")


def _pool(pool: Pool, at: str) -> Iterator[SpecError]:
    if pool.spot and pool.reservation is not None:
        yield SpecError(
            "spot VMs are not taken from a reservation",
            pointer=f"{at}/spot",
            value="true",
            cause="a reservation holds VMs that Google does not take back",
            remedy="leave spot or reservation out",
        )
    if pool.reservation is not None and pool.reservation.sub_block and not pool.reservation.block:
        yield SpecError(
            "a sub-block is named without its block",
            pointer=f"{at}/reservation/subBlock",
            value=pool.reservation.sub_block,
            cause="the path to it leads through the block",
            remedy="add block",
        )
    placement = pool.placement
    if placement is not None and placement.policy and (placement.max_distance is not None or placement.topology):
        yield SpecError(
            "a policy that exists is not described",
            pointer=f"{at}/placement/policy",
            value=placement.policy,
            cause="maxDistance and topology are those of a policy that is made",
            remedy="leave policy out, and one is made",
        )
    scaling = pool.autoscaling
    if scaling is not None and not scaling.min <= pool.nodes <= scaling.max:
        yield SpecError(
            f"{pool.nodes} nodes are not between {scaling.min} and {scaling.max}",
            pointer=f"{at}/autoscaling",
            value=f"min {scaling.min}, max {scaling.max}",
            cause="the autoscaler would change the number at once",
            remedy="take nodes between min and max",
        )
    if pool.surge.max_surge + pool.surge.max_unavailable == 0:
        yield SpecError(
            "no node could ever be upgraded",
            pointer=f"{at}/surge",
            value="maxSurge 0, maxUnavailable 0",
            cause="an upgrade needs a spare node, or one that may be away",
            remedy="with a full reservation take maxSurge: 0 and maxUnavailable: 1",
        )
    yield from _node_labels(pool.labels, at=f"{at}/labels")
    for index, taint in enumerate(pool.taints):
        yield from _node_labels({taint.key: taint.value}, at=f"{at}/taints/{index}", whole=True)


def _node_labels(labels: dict[str, str], *, at: str, whole: bool = False) -> Iterator[SpecError]:
    for key, value in labels.items():
        if not _NODE_KEY.match(key) or not _NODE_VALUE.match(value):
            yield SpecError(
                "Kubernetes does not take this",
                pointer=at if whole else f"{at}{join(key)}",
                value=f"{key}={value}",
                cause="it has letters, digits, '-', '_' and '.', at most 63, the first and last a letter or digit",
                remedy="write it like team=ml or example.com/team=ml",
            )
