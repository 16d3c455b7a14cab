"""Plans address ranges: which range each subnet, the Pods, the Services and the control plane get. Pure.

Invariants: every range that we give is private and overlaps no other one and nothing that is in use elsewhere; what
the user gave is never changed; a wish gets the lowest free range of its size, so the plan is the same each time, and
a NIC that comes later changes no earlier one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from ipaddress import IPv4Network, collapse_addresses
from typing import Final

import msgspec

from interlace.gke.cluster import FabricCluster
from interlace.gke.errors import SpecError
from interlace.gke.names import nics

PRIVATE: Final = tuple(map(IPv4Network, ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10")))
"""RFC 1918, and the shared space of RFC 6598, which VPC networks take as private."""

RESERVED: Final = (IPv4Network("172.17.0.0/16"),)
"""Taken on every node by the bridge of its container runtime."""

USELESS: Final = 4
"""Addresses of a subnet that Google Cloud keeps: network, gateway, the last but one, broadcast."""

PODS_PREFIX: Final = 14
SERVICES_PREFIX: Final = 20
CONTROL_PLANE_PREFIX: Final = 28

_NODES: Final = tuple(map(IPv4Network, ("192.168.0.0/16", "172.16.0.0/12", "10.0.0.0/8")))
_PODS: Final = tuple(map(IPv4Network, ("10.0.0.0/8", "100.64.0.0/10", "172.16.0.0/12")))
_CONTROL: Final = tuple(map(IPv4Network, ("172.16.0.0/12", "192.168.0.0/16", "10.0.0.0/8")))


class Wish(msgspec.Struct, frozen=True, kw_only=True):
    """A range that is needed. ``given``: the user's own; else a free one of ``prefix`` in the first of ``spaces``."""

    pointer: str
    given: str | None = None
    prefix: int = 24
    spaces: tuple[IPv4Network, ...] = _NODES


class Addresses(msgspec.Struct, frozen=True, kw_only=True):
    """The plan. None: the network exists already and nothing was said about it, or there is no such range."""

    primary: IPv4Network | None = None
    pods: IPv4Network | None = None
    services: IPv4Network | None = None
    control_plane: IPv4Network | None = None
    nics: tuple[IPv4Network | None, ...] = ()


def parse(text: str, *, pointer: str) -> IPv4Network:
    """An address range. Raises SpecError for what is none, and for one that says more than a range."""
    try:
        loose = IPv4Network(text, strict=False)
    except ValueError as error:
        raise SpecError(
            "this is no address range",
            pointer=pointer,
            value=text,
            cause=str(error),
            remedy="write it like 192.168.1.0/24",
        ) from None
    if str(loose.network_address) != text.partition("/")[0]:
        raise SpecError(
            "this is an address inside a range",
            pointer=pointer,
            value=text,
            cause=f"bits behind the first {loose.prefixlen} are set",
            remedy=f"write {loose}",
        )
    return loose


def is_private(network: IPv4Network) -> bool:
    """Whether no address of it belongs to somebody on the Internet."""
    return any(network.subnet_of(each) for each in PRIVATE)


def allocate(
    wishes: Sequence[Wish], *, avoid: Iterable[tuple[str, IPv4Network]] = ()
) -> tuple[dict[str, IPv4Network], tuple[SpecError, ...]]:
    """A range for each wish, by its pointer, and what is wrong. ``avoid``: ranges in use, by what names them."""
    taken: list[tuple[str, IPv4Network]] = [*avoid, *(("the bridge of each node", each) for each in RESERVED)]
    found: dict[str, IPv4Network] = {}
    errors: list[SpecError] = []
    for wish in wishes:
        if wish.given is None:
            continue
        try:
            network = parse(wish.given, pointer=wish.pointer)
            _judge(network, taken, pointer=wish.pointer)
        except SpecError as error:
            errors.append(error)
            continue
        found[wish.pointer] = network
        taken.append((wish.pointer, network))
    for wish in wishes:
        if wish.given is not None:
            continue
        free = _lowest(wish, [each for _, each in taken])
        if free is None:
            spaces = ", ".join(map(str, wish.spaces))
            errors.append(
                SpecError(
                    f"no free range of size /{wish.prefix} is left for it",
                    pointer=wish.pointer,
                    cause=f"{spaces} is taken by other ranges of this file",
                    remedy="give it a range, or take one away from /spec/network/avoid",
                )
            )
            continue
        found[wish.pointer] = free
        taken.append((wish.pointer, free))
    return found, tuple(errors)


