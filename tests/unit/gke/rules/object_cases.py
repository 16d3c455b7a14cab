"""Cases of rules about Network objects, parameter sets and nodes."""

from __future__ import annotations

from typing import Any, Final

from tests.unit.gke.rules.bundles import GONE, NICS, POOL, ultra
from tests.unit.gke.rules.cases import Case

_SET: Final = "/kubernetes/gkeNetworkParamSets/1"
_NETWORK: Final = "/kubernetes/networks/1"
_NODE: Final = "/kubernetes/nodes/1"


def _false(type: str, reason: str, message: str = "") -> list[dict[str, str]]:
    return [{"type": type, "status": "False", "reason": reason, "message": message}]


def _set(**spec: Any) -> dict[str, Any]:
    base = {"vpc": "example-net-2", "vpcSubnet": "example-sub-2", "deviceMode": "NetDevice"}
    return {key: value for key, value in {**base, **spec}.items() if value is not None}


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
        rule="paramset.device-mode",
        base=ultra,
        broken={"/kubernetes/gkeNetworkParamSets/3/spec/deviceMode": "NetDevice"},
        pointer="/kubernetes/gkeNetworkParamSets/3/spec/deviceMode",
        says="GKENetworkParamSet rdma-2 has deviceMode NetDevice, and the NIC of the pool is RDMA",
    ),
    Case(
        rule="paramset.not-in-pool",
        broken={f"{NICS}/1": {"network": "example-net-9", "subnetwork": "example-sub-9"}},
        pointer=f"{_SET}/spec",
        says="for example-net-2/example-sub-2, and no node pool has a NIC there",
    ),
    Case(
        rule="network-object.missing",
        broken={"/kubernetes/networks": [], "/kubernetes/gkeNetworkParamSets": []},
        pointer="/kubernetes/networks",
        says="no Network object with a parameter set for 4 of 4 NICs of node pool gpu-pool: example-net-1",
    ),
    Case(
        rule="network-object.missing",
        broken={_NETWORK: GONE},
        pointer="/kubernetes/networks",
        says="for 1 of 4 NICs of node pool gpu-pool: example-net-2, which GKENetworkParamSet vpc2 names",
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
        rule="network-object.params",
        broken={f"{_NETWORK}/spec/parametersRef/kind": "ParamSet"},
        pointer=f"{_NETWORK}/spec/parametersRef/kind",
        says="Network vpc2 names a ParamSet, not a GKENetworkParamSet",
    ),
    Case(
        rule="network-object.not-ready",
        severity="warning",
        broken={f"{_NETWORK}/status": GONE},
        pointer=f"{_NETWORK}/status/conditions",
        says="Network vpc2 has no conditions",
    ),
    Case(
        rule="paramset.not-ready",
        severity="warning",
        broken={f"{_SET}/status": GONE},
        pointer=f"{_SET}/status/conditions",
        says="GKENetworkParamSet vpc2 has no conditions",
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
        rule="node.count",
        severity="warning",
        broken={"/kubernetes/nodes": [], f"{POOL}/status": "PROVISIONING"},
        pointer="/kubernetes/nodes",
        says="has 0 nodes in Kubernetes, and should have 2",
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
        rule="node.cordoned",
        severity="warning",
        broken={f"{_NODE}/spec": {"unschedulable": True}},
        sound={f"{_NODE}/spec": {"providerID": "gce://example-project/us-central1-a/b"}},
        pointer=f"{_NODE}/spec/unschedulable",
        says="pool-0a1b2c3d-bbbb is cordoned",
    ),
    Case(
        rule="node.shared-gpus",
        broken={f"{_NODE}/metadata/labels/cloud.google.com~1gke-gpu-partition-size": "1g.10gb"},
        pointer=f"{_NODE}/metadata/labels/cloud.google.com~1gke-gpu-partition-size",
        says="divides its GPUs (MIG): label cloud.google.com/gke-gpu-partition-size is 1g.10gb",
    ),
    Case(
        rule="node.shared-gpus",
        broken={f"{_NODE}/metadata/labels/cloud.google.com~1gke-gpu-sharing-strategy": "mps"},
        sound={
            f"{_NODE}/metadata/labels/cloud.google.com~1gke-gpu-sharing-strategy": "mps",
            f"{POOL}/config/accelerators/0/gpuSharingConfig": {"gpuSharingStrategy": "MPS"},
        },
        pointer=f"{_NODE}/metadata/labels/cloud.google.com~1gke-gpu-sharing-strategy",
        says="shares its GPUs among containers",
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

CASES: Final = (*OBJECT_CASES, *NODE_CASES)
