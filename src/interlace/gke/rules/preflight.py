"""Rules about what has to be so before anything is made: APIs, rights, machines in the zone, the wish itself."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from interlace.gke.places import short
from interlace.gke.rules.subject import Subject
from interlace.rules.rule import Breach, Rules

RULES: Final[Rules[Subject]] = Rules()

APIS: Final = {
    "compute.googleapis.com": "networks and machines",
    "container.googleapis.com": "clusters",
    "cloudquotas.googleapis.com": "quotas of GPUs",
    "cloudresourcemanager.googleapis.com": "what the caller may do",
}
"""APIs that are called, and what for."""
NEEDED: Final = ("compute.googleapis.com", "container.googleapis.com")
"""Those without which no cluster can be made."""


@RULES.rule(
    "state.family",
    severity="warning",
    cause="what is right depends on the machines",
    remedy="name the family: want.flavour in a bundle, spec.family in a cluster file, --family",
)
def _family(subject: Subject) -> Iterator[Breach]:
    if subject.family is None:
        yield Breach(
            pointer="/want/flavour",
            text="it is not known which family of machines is meant, so nothing that depends on it was judged",
        )


@RULES.rule(
    "service.disabled",
    cause="an API that is not enabled in the project refuses every call",
    remedy="enable it with `gcloud services enable NAME`",
    needs=("services",),
)
def _disabled(subject: Subject) -> Iterator[Breach]:
    for index, each in enumerate(subject.state.services or ()):
        name = short(each.name)
        if name in APIS and each.state != "ENABLED":
            yield Breach(
                pointer=f"/services/{index}/state",
                text=f"API {name}, for {APIS[name]}, is {each.state or 'of unknown state'} in project "
                f"{subject.state.project}",
                remedy=f"enable it with `gcloud services enable {name}`",
                severity="error" if name in NEEDED else "warning",
            )


@RULES.rule(
    "permission.missing",
    cause="the calls that need it are refused, some of them after others have made things",
    remedy="ask for a role that has it: compute.networkAdmin, compute.securityAdmin, container.admin, "
    "iam.serviceAccountUser on the node service account, cloudquotas.viewer",
    needs=("permissions",),
)
def _permission(subject: Subject) -> Iterator[Breach]:
    permissions = subject.state.permissions
    lacking = [each for each in permissions.asked if each not in permissions.permissions] if permissions else []
    reading = (".get", ".list", ".testIamPermissions")
    for each in lacking:
        making = not each.endswith(reading)
        yield Breach(
            pointer="/permissions/permissions",
            text=f"you may not {each} in project {subject.state.project}",
            severity="error" if making and subject.state.cluster is None else "warning",
        )


@RULES.rule(
    "machine.not-offered",
    cause="machines of the family are in few zones, and a pool in another one cannot be made",
    remedy="take a zone that has them: `gcloud compute machine-types list --filter=name=MACHINE`",
    needs=("machineTypes",),
)
def _not_offered(subject: Subject) -> Iterator[Breach]:
    family = subject.family
    if family is None:
        return
    offered = {short(each.zone) for each in subject.state.machine_types or () if short(each.name) in family.machines}
    pool, location = subject.pool, subject.state.location
    zones = pool.zones if pool else (location,) if location and location != subject.region else ()
    listing = f"gcloud compute machine-types list --filter=name={family.machines[0]}"
    remedy = f"take a zone that has them: `{listing}`"
    for zone in zones:
        if zone not in offered:
            where = f"; it is in {', '.join(sorted(offered))}" if offered else ""
            yield Breach(
                pointer="/machineTypes",
                text=f"zone {zone} does not offer {' or '.join(family.machines)}{where}",
                remedy=remedy,
            )
    if not zones and not offered:
        yield Breach(
            pointer="/machineTypes",
            text=f"no zone of {subject.region or 'the region'} offers {' or '.join(family.machines)}",
            remedy=remedy,
        )
