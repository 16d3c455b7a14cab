"""Each rule with a state that breaks it and one that does not: the table that keeps rules honest.

``broken`` and ``sound`` are changes to ``base``; a base itself is sound for its rules unless ``sound`` says otherwise.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

from tests.unit.gke.rules.bundles import (
    CONFIG,
    GONE,
    POOL,
    Bundle,
    healthy,
    mega,
    reserved,
)

Changes = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Case:
    """``pointer`` and ``says``: where the finding is, and words of it. ``severity`` of the finding."""

    rule: str
    broken: Changes
    pointer: str
    says: str
    severity: str = "error"
    base: Callable[[], Bundle] = healthy
    sound: Changes = field(default_factory=dict)

    @property
    def id(self) -> str:
        return f"{self.rule} {self.says}"


_GPU: Final = f"{CONFIG}/accelerators/0"


CLUSTER: Final = (
    Case(
        rule="state.family",
        severity="warning",
        broken={"/want": GONE, f"{CONFIG}/machineType": "n2-standard-8", f"{CONFIG}/accelerators": []},
        pointer="/want/flavour",
        says="not known which family",
    ),
    Case(
        rule="cluster.version",
        broken={"/cluster/currentMasterVersion": "1.30.1-gke.1000000"},
        sound={"/cluster/currentMasterVersion": "1.30.2-gke.1023000"},
        pointer="/cluster/currentMasterVersion",
        says="a3-high needs 1.30.2-gke.1023000 or newer on GKE 1.30, and this is 1.30.1-gke.1000000",
    ),
    Case(
        rule="cluster.version",
        broken={"/cluster/currentMasterVersion": "1.30.4-gke.1129000"},
        base=mega,
        severity="warning",
        pointer="/cluster/currentMasterVersion",
        says="below the recommended one",
    ),
    Case(
        rule="cluster.version",
        broken={"/cluster/currentMasterVersion": "1.99.1-gke.1"},
        severity="info",
        pointer="/cluster/currentMasterVersion",
        says="newer than the table",
    ),
    Case(
        rule="cluster.version",
        broken={"/cluster/currentMasterVersion": "twelve"},
        pointer="/cluster/currentMasterVersion",
        says="'twelve', which is no GKE version",
    ),
    Case(
        rule="cluster.version",
        broken={"/cluster/currentMasterVersion": GONE, "/cluster/initialClusterVersion": GONE},
        severity="info",
        pointer="/cluster/initialClusterVersion",
        says="names no version",
    ),
    Case(
        rule="cluster.version",
        broken={"/cluster/currentMasterVersion": "1.26"},
        sound={"/cluster/currentMasterVersion": "v1.32.11-gke.1174000"},
        pointer="/cluster/currentMasterVersion",
        says="not supported on GKE 1.26",
    ),
    Case(
        rule="cluster.version",
        broken={"/cluster/currentMasterVersion": "1.33"},
        severity="info",
        pointer="/cluster/currentMasterVersion",
        says="of which GKE chooses the patch",
    ),
    Case(
        rule="cluster.dataplane",
        broken={"/cluster/networkConfig/datapathProvider": "LEGACY_DATAPATH"},
        pointer="/cluster/networkConfig/datapathProvider",
        says="datapathProvider is LEGACY_DATAPATH",
    ),
    Case(
        rule="cluster.dataplane",
        broken={"/cluster/networkConfig/datapathProvider": GONE},
        pointer="/cluster/networkConfig/datapathProvider",
        says="datapathProvider is not set",
    ),
    Case(
        rule="cluster.multi-networking",
        broken={"/cluster/networkConfig/enableMultiNetworking": GONE},
        pointer="/cluster/networkConfig/enableMultiNetworking",
        says="multi-networking off",
    ),
    Case(
        rule="cluster.ip-alias",
        broken={"/cluster/ipAllocationPolicy/useIpAliases": GONE},
        pointer="/cluster/ipAllocationPolicy/useIpAliases",
        says="not VPC-native",
    ),
    Case(
        rule="cluster.autopilot",
        broken={"/cluster/autopilot": {"enabled": True}},
        sound={"/cluster/autopilot": {}},
        pointer="/cluster/autopilot/enabled",
        says="an Autopilot cluster",
    ),
    Case(
        rule="cluster.status",
        broken={"/cluster/status": "DEGRADED", "/cluster/statusMessage": "no healthy master."},
        pointer="/cluster/status",
        says="is DEGRADED: no healthy master. A cluster",
    ),
    Case(
        rule="cluster.status",
        broken={"/cluster/status": "RECONCILING"},
        severity="warning",
        pointer="/cluster/status",
        says="is RECONCILING",
    ),
    Case(
        rule="cluster.auto-upgrade",
        broken={"/cluster/releaseChannel/channel": "REGULAR"},
        sound={"/cluster/releaseChannel/channel": "UNSPECIFIED"},
        pointer=f"{POOL}/management/autoUpgrade",
        says="node pool gpu-pool has autoUpgrade false, and the cluster is in release channel REGULAR",
    ),
    Case(
        rule="cluster.upgrade-hold",
        severity="warning",
        broken={f"{POOL}/management/autoUpgrade": True},
        pointer=f"{POOL}/management/autoUpgrade",
        says="upgraded by GKE at any time",
        sound={
            f"{POOL}/management/autoUpgrade": True,
            "/cluster/maintenancePolicy/window/maintenanceExclusions/jobs": {
                "startTime": "2026-11-01T00:00:00Z",
                "maintenanceExclusionOptions": {"scope": "NO_MINOR_OR_NODE_UPGRADES"},
            },
        },
    ),
    Case(
        rule="cluster.upgrade-hold",
        severity="warning",
        broken={
            f"{POOL}/management/autoUpgrade": True,
            "/cluster/maintenancePolicy/window/maintenanceExclusions/jobs": {
                "startTime": "2026-10-01T00:00:00Z",
                "endTime": "2026-11-01T00:00:00Z",
                "maintenanceExclusionOptions": {"scope": "NO_UPGRADES"},
            },
        },
        pointer=f"{POOL}/management/autoUpgrade",
        says="no maintenance exclusion holds its nodes",
    ),
)

POOLS: Final = (
    Case(
        rule="pool.missing",
        severity="warning",
        broken={"/want/nodePoolName": "other-pool"},
        pointer="/cluster/nodePools",
        says="has no node pool other-pool",
    ),
    Case(
        rule="pool.machine-type",
        broken={f"{CONFIG}/machineType": "a3-highgpu-4g"},
        pointer=f"{CONFIG}/machineType",
        says="needs all 8 GPUs and all 4 NICs",
    ),
    Case(
        rule="pool.machine-type",
        broken={"/want/flavour": "a3-mega"},
        pointer=f"{CONFIG}/machineType",
        says="machine type a3-highgpu-8g; a3-mega is a3-megagpu-8g",
    ),
    Case(
        rule="pool.accelerator",
        broken={f"{_GPU}/acceleratorCount": "4"},
        pointer=f"{_GPU}/acceleratorCount",
        says="4 GPUs on each node; a3-high has 8",
    ),
    Case(
        rule="pool.accelerator",
        broken={f"{_GPU}/acceleratorType": "nvidia-a100-80gb"},
        pointer=f"{_GPU}/acceleratorType",
        says="accelerator nvidia-a100-80gb",
    ),
    Case(
        rule="pool.accelerator",
        broken={f"{CONFIG}/accelerators": GONE},
        pointer=f"{CONFIG}/accelerators",
        says="names no accelerator",
    ),
    Case(
        rule="pool.driver",
        broken={f"{_GPU}/gpuDriverInstallationConfig": GONE},
        sound={f"{_GPU}/gpuDriverInstallationConfig/gpuDriverVersion": "DEFAULT"},
        pointer=f"{_GPU}/gpuDriverInstallationConfig/gpuDriverVersion",
        says="gpuDriverVersion is not set",
    ),
    Case(
        rule="pool.driver",
        broken={f"{_GPU}/gpuDriverInstallationConfig/gpuDriverVersion": "INSTALLATION_DISABLED"},
        pointer=f"{_GPU}/gpuDriverInstallationConfig/gpuDriverVersion",
        says="gpuDriverVersion is INSTALLATION_DISABLED",
    ),
    Case(
        rule="pool.mig",
        broken={f"{_GPU}/gpuPartitionSize": "1g.10gb"},
        pointer=f"{_GPU}/gpuPartitionSize",
        says="gpuPartitionSize is 1g.10gb",
    ),
    Case(
        rule="pool.time-sharing",
        broken={
            f"{_GPU}/gpuSharingConfig": {"gpuSharingStrategy": "TIME_SHARING", "maxSharedClientsPerGpu": "2"},
        },
        sound={f"{_GPU}/gpuSharingConfig": {"gpuSharingStrategy": "GPU_SHARING_STRATEGY_UNSPECIFIED"}},
        pointer=f"{_GPU}/gpuSharingConfig",
        says="by time among 2 containers",
    ),
    Case(
        rule="pool.time-sharing",
        broken={f"{_GPU}/maxTimeSharedClientsPerGpu": "4"},
        sound={f"{_GPU}/gpuSharingConfig": {"gpuSharingStrategy": "MPS", "maxSharedClientsPerGpu": "2"}},
        pointer=f"{_GPU}/gpuSharingConfig",
        says="by time among 4 containers",
    ),
    Case(
        rule="pool.mps",
        broken={f"{_GPU}/gpuSharingConfig": {"gpuSharingStrategy": "MPS", "maxSharedClientsPerGpu": "2"}},
        pointer=f"{_GPU}/gpuSharingConfig/gpuSharingStrategy",
        says="through MPS",
    ),
    Case(
        rule="pool.fast-socket",
        broken={f"{CONFIG}/fastSocket": {"enabled": True}},
        sound={f"{CONFIG}/fastSocket": {"enabled": False}},
        pointer=f"{CONFIG}/fastSocket/enabled",
        says="Fast Socket on",
    ),
    Case(
        rule="pool.gvnic",
        broken={f"{CONFIG}/gvnic": GONE},
        pointer=f"{CONFIG}/gvnic/enabled",
        says="gVNIC off",
    ),
    Case(
        rule="pool.image-type",
        broken={f"{CONFIG}/imageType": "UBUNTU_CONTAINERD"},
        sound={f"{CONFIG}/imageType": "cos_containerd"},
        pointer=f"{CONFIG}/imageType",
        says="image type UBUNTU_CONTAINERD",
    ),
    Case(
        rule="pool.scopes",
        broken={f"{CONFIG}/oauthScopes": ["https://www.googleapis.com/auth/logging.write"]},
        pointer=f"{CONFIG}/oauthScopes",
        says="no scope with which nodes pull images",
    ),
    Case(
        rule="pool.scopes",
        base=mega,
        severity="warning",
        broken={f"{CONFIG}/oauthScopes": ["https://www.googleapis.com/auth/devstorage.read_only"]},
        pointer=f"{CONFIG}/oauthScopes",
        says="lacks scope cloud-platform",
    ),
    Case(
        rule="pool.service-account",
        severity="info",
        broken={f"{CONFIG}/serviceAccount": "default"},
        pointer=f"{CONFIG}/serviceAccount",
        says="the project's default service account",
    ),
    Case(
        rule="pool.version",
        broken={f"{POOL}/version": "1.27.3-gke.100"},
        pointer=f"{POOL}/version",
        says="node pool gpu-pool is too old",
    ),
    Case(
        rule="pool.status",
        broken={f"{POOL}/status": "ERROR", f"{POOL}/statusMessage": "not all instances run"},
        pointer=f"{POOL}/status",
        says="is ERROR: not all instances run",
    ),
    Case(
        rule="pool.status",
        severity="warning",
        broken={f"{POOL}/status": "PROVISIONING"},
        pointer=f"{POOL}/status",
        says="is PROVISIONING",
    ),
    Case(
        rule="pool.condition",
        broken={f"{POOL}/conditions": [{"code": "GCE_STOCKOUT", "message": "no resources"}]},
        sound={f"{POOL}/conditions": [{"canonicalCode": "OK"}]},
        pointer=f"{POOL}/conditions/0",
        says="condition GCE_STOCKOUT: no resources",
    ),
    Case(
        rule="pool.size",
        severity="warning",
        broken={"/want/nodes": 1},
        pointer=f"{POOL}/initialNodeCount",
        says="made for 2 nodes, and should have 1",
    ),
    Case(
        rule="pool.size",
        broken={f"{POOL}/initialNodeCount": -1},
        pointer=f"{POOL}/initialNodeCount",
        says="is to have -1 nodes",
    ),
    Case(
        rule="pool.zones",
        severity="warning",
        broken={f"{POOL}/locations": ["us-central1-a", "us-central1-b"]},
        pointer=f"{POOL}/locations",
        says="in 2 zones (us-central1-a, us-central1-b)",
    ),
    Case(
        rule="pool.autoscaling",
        broken={f"{POOL}/autoscaling": {"enabled": True}},
        sound={f"{POOL}/autoscaling": {"enabled": True, "totalMaxNodeCount": 4}},
        pointer=f"{POOL}/autoscaling/maxNodeCount",
        says="has no maximum",
    ),
    Case(
        rule="pool.autoscaling",
        broken={f"{POOL}/autoscaling": {"enabled": True, "minNodeCount": 5, "maxNodeCount": 4}},
        sound={f"{POOL}/autoscaling": {"enabled": True, "minNodeCount": 4, "maxNodeCount": 4}},
        pointer=f"{POOL}/autoscaling/minNodeCount",
        says="minNodeCount 5 above maxNodeCount 4",
    ),
    Case(
        rule="pool.labels",
        broken={f"{CONFIG}/resourceLabels": {"Stack": "demo"}},
        sound={f"{CONFIG}/resourceLabels": {"stack": "demo"}},
        pointer=f"{CONFIG}/resourceLabels",
        says="label Stack=demo",
    ),
    Case(
        rule="pool.spot-reservation",
        base=reserved,
        broken={f"{CONFIG}/spot": True},
        pointer=f"{CONFIG}/spot",
        says="spot VMs and reservation example-reservation",
    ),
    Case(
        rule="pool.spot",
        severity="warning",
        broken={f"{CONFIG}/preemptible": True},
        pointer=f"{CONFIG}/preemptible",
        says="has spot VMs",
    ),
    Case(
        rule="pool.flex-start",
        broken={f"{CONFIG}/flexStart": True},
        sound={f"{CONFIG}/flexStart": True, f"{POOL}/autoscaling": {"enabled": True, "maxNodeCount": 2}},
        pointer=f"{CONFIG}/flexStart",
        says="flex-start without autoscaling",
    ),
    Case(
        rule="pool.flex-start",
        base=reserved,
        broken={f"{CONFIG}/flexStart": True, f"{POOL}/autoscaling": {"enabled": True, "maxNodeCount": 2}},
        pointer=f"{CONFIG}/flexStart",
        says="flex-start and reservation",
    ),
)

CASES: Final = (*CLUSTER, *POOLS)
