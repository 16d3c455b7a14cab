"""DRA: which devices a node offers, and which of them a pod's claims get.

Invariant: an allocation holds only devices that are free, of complete pools of their newest generation, that
match every selector, each once. Parameters of classes and claims are copied as the bytes they are.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet

import msgspec

from interlace.sim.platform.devicekinds import (
    AllocatedDevices,
    Allocation,
    Device,
    DeviceClaim,
    DeviceClass,
    DeviceConstraint,
    DeviceResult,
    ResourceSlice,
)
from interlace.sim.platform.kinds import NodeSelector, NodeSelectorTerm, Requirement

DeviceId = tuple[str, str, str]
"""Driver, pool, device."""


class SelectorError(Exception):
    """A CEL selector failed on a device; the scheduler gives up on the pod, whatever other nodes offer."""


class Unsatisfiable(Exception):
    """No node can satisfy the claim as things are; the text says why."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """One device of a slice."""

    driver: str
    pool: str
    device: Device
    source: str
    """uid and version of the slice: equal sources mean equal devices."""

    @property
    def id(self) -> DeviceId:
        return (self.driver, self.pool, self.device.name)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Pool:
    """What one pool offers on one node."""

    driver: str
    name: str
    complete: bool
    """All slices of the newest generation are there."""
    candidates: tuple[Candidate, ...]


Matcher = Callable[[str, Candidate], bool]
"""Evaluates a CEL expression on a device, or raises ``SelectorError``."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """A claim that waits for devices."""

    uid: str
    namespace: str
    name: str
    devices: DeviceClaim


@dataclasses.dataclass(frozen=True, slots=True)
class _Slot:
    """One device to find."""

    claim: Wanted
    request: str
    candidates: Sequence[Candidate]
    group: int
    """Slots of a group are alike, so they are filled in rising order only."""
    admin: bool


def pools_by_node(slices: Iterable[ResourceSlice]) -> dict[str, tuple[Pool, ...]]:
    """Node-local pools; slices of an older generation, and slices for several nodes, are left out."""
    grouped: defaultdict[tuple[str, str], list[ResourceSlice]] = defaultdict(list)
    for part in slices:
        grouped[part.spec.driver, part.spec.pool.name].append(part)
    found: defaultdict[str, list[Pool]] = defaultdict(list)
    for (driver, name), parts in sorted(grouped.items()):
        newest = max(part.spec.pool.generation for part in parts)
        current = sorted(
            (part for part in parts if part.spec.pool.generation == newest), key=lambda part: part.metadata.name
        )
        complete = len(current) == current[0].spec.pool.resource_slice_count
        for node in dict.fromkeys(part.spec.node_name for part in current if part.spec.node_name):
            candidates = tuple(
                Candidate(
                    driver=driver,
                    pool=name,
                    device=device,
                    source=f"{part.metadata.uid}/{part.metadata.resource_version}",
                )
                for part in current
                if part.spec.node_name == node
                for device in part.spec.devices
            )
            found[node].append(Pool(driver=driver, name=name, complete=complete, candidates=candidates))
    return {node: tuple(pools) for node, pools in found.items()}


def allocate(
    wanted: Sequence[Wanted],
    *,
    node: str,
    pools: Sequence[Pool],
    taken: AbstractSet[DeviceId],
    classes: Mapping[str, DeviceClass],
    matches: Matcher,
) -> tuple[Allocation, ...] | None:
    """An allocation for each claim on this node, in order; None if the node cannot serve all of them.

    Raises:
        SelectorError: an expression failed on a free device of the node.
        Unsatisfiable: a request can be served by no node at all.
    """
    slots: list[_Slot] = []
    for claim in wanted:
        for request in claim.devices.requests:
            more = _slots(claim, request.name, len(slots), pools=pools, taken=taken, classes=classes, matches=matches)
            if more is None:
                return None
            slots.extend(more)
    chosen = next(_search(slots, [], set()), None)
    if chosen is None:
        return None
    return tuple(
        _allocation(claim, [pair for pair in zip(slots, chosen, strict=True) if pair[0].claim is claim], node, classes)
        for claim in wanted
    )


def _slots(
    claim: Wanted,
    name: str,
    group: int,
    *,
    pools: Sequence[Pool],
    taken: AbstractSet[DeviceId],
    classes: Mapping[str, DeviceClass],
    matches: Matcher,
) -> list[_Slot] | None:
    request = next(request for request in claim.devices.requests if request.name == name).exactly
    if request is None:
        raise Unsatisfiable(f"request {name}: a list of alternatives (firstAvailable) is not simulated")
    device_class = classes.get(request.device_class_name)
    if device_class is None:
        raise Unsatisfiable(f"request {name}: device class {request.device_class_name} does not exist")
    expressions = [
        selector.cel.expression
        for selector in itertools.chain(device_class.spec.selectors, request.selectors)
        if selector.cel is not None
    ]
    admin = bool(request.admin_access)

    def fits(candidate: Candidate) -> bool:
        return all(matches(expression, candidate) for expression in expressions)

    if request.allocation_mode == "All":
        if not all(pool.complete for pool in pools):
            return None
        everything = [candidate for pool in pools for candidate in pool.candidates if fits(candidate)]
        if not everything or (not admin and any(candidate.id in taken for candidate in everything)):
            return None
        return [_Slot(claim, name, [candidate], group + number, admin) for number, candidate in enumerate(everything)]
    if request.allocation_mode != "ExactCount":
        raise Unsatisfiable(f"request {name}: unsupported allocation mode {request.allocation_mode}")
    free = [
        candidate
        for pool in pools
        if pool.complete
        for candidate in pool.candidates
        if (admin or candidate.id not in taken) and fits(candidate)
    ]
    return [_Slot(claim, name, free, group, admin)] * request.count if len(free) >= request.count else None


def _search(slots: Sequence[_Slot], chosen: list[Candidate], used: set[DeviceId]) -> Iterator[list[Candidate]]:
    """Depth first over the slots, with backtracking; yields complete choices."""
    if len(chosen) == len(slots):
        yield list(chosen)
        return
    slot = slots[len(chosen)]
    previous = slots[len(chosen) - 1] if chosen else None
    start = 0
    if previous is not None and previous.group == slot.group:
        start = next(i for i, candidate in enumerate(slot.candidates) if candidate is chosen[-1]) + 1
    for candidate in slot.candidates[start:]:
        if not slot.admin and candidate.id in used:
            continue
        chosen.append(candidate)
        if _constrained(slots, chosen):
            if not slot.admin:
                used.add(candidate.id)
            yield from _search(slots, chosen, used)
            if not slot.admin:
                used.discard(candidate.id)
        chosen.pop()


def _constrained(slots: Sequence[_Slot], chosen: Sequence[Candidate]) -> bool:
    """Whether the newest choice keeps every ``matchAttribute`` of its claim."""
    newest = slots[len(chosen) - 1]
    for constraint in newest.claim.devices.constraints:
        if constraint.match_attribute is None or not _covers(constraint, newest.request):
            continue
        values = [
            _attribute(candidate, constraint.match_attribute)
            for slot, candidate in zip(slots, chosen, strict=False)
            if slot.claim is newest.claim and _covers(constraint, slot.request)
        ]
        if None in values or any(value != values[0] for value in values):
            return False
    return True


def _covers(constraint: DeviceConstraint, request: str) -> bool:
    return not constraint.requests or request in constraint.requests


def _attribute(candidate: Candidate, qualified: str) -> object:
    """The attribute by its full name; a name without a domain stands for the driver's own."""
    attributes = candidate.device.attributes
    domain, _, name = qualified.rpartition("/")
    if qualified in attributes:
        return attributes[qualified]
    return attributes.get(name) if domain == candidate.driver else None


def _allocation(
    claim: Wanted, pairs: Sequence[tuple[_Slot, Candidate]], node: str, classes: Mapping[str, DeviceClass]
) -> Allocation:
    results = [
        DeviceResult(
            request=slot.request,
            driver=candidate.driver,
            pool=candidate.pool,
            device=candidate.device.name,
            admin_access=True if slot.admin else None,
        )
        for slot, candidate in pairs
    ]
    config = [
        msgspec.structs.replace(entry, source="FromClass", requests=[request.name])
        for request in claim.devices.requests
        if request.exactly is not None
        for entry in classes[request.exactly.device_class_name].spec.config
    ]
    config += [msgspec.structs.replace(entry, source="FromClaim") for entry in claim.devices.config]
    here = Requirement(key="metadata.name", operator="In", values=[node])
    return Allocation(
        devices=AllocatedDevices(results=results, config=config),
        node_selector=NodeSelector(node_selector_terms=[NodeSelectorTerm(match_fields=[here])]),
    )
