"""Rules about firewall rules: whether the nodes reach each other over every NIC of the GPUs.

A VPC network lets nothing in unless a rule allows it; a rule that denies wins at the same or a smaller priority.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from ipaddress import IPv4Network, collapse_addresses, ip_network
from typing import Final

from interlace.gke.observed.compute import Firewall, Protocol
from interlace.gke.places import short
from interlace.gke.rules.networks import range_of
from interlace.gke.rules.nodepool import Pool
from interlace.gke.rules.subject import At, Subject, located
from interlace.rules.rule import Breach, Rules

RULES: Final[Rules[Subject]] = Rules()

_PROTOCOLS: Final = ("tcp", "udp", "icmp")
_NUMBERS: Final = {"6": "tcp", "17": "udp", "1": "icmp"}
_PORTS: Final = (1, 65535)
_SYSTEM: Final = 1023
"""Last of the ports that no transport of a family uses."""
_EVERYWHERE: Final = IPv4Network("0.0.0.0/0")


@RULES.rule(
    "firewall.missing",
    cause="without a rule that allows it no packet of another node comes in, and NCCL waits for ever in its start",
    remedy="allow tcp, udp and icmp from the subnets of the nodes in each network of the GPUs",
    needs=("firewalls",),
)
def _missing(subject: Subject) -> Iterator[Breach]:
    without: dict[str, list[str]] = {}
    for network, pool in _networks(subject):
        if any(each.value.allowed for each in _ingress(subject, network, pool)):
            continue
        idle = next((each for each in _all(subject) if _allows(each.value, network)), None)
        if idle is None:
            without.setdefault(pool.says, []).append(network)
            continue
        member, why, remedy = _idle(idle.value)
        yield Breach(
            pointer=f"{idle.pointer}/{member}",
            text=f"network {network} behind a NIC of {pool.says} has no firewall rule that lets its nodes in: "
            f"{idle.value.name} {why}",
            remedy=remedy,
        )
    for owner, networks in without.items():
        one = len(networks) == 1
        yield Breach(
            pointer="/firewalls",
            text=f"{'network' if one else 'networks'} {', '.join(networks)} behind {'a NIC' if one else 'NICs'} of "
            f"{owner} {'has' if one else 'have'} no firewall rule that lets its nodes in",
        )


@RULES.rule(
    "firewall.coverage",
    cause="packets that no rule allows are dropped: NCCL reports `rx ctrl timeout`, or hangs in its start",
    remedy="allow tcp and udp with all ports and icmp from the subnets of the nodes, in each network of the GPUs",
    needs=("firewalls", "subnetworks"),
)
def _coverage(subject: Subject) -> Iterator[Breach]:
    for network, pool in _networks(subject):
        rules = _ingress(subject, network, pool)
        allowing = [each for each in rules if each.value.allowed]
        for source in _sources(subject, network, pool) if allowing else ():
            lacking = [each for each in _PROTOCOLS if not _allowed(allowing, source, each, pool)]
            if lacking:
                yield Breach(
                    pointer=allowing[0].pointer,
                    text=f"no firewall rule of network {network} lets {', '.join(lacking)} of all ports in from "
                    f"{source}, the nodes of {pool.says}",
                    severity="error" if lacking != ["icmp"] else "warning",
                )


@RULES.rule(
    "firewall.denied",
    cause="a rule that denies wins over one that allows with the same or a larger priority",
    remedy="give the rule that allows a smaller priority, or narrow the one that denies",
    needs=("firewalls", "subnetworks"),
)
def _denied(subject: Subject) -> Iterator[Breach]:
    for network, pool in _networks(subject):
        rules = _ingress(subject, network, pool)
        for source in _sources(subject, network, pool):
            allowing = [each.value for each in rules if each.value.allowed and _covers(each.value, source, pool)]
            denying = [each for each in rules if any(part.overlaps(source) for part in _from(each.value))]
            for rule in denying:
                denied = {
                    protocol: ports
                    for protocol in _PROTOCOLS
                    if (ports := _ports(rule.value.denied, protocol))
                    and any(_ports(one.allowed, protocol) for one in allowing)
                    and rule.value.priority <= _first(allowing, protocol)
                }
                if denied:
                    grave = any(high > _SYSTEM for each in ("tcp", "udp") for _, high in denied.get(each, ()))
                    yield Breach(
                        pointer=rule.pointer,
                        text=f"firewall rule {rule.value.name} of network {network} denies {_listed(denied)} from "
                        f"{source}, the nodes of {pool.says}",
                        severity="error" if grave else "warning",
                    )


@RULES.rule(
    "firewall.egress-source",
    cause="a rule for packets that go out has destinations and no sources; gcloud does not notice it",
    remedy="make the rule with direction INGRESS",
    needs=("firewalls",),
)
def _egress_source(subject: Subject) -> Iterator[Breach]:
    for rule in _all(subject):
        value = rule.value
        if value.direction == "EGRESS" and (value.source_ranges or value.source_tags or value.source_service_accounts):
            yield Breach(
                pointer=f"{rule.pointer}/direction",
                text=f"firewall rule {value.name} has direction EGRESS and sources "
                f"{', '.join((*value.source_ranges, *value.source_tags, *value.source_service_accounts))}",
            )


@RULES.rule(
    "firewall.range",
    cause="the API refuses what is no range, and gcloud does not notice it",
    remedy="name ranges like 192.168.0.0/16",
    needs=("firewalls",),
)
def _range(subject: Subject) -> Iterator[Breach]:
    for rule in _all(subject):
        for member, listed in (
            ("sourceRanges", rule.value.source_ranges),
            ("destinationRanges", rule.value.destination_ranges),
        ):
            for index, each in enumerate(listed):
                if not _is_range(each):
                    yield Breach(
                        pointer=f"{rule.pointer}/{member}/{index}",
                        text=f"firewall rule {rule.value.name} has range {each!r}, which is none",
                    )


@RULES.rule(
    "firewall.open",
    severity="warning",
    cause="everybody who has a way into the network reaches the nodes",
    remedy="name the subnets of the nodes as sources",
    needs=("firewalls",),
)
def _open(subject: Subject) -> Iterator[Breach]:
    for network, pool in _networks(subject):
        for rule in _ingress(subject, network, pool):
            if rule.value.allowed and _EVERYWHERE in _from(rule.value):
                yield Breach(
                    pointer=f"{rule.pointer}/sourceRanges",
                    text=f"firewall rule {rule.value.name} of network {network} lets everything in from anywhere",
                )


@RULES.rule(
    "firewall.rdma",
    severity="warning",
    cause="a network with an RDMA profile takes no VPC firewall rules; its own let everything in",
    remedy="leave the rule out",
    needs=("cluster", "firewalls"),
)
def _rdma(subject: Subject) -> Iterator[Breach]:
    networks = {short(nic.network) for pool in subject.pools for nic in pool.nics if nic.rdma}
    for rule in _all(subject):
        if short(rule.value.network) in networks:
            yield Breach(
                pointer=rule.pointer,
                text=f"firewall rule {rule.value.name} is for network {short(rule.value.network)}, which is one for "
                "RDMA",
            )


def _all(subject: Subject) -> tuple[At[Firewall], ...]:
    return located("firewalls", subject.state.firewalls)


def _networks(subject: Subject) -> Iterator[tuple[str, Pool]]:
    """Networks that need rules: those behind ordinary NICs, once for each pool.

    Left out are those of other projects, those that do not exist, and that of the cluster, which has GKE's own rules;
    of plans and requests all that they do not make.
    """
    listed = "networks" not in subject.unread
    primary = short(subject.cluster_network)
    for pool in subject.wired:
        seen: set[str] = set()
        for nic in pool.nics:
            name = short(nic.network)
            known = subject.network(nic.network) is not None
            absent = not known and (not subject.whole or subject.foreign(nic.network) or listed)
            if not name or nic.rdma or name in seen or absent or name == primary:
                continue
            seen.add(name)
            yield name, pool


def _ingress(subject: Subject, network: str, pool: Pool) -> list[At[Firewall]]:
    """Rules of the network that are on and meant for the nodes of the pool."""
    config = pool.pool.config

    def meant(rule: Firewall) -> bool:
        if rule.target_tags:
            return bool(set(rule.target_tags) & set(config.tags))
        return not rule.target_service_accounts or config.service_account in rule.target_service_accounts

    return [
        each
        for each in _all(subject)
        if each.value.direction == "INGRESS"
        and not each.value.disabled
        and short(each.value.network) == network
        and meant(each.value)
    ]


def _allows(rule: Firewall, network: str) -> bool:
    """Whether it would let something into the network, were it on and meant for all."""
    return bool(rule.allowed) and short(rule.network) == network


def _idle(rule: Firewall) -> tuple[str, str, str]:
    """Why a rule that allows lets none of the nodes in: its member, the reason, and the remedy."""
    if rule.disabled:
        return "disabled", "is disabled", f"enable it: `gcloud compute firewall-rules update {rule.name} --no-disabled`"
    if rule.direction != "INGRESS":
        return "direction", f"has direction {rule.direction}", "make it anew with direction INGRESS"
    if rule.target_tags:
        tags = ", ".join(rule.target_tags)
        return "targetTags", f"is for VMs with tag {tags} alone", "make it anew without target tags"
    accounts = ", ".join(rule.target_service_accounts)
    return (
        "targetServiceAccounts",
        f"is for VMs of service account {accounts} alone",
        "make it anew without target service accounts",
    )


def _first(allowing: Iterable[Firewall], protocol: str) -> int:
    """The smallest priority of those that let a protocol in."""
    return min(each.priority for each in allowing if _ports(each.allowed, protocol))


def _listed(denied: Mapping[str, list[tuple[int, int]]]) -> str:
    """Protocols, with their ports where they are not all."""
    return ", ".join(
        protocol if _joined(ports) else f"{protocol} {' '.join(_span(low, high) for low, high in ports)}"
        for protocol, ports in denied.items()
    )


def _span(low: int, high: int) -> str:
    return str(low) if low == high else f"{low}-{high}"


def _sources(subject: Subject, network: str, pool: Pool) -> list[IPv4Network]:
    """Ranges of the pool's nodes in the network."""
    found = []
    for nic in pool.nics:
        subnet = subject.subnetwork(nic.subnetwork, network=nic.network) if short(nic.network) == network else None
        parsed = range_of(subnet.value.ip_cidr_range) if subnet else None
        if parsed is not None:
            found.append(parsed)
    return list(dict.fromkeys(found))


