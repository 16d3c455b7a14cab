"""Cases of rules about NICs, networks and subnets."""

from __future__ import annotations

from typing import Final

from tests.unit.gke.rules.bundles import GONE, NICS, POOL, mega, rdma_nic, ultra
from tests.unit.gke.rules.capacity_cases import CASES as CAPACITY
from tests.unit.gke.rules.cases import Case

_ELSEWHERE: Final = "projects/host-project/regions/us-central1/subnetworks/shared-sub"


def _nic(number: int) -> dict[str, str]:
    return {"network": f"example-net-{number}", "subnetwork": f"example-sub-{number}"}


NIC_CASES: Final = (
    Case(
        rule="pool.nic-count",
        broken={f"{NICS}/3": GONE},
        pointer=NICS,
        says="has 3 additional networks, and a3-high has 4",
    ),
    Case(
        rule="pool.nic-count",
        base=mega,
        broken={f"{NICS}/-": {"network": "gvnic", "subnetwork": "gvnic-sub"}},
        pointer=NICS,
        says="takes the place of a NIC of the GPUs",
    ),
    Case(
        rule="pool.nic-order",
        broken={f"{NICS}/0": _nic(2), f"{NICS}/1": _nic(1)},
        pointer=f"{NICS}/0",
        says="has example-net-2/example-sub-2 as NIC 1, where the Network objects have example-net-1/example-sub-1",
    ),
    Case(
        rule="pool.nic-order",
        broken={"/kubernetes": None, f"{NICS}/1": _nic(4), f"{NICS}/3": _nic(2)},
        sound={"/kubernetes": None},
        pointer=f"{NICS}/1",
        says="in the order example-net-1, example-net-4, example-net-3, example-net-2",
    ),
    Case(
        rule="pool.nic-order",
        base=ultra,
        broken={f"{NICS}/0": rdma_nic(0), f"{NICS}/1": {"network": "example-gvnic", "subnetwork": "example-gvnic-sub"}},
        pointer=f"{NICS}/0",
        says="has example-rdma/example-rdma-sub-0 as NIC 1, the place of gvnic-1 (NetDevice)",
    ),
    Case(
        rule="pool.nic-vpc-shared",
        broken={f"{NICS}/2/network": "example-net-1"},
        pointer=f"{NICS}/2/network",
        says="network example-net-1 behind NIC 1 and NIC 3",
    ),
    Case(
        rule="pool.nic-subnet-shared",
        broken={f"{NICS}/2": _nic(1)},
        pointer=f"{NICS}/2/subnetwork",
        says="subnet example-sub-1 behind NIC 1 and NIC 3",
    ),
    Case(
        rule="pool.nic-primary",
        broken={f"{NICS}/0": {"network": "example-primary", "subnetwork": "example-primary-sub"}},
        pointer=f"{NICS}/0/network",
        says="that of the cluster, behind NIC 1 too",
    ),
    Case(
        rule="pool.nic-network-missing",
        broken={f"{NICS}/0/network": "example-net-9"},
        pointer=f"{NICS}/0/network",
        says="example-net-9, which does not exist",
    ),
    Case(
        rule="pool.nic-network-missing",
        broken={f"{NICS}/0/network": GONE},
        pointer=f"{NICS}/0/network",
        says="names no network for NIC 1",
    ),
    Case(
        rule="pool.nic-network-missing",
        severity="info",
        broken={f"{NICS}/0/network": "projects/host-project/global/networks/shared"},
        pointer=f"{NICS}/0/network",
        says="of another project",
    ),
    Case(
        rule="pool.nic-subnet-missing",
        broken={f"{NICS}/0/subnetwork": "example-sub-9"},
        pointer=f"{NICS}/0/subnetwork",
        says="example-sub-9, which does not exist",
    ),
    Case(
        rule="pool.nic-subnet-missing",
        severity="info",
        broken={f"{NICS}/0/subnetwork": _ELSEWHERE},
        pointer=f"{NICS}/0/subnetwork",
        says="of another project",
    ),
    Case(
        rule="pool.nic-subnet-of-other-network",
        broken={f"{NICS}/0/subnetwork": "example-sub-2"},
        pointer=f"{NICS}/0/subnetwork",
        says="the subnet is of network example-net-2",
    ),
    Case(
        rule="pool.nic-subnet-region",
        broken={"/subnetworks/1/region": "us-east4"},
        pointer=f"{NICS}/0/subnetwork",
        says="in region us-central1, and subnet example-sub-1 of NIC 1 in us-east4",
    ),
    Case(
        rule="pool.managed-networks",
        broken={f"{POOL}/networkConfig/acceleratorNetworkProfile": "auto"},
        pointer=f"{POOL}/networkConfig/acceleratorNetworkProfile",
        says="which is not for a3-high",
    ),
    Case(
        rule="pool.managed-networks",
        base=ultra,
        broken={f"{POOL}/networkConfig/acceleratorNetworkProfile": "auto"},
        sound={f"{POOL}/networkConfig/acceleratorNetworkProfile": "auto", f"{NICS}": []},
        pointer=f"{POOL}/networkConfig/acceleratorNetworkProfile",
        says="and 9 additional networks",
    ),
    Case(
        rule="pool.managed-networks",
        base=ultra,
        broken={
            f"{POOL}/networkConfig/acceleratorNetworkProfile": "auto",
            f"{POOL}/version": "1.33.1-gke.1829001",
        },
        sound={
            f"{POOL}/networkConfig/acceleratorNetworkProfile": "auto",
            f"{POOL}/version": "1.34.1-gke.1829001",
        },
        pointer=f"{POOL}/networkConfig/acceleratorNetworkProfile",
        says="older than 1.34.1-gke.1829001",
    ),
)

