"""Cases of rules about placement, and about what is asked before anything is made."""

from __future__ import annotations

from typing import Final

from tests.unit.gke.rules.bundles import GONE, POOL, asked, placed, reserved
from tests.unit.gke.rules.cases import Case

_RESERVATION: Final = "/reservations/0"

PLACEMENT: Final = (
    Case(
        rule="placement.beside-reservation",
        base=reserved,
        broken={f"{POOL}/placementPolicy": {"policyName": "example-policy"}},
        sound={
            f"{POOL}/placementPolicy": {"policyName": "example-policy"},
            f"{_RESERVATION}/resourcePolicies": {"0": "projects/p/regions/us-central1/resourcePolicies/example-policy"},
        },
        pointer=f"{POOL}/placementPolicy",
        says="placement policy example-policy beside reservation example-reservation, which has none",
    ),
    Case(
        rule="placement.beside-reservation",
        base=reserved,
        severity="warning",
        broken={f"{POOL}/placementPolicy": {"type": "COMPACT"}, "/reservations": None},
        pointer=f"{POOL}/placementPolicy",
        says="of which it is not known whether it has one",
    ),
    Case(
        rule="placement.zones",
        base=placed,
        broken={f"{POOL}/locations": ["us-central1-a", "us-central1-b"]},
        pointer=f"{POOL}/placementPolicy",
        says="compact placement in 2 zones",
    ),
    Case(
        rule="placement.blue-green",
        base=placed,
        broken={f"{POOL}/upgradeSettings/strategy": "BLUE_GREEN"},
        pointer=f"{POOL}/upgradeSettings/strategy",
        says="upgrades by BLUE_GREEN",
    ),
    Case(
        rule="placement.policy-missing",
        base=placed,
        broken={"/resourcePolicies": []},
        pointer=f"{POOL}/placementPolicy/policyName",
        says="placement policy example-policy, which does not exist",
    ),
    Case(
        rule="placement.policy-missing",
        base=placed,
        broken={"/resourcePolicies/0/region": "us-east4"},
        pointer=f"{POOL}/placementPolicy/policyName",
        says="in region us-central1, and its placement policy example-policy in us-east4",
    ),
    Case(
        rule="placement.policy-kind",
        base=placed,
        broken={"/resourcePolicies/0/status": "INVALID"},
        pointer="/resourcePolicies/0/status",
        says="is INVALID",
    ),
    Case(
        rule="placement.policy-kind",
        base=placed,
        severity="warning",
        broken={"/resourcePolicies/0/groupPlacementPolicy": {"availabilityDomainCount": 4}},
        pointer="/resourcePolicies/0/groupPlacementPolicy",
        says="does not collocate",
    ),
    Case(
        rule="placement.policy-kind",
        base=placed,
        broken={"/resourcePolicies/0/groupPlacementPolicy/vmCount": 1},
        sound={"/resourcePolicies/0/groupPlacementPolicy/vmCount": 2},
        pointer="/resourcePolicies/0/groupPlacementPolicy/vmCount",
        says="holds 1 VM,",
    ),
    Case(
        rule="placement.none",
        base=placed,
        severity="info",
        broken={f"{POOL}/placementPolicy": GONE},
        pointer=f"{POOL}/placementPolicy",
        says="neither compact placement nor a reservation",
    ),
)

PREFLIGHT: Final = (
    Case(
        rule="service.disabled",
        base=asked,
        broken={"/services/1/state": "DISABLED"},
        pointer="/services/1/state",
        says="API container.googleapis.com, for clusters, is DISABLED",
    ),
    Case(
        rule="service.disabled",
        base=asked,
        severity="warning",
        broken={"/services/2/state": "DISABLED"},
        pointer="/services/2/state",
        says="API cloudquotas.googleapis.com",
    ),
    Case(
        rule="permission.missing",
        base=asked,
        severity="warning",
        broken={"/permissions/permissions": ["compute.networks.list"]},
        pointer="/permissions/permissions",
        says="you may not compute.networks.create",
    ),
    Case(
        rule="permission.missing",
        base=asked,
        broken={"/cluster": None, "/permissions/permissions": ["compute.networks.list"]},
        pointer="/permissions/permissions",
        says="you may not compute.networks.create",
    ),
    Case(
        rule="machine.not-offered",
        base=asked,
        broken={"/machineTypes/0/zone": "us-central1-b"},
        pointer="/machineTypes",
        says="zone us-central1-a does not offer a3-highgpu-8g; it is in us-central1-b",
    ),
    Case(
        rule="machine.not-offered",
        base=asked,
        broken={"/machineTypes": [], "/cluster": None, "/location": "us-central1"},
        sound={"/cluster": None, "/location": "us-central1"},
        pointer="/machineTypes",
        says="no zone of us-central1 offers",
    ),
)

CASES: Final = (*PLACEMENT, *PREFLIGHT)
