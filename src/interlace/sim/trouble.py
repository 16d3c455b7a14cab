"""Trouble that one tenant can make, for tests and benchmarks that watch its neighbours.

Everything here is done with the rights of a user in a namespace of its own, apart from the fault of the machine's
(simulated) ``nvidia-imex``.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable
from contextlib import suppress
from typing import Any, Final

from interlace.api.computedomain import DOMAIN_LABEL, DRIVER, TARGET_LABEL, ComputeDomain
from interlace.api.resource import ResourceClaim, ResourceClaimTemplate
from interlace.kube.client import Client
from interlace.kube.errors import ApiError
from interlace.kube.untyped import untyped
from interlace.sim.cluster import Cluster

_DOMAINS: Final = untyped(ComputeDomain.resource)
_CHANNEL: Final = {"name": "channel", "exactly": {"deviceClassName": "compute-domain-default-channel.nvidia.com"}}


def break_imex(cluster: Cluster, nodes: Iterable[str], *, fault: str = "crash_at_start") -> None:
    """The ``nvidia-imex`` of these nodes fails from its next start on."""
    for node in nodes:
        (cluster.fleet.nodes[node].tray.root / "etc/imex-faults.json").write_text(json.dumps({fault: True}))


def mend_imex(cluster: Cluster, nodes: Iterable[str]) -> None:
    """The fault is over."""
    for node in nodes:
        (cluster.fleet.nodes[node].tray.root / "etc/imex-faults.json").write_text("{}")


def poisoned(*, victim: str) -> list[tuple[type[Any], dict[str, Any]]]:
    """Objects that are hostile or nonsense; ``victim`` is the uid of a domain of somebody else."""
    odd = "\u202e\u0000\U0001f9ea".replace("\u0000", "") * 50
    configs: list[Any] = [
        {"domainID": victim, "kind": "ComputeDomainChannelConfig", "surprise": 1},
        {"domainID": [victim], "kind": "ComputeDomainChannelConfig"},
        {"deep": json.loads("[" * 90 + "]" * 90)},
        {"kind": odd, "domainID": "x" * 9_000},
    ]
    out: list[tuple[type[Any], dict[str, Any]]] = [
        (_DOMAINS, _domain("huge-note", note="x" * 200_000)),
        (_DOMAINS, _domain("odd-note", note=odd)),
        (_DOMAINS, _domain("upper", template="NOT/a NAME")),
        (_DOMAINS, _domain("endless", template="x" * 10_000)),
        (_DOMAINS, _domain("greedy", num_nodes=2**31)),
        (_DOMAINS, {"metadata": {"name": "no-spec"}}),
        (_DOMAINS, _domain("unknown-mode", mode="Everything")),
        (
            ResourceClaimTemplate,
            {
                "metadata": {"name": "not-mine", "labels": {DOMAIN_LABEL: victim, TARGET_LABEL: "Workload"}},
                "spec": {"spec": {"devices": {"requests": [_CHANNEL]}}},
            },
        ),
    ]
    out += [
        (
            ResourceClaim,
            {
                "metadata": {"name": f"poison-{number}", "labels": {DOMAIN_LABEL: victim}},
                "spec": {
                    "devices": {
                        "requests": [_CHANNEL],
                        "config": [{"requests": ["channel"], "opaque": {"driver": DRIVER, "parameters": config}}],
                    }
                },
            },
        )
        for number, config in enumerate(configs)
    ]
    return out


async def poison(client: Client, *, namespace: str, victim: str) -> int:
    """Create what the server takes of it; how much that was."""
    taken = 0
    for kind, body in poisoned(victim=victim):
        with suppress(ApiError):
            await client.create(kind, body, namespace=namespace)
            taken += 1
    return taken


async def make_noise(
    client: Client, *, uid: str, namespace: str, changes: int, claims: int = 10, over: float = 0.0
) -> None:
    """So many changes of claims that carry the label of the domain ``uid``, which the controller has to look at.

    They are spread ``over`` so many seconds; by default they come as fast as the server takes them.
    """
    names = [f"noise-{number}" for number in range(claims)]
    for name in names:
        body = {
            "metadata": {"name": name, "labels": {DOMAIN_LABEL: uid}},
            "spec": {"devices": {"requests": [_CHANNEL]}},
        }
        await client.create(ResourceClaim, body, namespace=namespace)
    async with asyncio.TaskGroup() as group:
        for name in names:
            group.create_task(_change(client, name, namespace=namespace, times=changes // claims, over=over))


async def _change(client: Client, name: str, *, namespace: str, times: int, over: float) -> None:
    for number in range(times):
        patch = {"metadata": {"annotations": {"example.com/noise": str(number)}}}
        await client.merge_patch(ResourceClaim, name, patch, namespace=namespace)
        await asyncio.sleep(over / times)


def _domain(
    name: str, *, template: str = "", note: str = "", num_nodes: int = 0, mode: str = "Single"
) -> dict[str, Any]:
    channel = {"resourceClaimTemplate": {"name": template or f"{name}-channel"}, "allocationMode": mode}
    return {
        "metadata": {"name": name, "annotations": {"example.com/note": note}},
        "spec": {"numNodes": num_nodes, "channel": channel},
    }
