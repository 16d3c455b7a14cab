"""Commands that take resources away or change them, as far as the request follows from the command alone.

Invariant: a change whose request holds what the service answered (a fingerprint, a firewall rule as it is, the other
half of a pool's management) is refused by name, since nobody is asked here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from interlace.gke.bodies import requests
from interlace.gke.bodies.fields import Body, given
from interlace.gke.gcloud import pools, values
from interlace.gke.gcloud import settings as of
from interlace.gke.gcloud.call import Call
from interlace.gke.gcloud.faults import Faults
from interlace.gke.gcloud.settings import COMPUTE, CONTAINER, Settings
from interlace.gke.request import Request
from interlace.gke.resource import Key, Kind

Change = Callable[[Call, Settings, Faults], list[Request]]


def _keys(call: Call, settings: Settings, kind: Kind) -> list[Key]:
    """The resources that a command names; several of one kind may stand in one command of compute."""
    if not call.names:
        call.refuse("no name is given", remedy="Write it behind the command.")
    match kind:
        case "network" | "firewall":
            place = "global"
        case "subnetwork" | "resourcePolicy":
            place = of.region(call, settings)
        case "reservation":
            place = of.zone(call, settings)
        case "cluster":
            place = of.location(call, settings)
        case "nodePool":
            place = f"{of.location(call, settings)}/{_cluster(call, settings)}"
    return [Key(kind, place, of.plain(call, kind, name)) for name in call.names]


def _cluster(call: Call, settings: Settings) -> str:
    name = call.text("--cluster") or settings.cluster
    if not name:
        call.refuse("no cluster is named", remedy="Give --cluster.")
    return of.plain(call, "--cluster", name)


def _delete(kind: Kind) -> Change:
    versions = COMPUTE if requests.service_of(kind) == "compute" else CONTAINER

    def change(call: Call, settings: Settings, faults: Faults) -> list[Request]:
        del faults
        project = of.project(call, settings)
        keys = _keys(call, settings, kind)
        if kind == "nodePool" and len(keys) > 1:
            of.only_name(call, what="node pool")
        return [requests.delete(key, project=project, version=versions[call.track]) for key in keys]

    return change


def _resize(call: Call, settings: Settings, faults: Faults) -> list[Request]:
    """``container clusters resize``."""
    name, project = of.only_name(call, what="cluster"), of.project(call, settings)
    place = of.location(call, settings)
    pool = call.text("--node-pool") or "default-pool"
    if call.has("--size") == call.has("--num-nodes"):
        call.refuse("exactly one of --num-nodes and --size must be given")
    number = values.number(call, "--num-nodes" if call.has("--num-nodes") else "--size")
    del faults
    key = Key("nodePool", f"{place}/{name}", pool)
    return [requests.call(key, "setSize", {"nodeCount": number}, project=project, version=CONTAINER[call.track])]


def _upgrade(call: Call, settings: Settings, faults: Faults) -> list[Request]:
    """``container clusters upgrade --master``."""
    del faults
    name, project = of.only_name(call, what="cluster"), of.project(call, settings)
    place = of.location(call, settings)
    if not call.switch("--master"):
        call.refuse("an upgrade of nodes is not taken", cause="The service is asked for the image of the nodes.")
    version = call.text("--cluster-version")
    if version is None:
        call.refuse("--cluster-version is missing", cause="Without it the request depends on the service.")
    update = {"update": {"desiredMasterVersion": version}}
    return [requests.change(Key("cluster", place, name), update, project=project, version=CONTAINER[call.track])]


def _update_pool(call: Call, settings: Settings, faults: Faults) -> list[Request]:
    """``container node-pools update`` with one kind of change."""
    del faults
    name, project = of.only_name(call, what="node pool"), of.project(call, settings)
    place = of.location(call, settings)
    cluster = _cluster(call, settings)
    version = CONTAINER[call.track]
    if call.has("--enable-autoupgrade") or call.has("--enable-autorepair"):
        call.refuse(
            "a change of autoupgrade or autorepair is not taken",
            cause="Both go out, and gcloud asks the service for the one that is not said.",
        )
    if call.has("--enable-autoscaling"):
        scaling = pools.scaling(call) or {"enabled": False}
        update = {"desiredNodePoolId": name, "desiredNodePoolAutoscaling": scaling}
        return [requests.change(Key("cluster", place, cluster), {"update": update}, project=project, version=version)]
    locations = values.listed(call, "--node-locations")
    labels, taints = values.pairs(call, "--node-labels"), pools.taints(call)
    gvnic = call.switch("--enable-gvnic")
    body: Body = given(
        locations=sorted(locations) if locations else None,
        labels=None if labels is None else {"labels": labels},
        taints={"taints": [given(key=each.key, value=each.value, effect=each.effect) for each in taints]}
        if taints
        else None,
        gvnic=None if gvnic is None else {"enabled": gvnic},
    )
    if len(body) != 1:
        call.refuse("only one change at a time is taken", remedy="Write a command for each.")
    key = Key("nodePool", f"{place}/{cluster}", name)
    return [requests.change(key, body, project=project, version=version)]


def _update_subnet(call: Call, settings: Settings, faults: Faults) -> list[Request]:
    """``compute networks subnets update`` of private access."""
    del faults
    name, project = of.only_name(call, what="subnet"), of.project(call, settings)
    place, access = of.region(call, settings), call.switch("--enable-private-ip-google-access")
    if access is None:
        call.refuse("only --enable-private-ip-google-access is taken")
    body = {"privateIpGoogleAccess": access}
    key = Key("subnetwork", place, name)
    return [requests.call(key, "setPrivateIpGoogleAccess", body, project=project, version=COMPUTE[call.track])]


CHANGES: Final[dict[str, Change]] = {
    "compute firewall-rules delete": _delete("firewall"),
    "compute networks delete": _delete("network"),
    "compute networks subnets delete": _delete("subnetwork"),
    "compute networks subnets update": _update_subnet,
    "compute reservations delete": _delete("reservation"),
    "compute resource-policies delete": _delete("resourcePolicy"),
    "container clusters delete": _delete("cluster"),
    "container clusters resize": _resize,
    "container clusters upgrade": _upgrade,
    "container node-pools delete": _delete("nodePool"),
    "container node-pools update": _update_pool,
}

_EXCLUSION: Final = "--add-maintenance-exclusion"

NOT_TAKEN: Final[dict[str, str]] = {
    "compute firewall-rules update": "The rule goes out as the service has it, with the change.",
    "compute networks update": "A network is changed only after a question.",
    "container clusters update": "Most of its changes hold what the service answered.",
}
"""Commands that change something and are refused, and why."""


def hold(call: Call) -> dict[str, str] | None:
    """The maintenance exclusion that an update of a cluster adds, and nothing else: start, end, scope.

    A cluster file holds it, although the request that adds it depends on the service.
    """
    if call.command != "container clusters update":
        return None
    start, end = call.text(f"{_EXCLUSION}-start"), call.text(f"{_EXCLUSION}-end")
    scope = call.text(f"{_EXCLUSION}-scope") or "no_upgrades"
    for flag in (f"{_EXCLUSION}-name", "--project", "--location", "--zone", "--region"):
        call.understands(flag)
    if call.untaken() or start is None or end is None:
        return None
    return {"start": start, "end": end, "scope": scope.upper()}
