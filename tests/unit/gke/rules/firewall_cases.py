"""Cases of rules about firewall rules."""

from __future__ import annotations

from typing import Any, Final

from tests.unit.gke.rules.bundles import GONE, POOL, ultra
from tests.unit.gke.rules.cases import Case


def _denying(*protocols: dict[str, Any]) -> dict[str, Any]:
    """A rule of the second network that denies, as strong as the one that allows."""
    return {
        "name": "no-more",
        "network": "example-net-2",
        "priority": 1000,
        "sourceRanges": ["0.0.0.0/0"],
        "denied": [*protocols],
    }


CASES: Final = (
    Case(
        rule="firewall.missing",
        broken={"/firewalls": []},
        pointer="/firewalls",
        says="example-net-2, example-net-3, example-net-4 behind NICs of node pool gpu-pool have no firewall rule",
    ),
    Case(
        rule="firewall.missing",
        broken={"/firewalls/1": GONE},
        pointer="/firewalls",
        says="network example-net-2 behind a NIC of node pool gpu-pool has no firewall rule",
    ),
    Case(
        rule="firewall.missing",
        broken={"/firewalls/1/disabled": True},
        pointer="/firewalls/1/disabled",
        says="lets its nodes in: example-internal-2 is disabled",
    ),
    Case(
        rule="firewall.missing",
        broken={"/firewalls/1/targetTags": ["other"]},
        sound={"/firewalls/1/targetTags": ["gpu"], f"{POOL}/config/tags": ["gpu"]},
        pointer="/firewalls/1/targetTags",
        says="example-internal-2 is for VMs with tag other alone",
    ),
    Case(
        rule="firewall.missing",
        broken={"/firewalls/1/targetServiceAccounts": ["other@example-project.iam.gserviceaccount.com"]},
        pointer="/firewalls/1/targetServiceAccounts",
        says="is for VMs of service account other@example-project.iam.gserviceaccount.com alone",
    ),
    Case(
        rule="firewall.missing",
        broken={"/firewalls/1/direction": "EGRESS"},
        pointer="/firewalls/1/direction",
        says="example-internal-2 has direction EGRESS",
    ),
    Case(
        rule="firewall.coverage",
        broken={"/firewalls/1/sourceRanges": ["192.168.1.0/24"]},
        sound={"/firewalls/1/sourceRanges": ["192.168.2.0/25", "192.168.2.128/25"]},
        pointer="/firewalls/1",
        says="no firewall rule of network example-net-2 lets tcp, udp, icmp of all ports in from 192.168.2.0/24",
    ),
    Case(
        rule="firewall.coverage",
        broken={"/firewalls/1/allowed/1": GONE},
        pointer="/firewalls/1",
        says="lets udp of all ports in",
    ),
    Case(
        rule="firewall.coverage",
        broken={"/firewalls/1/allowed": [{"IPProtocol": "tcp", "ports": ["0-1023"]}, {"IPProtocol": "17"}]},
        sound={"/firewalls/1/allowed": [{"IPProtocol": "all"}]},
        pointer="/firewalls/1",
        says="lets tcp, icmp of all ports in",
    ),
    Case(
        rule="firewall.coverage",
        severity="warning",
        broken={"/firewalls/1/allowed/2": GONE},
        sound={"/firewalls/1/allowed/1": {"IPProtocol": "udp", "ports": ["30000-65535", "1-29999"]}},
        pointer="/firewalls/1",
        says="lets icmp of all ports in",
    ),
    Case(
        rule="firewall.denied",
        broken={"/firewalls/-": _denying({"IPProtocol": "all"})},
        sound={"/firewalls/-": {**_denying({"IPProtocol": "all"}), "priority": 65000}},
        pointer="/firewalls/5",
        says="rule no-more of network example-net-2 denies tcp, udp, icmp from 192.168.2.0/24",
    ),
    Case(
        rule="firewall.denied",
        broken={"/firewalls/-": _denying({"IPProtocol": "udp", "ports": ["22", "30000-40000"]})},
        sound={"/firewalls/-": _denying({"IPProtocol": "sctp"})},
        pointer="/firewalls/5",
        says="rule no-more of network example-net-2 denies udp 22 30000-40000 from 192.168.2.0/24",
    ),
    Case(
        rule="firewall.denied",
        severity="warning",
        broken={"/firewalls/-": _denying({"IPProtocol": "tcp", "ports": ["22"]})},
        pointer="/firewalls/5",
        says="denies tcp 22 from 192.168.2.0/24",
    ),
    Case(
        rule="firewall.egress-source",
        broken={"/firewalls/1/direction": "EGRESS"},
        pointer="/firewalls/1/direction",
        says="direction EGRESS and sources 192.168.0.0/16",
    ),
    Case(
        rule="firewall.range",
        broken={"/firewalls/1/sourceRanges": ["SOURCE_RANGE"]},
        pointer="/firewalls/1/sourceRanges/0",
        says="'SOURCE_RANGE', which is none",
    ),
    Case(
        rule="firewall.open",
        severity="warning",
        broken={"/firewalls/1/sourceRanges": ["0.0.0.0/0"]},
        pointer="/firewalls/1/sourceRanges",
        says="lets everything in from anywhere",
    ),
    Case(
        rule="firewall.rdma",
        base=ultra,
        severity="warning",
        broken={"/firewalls/0/network": "example-rdma"},
        pointer="/firewalls/0",
        says="example-rdma, which is one for RDMA",
    ),
)
