"""Runs the rules over what there is: one call for each source of a state.

Invariant: a part that was not read is named in an info finding together with the rules that it kept from being
judged; nothing passes in silence.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, Final

import msgspec

from interlace.gke.cluster import FabricCluster
from interlace.gke.desired import desired
from interlace.gke.observed.bundle import BundleError, convert
from interlace.gke.observed.state import State
from interlace.gke.request import Request
from interlace.gke.rules import (
    cluster,
    firewalls,
    gpus,
    networks,
    nics,
    nodes,
    objects,
    paramsets,
    placement,
    pools,
    preflight,
    quotas,
    reservations,
)
from interlace.gke.rules.sources import Draft, planned, requested, spec_pointer
from interlace.gke.rules.subject import SECTIONS, Source, Subject
from interlace.rules.finding import Finding, ordered
from interlace.rules.rule import Rules

RULES: Final[Rules[Subject]] = Rules(
    preflight.RULES,
    cluster.RULES,
    pools.RULES,
    gpus.RULES,
    nics.RULES,
    networks.RULES,
    firewalls.RULES,
    placement.RULES,
    reservations.RULES,
    quotas.RULES,
    paramsets.RULES,
    objects.RULES,
    nodes.RULES,
)
"""All rules, in the order in which they are shown."""

ABOUT: Final = {
    "state": "What is known",
    "service": "APIs",
    "permission": "Rights",
    "machine": "Machines",
    "cluster": "The cluster",
    "pool": "Node pools and their NICs",
    "network": "VPC networks",
    "subnet": "Subnets and ranges",
    "firewall": "Firewall rules",
    "placement": "Placement",
    "reservation": "Reservations",
    "quota": "Quotas",
    "paramset": "GKENetworkParamSet objects",
    "network-object": "Network objects",
    "node": "Kubernetes nodes",
}
"""What rules are about, by the first part of their ids, in the order of the reference."""

NOT_OBSERVED: Final = "state.not-observed"
MALFORMED: Final = "request.malformed"


def check_observed(state: State, *, now: datetime | None = None) -> tuple[Finding, ...]:
    """Findings about what there is in a project, worst first."""
    subject = Subject(state=state, now=now)
    outcome = RULES.check(subject, unread=subject.unread)
    skipped: dict[str, tuple[str, ...]] = {}
    for section, rules in outcome.skipped.items():
        above = section.partition("/")[0]
        part = above if above in subject.unread else section
        skipped[part] = tuple(dict.fromkeys((*skipped.get(part, ()), *rules)))
    return ordered(
        (*outcome.findings, *(_unread(section, skipped[section]) for section in SECTIONS if section in skipped))
    )


def check_requests(requests: Iterable[Request]) -> tuple[Finding, ...]:
    """What is wrong in what requests would make, worst first; pointers into ``{"requests": [...]}``."""
    found: list[Finding] = []
    for draft in requested(requests):
        for each in _judged(draft, source="requested"):
            where = draft.place(each.pointer)
            if where is not None:
                found.append(msgspec.structs.replace(each, pointer=where))
    return ordered(found)


def check_cluster(cluster: FabricCluster) -> tuple[Finding, ...]:
    """What is wrong in a cluster file of the right form, worst first; pointers into the file.

    Raises SpecErrors where no resources follow from it.
    """
    draft = planned(cluster, desired(cluster))
    found = _judged(draft, source="planned")
    return ordered(msgspec.structs.replace(each, pointer=spec_pointer(each.pointer, draft=draft)) for each in found)


def check_preflight(
    cluster: FabricCluster, document: Mapping[str, Any], *, now: datetime | None = None
) -> tuple[Finding, ...]:
    """What is in the way of making the cluster of a file in a project, worst first.

    ``document``: what was observed, of the form of a bundle, without the cluster. Pointers go into the file
    (``/spec``) or into the document. Raises SpecErrors and BundleError.
    """
    draft = planned(cluster, desired(cluster))
    there = {section: list(document.get(section) or ()) for section in ("subnetworks", "resourcePolicies")}
    known = {(section, each.get("name")) for section, listed in there.items() for each in listed}
    merged = {
        section: [*listed, *(each for each in draft.document[section] if (section, each.get("name")) not in known)]
        for section, listed in there.items()
    }
    subject = Subject(
        state=convert(
            {**document, **merged, "cluster": draft.document["cluster"], "want": {"flavour": cluster.family.id}}
        ),
        source="preflight",
        now=now,
    )
    outcome = RULES.check(subject, unread=subject.unread)
    found = []
    for each in outcome.findings:
        section, _, rest = each.pointer.removeprefix("/").partition("/")
        index = rest.partition("/")[0]
        ours = section == "cluster" or (section in there and index.isdecimal() and int(index) >= len(there[section]))
        # The rules that let nodes in are made with the cluster; those of networks that exist are looked at afterwards.
        if not each.rule.startswith("firewall."):
            where = spec_pointer(each.pointer, draft=draft) if ours else each.pointer
            found.append(msgspec.structs.replace(each, pointer=where))
    skipped = {section: rules for section, rules in outcome.skipped.items() if "/" not in section}
    return ordered((*found, *(_unread(each, skipped[each]) for each in SECTIONS if each in skipped)))


def _judged(draft: Draft, *, source: Source) -> tuple[Finding, ...]:
    try:
        subject = Subject(state=draft.state, source=source)
    except BundleError as error:
        return (
            Finding(
                rule=MALFORMED,
                severity="error",
                pointer=error.pointer,
                text=error.what.rstrip("."),
                remedy=error.remedy.rstrip("."),
            ),
        )
    return RULES.check(subject, unread=subject.unread).findings


def _unread(section: str, rules: tuple[str, ...]) -> Finding:
    areas = ", ".join(dict.fromkeys(rule.partition(".")[0] for rule in rules))
    few = f"{'rule' if len(rules) == 1 else 'rules'} {', '.join(rules)}"
    count = f"{len(rules)} rules about {areas}" if len(rules) > 3 else few
    absent = "does not exist or was not read" if section in ("cluster", "kubernetes") else "was not read"
    return Finding(
        rule=NOT_OBSERVED,
        severity="info",
        pointer=f"/{section}",
        text=f"{section} {absent}, so nothing is known about what is judged by {count}",
        remedy="check again when the cluster is there"
        if section == "cluster"
        else "ask for the right to read it, or give a bundle that has it",
    )
