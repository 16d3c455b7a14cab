"""Cases of rules about reservations and quotas."""

from __future__ import annotations

from typing import Any, Final

from tests.unit.gke.rules.bundles import CONFIG, GONE, POOL, Bundle, before, healthy, placed, put, reserved
from tests.unit.gke.rules.cases import Case

_R: Final = "/reservations/0"
_SPECIFIC: Final = f"{_R}/specificReservation"
_AFFINITY: Final = f"{CONFIG}/reservationAffinity"
_ROWS: Final = "/quotaInfos/0/dimensionsInfos"
_LATER: Final = "2027-01-01T00:00:00Z"


def _only() -> Bundle:
    """No cluster yet, and one reservation."""
    return put(before(), {"/reservations": reserved()["reservations"], f"{_SPECIFIC}/inUseCount": "0"})


def _spot() -> Bundle:
    return put(
        reserved(), {_AFFINITY: GONE, f"{CONFIG}/spot": True, "/regionInfo/quotas": before()["regionInfo"]["quotas"]}
    )


def _blocked() -> Bundle:
    """From one block of the reservation, with room for one node more."""
    link = "projects/example-project/zones/us-central1-a/reservations/example-reservation/reservationBlocks/one"
    block = {"name": "one", "selfLink": link, "status": "READY", "count": 3, "inUseCount": 2}
    return put(
        reserved(),
        {f"{_AFFINITY}/values": ["example-reservation/reservationBlocks/one"], "/reservationBlocks": [block]},
    )


def _scaled() -> Bundle:
    """The healthy one, of which two nodes more are wanted."""
    return put(healthy(), {"/want/nodes": 4, "/regionInfo/quotas": before()["regionInfo"]["quotas"]})


def _quota(section: str, index: int, limit: float) -> dict[str, Any]:
    return {f"/{section}/quotas/{index}/limit": limit}


