"""What Network objects and parameter sets declare: the NIC that each is for, and the order of NICs that names tell.

Invariant: an order is only said where names tell one: those of the family, or those that differ in a number at the end.
"""

from __future__ import annotations

from itertools import groupby

from interlace.gke.observed.kubernetes import ParamSetSpec
from interlace.gke.places import short
from interlace.gke.rules.nodepool import Nic, Pool
from interlace.gke.rules.subject import NUMBERED, Subject

Pair = tuple[str, str]
"""Network and subnet by name."""


def pair_of(nic: Nic) -> Pair:
    """What is behind a NIC."""
    return short(nic.network), short(nic.subnetwork)


def pair_named(spec: ParamSetSpec) -> Pair:
    """What a parameter set is for."""
    return short(spec.vpc), short(spec.vpc_subnet)


def declared(subject: Subject) -> dict[str, Pair]:
    """What each Network object with a parameter set is for, by its name."""
    sets = {each.value.metadata.name: each.value.spec for each in subject.param_sets}
    named = {each.value.metadata.name: each.value.spec.parameters_ref.name for each in subject.kubernetes_networks}
    return {name: pair_named(sets[of]) for name, of in named.items() if of in sets}


def orders(subject: Subject, pool: Pool) -> tuple[tuple[Pair, ...], ...]:
    """The rows of Network objects whose order is known, each in that order."""
    found = declared(subject)
    ours = [each.name for each in pool.family.networks] if pool.family else []
    if ours and all(name in found for name in ours):
        return (tuple(found[name] for name in ours),)
    numbered = sorted((name for name in found if NUMBERED.match(name)), key=natural)
    rows = (tuple(row) for _, row in groupby(numbered, key=lambda name: natural(name)[0]))
    return tuple(tuple(found[name] for name in row) for row in rows)


def natural(name: str) -> tuple[str, int, str]:
    """Sorts ``vpc2`` before ``vpc10``."""
    match = NUMBERED.match(name)
    return (match[1], int(match[2]), name) if match else (name, -1, name)