def _judge(network: IPv4Network, taken: Iterable[tuple[str, IPv4Network]], *, pointer: str) -> None:
    if not is_private(network):
        raise SpecError(
            "this range is public",
            pointer=pointer,
            value=str(network),
            cause="its addresses belong to others, who could no longer be reached",
            remedy="take one of 10.0.0.0/8, 172.16.0.0/12 or 192.168.0.0/16",
        )
    for name, other in taken:
        if network.overlaps(other):
            raise SpecError(
                f"this range overlaps {other} of {name}",
                pointer=pointer,
                value=str(network),
                cause="a node would have the same address on two of its networks, or no way to one of them",
                remedy="give one of them another range, or none, which plans a free one",
            )


def _lowest(wish: Wish, taken: Sequence[IPv4Network]) -> IPv4Network | None:
    """The lowest range of the wish's size that is free; walks from one taken range to the next."""
    size = 1 << (32 - wish.prefix)
    blocks = sorted(collapse_addresses(taken))
    for space in wish.spaces:
        if space.prefixlen > wish.prefix:
            continue
        start, end = int(space.network_address), int(space.broadcast_address) + 1
        for block in blocks:
            first, last = int(block.network_address), int(block.broadcast_address) + 1
            if last <= start or first >= start + size:
                continue
            start = (last + size - 1) // size * size
        if start + size <= end:
            return IPv4Network((start, wish.prefix))
    return None


def plan(cluster: FabricCluster) -> tuple[Addresses, tuple[SpecError, ...]]:
    """The ranges of a cluster, and what is wrong with those that its file gives."""
    spec = cluster.spec
    errors: list[SpecError] = []
    avoid: list[tuple[str, IPv4Network]] = []
    for index, text in enumerate(spec.network.avoid):
        pointer = f"/spec/network/avoid/{index}"
        try:
            avoid.append((pointer, parse(text, pointer=pointer)))
        except SpecError as error:
            errors.append(error)
    spaces = _NODES
    if spec.network.range is not None:
        try:
            spaces = (parse(spec.network.range, pointer="/spec/network/range"),)
            _judge(spaces[0], (), pointer="/spec/network/range")
        except SpecError as error:
            return Addresses(), (*errors, error)
    wishes = _wishes(cluster, spaces)
    found, wrong = allocate(wishes, avoid=avoid)
    plan = Addresses(
        primary=found.get("/spec/primary/range"),
        pods=found.get("/spec/primary/pods"),
        services=found.get("/spec/primary/services"),
        control_plane=found.get("/spec/controlPlane/range"),
        nics=tuple(found.get(nic_pointer(index)) for index in range(len(nics(cluster)))),
    )
    return plan, (*errors, *wrong)


def nic_pointer(index: int) -> str:
    """Where the range of a NIC's subnet stands in the file."""
    return f"/spec/network/nics/{index}/range"


def _wishes(cluster: FabricCluster, spaces: tuple[IPv4Network, ...]) -> list[Wish]:
    """All ranges of a cluster: those that exist are only wished for where the file names them."""
    spec = cluster.spec
    primary, network, control = spec.primary, spec.network, spec.control_plane
    size = network.prefix_length
    wishes = []
    for name, given, prefix, where in (
        ("primary/range", primary.range, size, spaces),
        ("primary/services", primary.services, SERVICES_PREFIX, _PODS),
        ("primary/pods", primary.pods, PODS_PREFIX, _PODS),
    ):
        if given is not None or not primary.existing:
            wishes.append(Wish(pointer=f"/spec/{name}", given=given, prefix=prefix, spaces=where))
    if control.range is not None or control.private_nodes:
        wishes.append(
            Wish(pointer="/spec/controlPlane/range", given=control.range, prefix=CONTROL_PLANE_PREFIX, spaces=_CONTROL)
        )
    for index in range(len(nics(cluster))):
        given = network.nics[index].range if index < len(network.nics) else None
        if given is not None or not network.existing:
            wishes.append(Wish(pointer=nic_pointer(index), given=given, prefix=size, spaces=spaces))
    return wishes
