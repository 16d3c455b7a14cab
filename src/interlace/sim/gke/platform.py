"""The small services around: which APIs are on, what the quotas are, what the caller may do.

Invariant: answers come from the shared state; nothing is kept here.
"""

from __future__ import annotations

from typing import Any

from interlace.sim.gke.catalog import vm_family
from interlace.sim.gke.errors import NUMBER, Refusal, not_found
from interlace.sim.gke.routes import Call
from interlace.sim.gke.world import World

Json = dict[str, Any]
_TITLES = {
    "container.googleapis.com": "Kubernetes Engine API",
    "compute.googleapis.com": "Compute Engine API",
    "cloudquotas.googleapis.com": "Cloud Quotas API",
    "cloudresourcemanager.googleapis.com": "Cloud Resource Manager API",
    "serviceusage.googleapis.com": "Service Usage API",
}


def answer(world: World, call: Call) -> Json:
    """The body of the answer of serviceusage, cloudquotas or cloudresourcemanager. Refusal."""
    if call.route.service == "serviceusage":
        return _services(world, call)
    if call.route.service == "cloudquotas":
        return _quotas(world, call)
    if call.route.verb == "testIamPermissions":
        wanted = (call.body or {}).get("permissions", [])
        granted = [each for each in wanted if each not in world.denied]
        return {"permissions": granted} if granted else {}
    if call.route.version == "v1":
        return {"projectNumber": NUMBER, "projectId": call.project, "lifecycleState": "ACTIVE", "name": call.project}
    return {
        "name": f"projects/{NUMBER}",
        "parent": "organizations/1",
        "projectId": call.project,
        "state": "ACTIVE",
        "displayName": call.project,
    }


def _services(world: World, call: Call) -> Json:
    verb = call.route.verb
    if call.route.collection == "operations":
        raise not_found("serviceusage", call.path)
    if verb == "get":
        return _service(world, call.parameters["service"])
    if verb == "list":
        rows = [_service(world, each) for each in _TITLES]
        if call.query.get("filter") == "state:ENABLED":
            rows = [each for each in rows if each["state"] == "ENABLED"]
        return _paged(call, rows, "services", 50)
    names = [call.parameters["service"]] if verb == "enable" else (call.body or {}).get("serviceIds", [])
    for each in names:
        world.disabled.discard(each.removesuffix(".googleapis.com"))
    services = [_service(world, each) for each in names]
    response = {"service": services[0]} if verb == "enable" else {"services": services}
    return {"name": "operations/noop.DONE_OPERATION", "done": True, "response": response}


def _paged(call: Call, rows: list[Json], key: str, size: int) -> Json:
    """One page of a list; its token is the index of the first row. Refusal."""
    wanted, token = call.query.get("pageSize", str(size)), call.query.get("pageToken", "0")
    if not wanted.isdigit() or not token.isdigit():
        raise Refusal(400, "The page size or the page token is invalid.")
    start, end = int(token), int(token) + (int(wanted) or size)
    return {key: rows[start:end]} | ({"nextPageToken": str(end)} if end < len(rows) else {})


def _service(world: World, name: str) -> Json:
    off = name.removesuffix(".googleapis.com") in world.disabled
    return {
        "name": f"projects/{NUMBER}/services/{name}",
        "config": {"name": name, "title": _TITLES.get(name, name)},
        "state": "DISABLED" if off else "ENABLED",
        "parent": f"projects/{NUMBER}",
    }


def _quotas(world: World, call: Call) -> Json:
    rows = [_gpu_quota(world, call), _vm_quota(world, call)]
    rows += [_plain_quota(call, metric, limit) for metric, limit in world.catalog.global_quotas.items()]
    if call.route.verb == "list":
        return _paged(call, rows, "quotaInfos", 100)
    for each in rows:
        if each["quotaId"] == call.parameters["quota"]:
            return each
    raise not_found("cloudquotas", call.path)


def _head(call: Call, ident: str, metric: str) -> Json:
    service = call.parameters["service"]
    return {
        "name": f"projects/{NUMBER}/locations/global/services/{service}/quotaInfos/{ident}",
        "quotaId": ident,
        "metric": f"compute.googleapis.com/{metric}",
        "service": service,
        "isPrecise": True,
        "containerType": "PROJECT",
    }


def _plain_quota(call: Call, metric: str, limit: float) -> Json:
    details = {"details": {"value": str(int(limit))}, "applicableLocations": ["global"]}
    ident = f"{metric.replace('_', '-')}-per-project"
    return _head(call, ident, metric.lower()) | {"dimensions": [], "dimensionsInfos": [details]}


def _gpu_quota(world: World, call: Call) -> Json:
    families = {name: kind.family for name, kind in world.catalog.accelerators.items()}
    rows: list[Json] = []
    for gpu, family in families.items():
        zones = {zone for each in world.catalog.machine_types.values() if each.gpu == gpu for zone in each.zones}
        rows += _rows(world, "gpu_family", family, zones, world.catalog.gpu_family_quota)
    return _by_family(call, "GPUS-PER-GPU-FAMILY-per-project-region", "gpu_family", rows)


def _vm_quota(world: World, call: Call) -> Json:
    zones: dict[str, set[str]] = {}
    for name, kind in world.catalog.machine_types.items():
        if kind.gpus:
            zones.setdefault(vm_family(name), set()).update(kind.zones)
    rows: list[Json] = []
    for family, offered in zones.items():
        rows += _rows(world, "vm_family", family, offered, world.catalog.vm_family_quota)
    return _by_family(call, "CPUS-PER-VM-FAMILY-per-project-region", "vm_family", rows)


def _by_family(call: Call, ident: str, dimension: str, rows: list[Json]) -> Json:
    metric = ident.removesuffix("-per-project-region").lower().replace("-", "_")
    return _head(call, ident, metric) | {"dimensions": [dimension, "region"], "dimensionsInfos": rows}


def _rows(world: World, dimension: str, family: str, zones: set[str], limit: int) -> list[Json]:
    """A row with a value for each region that offers the family, and one without, which means 0, for the others."""
    offered = [region for region, each in world.catalog.regions.items() if zones & set(each)]
    left = [region for region in world.catalog.regions if region not in offered]
    rows: list[Json] = [
        {
            "dimensions": {dimension: family, "region": region},
            "details": {"value": str(limit)},
            "applicableLocations": [region],
        }
        for region in offered
    ]
    return [*rows, {"dimensions": {dimension: family}, "details": {}, "applicableLocations": left}]
