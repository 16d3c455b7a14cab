"""From a method and a path to what is asked: the service, the collection, the verb, the relative resource name.

The routes are the table of methods of the API documents, with ``zones/`` beside ``locations/`` for container as its
older methods have it, and the few methods for which there is no document here.

Invariant: pure; every request has at most one route.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Any, Final, NamedTuple

import msgspec

from interlace.sim.gke.schemas import Method, document

Json = dict[str, Any]
_PARAMETER: Final = re.compile(r"\{(\w+)\}")
_MORE_COMPUTE: Final = (
    ("reservationBlocks.get", "projects/{project}/zones/{zone}/reservations/{r}/reservationBlocks/{block}"),
    ("reservationBlocks.list", "projects/{project}/zones/{zone}/reservations/{r}/reservationBlocks"),
    ("globalOperations.aggregatedList", "projects/{project}/aggregated/operations"),
    ("acceleratorTypes.aggregatedList", "projects/{project}/aggregated/acceleratorTypes"),
    ("machineTypes.aggregatedList", "projects/{project}/aggregated/machineTypes"),
)
_PLATFORM: Final = (
    ("serviceusage", "services.get", "GET", "v1/projects/{project}/services/{service}"),
    ("serviceusage", "services.list", "GET", "v1/projects/{project}/services"),
    ("serviceusage", "services.enable", "POST", "v1/projects/{project}/services/{service}:enable"),
    ("serviceusage", "services.batchEnable", "POST", "v1/projects/{project}/services:batchEnable"),
    ("serviceusage", "operations.get", "GET", "v1/operations/{operation}"),
    (
        "cloudquotas",
        "quotaInfos.get",
        "GET",
        "v1/projects/{project}/locations/global/services/{service}/quotaInfos/{quota}",
    ),
    ("cloudquotas", "quotaInfos.list", "GET", "v1/projects/{project}/locations/global/services/{service}/quotaInfos"),
    ("cloudresourcemanager", "projects.get", "GET", "v3/projects/{project}"),
    ("cloudresourcemanager", "projects.get", "GET", "v1/projects/{project}"),
    ("cloudresourcemanager", "projects.testIamPermissions", "POST", "v3/projects/{project}:testIamPermissions"),
    ("cloudresourcemanager", "projects.testIamPermissions", "POST", "v1/projects/{project}:testIamPermissions"),
)


class Route(msgspec.Struct, frozen=True, kw_only=True):
    """``name`` is ``collection.verb``; ``method`` the row of the API document, None where there is none."""

    service: str
    version: str
    name: str
    method: Method | None = None

    @property
    def collection(self) -> str:
        return self.name.rpartition(".")[0]

    @property
    def verb(self) -> str:
        return self.name.rpartition(".")[2]


class Call(msgspec.Struct, frozen=True, kw_only=True):
    """One request that has a route. ``path`` is the relative resource name (of a collection: its name at the end)."""

    route: Route
    line: str
    path: str
    parameters: dict[str, str]
    query: dict[str, str]
    body: Json | None

    @property
    def project(self) -> str:
        return self.parameters["project"]

    @property
    def scope(self) -> str:
        """``global``, ``regions/R``, ``zones/Z`` or ``locations/L``."""
        parts = self.path.split("/")
        return "global" if parts[2] in {"global", "aggregated"} else "/".join(parts[2:4])

    @property
    def place(self) -> str:
        return self.scope.rpartition("/")[2]


class _Row(NamedTuple):
    verb: str
    pattern: re.Pattern[str]
    route: Route
    strip: str


def find(verb: str, path: str) -> tuple[Route, dict[str, str], str] | None:
    """The route, the values of its parameters, and the relative resource name. None where nothing answers."""
    for row in _table():
        if row.verb == verb and (found := row.pattern.fullmatch(path)):
            name = path.removeprefix(row.strip).partition(":")[0]
            if row.route.service == "container":
                name = name.replace("/zones/", "/locations/")
            return row.route, found.groupdict(), name
    return None


def service_of(path: str) -> str:
    """The service that a path without a route was meant for, as far as one can tell."""
    return "compute" if path.startswith("/compute/") else "container"


@cache
def _table() -> tuple[_Row, ...]:
    rows: list[_Row] = []
    for service, name, verb, template in _PLATFORM:
        version = template.partition("/")[0]
        route = Route(service=service, version=version, name=name)
        rows.append(_Row(verb, _compiled(f"/{template}"), route, f"/{version}/"))
    for version in ("v1", "beta", "alpha"):
        rows += _compute(version)
    for version in ("v1", "v1beta1", "v1alpha1"):
        rows += _container(version)
    return tuple(rows)


def _compute(version: str) -> list[_Row]:
    known = document("compute", "v1" if version == "v1" else "beta")
    strip = f"/compute/{version}/"
    rows = []
    for method in known.methods:
        route = Route(service="compute", version=version, name=method.name, method=method)
        rows.append(_Row(method.verb, _compiled(strip + method.path), route, strip))
    for name, template in _MORE_COMPUTE:
        route = Route(service="compute", version=version, name=name)
        rows.append(_Row("GET", _compiled(strip + template), route, strip))
    return rows


def _container(version: str) -> list[_Row]:
    known = document("container", "v1" if version == "v1" else "v1beta1")
    strip = f"/{version}/"
    rows = []
    for method in known.methods:
        route = Route(
            service="container",
            version=version,
            name=_short(method.name),
            method=method,
        )
        template = strip + method.path.partition("/")[2]
        forms = (template, template.replace("/locations/", "/zones/"))
        rows += [_Row(method.verb, _compiled(form), route, strip) for form in forms]
    return rows


def _short(name: str) -> str:
    parts = name.split(".")
    return ".".join(parts[-2:]) if len(parts) > 3 else f"locations.{parts[-1]}"


def _compiled(template: str) -> re.Pattern[str]:
    escaped = re.escape(template).replace(r"\{", "{").replace(r"\}", "}")
    names = {"projectsId": "project"}
    return re.compile(_PARAMETER.sub(lambda found: f"(?P<{names.get(found[1], found[1])}>[^/:]+)", escaped))
