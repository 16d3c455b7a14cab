"""What the other objects of a file say about the cluster that its Pods will find: networks, claims, domains.

Pure over plain JSON objects. Invariant: only what stands in the file is used; nothing is looked up.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec

from interlace.fabric.family import Family
from interlace.pods.errors import InjectError
from interlace.pods.gpus import CHANNEL_CLASS, device_classes
from interlace.pods.kinds import group_and_kind

KINDS: Final = frozenset(
    ("Network", "GKENetworkParamSet", "ResourceClaim", "ResourceClaimTemplate", "ComputeDomain", "TrainJob")
)
"""Kinds that are read for what they say, though they make no Pods."""

_NUMBER: Final = re.compile(r"\d+")


class Surroundings(msgspec.Struct, frozen=True, kw_only=True):
    """``networks``: Device networks in the order of the file, with the device mode of each (empty: not known).
    ``claims``: name of a claim or template to its DeviceClasses. ``domains``: ComputeDomain to its template.
    ``trained``: runtimes that TrainJobs refer to. ``runtimes``: those that are in the file.
    """

    networks: dict[str, str] = {}
    claims: dict[str, tuple[str, ...]] = {}
    domains: dict[str, str] = {}
    trained: frozenset[str] = frozenset()
    runtimes: frozenset[str] = frozenset()


def surroundings(objects: Iterable[Mapping[str, Any]]) -> Surroundings:
    """Read them from all objects of a file; what is not understood is left to those who own it."""
    devices: dict[str, str] = {}
    modes: dict[str, str] = {}
    claims: dict[str, tuple[str, ...]] = {}
    domains: dict[str, str] = {}
    trained: set[str] = set()
    runtimes: set[str] = set()
    for each in objects:
        name = str(_at(each, "metadata", "name") or "")
        match group_and_kind(each):
            case ("networking.gke.io", "Network"):
                if _at(each, "spec", "type") == "Device":
                    devices[name] = str(_at(each, "spec", "parametersRef", "name") or "")
            case ("networking.gke.io", "GKENetworkParamSet"):
                modes[name] = str(_at(each, "spec", "deviceMode") or "")
            case ("resource.k8s.io", "ResourceClaimTemplate"):
                claims[name] = device_classes(_at(each, "spec", "spec"))
            case ("resource.k8s.io", "ResourceClaim"):
                claims[name] = device_classes(_at(each, "spec"))
            case ("resource.nvidia.com", "ComputeDomain"):
                template = str(_at(each, "spec", "channel", "resourceClaimTemplate", "name") or "")
                domains[name] = template
                claims[template] = (CHANNEL_CLASS,)
            case ("trainer.kubeflow.org", "TrainJob"):
                trained.add(str(_at(each, "spec", "runtimeRef", "name") or ""))
            case ("trainer.kubeflow.org", "TrainingRuntime" | "ClusterTrainingRuntime"):
                runtimes.add(name)
            case _:
                pass
    networks = {name: modes.get(set_name, "") for name, set_name in devices.items()}
    return Surroundings(
        networks=networks,
        claims=claims,
        domains=domains,
        trained=frozenset(trained),
        runtimes=frozenset(runtimes),
    )


def networks_for(family: Family, found: Surroundings) -> dict[str, str]:
    """Default name of each network of the family to its name in the file; empty: the defaults. Raises InjectError."""
    wanted = family.gpu_networks
    defaults = [network.name for network in wanted]
    if not wanted or not found.networks or set(defaults) <= found.networks.keys():
        return {}
    host = {network.name for network in family.networks if not network.gpu}
    named = [name for name, mode in found.networks.items() if name not in host and (not mode or mode == wanted[0].mode)]
    if len(named) != len(wanted):
        raise InjectError(
            "kind: Network",
            ", ".join(found.networks),
            f"family {family.id} joins {len(wanted)} networks, and the file has {len(named)} that could be meant",
            f"map their names with --network-map, as {defaults[0]}=NAME",
        )
    return dict(zip(defaults, sorted(named, key=_natural), strict=True))


def _natural(name: str) -> tuple[tuple[str, int], ...]:
    """``rail10`` behind ``rail9``."""
    texts = _NUMBER.split(name)
    numbers = [int(each) for each in _NUMBER.findall(name)]
    return tuple(zip(texts, [*numbers, -1], strict=True))


def _at(value: Any, *keys: str) -> Any:
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value
