"""Reads a live project into a bundle of observed state: everything that rules may look at, nothing changed.

Invariant: a part that may not be read, or whose API is off, is left out and told as a finding; reading ends with an
error only where nothing could be read at all, or where there are no credentials.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, Final, Protocol

import msgspec

from interlace.gke.bodies.requests import QUERY, listing, path_of, read
from interlace.gke.errors import GkeError, Refused
from interlace.gke.failures import ApiError, Unreachable
from interlace.gke.observed.bundle import FORMAT, wanted_family
from interlace.gke.observed.state import Want
from interlace.gke.places import root, short
from interlace.gke.quotas import READ
from interlace.gke.request import Request
from interlace.gke.resource import Key
from interlace.gke.rules.preflight import APIS
from interlace.gke.rules.references import family_of, project_in, region_of, reservation_name
from interlace.rules.finding import Finding

UNREADABLE: Final = "state.unreadable"

PERMISSIONS: Final = (
    "compute.networks.create",
    "compute.networks.delete",
    "compute.networks.get",
    "compute.networks.list",
    "compute.networks.updatePolicy",
    "compute.networks.use",
    "compute.subnetworks.create",
    "compute.subnetworks.delete",
    "compute.subnetworks.list",
    "compute.subnetworks.use",
    "compute.firewalls.create",
    "compute.firewalls.delete",
    "compute.firewalls.list",
    "compute.resourcePolicies.create",
    "compute.resourcePolicies.list",
    "compute.resourcePolicies.use",
    "compute.reservations.get",
    "compute.reservations.list",
    "compute.projects.get",
    "compute.regions.get",
    "compute.machineTypes.get",
    "compute.globalOperations.get",
    "compute.regionOperations.get",
    "container.clusters.create",
    "container.clusters.delete",
    "container.clusters.get",
    "container.clusters.getCredentials",
    "container.clusters.list",
    "container.clusters.update",
    "container.operations.get",
    "cloudquotas.quotas.get",
    "serviceusage.services.get",
)
"""What making, checking and taking away a cluster needs in its project; of Google's documents as far as known."""


class Reader(Protocol):
    """Asks an API; `gke.client.Client` is one."""

    async def ask(self, request: Request) -> Any:
        """The body of a good answer. Raises ApiError, Unreachable and CredentialsError."""
        ...

    async def ask_all(self, request: Request) -> list[Any]:
        """``items`` of all pages."""
        ...


class Target(msgspec.Struct, frozen=True, kw_only=True):
    """What to look at. ``cluster`` empty: the only one at the location. ``networks``: behind the additional NICs.

    ``reservations``: values of reservation affinity of pools that are still to be made.
    """

    project: str
    location: str
    cluster: str = ""
    pool: str = ""
    flavour: str = ""
    nodes: int = 0
    networks: tuple[str, ...] = ()
    reservations: tuple[str, ...] = ()
    zones: tuple[str, ...] = ()
    network_project: str = ""

    @property
    def region(self) -> str:
        return region_of(self.location)


class Gathered(msgspec.Struct, frozen=True, kw_only=True):
    """``document``: of the form of a bundle. ``findings``: what could not be read, and why."""

    document: dict[str, Any]
    findings: tuple[Finding, ...]

    @property
    def subject(self) -> str:
        """The cluster, or that there is none, in words."""
        cluster, name = self.document.get("cluster"), self.document.get("want", {}).get("clusterName", "")
        if cluster:
            return f"cluster {cluster.get('name', '')}"
        if any(each.pointer == "/cluster" for each in self.findings):
            return f"cluster {name} (not read)" if name else "clusters (not read)"
        return f"no cluster {name} yet" if name else "no cluster yet"


class NothingRead(GkeError):
    """No part could be read: nothing can be said."""


async def observe(reader: Reader, target: Target) -> Gathered:
    """Read everything but the objects in the cluster, which are Kubernetes' own.

    Raises NothingRead, CredentialsError, and Refused where no cluster is named and there are several.
    """
    looking = _Looking(reader, target)
    async with asyncio.TaskGroup() as group:
        for section, look in looking.first():
            group.create_task(looking.into(section, look))
    looking.choose()
    async with asyncio.TaskGroup() as group:
        for section, look in looking.second():
            group.create_task(looking.into(section, look))
    if not looking.answered:
        raise looking.nothing()
    document = {
        "format": FORMAT,
        "project": target.project,
        "location": target.location,
        "want": looking.want,
        **looking.document,
        "kubernetes": None,
    }
    return Gathered(document=document, findings=tuple(looking.findings))


