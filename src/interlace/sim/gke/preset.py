"""What a new project already has: the network named default with a subnetwork in each region and four firewall rules.

Invariant: all of it is marked as foreign in the store, so that what requests have made can be told apart.
"""

from __future__ import annotations

from typing import Any, Final

from interlace.sim.gke.store import fingerprint
from interlace.sim.gke.world import World

Json = dict[str, Any]
_RULES: Final[tuple[tuple[str, list[str], list[Json]], ...]] = (
    (
        "default-allow-internal",
        ["10.128.0.0/9"],
        [
            {"IPProtocol": "tcp", "ports": ["0-65535"]},
            {"IPProtocol": "udp", "ports": ["0-65535"]},
            {"IPProtocol": "icmp"},
        ],
    ),
    ("default-allow-icmp", ["0.0.0.0/0"], [{"IPProtocol": "icmp"}]),
    ("default-allow-ssh", ["0.0.0.0/0"], [{"IPProtocol": "tcp", "ports": ["22"]}]),
    ("default-allow-rdp", ["0.0.0.0/0"], [{"IPProtocol": "tcp", "ports": ["3389"]}]),
)


def furnish(world: World, *, default_network: bool) -> None:
    """Put into every project what stands there before anybody asks."""
    if default_network:
        for project in world.projects:
            _network(world, project)
    world.store.foreign.update(world.store.objects)


def _network(world: World, project: str) -> None:
    home = f"projects/{project}/global"
    network, now = f"{home}/networks/default", world.operations.compute_time(0)
    ident = world.store.next_id()
    world.store.put(
        network,
        {
            "kind": "compute#network",
            "id": ident,
            "creationTimestamp": now,
            "name": "default",
            "description": "Default network for the project",
            "selfLink": world.link(network),
            "selfLinkWithId": world.link(f"{home}/networks/{ident}"),
            "autoCreateSubnetworks": True,
            "routingConfig": {"routingMode": "REGIONAL", "bgpBestPathSelectionMode": "LEGACY"},
            "mtu": 1460,
            "networkFirewallPolicyEnforcementOrder": "AFTER_CLASSIC_FIREWALL",
        },
    )
    for index, region in enumerate(world.catalog.regions):
        path = f"projects/{project}/regions/{region}/subnetworks/default"
        base = 128 + index
        document = {
            "kind": "compute#subnetwork",
            "id": world.store.next_id(),
            "creationTimestamp": now,
            "name": "default",
            "network": world.link(network),
            "ipCidrRange": f"10.{base}.0.0/20",
            "gatewayAddress": f"10.{base}.0.1",
            "region": world.link(f"projects/{project}/regions/{region}"),
            "selfLink": world.link(path),
            "privateIpGoogleAccess": False,
            "privateIpv6GoogleAccess": "DISABLE_GOOGLE_ACCESS",
            "purpose": "PRIVATE",
            "stackType": "IPV4_ONLY",
        }
        world.store.put(path, document | {"fingerprint": fingerprint(document)})
    for name, ranges, allowed in _RULES:
        path = f"{home}/firewalls/{name}"
        world.store.put(
            path,
            {
                "kind": "compute#firewall",
                "id": world.store.next_id(),
                "creationTimestamp": now,
                "name": name,
                "description": f"Allow what {name} says",
                "network": world.link(network),
                "priority": 65534,
                "sourceRanges": ranges,
                "allowed": allowed,
                "direction": "INGRESS",
                "logConfig": {"enable": False},
                "disabled": False,
                "selfLink": world.link(path),
            },
        )
