"""Cases of rules about NICs, networks, firewall rules, Network objects and nodes."""

from __future__ import annotations

from typing import Any, Final

from tests.unit.gke.rules.bundles import GONE, NICS, POOL, mega
from tests.unit.gke.rules.capacity_cases import CASES as CAPACITY
from tests.unit.gke.rules.cases import Case

_SET: Final = "/kubernetes/gkeNetworkParamSets/1"
_NETWORK: Final = "/kubernetes/networks/1"
_NODE: Final = "/kubernetes/nodes/1"
_ELSEWHERE: Final = "projects/host-project/regions/us-central1/subnetworks/shared-sub"


def _false(type: str, reason: str, message: str = "") -> list[dict[str, str]]:
    return [{"type": type, "status": "False", "reason": reason, "message": message}]


def _nic(number: int) -> dict[str, str]:
    return {"network": f"example-net-{number}", "subnetwork": f"example-sub-{number}"}


def _set(**spec: Any) -> dict[str, Any]:
    base = {"vpc": "example-net-2", "vpcSubnet": "example-sub-2", "deviceMode": "NetDevice"}
    return {key: value for key, value in {**base, **spec}.items() if value is not None}


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
        broken={f"{POOL}/networkConfig/acceleratorNetworkProfile": "auto"},
        sound={f"{POOL}/networkConfig/acceleratorNetworkProfile": "auto", f"{NICS}": []},
        pointer=f"{POOL}/networkConfig/acceleratorNetworkProfile",
        says="and 4 additional networks",
    ),
    Case(
        rule="pool.managed-networks",
        broken={f"{POOL}/networkConfig/acceleratorNetworkProfile": "auto"},
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
        base=mega,
        broken={
            "/want/flavour": "a3-ultra",
            f"{POOL}/config/machineType": "a3-ultragpu-8g",
            "/networks/2/networkProfile": GONE,
        },
        sound={
            "/want/flavour": "a3-ultra",
            f"{POOL}/config/machineType": "a3-ultragpu-8g",
            "/networks/2/networkProfile": "projects/p/global/networkProfiles/us-central1-a-vpc-roce",
        },
        pointer="/networks/2/networkProfile",
        says="network example-net-2 behind RDMA NICs",
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

FIREWALL_CASES: Final = (
    Case(
        rule="firewall.missing",
        broken={"/firewalls/1": GONE},
        pointer="/firewalls",
        says="network example-net-2 behind a NIC of node pool gpu-pool has no firewall rule",
    ),
    Case(
        rule="firewall.missing",
        broken={"/firewalls/1/disabled": True},
        pointer="/firewalls",
        says="network example-net-2",
    ),
    Case(
        rule="firewall.missing",
        broken={"/firewalls/1/targetTags": ["other"]},
        sound={"/firewalls/1/targetTags": ["gpu"], f"{POOL}/config/tags": ["gpu"]},
        pointer="/firewalls",
        says="network example-net-2",
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
        broken={
            "/firewalls/-": {
                "name": "no-more",
                "network": "example-net-2",
                "priority": 1000,
                "sourceRanges": ["0.0.0.0/0"],
                "denied": [{"IPProtocol": "all"}],
            }
        },
        sound={
            "/firewalls/-": {
                "name": "no-more",
                "network": "example-net-2",
                "priority": 65000,
                "sourceRanges": ["0.0.0.0/0"],
                "denied": [{"IPProtocol": "all"}],
            }
        },
        pointer="/firewalls/5",
        says="rule no-more of network example-net-2 denies what comes from 192.168.2.0/24",
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
        base=mega,
        severity="warning",
        broken={"/want/flavour": "a3-ultra", f"{POOL}/config/machineType": "a3-ultragpu-8g"},
        pointer="/firewalls/1",
        says="example-net-2, which is one for RDMA",
    ),
)

OBJECT_CASES: Final = (
    Case(
        rule="paramset.subnet-not-found",
        broken={f"{_SET}/spec": _set(vpcSubnet="example-sub-9")},
        pointer=f"{_SET}/spec/vpcSubnet",
        says="GKENetworkParamSet vpc2 is not usable: there is no subnet example-sub-9",
    ),
    Case(
        rule="paramset.subnet-not-found",
        broken={f"{_SET}/status/conditions": _false("Ready", "SubnetNotFound", "not there")},
        pointer=f"{_SET}/spec/vpcSubnet",
        says="the controller says SubnetNotFound (not there)",
    ),
    Case(
        rule="paramset.subnet-not-found",
        broken={f"{_SET}/spec": _set(vpcSubnet=None)},
        pointer=f"{_SET}/spec/vpcSubnet",
        says="it names no subnet",
    ),
    Case(
        rule="paramset.vpc-not-found",
        broken={f"{_SET}/spec": _set(vpc="example-net-9")},
        pointer=f"{_SET}/spec/vpc",
        says="there is no VPC network example-net-9",
    ),
    Case(
        rule="paramset.mode-unspecified",
        broken={f"{_SET}/spec": _set(deviceMode=None)},
        pointer=f"{_SET}/spec/deviceMode",
        says="neither deviceMode nor podIPv4Ranges",
    ),
    Case(
        rule="paramset.range-not-found",
        broken={f"{_SET}/spec": _set(deviceMode=None, podIPv4Ranges={"rangeNames": ["more"]})},
        sound={
            f"{_SET}/spec": _set(
                deviceMode=None,
                vpc="example-primary",
                vpcSubnet="example-primary-sub",
                podIPv4Ranges={"rangeNames": ["pods"]},
            )
        },
        pointer=f"{_SET}/spec/podIPv4Ranges",
        says="subnet example-sub-2 has no range more",
    ),
    Case(
        rule="paramset.mode-with-range",
        broken={f"{_SET}/spec": _set(podIPv4Ranges={"rangeNames": ["pods"]})},
        pointer=f"{_SET}/spec/podIPv4Ranges",
        says="it has deviceMode and podIPv4Ranges",
    ),
    Case(
        rule="paramset.cluster-vpc",
        broken={f"{_SET}/spec": _set(vpc="example-primary", vpcSubnet="example-primary-sub")},
        pointer=f"{_SET}/spec/vpc",
        says="example-primary is the network of the cluster",
    ),
    Case(
        rule="paramset.vpc-in-use",
        broken={f"{_SET}/spec": _set(vpc="example-net-1")},
        pointer=f"{_SET}/spec/vpc",
        says="GKENetworkParamSet vpc1 has network example-net-1 already",
    ),
    Case(
        rule="paramset.subnet-in-use",
        broken={f"{_SET}/spec": _set(vpc="example-net-1", vpcSubnet="example-sub-1")},
        pointer=f"{_SET}/spec/vpcSubnet",
        says="GKENetworkParamSet vpc1 has subnet example-sub-1 already",
    ),
    Case(
        rule="paramset.not-ready",
        broken={f"{_SET}/status/conditions": _false("Ready", "GNPConfigInvalid", "odd")},
        pointer=f"{_SET}/status/conditions/0",
        says="GKENetworkParamSet vpc2 is not Ready: GNPConfigInvalid: odd",
    ),
    Case(
        rule="paramset.subnet-of-other-vpc",
        broken={f"{_SET}/spec": _set(vpcSubnet="example-sub-3")},
        pointer=f"{_SET}/spec/vpcSubnet",
        says="the subnet is of network example-net-3",
    ),
    Case(
        rule="paramset.device-mode",
        broken={f"{_SET}/spec": _set(deviceMode="RDMA")},
        pointer=f"{_SET}/spec/deviceMode",
        says="deviceMode RDMA, and the NIC of the pool is NetDevice",
    ),
    Case(
        rule="paramset.not-in-pool",
        broken={f"{_SET}/spec": _set(vpcSubnet="example-sub-9")},
        pointer=f"{_SET}/spec",
        says="for example-net-2/example-sub-9, and no node pool has a NIC there",
    ),
    Case(
        rule="network-object.missing",
        broken={"/kubernetes/networks": [], "/kubernetes/gkeNetworkParamSets": []},
        pointer="/kubernetes/networks",
        says="4 of 4 NICs of node pool gpu-pool have no Network object",
    ),
    Case(
        rule="network-object.type",
        broken={f"{_NETWORK}/spec/type": "L3"},
        pointer=f"{_NETWORK}/spec/type",
        says="Network vpc2 has type L3",
    ),
    Case(
        rule="network-object.params",
        broken={f"{_NETWORK}/spec/parametersRef/name": "vpc9"},
        pointer=f"{_NETWORK}/spec/parametersRef/name",
        says="GKENetworkParamSet vpc9, which does not exist",
    ),
    Case(
        rule="network-object.device-mode-missing",
        broken={f"{_NETWORK}/status/conditions": _false("ParamsReady", "DeviceModeMissing")},
        pointer=f"{_NETWORK}/spec/parametersRef",
        says="its parameter set has no deviceMode",
    ),
    Case(
        rule="network-object.not-ready",
        broken={f"{_NETWORK}/status/conditions": _false("ParamsReady", "GNPParamsNotReady")},
        pointer=f"{_NETWORK}/status/conditions/0",
        says="Network vpc2 is not ParamsReady: GNPParamsNotReady",
    ),
)

NODE_CASES: Final = (
    Case(
        rule="node.count",
        broken={_NODE: GONE},
        pointer="/kubernetes/nodes",
        says="has 1 node in Kubernetes, and should have 2",
    ),
    Case(
        rule="node.count",
        broken={"/want": GONE, "/kubernetes/nodes": []},
        sound={"/want": GONE, "/kubernetes/nodes": [], f"{POOL}/initialNodeCount": 0},
        pointer="/kubernetes/nodes",
        says="has 0 nodes in Kubernetes",
    ),
    Case(
        rule="node.not-ready",
        broken={f"{_NODE}/status/conditions": _false("Ready", "KubeletNotReady")},
        pointer=f"{_NODE}/status/conditions",
        says="pool-0a1b2c3d-bbbb is not Ready: KubeletNotReady",
    ),
    Case(
        rule="node.not-ready",
        broken={f"{_NODE}/status/conditions": GONE},
        pointer=f"{_NODE}/status/conditions",
        says="it has no condition Ready",
    ),
    Case(
        rule="node.gpus",
        broken={f"{_NODE}/status/allocatable/nvidia.com~1gpu": "7"},
        sound={
            f"{_NODE}/status/allocatable/nvidia.com~1gpu": GONE,
            f"{_NODE}/metadata/labels/gke-no-default-nvidia-gpu-device-plugin": "true",
        },
        pointer=f"{_NODE}/status/allocatable/nvidia.com~1gpu",
        says="offers 7 GPUs, and a3-high has 8",
    ),
    Case(
        rule="node.gpus",
        broken={f"{_NODE}/status/allocatable": GONE},
        pointer=f"{_NODE}/status/allocatable/nvidia.com~1gpu",
        says="offers 0 GPUs",
    ),
    Case(
        rule="node.machine-type",
        broken={f"{_NODE}/metadata/labels/node.kubernetes.io~1instance-type": "a3-edgegpu-8g"},
        pointer=f"{_NODE}/metadata/labels/node.kubernetes.io~1instance-type",
        says="is a3-edgegpu-8g, and a3-high is a3-highgpu-8g",
    ),
    Case(
        rule="node.version",
        broken={f"{_NODE}/status/nodeInfo/kubeletVersion": "v1.28.1-gke.1"},
        pointer=f"{_NODE}/status/nodeInfo/kubeletVersion",
        says="is too old",
    ),
    Case(
        rule="node.networks",
        broken={
            f"{_NODE}/status/allocatable": {
                "nvidia.com/gpu": "8",
                "networking.gke.io.networks/vpc1": "1",
                "networking.gke.io.networks/vpc2.IP": "1",
                "networking.gke.io.networks/vpc3": "1",
            },
        },
        sound={
            f"{node}/status/allocatable": {
                "nvidia.com/gpu": "8",
                **{f"networking.gke.io.networks/vpc{number}.IP": "1" for number in range(1, 5)},
            }
            for node in ("/kubernetes/nodes/0", _NODE)
        },
        pointer=f"{_NODE}/status/allocatable",
        says="does not offer vpc4",
    ),
)

CASES: Final = (*NIC_CASES, *NETWORK_CASES, *FIREWALL_CASES, *OBJECT_CASES, *NODE_CASES, *CAPACITY)