_Look = Callable[[], Awaitable[Any]]


class _Looking:
    """One observation under way: what has been read so far, by section."""

    def __init__(self, reader: Reader, target: Target) -> None:
        self.reader = reader
        self.target = target
        self.document: dict[str, Any] = {}
        self.findings: list[Finding] = []
        self.answered = 0
        self.errors: list[GkeError] = []

    @property
    def want(self) -> dict[str, Any]:
        target, cluster = self.target, self.document.get("cluster") or {}
        wanted = {
            "flavour": target.flavour,
            "nodes": target.nodes,
            "clusterName": target.cluster or cluster.get("name", ""),
            "nodePoolName": target.pool,
            "networks": list(target.networks),
        }
        return {key: value for key, value in wanted.items() if value}

    def first(self) -> Iterable[tuple[str, _Look]]:
        """What can be asked knowing the target alone."""
        target = self.target
        compute = root("compute", project=target.project, version="v1")
        yield "cluster", self._cluster
        yield "networks", lambda: self._listed(Key("network", "global", "-"))
        yield "subnetworks", lambda: self._listed(Key("subnetwork", target.region, "-"))
        yield "firewalls", lambda: self._listed(Key("firewall", "global", "-"))
        yield "resourcePolicies", lambda: self._listed(Key("resourcePolicy", target.region, "-"), own=True)
        yield "projectInfo", lambda: self._get("compute", compute)
        yield "regionInfo", lambda: self._get("compute", f"{compute}/regions/{target.region}")
        yield "quotaInfos", self._quotas
        yield "services", self._services
        yield "permissions", self._permissions

    def second(self) -> Iterable[tuple[str, _Look]]:
        """What needs to know the zones and the reservations of the pools."""
        yield "reservations", self._reservations
        if any("/reservationBlocks/" in each for each in self._values()):
            yield "reservationBlocks", self._blocks
        if self._machines():
            yield "machineTypes", self._machine_types

    def choose(self) -> None:
        """Where several clusters were listed, there must be one. Raises Refused."""
        found = self.document.get("cluster")
        if isinstance(found, list):
            names = [str(each.get("name")) for each in found]
            if len(found) > 1:
                raise Refused(
                    f"There are {len(found)} clusters at {self.target.location}: {', '.join(names)}.",
                    remedy="Name one with --cluster.",
                )
            self.document["cluster"] = found[0] if found else None

    async def into(self, section: str, look: _Look) -> None:
        """Read one section; what stands against it becomes a finding."""
        self.document.setdefault(section, None)
        try:
            self.document[section] = await look()
            self.answered += 1
        except (ApiError, Unreachable) as error:
            self.errors.append(error)
            self.findings.append(unreadable(section, error))

    def nothing(self) -> GkeError:
        """Why nothing could be read: the first error stands for all."""
        first = self.errors[0]
        return NothingRead(
            f"Nothing of project {self.target.project} could be read: {first.what}",
            cause=first.cause,
            remedy=first.remedy,
        )

    async def _get(self, service: str, path: str) -> Any:
        return await self.reader.ask(Request(service=service, method="GET", path=path, query=dict(QUERY)))

    async def _maybe(self, service: str, path: str) -> Any:
        """None where it does not exist."""
        try:
            return await self._get(service, path)
        except ApiError as error:
            if error.status == 404:
                return None
            raise

    async def _listed(self, sample: Key, *, own: bool = False) -> list[Any]:
        """All of a collection, that of the networks' own project included."""
        target = self.target
        found = await self.reader.ask_all(listing(sample, project=target.project))
        host = target.network_project
        if not own and host and host != target.project:
            found += await self.reader.ask_all(listing(sample, project=host))
        return found

    async def _cluster(self) -> Any:
        target = self.target
        key = Key("cluster", target.location, target.cluster)
        if target.cluster:
            # Only the beta API tells of host maintenance.
            return await self._maybe("container", path_of(key, project=target.project, version="v1beta1"))
        answer = await self.reader.ask(listing(key, project=target.project, version="v1beta1"))
        return list(answer.get("clusters") or ())

    async def _quotas(self) -> list[Any]:
        parent = f"/v1/projects/{self.target.project}/locations/global/services/compute.googleapis.com/quotaInfos"
        found = [await self._maybe("cloudquotas", f"{parent}/{each}") for each in READ]
        return [each for each in found if each is not None]

    async def _services(self) -> list[Any]:
        parent = f"/v1/projects/{self.target.project}/services"
        return [await self._get("serviceusage", f"{parent}/{each}") for each in APIS]

    async def _permissions(self) -> dict[str, Any]:
        answer = await self.reader.ask(
            Request(
                service="cloudresourcemanager",
                method="POST",
                path=f"/v3/projects/{self.target.project}:testIamPermissions",
                query=dict(QUERY),
                body={"permissions": list(PERMISSIONS)},
            )
        )
        return {"asked": list(PERMISSIONS), "permissions": list((answer or {}).get("permissions") or ())}

    async def _reservations(self) -> list[Any]:
        project = self.target.project
        found: list[Any] = []
        for zone in self._zones():
            found += await self.reader.ask_all(listing(Key("reservation", zone, "-"), project=project))
        for value in self._values():
            owner, name = project_in(value) or project, reservation_name(value)
            for zone in self._zones():
                closer = await self._closer(Key("reservation", zone, name), owner)
                if closer is not None:
                    link = closer.get("selfLink")
                    found = [*(each for each in found if each.get("selfLink") != link), closer]
        return found

    async def _blocks(self) -> list[Any]:
        """The blocks of the reservations of which a pool takes one."""
        found: list[Any] = []
        for value in self._values():
            above, named, _ = value.partition("/reservationBlocks/")
            owner = project_in(value) or self.target.project
            for zone in self._zones() if named else ():
                path = path_of(Key("reservation", zone, reservation_name(above)), project=owner)
                request = Request(service="compute", method="GET", path=f"{path}/reservationBlocks", query=dict(QUERY))
                try:
                    found += await self.reader.ask_all(request)
                except ApiError as error:
                    if error.status != 404:
                        raise
        return found

    async def _closer(self, key: Key, project: str) -> dict[str, Any] | None:
        """One reservation with the fields that only the beta API has; None where it cannot be read."""
        for version in ("beta", "v1"):
            try:
                found: dict[str, Any] = await self.reader.ask(read(key, project=project, version=version))
            except ApiError as error:
                if error.status in (403, 404):
                    continue
                raise
            # Both APIs name a reservation by links that differ in the version alone.
            return {**found, "selfLink": str(found.get("selfLink", "")).replace("/compute/beta/", "/compute/v1/")}
        return None

    async def _machine_types(self) -> list[Any]:
        compute = root("compute", project=self.target.project, version="v1")
        found = []
        for zone in self._zones():
            for machine in self._machines():
                offered = await self._maybe("compute", f"{compute}/zones/{zone}/machineTypes/{machine}")
                found += [] if offered is None else [offered]
        return found

    def _pools(self) -> list[Mapping[str, Any]]:
        cluster = self.document.get("cluster") or {}
        return list(cluster.get("nodePools") or ())

    def _zones(self) -> list[str]:
        """Zones of the GPUs: those that are named, else those of pools, else of the location."""
        target = self.target
        named = list(target.zones) or [zone for pool in self._pools() for zone in pool.get("locations") or ()]
        if not named and target.location != target.region:
            named = [target.location]
        region = self.document.get("regionInfo") or {}
        return list(dict.fromkeys(named or [short(each) for each in region.get("zones") or ()]))

    def _values(self) -> list[str]:
        configs = [pool.get("config") or {} for pool in self._pools()]
        there = [value for each in configs for value in (each.get("reservationAffinity") or {}).get("values") or ()]
        return list(dict.fromkeys([*self.target.reservations, *there]))

    def _machines(self) -> list[str]:
        """Machine types with GPUs that are asked for or there."""
        found = [str((pool.get("config") or {}).get("machineType", "")) for pool in self._pools()]
        wanted = _wanted_machines(self.target.flavour)
        return list(dict.fromkeys([*wanted, *(each for each in found if family_of(each))]))


def _wanted_machines(flavour: str) -> tuple[str, ...]:
    family = wanted_family(Want(flavour=flavour))
    return family.machines if family else ()


def unreadable(section: str, error: GkeError) -> Finding:
    """Says that a part could not be read, and why."""
    return Finding(
        rule=UNREADABLE,
        severity="warning",
        pointer=f"/{section}",
        text=f"{section} could not be read: {error.what.rstrip('.')}",
        remedy=error.remedy.rstrip(".") or "ask for the right to read it",
    )