NETWORK_CASES: Final = (
    Case(
        rule="network.mtu",
        broken={"/networks/2/mtu": 1460},
        pointer="/networks/2/mtu",
        says="network example-net-2 has MTU 1460, and a3-high needs 8244",
    ),
    Case(
        rule="network.mtu",
        broken={"/networks/2/mtu": GONE},
        pointer="/networks/2/mtu",
        says="has MTU 1460 (the default)",
    ),
    Case(
        rule="network.mtu",
        severity="warning",
        broken={"/networks/2/mtu": 8896},
        pointer="/networks/2/mtu",
        says="has MTU 8896",
    ),
    Case(
        rule="network.mtu-range",
        broken={"/networks/2/mtu": 99999},
        sound={"/networks/2/mtu": 8896},
        pointer="/networks/2/mtu",
        says="is to have MTU 99999",
    ),
    Case(
        rule="network.primary-mtu",
        severity="warning",
        broken={"/networks/0/mtu": 1460},
        pointer="/networks/0/mtu",
        says="network example-primary of the cluster has MTU 1460",
    ),
    Case(
        rule="network.auto-subnets",
        severity="warning",
        broken={"/networks/1/autoCreateSubnetworks": True},
        pointer="/networks/1/autoCreateSubnetworks",
        says="makes its subnets itself",
    ),
    Case(
        rule="network.rdma-profile",
        base=ultra,
        broken={"/networks/2/networkProfile": GONE},
        pointer="/networks/2/networkProfile",
        says="network example-rdma behind RDMA NICs of node pool gpu-pool in us-central1-a has no profile",
    ),
    Case(
        rule="network.rdma-profile",
        base=ultra,
        broken={"/networks/2/networkProfile": "projects/p/global/networkProfiles/us-central1-b-vpc-roce"},
        pointer="/networks/2/networkProfile",
        says="has profile us-central1-b-vpc-roce",
    ),
    Case(
        rule="subnet.range",
        broken={"/subnetworks/1/ipCidrRange": "SUBNET_RANGE"},
        pointer="/subnetworks/1/ipCidrRange",
        says="range 'SUBNET_RANGE', which is none",
    ),
    Case(
        rule="subnet.public",
        broken={"/subnetworks/1/ipCidrRange": "192.169.1.0/24"},
        pointer="/subnetworks/1/ipCidrRange",
        says="192.169.1.0/24, which is public space",
    ),
    Case(
        rule="subnet.overlap",
        broken={"/subnetworks/2/ipCidrRange": "192.168.0.0/23"},
        pointer="/subnetworks/2/ipCidrRange",
        says="192.168.0.0/23, which overlaps 192.168.1.0/24 of subnet example-sub-1",
    ),
    Case(
        rule="subnet.overlap",
        broken={"/subnetworks/1/ipCidrRange": "10.5.0.0/24"},
        sound={"/subnetworks/1/ipCidrRange": "10.8.0.0/24"},
        pointer="/cluster/ipAllocationPolicy/clusterIpv4CidrBlock",
        says="the range of Pods has range 10.4.0.0/14, which overlaps 10.5.0.0/24",
    ),
    Case(
        rule="subnet.overlap",
        broken={
            "/cluster/ipAllocationPolicy/servicesIpv4CidrBlock": GONE,
            "/subnetworks/1/ipCidrRange": "10.0.40.0/24",
        },
        sound={"/cluster/ipAllocationPolicy/servicesIpv4CidrBlock": GONE},
        pointer="/subnetworks/0/secondaryIpRanges/1/ipCidrRange",
        says="the range of Services",
    ),
    Case(
        rule="subnet.overlap",
        broken={f"{POOL}/networkConfig/podIpv4CidrBlock": "192.168.0.0/22"},
        sound={f"{POOL}/networkConfig/podIpv4CidrBlock": "10.5.0.0/16"},
        pointer=f"{POOL}/networkConfig/podIpv4CidrBlock",
        says="the range of Pods of node pool gpu-pool has range 192.168.0.0/22, which overlaps 192.168.1.0/24",
    ),
    Case(
        rule="subnet.overlap-elsewhere",
        severity="warning",
        broken={
            "/subnetworks/-": {
                "name": "old",
                "network": "old-net",
                "region": "us-central1",
                "ipCidrRange": "10.4.0.0/16",
            }
        },
        pointer="/subnetworks/5/ipCidrRange",
        says="subnet old of network old-net has range 10.4.0.0/16",
    ),
    Case(
        rule="subnet.size",
        broken={"/subnetworks/1/ipCidrRange": "192.168.1.0/30"},
        sound={"/subnetworks/1/ipCidrRange": "192.168.1.0/29"},
        pointer="/subnetworks/1/ipCidrRange",
        says="holds 0 nodes",
    ),
)

CASES: Final = (*NIC_CASES, *NETWORK_CASES, *CAPACITY)
