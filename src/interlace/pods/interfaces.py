"""The network interfaces of a Pod: the annotations of multi-networking, and the names that follow from them.

The annotation is JSON, strictly: GKE reads nothing else. Invariant: names of interfaces are those that the
annotation gives; whoever needs them (the NCCL environment) takes them from here.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from interlace.fabric.environment import Interfaces
from interlace.fabric.family import Family
from interlace.pods.draft import Draft
from interlace.pods.errors import InjectError
from interlace.pods.gpus import Gpus

INTERFACES: Final = "networking.gke.io/interfaces"
DEFAULT: Final = "networking.gke.io/default-interface"
_TRAILING_COMMA: Final = re.compile(r",\s*[\]}]")
_NUMBERED: Final = re.compile(r"(.*?)(\d+)\Z")


class Attachment(msgspec.Struct, frozen=True):
    """One interface of the Pod and the Network behind it."""

    interface: str
    network: str


def attach(draft: Draft, found: Gpus, *, family: Family, networks: Mapping[str, str]) -> Interfaces:
    """Complete the annotations and give the names of the interfaces. Raises InjectError.

    ``networks``: default name of a Network to its name in the cluster. No annotation is added where the NICs come by
    a claim, nor where the GPUs do and no daemon needs them all: who claims GPUs claims the NICs beside them.
    """
    rails = tuple(networks.get(network.name, network.name) for network in family.gpu_networks)
    path = f"metadata.annotations[{INTERFACES}]"
    text = draft.annotations.get(INTERFACES)
    if found.by_claim and not found.nics_by_claim and text is None and family.pod.sidecar is None and rails:
        draft.warn("spec.resourceClaims: the GPUs come by a claim and no NICs do; the Pod has no fast network")
        return _claimed_names(rails)
    if found.nics_by_claim:
        if text is not None:
            raise InjectError(
                path,
                text,
                "the Pod takes its NICs by a claim, and a cluster gives them by claims or by annotation, not by both",
                "remove the annotation or the claim",
            )
        return _claimed_names(rails)
    if not family.pod.default_interface or not rails:
        return Interfaces(control="eth0", data=())
    existing = read(text, path) if text is not None else ()
    control, data, wanted = _complete(existing, rails=rails, family=family, path=path, text=text or "")
    if wanted != existing:
        draft.annotate(INTERFACES, render(wanted), f"a Pod of family {family.id} joins all networks of its GPUs")
    _default(draft, control=control)
    return Interfaces(control=control, data=data)


def _claimed_names(rails: tuple[str, ...]) -> Interfaces:
    """The names that the network driver of GKE gives."""
    return Interfaces(control="eth0", data=tuple(f"gpu{index}rdma0" for index in range(len(rails))))


def read(text: str, path: str) -> tuple[Attachment, ...]:
    """What the annotation says. Raises InjectError."""
    try:
        entries = json.loads(text)
    except (ValueError, RecursionError) as error:
        comma = _TRAILING_COMMA.search(text)
        cause = "JSON allows no comma before a closing bracket" if comma else f"it is no JSON ({error})"
        remedy = "remove that comma" if comma else 'write it as [{"interfaceName": …, "network": …}, …]'
        raise InjectError(path, text, cause, remedy) from None
    if not isinstance(entries, list):
        raise InjectError(path, text, "it is no list", 'write it as [{"interfaceName": …, "network": …}, …]')
    found: list[Attachment] = []
    for number, entry in enumerate(entries):
        attachment = _attachment(entry, f"{path}[{number}]")
        for other in found:
            if other.interface == attachment.interface:
                raise InjectError(
                    f"{path}[{number}]", other.interface, "two interfaces have this name", "give each its own"
                )
            if other.network == attachment.network:
                raise InjectError(
                    f"{path}[{number}]", other.network, "two interfaces join this network", "join each network once"
                )
        found.append(attachment)
    return tuple(found)


def render(attachments: tuple[Attachment, ...]) -> str:
    """The annotation's text: one interface a line."""
    lines = (
        json.dumps({"interfaceName": each.interface, "network": each.network}, separators=(",", ":"))
        for each in attachments
    )
    return "[\n  " + ",\n  ".join(lines) + "\n]"


def _attachment(entry: Any, path: str) -> Attachment:
    if isinstance(entry, dict):
        interface, network = entry.get("interfaceName"), entry.get("network")
        if isinstance(interface, str) and isinstance(network, str) and interface and network:
            return Attachment(interface, network)
    raise InjectError(path, entry, "an interface has interfaceName and network, both of them strings", "give both")


def _complete(
    existing: tuple[Attachment, ...], *, rails: tuple[str, ...], family: Family, path: str, text: str
) -> tuple[str, tuple[str, ...], tuple[Attachment, ...]]:
    """Control interface, data interfaces in the order of the NICs, and all attachments."""
    control = next((each.interface for each in existing if each.network == "default"), "")
    others = [each for each in existing if each.network != "default"]
    host = {network.name for network in family.networks if not network.gpu}
    by_network = {each.network: each.interface for each in others}
    if others and not by_network.keys() & set(rails):
        unknown = [each for each in others if each.network not in host]
        if unknown and len(unknown) != len(rails):
            raise InjectError(
                path,
                text,
                f"it joins {', '.join(each.network for each in unknown)}, and family {family.id} has the networks "
                f"{', '.join(rails)}",
                "join these, or map their names with --network-map",
            )
        if unknown:  # wired by hand over networks of other names: their order is that of the NICs
            rails = tuple(each.network for each in unknown)
    wanted = list(existing)
    taken = {each.interface for each in existing}
    if not control:
        control = family.pod.default_interface
        if control in taken:
            raise InjectError(path, text, f"{control} is not on the network default", f"give {control} to default")
        wanted.insert(0, Attachment(control, "default"))
        taken.add(control)
    names = {networks: network.interface for networks, network in zip(rails, family.gpu_networks, strict=True)}
    for rail in rails:
        if rail not in by_network:
            name = names[rail] if names[rail] not in taken else _free(names[rail], taken)
            wanted.append(Attachment(name, rail))
            by_network[rail] = name
            taken.add(name)
    return control, tuple(by_network[rail] for rail in rails), tuple(wanted)


def _free(name: str, taken: set[str]) -> str:
    match = _NUMBERED.match(name)
    stem, number = (match[1], int(match[2])) if match else (name, 0)
    while f"{stem}{number}" in taken:
        number += 1
    return f"{stem}{number}"


def _default(draft: Draft, *, control: str) -> None:
    value = draft.annotations.get(DEFAULT)
    if value is None:
        draft.annotate(DEFAULT, control, "the Pod's own traffic stays on the Pod network")
    elif value != control:
        raise InjectError(
            f"metadata.annotations[{DEFAULT}]",
            value,
            f"the interface of the network default is {control}, and rails carry traffic of GPUs alone",
            f"write {control}",
        )
