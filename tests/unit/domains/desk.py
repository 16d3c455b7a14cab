"""The controller on an embedded API server, and what users, scheduler, kubelet and agents do around it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from interlace.api.computedomain import DOMAIN_LABEL, DRIVER, ComputeDomain, ComputeDomainClique, ComputeDomainStatus
from interlace.api.core import Event, Pod
from interlace.api.resource import ResourceClaim, ResourceClaimTemplate, ResourceSlice
from interlace.domains.controller import serve
from interlace.domains.settings import ControllerSettings
from interlace.kube.client import Client
from interlace.kube.errors import NotFound
from interlace.kube.untyped import apply_manifest, untyped
from interlace.manifests import NAMESPACE
from interlace.sim.plane import AuditRecord, Plane
from tests.waiting import eventually

RACK = "c0ffee00-0000-4000-8000-0000000000ff"
ACCOUNT = f"system:serviceaccount:{NAMESPACE}:interlace-controller"
GROUPS = ["system:serviceaccounts", f"system:serviceaccounts:{NAMESPACE}", "system:authenticated"]
WITHIN = 15.0
UNTYPED_DOMAIN = untyped(ComputeDomain.resource)


class Team:
    """A namespace, and what users, scheduler, kubelet and agents would do in it."""

    def __init__(self, client: Client, *, namespace: str) -> None:
        self.client = client
        self.namespace = namespace

    async def create_domain(
        self, name: str = "cd", *, num_nodes: int = 0, template: str = "", isolation: str = "Domain"
    ) -> ComputeDomain:
        channel = {"resourceClaimTemplate": {"name": template or f"{name}-rct"}}
        spec = {"numNodes": num_nodes, "channel": channel, "isolation": isolation}
        return await self.client.create(
            ComputeDomain, {"metadata": {"name": name}, "spec": spec}, namespace=self.namespace
        )

    async def domain(self, name: str = "cd") -> ComputeDomain:
        return await self.client.get(ComputeDomain, name, namespace=self.namespace)

    async def status(self, name: str = "cd") -> ComputeDomainStatus:
        return (await self.domain(name)).status or ComputeDomainStatus()

    async def condition(self, type_: str, *, name: str = "cd") -> tuple[str, str]:
        found = {c.type: c for c in (await self.status(name)).conditions}
        return (found[type_].status, found[type_].reason) if type_ in found else ("", "")

    async def cliques(self, uid: str) -> list[ComputeDomainClique]:
        labels = f"{DOMAIN_LABEL}={uid}"
        return (await self.client.list(ComputeDomainClique, namespace=NAMESPACE, labels=labels)).items

    async def rows(self, uid: str) -> dict[str, tuple[int, str]]:
        return {r.node_name: (r.index, r.ip_address) for c in await self.cliques(uid) for r in c.daemons}

    async def templates(self) -> list[ResourceClaimTemplate]:
        return (await self.client.list(ResourceClaimTemplate, namespace=self.namespace)).items

    async def add_claim(self, name: str, *, uid: str, node: str = "") -> None:
        """A claim of Pod ``name``, as the template makes it; allocated if ``node`` is given."""
        owner = {"apiVersion": "v1", "kind": "Pod", "name": name, "uid": f"{name}-uid"}
        request = {"name": "channel", "exactly": {"deviceClassName": "compute-domain-default-channel.nvidia.com"}}
        await self.client.create(
            ResourceClaim,
            {
                "metadata": {"name": name, "labels": {DOMAIN_LABEL: uid}, "ownerReferences": [owner]},
                "spec": {"devices": {"requests": [request]}},
            },
            namespace=self.namespace,
        )
        if node:
            await self.allocate(name, node=node)

    async def allocate(self, name: str, *, node: str) -> None:
        result = {"request": "channel", "driver": DRIVER, "pool": node, "device": "channel-0"}
        await self._claim_status(name, {"allocation": {"devices": {"results": [result]}}})

    async def create_pod(self, name: str) -> Pod:
        containers = [{"name": "c", "image": "docker.io/library/busybox:1.37"}]
        body = {"metadata": {"name": name}, "spec": {"containers": containers}}
        return await self.client.create(Pod, body, namespace=self.namespace)

    async def reserve(self, name: str, *, pod: Pod) -> None:
        consumer = {"resource": "pods", "name": pod.metadata.name, "uid": pod.metadata.uid}
        await self._claim_status(name, {"reservedFor": [consumer]})

    async def report(
        self, name: str, *, node: str, status: str = "True", reason: str = "Prepared", message: str = ""
    ) -> None:
        condition = {
            "type": "Ready",
            "status": status,
            "reason": reason,
            "message": message,
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        }
        device = {"driver": DRIVER, "pool": node, "device": "channel-0", "conditions": [condition]}
        await self._claim_status(name, {"devices": [device]})

    async def remove_claim(self, name: str) -> None:
        await self.client.delete(ResourceClaim, name, namespace=self.namespace)

    async def _claim_status(self, name: str, status: dict[str, Any]) -> None:
        await self.client.merge_patch(
            ResourceClaim, name, {"status": status}, namespace=self.namespace, subresource="status"
        )

    async def events(self, about: str) -> list[tuple[str, str]]:
        listing = await self.client.list(Event, namespace=self.namespace)
        return [(e.type, e.reason) for e in listing.items if e.involved_object.name == about]


async def add_node(client: Client, name: str, *, address: str, clique: str | None = f"{RACK}.0") -> None:
    """The slice of the agent and the imex-host Pod of a node."""
    if clique is not None:
        attributes = {"type": {"string": "channel"}, "id": {"int": 0}, "clique": {"string": clique}}
        pool = {"name": name, "generation": 1, "resourceSliceCount": 1}
        spec = {"driver": DRIVER, "nodeName": name, "pool": pool, "devices": [{"name": "channel-0"}]}
        spec["devices"] = [{"name": "channel-0", "attributes": {**attributes, "domain": {"string": ""}}}]
        await client.create(ResourceSlice, {"metadata": {"name": f"{name}-slice"}, "spec": spec})
    await add_host(client, f"imex-{name}", node=name, address=address)


async def add_host(client: Client, name: str, *, node: str, address: str) -> None:
    labels = {"app.kubernetes.io/component": "imex-host"}
    containers = [{"name": "imex-host", "image": "ghcr.io/interlace/interlace:0"}]
    await client.create(
        Pod,
        {
            "metadata": {"name": name, "labels": labels},
            "spec": {"nodeName": node, "serviceAccountName": "interlace-imex-host", "containers": containers},
        },
        namespace=NAMESPACE,
    )
    status = {"phase": "Running", "podIP": address, "podIPs": [{"ip": address}]}
    await client.merge_patch(Pod, name, {"status": status}, namespace=NAMESPACE, subresource="status")


class Desk:
    """One control plane with our objects installed."""

    def __init__(self, plane: Plane, client: Client) -> None:
        self.plane = plane
        self.client = client
        self._numbers = iter(range(1000))

    async def team(self) -> Team:
        name = f"team-{next(self._numbers)}"
        account = {"kind": "ServiceAccount", "metadata": {"name": "default", "namespace": name}}
        for manifest in ({"kind": "Namespace", "metadata": {"name": name}}, account):
            await apply_manifest(self.client, {"apiVersion": "v1", **manifest}, manager="test")
        return Team(self.client, namespace=name)

    async def nodes(self, count: int, **options: Any) -> list[str]:
        """So many new nodes."""
        first = next(self._numbers)
        names = [f"node-{first:03d}-{i:02d}" for i in range(count)]
        for i, name in enumerate(names):
            await add_node(self.client, name, address=f"10.{first}.0.{i + 1}", **options)
        return names

    @asynccontextmanager
    async def controller(self, **changes: Any) -> AsyncIterator[Callable[[], int]]:
        """A controller that leads; yields a function that gives its port. It runs until the block ends."""
        port = asyncio.get_running_loop().create_future()
        settings = ControllerSettings(
            **{
                "identity": f"controller-{next(self._numbers)}",
                "http_host": "127.0.0.1",
                "http_port": 0,
                "lease_duration": 2,
                "lease_renew_deadline": 1.5,
                "lease_retry_period": 0.2,
                **changes,
            }
        )
        config = self.plane.credentials(ACCOUNT, groups=GROUPS)
        async with asyncio.TaskGroup() as group:
            task = group.create_task(serve(settings, config=config, on_listening=port.set_result))
            await port
            try:
                yield port.result
            finally:
                task.cancel()

    def requests(self, *, since: int, agent: str = "interlace-controller") -> list[AuditRecord]:
        """What the controller asked for since then, watches and Leases apart."""
        return [
            record
            for record in self.plane.audit()[since:]
            if record.user_agent.startswith(agent) and record.verb != "watch" and record.resource != "leases"
        ]

    @property
    def now(self) -> int:
        return len(self.plane.audit())


async def until(look: Callable[[], Awaitable[object]], *, what: str) -> None:
    await eventually(look, within=WITHIN, what=what)


async def equal(look: Callable[[], Awaitable[object]], expected: object) -> None:
    """Wait until ``look`` gives ``expected``."""

    async def same() -> bool:
        found = await look()
        assert found == expected
        return True

    await eventually(same, within=WITHIN)


async def form(desk: Desk, team: Team, names: list[str], *, cd: str = "cd") -> ComputeDomain:
    """A domain with a Ready channel on each of the nodes."""
    domain = await team.create_domain(cd)
    uid = domain.metadata.uid
    for name in names:
        await team.add_claim(f"{cd}-{name}", uid=uid)
    for name in names:
        await team.allocate(f"{cd}-{name}", node=name)
    await until(lambda: has_rows(team, uid, names), what="a row for each node")
    for name in names:
        await team.report(f"{cd}-{name}", node=name)
    await equal(lambda: team.condition("Ready", name=cd), ("True", "Formed"))
    return domain


async def has_rows(team: Team, uid: str, names: list[str]) -> bool:
    return set(await team.rows(uid)) == set(names)


async def leads(desk: Desk) -> bool:
    """The last of the six first lists of a leader has been answered."""
    watched = {r.resource for r in desk.plane.audit() if r.verb == "watch" and r.user_agent.startswith("interlace-con")}
    return {"computedomains", "resourceslices", "pods", "resourceclaims"} <= watched


async def told_about(team: Team, about: str, event: tuple[str, str]) -> bool:
    return event in await team.events(about)


async def gone(team: Team, name: str = "cd") -> bool:
    try:
        await team.domain(name)
    except NotFound:
        return True
    return False
