"""From the resources of a page to cluster files: each cluster with GPUs, its pools and the networks behind their NICs.

Invariant: a field that a cluster file has a key for is carried over; every other one is a finding, so that nothing that
a page asks for is lost in silence. What the page leaves to chance (a default VPC, upgrades of nodes) is left to the
rules of the cluster file.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from typing import Any, Final

import msgspec

from interlace.fabric.family import Family, FamilyError, find
from interlace.fabric.vpcs import VpcNames
from interlace.gke.bodies.scopes import DEFAULT, OWN_ACCOUNT, PREFIX
from interlace.gke.carried import ALL, CLUSTER, POOL, Known, unknown
from interlace.gke.cluster import API_VERSION, KIND
from interlace.gke.errors import SpecErrors
from interlace.gke.gcloud.changes import hold
from interlace.gke.gcloud.faults import finding
from interlace.gke.gcloud.interpreting import Step
from interlace.gke.importing import Group, Reading
from interlace.gke.reading import parse
from interlace.gke.resource import Resource
from interlace.gke.rules.checking import check_cluster
from interlace.rules.finding import Finding

Fields = dict[str, Any]

HOLDS: Final = "NO_MINOR_OR_NODE_UPGRADES"

_EFFECTS: Final = {"NO_SCHEDULE": "NoSchedule", "PREFER_NO_SCHEDULE": "PreferNoSchedule", "NO_EXECUTE": "NoExecute"}
_DRIVERS: Final = {"LATEST": "latest", "DEFAULT": "default", "INSTALLATION_DISABLED": "disabled"}
_RESERVATION: Final = re.compile(
    r"(?:projects/(?P<project>[^/]+)/reservations/)?(?P<name>[^/]+)"
    r"(?:/reservationBlocks/(?P<block>[^/]+))?(?:/reservationSubBlocks/(?P<subBlock>[^/]+))?\Z"
)


class Described(msgspec.Struct, frozen=True, kw_only=True):
    """A cluster file as plain values, and what of the page it does not hold."""

    name: str
    family: str
    document: Fields
    findings: tuple[Finding, ...]


def described(reading: Reading, *, project: str, today: date, family: str = "") -> list[Described]:
    """The cluster files of a page, in its order; ``family``: only those of that family.

    Raises FamilyError for an unknown ``family``.
    """
    wanted = find(family).id if family else ""
    found: list[Described] = []
    for group in reading.groups:
        for of, pools in _families(group).items():
            if not wanted or of == wanted:
                taken = {each.name for each in found}
                found.append(_Describer(reading, group, find(of), pools, project, today).describe(taken))
    return found


def _families(group: Group) -> dict[str, list[Step]]:
    """Pools with GPUs by family; those of machine types that no family has are left to the rules."""
    found: dict[str, list[Step]] = {}
    for step in group.pools:
        try:
            family = find(str(_body(step).get("config", {}).get("machineType", "")))
        except FamilyError:
            continue
        found.setdefault(family.id, []).append(step)
    return found


class _Describer:
    def __init__(
        self, reading: Reading, group: Group, family: Family, pools: Sequence[Step], project: str, today: date
    ) -> None:
        self.unsaid = reading.unsaid
        self.group = group
        self.family = family
        self.pools = pools
        self.project = project
        self.today = today
        self.holds = {
            step.call.names[0]: found
            for step in reading.steps
            if step.call is not None and step.call.names and (found := hold(step.call)) is not None
        }
        self.made: dict[tuple[str, str], Resource] = {}
        for step in reading.steps:
            if step.resource is not None:
                self.made.setdefault((step.resource.key.kind, step.resource.key.name), step.resource)
        self.findings: list[Finding] = []

    def describe(self, taken: set[str]) -> Described:
        step = self.group.cluster
        body = _body(step) if step is not None else {}
        resource = (step or self.pools[0]).resource
        place, _, of = resource.key.place.partition("/") if resource is not None else ("", "", "")
        name = str(body.get("name", of))
        if name in self.unsaid or name in taken:
            name = self.family.id
        if step is None:
            self._lost(self.pools[0], f"the cluster {name} is not made in the page", "Add what the cluster file lacks")
        else:
            shielded = {"shieldedNodes": ALL} if body.get("shieldedNodes") == {"enabled": True} else {}  # as GKE does
            self._left_out(step, body, {**CLUSTER, **shielded}, "the cluster")
        metadata = _said(name=name, labels=body.get("resourceLabels"))
        document: Fields = {"apiVersion": API_VERSION, "kind": KIND, "metadata": metadata}
        version = str(body.get("initialClusterVersion", ""))
        document["spec"] = _said(
            project=resource.project if resource is not None else self.project,
            location=place,
            nodeLocations=body.get("locations"),
            family=self.family.id,
            version=version if version not in {"latest", "-"} else "",
            upgrades=self._upgrades(body),
            network=self._network(),
            primary=self._primary(body),
            controlPlane=self._control_plane(body),
            workloadIdentity="workloadIdentityConfig" in body,
            system=self._system(body),
            pools=[self._pool(each) for each in self.pools],
        )
        return Described(name=name, family=self.family.id, document=document, findings=tuple(self.findings))

    def _upgrades(self, body: Fields) -> Fields:
        channel = body.get("releaseChannel", {}).get("channel", "REGULAR")
        if channel == "UNSPECIFIED":
            return {"channel": "none"}
        pools = [*body.get("nodePools", ()), *(_body(each) for each in self.pools)]
        held = any(pool.get("management", {}).get("autoUpgrade") is False for pool in pools)
        added = self.holds.get(str(body.get("name", "")))
        if held and added is None:
            added = {"start": f"{self.today.isoformat()}T00:00:00Z", "scope": HOLDS}
        return {"channel": channel.lower()} | ({} if added is None else {"hold": added})

    def _network(self) -> Fields:
        nics = _body(self.pools[0]).get("networkConfig", {}).get("additionalNodeNetworkConfigs", [])
        names = [(_last(each["network"]), _last(each["subnetwork"])) for each in nics]
        hosts = {each["network"].split("/")[1] for each in nics if each["network"].startswith("projects/")}
        made = [self.made.get(("network", network)) for network, _ in names]
        subnets = [self.made.get(("subnetwork", subnet)) for _, subnet in names]
        fields: Fields = {}
        if len(names) == len(self.family.networks):
            prefix = _prefix(self.family, names)
            ranges = [each.body.get("ipCidrRange") if each is not None else None for each in subnets]
            if prefix:
                fields["prefix"] = prefix
            if not prefix or any(ranges):
                fields["nics"] = [
                    _said(network="" if prefix else network, subnet="" if prefix else subnet, range=found)
                    for (network, subnet), found in zip(names, ranges, strict=True)
                ]
        sizes = {each.body.get("mtu") for each in made if each is not None and "networkProfile" not in each.body}
        sizes -= {None, self.family.node.mtu}
        if len(sizes) == 1:
            fields["mtu"] = sizes.pop()
        if names and not any(made):
            fields["existing"] = True
        if len(hosts) == 1 and hosts != {self.project}:
            fields["hostProject"] = hosts.pop()
        return fields

    def _primary(self, body: Fields) -> Fields:
        policy = body.get("ipAllocationPolicy", {})
        network, subnet = _last(body.get("network", "")), _last(body.get("subnetwork", ""))
        fields = _said(
            network=network,
            subnet=subnet,
            pods=_range(policy.get("clusterIpv4CidrBlock")),
            services=_range(policy.get("servicesIpv4CidrBlock")),
            podsName=policy.get("clusterSecondaryRangeName"),
            servicesName=policy.get("servicesSecondaryRangeName"),
        )
        made = self.made.get(("subnetwork", subnet))
        if made is not None:
            ranges = {each["rangeName"]: each.get("ipCidrRange") for each in made.body.get("secondaryIpRanges", ())}
            fields |= _said(
                range=made.body.get("ipCidrRange"),
                pods=ranges.get(fields.get("podsName")),
                services=ranges.get(fields.get("servicesName")),
            )
        elif network or subnet:
            fields["existing"] = True
        return fields

    def _control_plane(self, body: Fields) -> Fields:
        ways = body.get("controlPlaneEndpointsConfig", {}).get("ipEndpointsConfig", {})
        blocks = ways.get("authorizedNetworksConfig", {}).get("cidrBlocks", [])
        return _said(
            privateNodes=body.get("networkConfig", {}).get("defaultEnablePrivateNodes", False),
            range=body.get("privateClusterConfig", {}).get("masterIpv4CidrBlock"),
            authorizedNetworks=[each["cidrBlock"] for each in blocks],
        )

    def _system(self, body: Fields) -> Fields:
        if not body.get("nodePools"):
            return {}
        pool = body["nodePools"][0]
        nodes = pool.get("config", {})
        return _said(
            nodes=pool.get("initialNodeCount"),
            machineType=nodes.get("machineType", "e2-medium"),
            disk=_disk(nodes),
            labels=nodes.get("labels"),
            taints=_taints(nodes),
            scopes=_scopes(nodes),
            serviceAccount=nodes.get("serviceAccount"),
        )

    def _pool(self, step: Step) -> Fields:
        body = _body(step)
        nodes = body["config"]
        name = body["name"]
        self._left_out(step, body, POOL, f"the pool {name}")
        scaling, upgrade = body.get("autoscaling", {}), body.get("upgradeSettings", {})
        if scaling and not {"minNodeCount", "maxNodeCount"} <= scaling.keys():
            self._lost(step, f"the autoscaling of pool {name} is not between a least and a most", "Say min and max")
            scaling = {}
        if "strategy" in upgrade:
            self._lost(
                step, f"the upgrade strategy {upgrade['strategy']} of pool {name}", "Pools are upgraded by surge"
            )
        gpus = nodes.get("accelerators", [{}])[0]
        driver = gpus.get("gpuDriverInstallationConfig", {}).get("gpuDriverVersion")
        return _said(
            name="gpu" if name in self.unsaid else name,
            nodes=body.get("initialNodeCount"),
            zones=body.get("locations"),
            reservation=self._reservation(step, nodes),
            spot=nodes.get("spot", False),
            placement=self._placement(body),
            hostMaintenance=nodes.get("hostMaintenancePolicy", {}).get("maintenanceInterval"),
            disk=_disk(nodes),
            driver=_DRIVERS.get(driver or "", ""),
            imageType=nodes.get("imageType"),
            labels=nodes.get("labels"),
            taints=_taints(nodes),
            tags=nodes.get("tags"),
            scopes=_scopes(nodes),
            serviceAccount=nodes.get("serviceAccount"),
            maxPods=int(body["maxPodsConstraint"]["maxPodsPerNode"]) if "maxPodsConstraint" in body else None,
            autoscaling={"min": scaling["minNodeCount"], "max": scaling["maxNodeCount"]} if scaling else None,
            autoRepair=None if body.get("management", {}).get("autoRepair", True) else False,
            surge=_said(
                maxSurge=upgrade.get("maxSurge") if upgrade.get("maxSurge") != 1 else None,
                maxUnavailable=upgrade.get("maxUnavailable"),
            ),
        ) | ({"placement": {}} if self._placement(body) == {} else {})

    def _reservation(self, step: Step, nodes: Fields) -> Fields | None:
        affinity = nodes.get("reservationAffinity")
        if affinity is None:
            return None
        match = _RESERVATION.match(affinity.get("values", [""])[0])
        if affinity["consumeReservationType"] != "SPECIFIC_RESERVATION" or match is None:
            self._lost(
                step, f"the reservation affinity {affinity['consumeReservationType']}", "Name a reservation, or none"
            )
            return None
        return _said(**match.groupdict())

    def _placement(self, body: Fields) -> Fields | None:
        placement = body.get("placementPolicy")
        if placement is None:
            return None
        policy = str(placement.get("policyName", ""))
        made = self.made.get(("resourcePolicy", policy))
        if made is None:
            return _said(policy=policy)
        group = made.body.get("groupPlacementPolicy", {})
        return _said(maxDistance=group.get("maxDistance"), topology=group.get("gpuTopology"))

    def _left_out(self, step: Step, body: Mapping[str, Any], known: Known, what: str) -> None:
        for path in unknown(body, known):
            self._lost(step, f"{path} of {what}", "Set it when the cluster stands")

    def _lost(self, step: Step, text: str, remedy: str) -> None:
        self.findings.append(
            finding("left-out", step.line, f"{text} is not in the cluster file", remedy, severity="warning")
        )


def _body(step: Step) -> Fields:
    return step.resource.body if step.resource is not None else {}


def _said(**values: Any) -> Fields:
    """Without what says nothing: no value, no text, no members; 0 says something, and False only of repair."""
    silent: tuple[Any, ...] = ("", [], {})
    return {
        name: value
        for name, value in values.items()
        if value is not None and value not in silent and (value is not False or name == "autoRepair")
    }


def _last(path: str) -> str:
    return path.rpartition("/")[2]


def _range(text: str | None) -> str | None:
    """A range with its address; sizes alone are planned by the cluster file."""
    return text if text and not text.startswith("/") else None


def _prefix(family: Family, names: Sequence[tuple[str, str]]) -> str:
    """The one prefix that all names follow from by the rule of cluster files; empty if there is none."""
    for network, _ in names:
        for match in re.finditer(r"-", network):
            prefix = network[: match.start()]
            rule = VpcNames(prefix=prefix)
            if prefix and [rule.of(family, each) for each in family.networks] == list(names):
                return prefix
    return ""


def _disk(nodes: Fields) -> Fields:
    local = nodes.get("ephemeralStorageLocalSsdConfig", {}).get("localSsdCount")
    return _said(type=nodes.get("diskType"), sizeGb=nodes.get("diskSizeGb"), localSsds=local)


def _taints(nodes: Fields) -> list[Fields]:
    return list(_each_taint(nodes))


def _each_taint(nodes: Fields) -> Iterator[Fields]:
    for each in nodes.get("taints", ()):
        yield _said(key=each["key"], value=each.get("value")) | {"effect": _EFFECTS[each["effect"]]}


def _scopes(nodes: Fields) -> list[str]:
    """Scopes that are not those which nodes have anyway."""
    scopes = nodes.get("oauthScopes", ())
    if tuple(scopes) in {DEFAULT, OWN_ACCOUNT if "serviceAccount" in nodes else DEFAULT}:
        return []
    return [each.removeprefix(PREFIX) for each in scopes]


def written(described: Described, *, source: str) -> str:
    """The text of a cluster file."""
    import yaml  # noqa: PLC0415  printing alone needs it

    head = (
        f"# GKE cluster {described.name}, read from the gcloud commands of {source}.\n"
        "# Every key and what it means: docs/cluster-file.md.\n"
    )
    return head + yaml.safe_dump(described.document, sort_keys=False, allow_unicode=True)


def complaints(described: Described, text: str, *, told: frozenset[str] = frozenset()) -> Iterator[Finding]:
    """What stands against the cluster file itself; nothing if it can be planned as it is.

    ``told``: rules that spoke of the page already.
    """
    try:
        cluster = parse(text, file=described.name).cluster
    except SpecErrors as errors:
        for each in errors.errors:
            yield _about(described, "error", each.pointer, each.what, each.remedy)
        return
    for broken in check_cluster(cluster):
        if broken.severity != "info" and broken.rule not in told:
            yield _about(described, broken.severity, broken.pointer, broken.text, broken.remedy, rule=broken.rule)


def _about(described: Described, severity: Any, where: str, text: str, remedy: str, *, rule: str = "") -> Finding:
    return Finding(
        rule=rule or "gcloud.cluster-file",
        severity=severity,
        pointer=where,
        text=f"cluster file {described.name}: {text}",
        remedy=remedy or "Change it in the cluster file",
    )