RESERVATION_CASES: Final = (
    Case(
        rule="reservation.affinity",
        base=reserved,
        broken={f"{_AFFINITY}/values": []},
        pointer=f"{_AFFINITY}/values",
        says="wants a specific reservation and names none",
    ),
    Case(
        rule="reservation.affinity",
        base=reserved,
        broken={f"{_AFFINITY}/consumeReservationType": "ANY_RESERVATION"},
        pointer=f"{_AFFINITY}/consumeReservationType",
        says="names reservation example-reservation with ANY_RESERVATION",
    ),
    Case(
        rule="reservation.affinity",
        base=reserved,
        broken={f"{_AFFINITY}/key": "reservation"},
        pointer=f"{_AFFINITY}/key",
        says="reservation key reservation",
    ),
    Case(
        rule="reservation.affinity",
        base=reserved,
        broken={f"{_AFFINITY}/values": ["example-reservation/blocks/one"]},
        sound={
            f"{_AFFINITY}/values": [
                "projects/example-project/reservations/example-reservation/reservationBlocks/b/reservationSubBlocks/s"
            ]
        },
        pointer=f"{_AFFINITY}/values/0",
        says="'example-reservation/blocks/one', which is no path",
    ),
    Case(
        rule="reservation.affinity",
        base=reserved,
        broken={f"{_AFFINITY}/values": ["example-reservation", "other"]},
        pointer=f"{_AFFINITY}/values",
        says="names 2 reservations",
    ),
    Case(
        rule="reservation.missing",
        base=reserved,
        broken={"/reservations": []},
        pointer=f"{_AFFINITY}/values/0",
        says="example-reservation, which does not exist",
    ),
    Case(
        rule="reservation.missing",
        base=reserved,
        severity="info",
        broken={f"{_AFFINITY}/values": ["projects/other-project/reservations/theirs"]},
        pointer=f"{_AFFINITY}/values/0",
        says="of another project and was not observed",
    ),
    Case(
        rule="reservation.status",
        base=reserved,
        broken={f"{_R}/status": "CREATING"},
        pointer=f"{_R}/status",
        says="reservation example-reservation of node pool gpu-pool is CREATING",
    ),
    Case(
        rule="reservation.status",
        base=_only,
        broken={f"{_R}/status": "DELETING"},
        pointer=f"{_R}/status",
        says="of the cluster to be made is DELETING",
    ),
    Case(
        rule="reservation.not-active",
        base=reserved,
        broken={f"{_SPECIFIC}/assuredCount": "0", f"{_SPECIFIC}/inUseCount": "0"},
        pointer=f"{_SPECIFIC}/assuredCount",
        says="has 0 of its 3 machines now: it is not active yet",
    ),
    Case(
        rule="reservation.not-active",
        base=reserved,
        broken={f"{_R}/timeWindow/startTime": _LATER},
        sound={f"{_R}/timeWindow/startTime": "2026-01-01T00:00:00Z"},
        pointer=f"{_R}/timeWindow/startTime",
        says=f"begins at {_LATER}",
    ),
    Case(
        rule="reservation.not-active",
        base=reserved,
        severity="warning",
        broken={f"{_SPECIFIC}/assuredCount": "2"},
        pointer=f"{_SPECIFIC}/assuredCount",
        says="has 2 of its 3 machines now",
    ),
    Case(
        rule="reservation.ends",
        base=reserved,
        broken={f"{_R}/deleteAtTime": "2026-11-01T00:00:00Z"},
        sound={f"{_R}/deleteAtTime": _LATER},
        pointer=f"{_R}/deleteAtTime",
        says="ended at 2026-11-01",
    ),
    Case(
        rule="reservation.ends",
        base=reserved,
        severity="warning",
        broken={f"{_R}/deleteAtTime": "2026-12-03T00:00:00Z"},
        pointer=f"{_R}/deleteAtTime",
        says="ends at 2026-12-03",
    ),
    Case(
        rule="reservation.machine-type",
        base=reserved,
        broken={f"{_SPECIFIC}/instanceProperties/machineType": "a3-megagpu-8g"},
        pointer=f"{_SPECIFIC}/instanceProperties/machineType",
        says="is for a3-megagpu-8g, and node pool gpu-pool is a3-highgpu-8g",
    ),
    Case(
        rule="reservation.zone",
        base=reserved,
        broken={f"{_R}/zone": "us-central1-c"},
        pointer=f"{_R}/zone",
        says="in zone us-central1-c, and node pool gpu-pool in us-central1-a",
    ),
    Case(
        rule="reservation.zone",
        base=reserved,
        broken={f"{POOL}/locations": ["us-central1-a", "us-central1-b"]},
        pointer=f"{_R}/zone",
        says="is in 2 zones",
    ),
    Case(
        rule="reservation.specific",
        base=reserved,
        severity="warning",
        broken={f"{_R}/specificReservationRequired": GONE},
        pointer=f"{_R}/specificReservationRequired",
        says="may be used by VMs that do not name it",
    ),
    Case(
        rule="reservation.shared",
        base=reserved,
        broken={
            f"{_AFFINITY}/values": ["projects/owner/reservations/example-reservation"],
            f"{_R}/selfLink": "projects/owner/zones/us-central1-a/reservations/example-reservation",
        },
        sound={
            f"{_AFFINITY}/values": ["projects/owner/reservations/example-reservation"],
            f"{_R}/selfLink": "projects/owner/zones/us-central1-a/reservations/example-reservation",
            f"{_R}/shareSettings": {
                "shareType": "SPECIFIC_PROJECTS",
                "projectMap": {"example-project": {"projectId": "example-project"}},
            },
        },
        pointer=f"{_R}/shareSettings",
        says="belongs to project owner and is not shared with example-project",
    ),
    Case(
        rule="reservation.size",
        base=reserved,
        broken={f"{_SPECIFIC}/count": "1", f"{_SPECIFIC}/assuredCount": "1", f"{_SPECIFIC}/inUseCount": "1"},
        pointer=f"{_SPECIFIC}/count",
        says="has 1 machine, and node pool gpu-pool needs 2",
    ),
    Case(
        rule="reservation.size",
        base=_only,
        broken={f"{_SPECIFIC}/count": "1", f"{_SPECIFIC}/assuredCount": "1"},
        pointer=f"{_SPECIFIC}/count",
        says="has 1 machine, and the cluster to be made needs 2",
    ),
    Case(
        rule="reservation.full",
        base=_only,
        broken={f"{_SPECIFIC}/inUseCount": "2"},
        sound={f"{_SPECIFIC}/inUseCount": "1"},
        pointer=f"{_SPECIFIC}/inUseCount",
        says="has 1 of 3 machines free, and the cluster to be made needs 2 more",
    ),
    Case(
        rule="reservation.block",
        base=_blocked,
        broken={"/reservationBlocks/0/count": 1},
        pointer="/reservationBlocks/0/count",
        says="block one has 1 machine, 0 of them free, and node pool gpu-pool needs 2",
    ),
    Case(
        rule="reservation.block",
        base=_blocked,
        broken={"/reservationBlocks": []},
        pointer=f"{_AFFINITY}/values/0",
        says="takes block one of reservation example-reservation, which is not there",
    ),
    Case(
        rule="reservation.block",
        base=_blocked,
        broken={"/reservationBlocks/0/status": "CREATING"},
        pointer="/reservationBlocks/0/status",
        says="block one of node pool gpu-pool is CREATING",
    ),
    Case(
        rule="reservation.surge",
        base=reserved,
        severity="warning",
        broken={f"{_SPECIFIC}/inUseCount": "3"},
        sound={f"{_SPECIFIC}/inUseCount": "3", f"{POOL}/upgradeSettings": {"maxSurge": 0, "maxUnavailable": 1}},
        pointer=f"{POOL}/upgradeSettings/maxSurge",
        says="needs 1 node more during an upgrade, and reservation example-reservation has 0 to spare",
    ),
    Case(
        rule="reservation.surge",
        base=reserved,
        broken={f"{_SPECIFIC}/inUseCount": "3", f"{POOL}/management/autoUpgrade": True},
        pointer=f"{POOL}/upgradeSettings/maxSurge",
        says="needs 1 node more during an upgrade",
    ),
    Case(
        rule="reservation.maintenance",
        base=reserved,
        broken={f"{_SPECIFIC}/instanceProperties/maintenanceInterval": "PERIODIC"},
        sound={
            f"{_SPECIFIC}/instanceProperties/maintenanceInterval": "PERIODIC",
            f"{CONFIG}/hostMaintenancePolicy": {"maintenanceInterval": "PERIODIC"},
        },
        pointer=f"{CONFIG}/hostMaintenancePolicy/maintenanceInterval",
        says="AS_NEEDED (not set), and reservation example-reservation PERIODIC",
    ),
    Case(
        rule="reservation.maintenance",
        base=reserved,
        severity="info",
        broken={f"{CONFIG}/hostMaintenancePolicy": {"maintenanceInterval": "PERIODIC"}},
        pointer=f"{CONFIG}/hostMaintenancePolicy/maintenanceInterval",
        says="does not say what it has",
    ),
)

