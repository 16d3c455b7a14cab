"""What the cluster says about a node: its fabric clique and the address of its IMEX host.

Neither needs the Node object: the agent's ResourceSlice carries the clique, the imex-host Pod the
address.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from interlace.api.core import Pod
from interlace.api.resource import ResourceSlice

CLIQUE_ATTRIBUTE = "clique"


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """One node, as far as a domain needs to know it."""

    clique: str | None = None
    """Fabric clique; ``""`` on a node without a fabric, None while no agent has said."""
    address: str = ""
    """Address of the imex-host Pod, ``""`` while there is none."""


def place(*, slices: Iterable[ResourceSlice], hosts: Iterable[Pod]) -> Place:
    """Fold the slices and imex-host Pods of one node."""
    return Place(clique=_clique(slices), address=_address(hosts))


def _clique(slices: Iterable[ResourceSlice]) -> str | None:
    for slice_ in sorted(slices, key=lambda s: s.spec.pool.generation, reverse=True):
        for device in slice_.spec.devices:
            attribute = device.attributes.get(CLIQUE_ATTRIBUTE)
            if attribute is not None and attribute.string is not None:
                return attribute.string
    return None


def _address(hosts: Iterable[Pod]) -> str:
    """The newest host counts: while one is replaced there are two, and the old one is on its way out."""
    alive = [
        pod
        for pod in hosts
        if pod.status.pod_ip
        and pod.metadata.deletion_timestamp is None
        and pod.status.phase not in {"Failed", "Succeeded"}
    ]
    newest = max(alive, key=lambda pod: (pod.metadata.creation_timestamp or "", pod.metadata.name), default=None)
    return newest.status.pod_ip if newest else ""