def _allowed(rules: Iterable[At[Firewall]], source: IPv4Network, protocol: str, pool: Pool) -> bool:
    """Whether rules together let a protocol in with all of its ports, from all of the source."""
    about = [(each.value, _ports(each.value.allowed, protocol)) for each in rules]
    whole = [(low, high) for rule, ports in about if _covers(rule, source, pool) for low, high in ports]
    if _joined(whole):
        return True
    full = [part for rule, ports in about if _joined(ports) for part in _from(rule)]
    return any(source.subnet_of(part) for part in collapse_addresses(full))


def _covers(rule: Firewall, source: IPv4Network, pool: Pool) -> bool:
    config = pool.pool.config
    if set(rule.source_tags) & set(config.tags):
        return True
    if config.service_account and config.service_account in rule.source_service_accounts:
        return True
    return any(source.subnet_of(part) for part in collapse_addresses(_from(rule)))


def _from(rule: Firewall) -> list[IPv4Network]:
    """Its source ranges; anywhere where it names no source."""
    if not rule.source_ranges and not rule.source_tags and not rule.source_service_accounts:
        return [_EVERYWHERE]
    return [found for found in map(range_of, rule.source_ranges) if found is not None]


def _ports(protocols: Iterable[Protocol], protocol: str) -> list[tuple[int, int]]:
    """Ranges of ports that are named for a protocol; all where none are."""
    found = []
    for each in protocols:
        name = _NUMBERS.get(each.protocol.lower(), each.protocol.lower())
        if name not in (protocol, "all"):
            continue
        if not each.ports:
            found.append(_PORTS)
        for text in each.ports:
            low, _, high = text.partition("-")
            if low.isdecimal() and (high or low).isdecimal():
                found.append((int(low), int(high or low)))
    return found


def _joined(ranges: Iterable[tuple[int, int]]) -> bool:
    """Whether ranges of ports together are all ports from 1 on."""
    reached = 0
    for low, high in sorted(ranges):
        if low > reached + 1:
            break
        reached = max(reached, high)
    return reached >= _PORTS[1]


def _is_range(text: str) -> bool:
    try:
        ip_network(text, strict=False)
    except ValueError:
        return False
    return True