QUOTA_CASES: Final = (
    Case(
        rule="quota.networks",
        base=before,
        broken={"/want/flavour": "tcpxo", **_quota("projectInfo", 0, 8.0)},
        sound={"/want/flavour": "tcpxo", **_quota("projectInfo", 0, 9.0)},
        pointer="/projectInfo/quotas/0/limit",
        says="quota NETWORKS is 8, with 1 in use; networks still needed: 8",
    ),
    Case(
        rule="quota.networks",
        broken=_quota("projectInfo", 0, 4.0),
        sound=_quota("projectInfo", 0, 5.0),
        pointer="/projectInfo/quotas/0/limit",
        says="networks needed in all: 5",
    ),
    Case(
        rule="quota.subnetworks",
        base=before,
        broken=_quota("projectInfo", 1, 45.0),
        sound=_quota("projectInfo", 1, 46.0),
        pointer="/projectInfo/quotas/1/limit",
        says="subnets still needed: 4",
    ),
    Case(
        rule="quota.firewalls",
        base=before,
        broken=_quota("projectInfo", 2, 11.0),
        sound=_quota("projectInfo", 2, 12.0),
        pointer="/projectInfo/quotas/2/limit",
        says="firewall rules still needed: 8",
    ),
    Case(
        rule="quota.gpu-family",
        base=before,
        broken={f"{_ROWS}/0/details/value": "8"},
        sound={f"{_ROWS}/0/details/value": "-1"},
        pointer=f"{_ROWS}/0/details/value",
        says="for gpu_family NVIDIA_H100, region us-central1 is 8; GPUs needed in all: 16",
    ),
    Case(
        rule="quota.gpu-family",
        base=before,
        broken={f"{_ROWS}/0/dimensions/region": "us-east4", f"{_ROWS}/0/applicableLocations": ["us-east4"]},
        pointer="/quotaInfos",
        says="no row of quota GPUS-PER-GPU-FAMILY-per-project-region is for nvidia-h100-80gb in us-central1",
    ),
    Case(
        rule="quota.gpu-family",
        base=before,
        severity="info",
        broken={"/quotaInfos": []},
        pointer="/quotaInfos",
        says="not among those that were read",
    ),
    Case(
        rule="quota.gpu-family",
        severity="warning",
        broken={f"{_ROWS}/0/details/value": "16"},
        sound={f"{_ROWS}/0/details/value": "16", f"{POOL}/upgradeSettings": {"maxUnavailable": 1}},
        pointer=f"{_ROWS}/0/details/value",
        says="not for 8 more during an upgrade",
    ),
    Case(
        rule="quota.gpus-all-regions",
        base=before,
        broken=_quota("projectInfo", 4, 1.0),
        sound=_quota("projectInfo", 4, 16.0),
        pointer="/projectInfo/quotas/4/limit",
        says="quota GPUS_ALL_REGIONS is 1, with 0 in use; GPUs still needed: 16",
    ),
    Case(
        rule="quota.gpus-all-regions",
        base=before,
        broken={
            "/projectInfo/quotas/4": GONE,
            "/quotaInfos/-": {
                "quotaId": "GPUS-ALL-REGIONS-per-project",
                "dimensionsInfos": [{"details": {"value": "1"}, "applicableLocations": ["global"]}],
            },
        },
        pointer="/quotaInfos/1/dimensionsInfos/0/details/value",
        says="quota GPUS-ALL-REGIONS-per-project is 1",
    ),
    Case(
        rule="quota.spot-gpus",
        base=_spot,
        broken=_quota("regionInfo", 6, 8.0),
        pointer="/regionInfo/quotas/6/limit",
        says="quota PREEMPTIBLE_NVIDIA_H100_GPUS is 8",
    ),
    Case(
        rule="quota.cpus",
        base=before,
        broken=_quota("regionInfo", 0, 415.0),
        sound=_quota("regionInfo", 0, 416.0),
        pointer="/regionInfo/quotas/0/limit",
        says="quota CPUS is 415, with 0 in use; CPUs still needed: 416",
    ),
    Case(
        rule="quota.cpus",
        base=before,
        broken={
            "/quotaInfos/-": {
                "quotaId": "CPUS-PER-VM-FAMILY-per-project-region",
                "dimensionsInfos": [{"dimensions": {"vm_family": "A3"}, "details": {"value": "208"}}],
            }
        },
        sound={
            **_quota("regionInfo", 0, 72.0),
            "/quotaInfos/-": {
                "quotaId": "CPUS-PER-VM-FAMILY-per-project-region",
                "dimensionsInfos": [{"dimensions": {"vm_family": "A3"}, "details": {"value": "416"}}],
            },
        },
        pointer="/quotaInfos/1/dimensionsInfos/0/details/value",
        says="for vm_family A3 is 208",
    ),
    Case(
        rule="quota.cpus-all-regions",
        base=before,
        broken=_quota("projectInfo", 3, 400.0),
        pointer="/projectInfo/quotas/3/limit",
        says="quota CPUS_ALL_REGIONS is 400",
    ),
    Case(
        rule="quota.disks",
        base=before,
        broken=_quota("regionInfo", 2, 400.0),
        sound=_quota("regionInfo", 2, 500.0),
        pointer="/regionInfo/quotas/2/limit",
        says="GB of boot disks still needed: 200",
    ),
    Case(
        rule="quota.local-ssd",
        base=before,
        broken=_quota("regionInfo", 3, 11999.0),
        sound=_quota("regionInfo", 3, 12000.0),
        pointer="/regionInfo/quotas/3/limit",
        says="GB of local SSD still needed: 12000",
    ),
    Case(
        rule="quota.local-ssd",
        base=before,
        severity="warning",
        broken={"/regionInfo/quotas/3": GONE, "/regionInfo/quotas/2/limit": 10000.0},
        pointer="/regionInfo/quotas/2/limit",
        says="quota SSD_TOTAL_GB is 10000, with 300 in use; GB of local SSD still needed: 12000",
    ),
    Case(
        rule="quota.instances",
        base=before,
        broken=_quota("regionInfo", 1, 4.0),
        sound=_quota("regionInfo", 1, 5.0),
        pointer="/regionInfo/quotas/1/limit",
        says="instances still needed: 2",
    ),
    Case(
        rule="quota.addresses",
        base=before,
        severity="warning",
        broken=_quota("regionInfo", 4, 4.0),
        sound=_quota("regionInfo", 4, 5.0),
        pointer="/regionInfo/quotas/4/limit",
        says="public addresses still needed: 2",
    ),
    Case(
        rule="quota.addresses",
        base=_scaled,
        broken=_quota("regionInfo", 4, 4.0),
        sound={**_quota("regionInfo", 4, 4.0), "/cluster/networkConfig/defaultEnablePrivateNodes": True},
        pointer="/regionInfo/quotas/4/limit",
        says="public addresses still needed: 2",
    ),
    Case(
        rule="quota.resource-policies",
        base=placed,
        broken={
            "/resourcePolicies": [],
            "/regionInfo/quotas/-": {"metric": "RESOURCE_POLICIES", "limit": 10.0, "usage": 10.0},
        },
        sound={"/regionInfo/quotas/-": {"metric": "RESOURCE_POLICIES", "limit": 10.0, "usage": 10.0}},
        pointer="/regionInfo/quotas/2/limit",
        says="placement policies still needed: 1",
    ),
)

CASES: Final = (*RESERVATION_CASES, *QUOTA_CASES)
