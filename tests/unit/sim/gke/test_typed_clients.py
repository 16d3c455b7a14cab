"""The simulated cloud judged by google-cloud-compute and google-cloud-container, whose messages refuse unknown fields.

The futures of google-cloud-compute poll the real host whatever the endpoint is; so the ``_unary`` methods are used, and
the operations are waited for with a client of the same endpoint.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import ExitStack, asynccontextmanager
from typing import Any

import pytest
from google.api_core import exceptions
from google.api_core.client_options import ClientOptions
from google.auth.credentials import AnonymousCredentials
from google.cloud import compute_v1, container_v1
from google.protobuf import json_format

from interlace.sim.gke import GkeServer, Kind
from tests.unit.sim.gke.cloud import cluster_body, pool_body
from tests.unit.sim.gke.served import served

PROJECT = "example-project"
PARENT = f"projects/{PROJECT}/locations/us-central1-a"
CLUSTER = f"{PARENT}/clusters/example-cluster"
STRICT: dict[str, Any] = {"timeout": 20, "retry": None}


class Google:
    """Clients of a simulation; their connections are closed at the end."""

    def __init__(self, fake: GkeServer, closing: ExitStack) -> None:
        self.fake = fake
        self._closing = closing

    def client(self, kind: Callable[..., Any]) -> Any:
        options = ClientOptions(api_endpoint=self.fake.url)
        nobody = AnonymousCredentials()  # type: ignore[no-untyped-call]
        client = kind(credentials=nobody, client_options=options, transport="rest")
        self._closing.callback(client.transport.close)
        return client

    async def wait(self, operation: Any) -> Any:
        """The operation of compute when it has ended."""
        kind: Callable[..., Any] = compute_v1.GlobalOperationsClient
        place = {}
        if operation.region:
            kind, place = compute_v1.RegionOperationsClient, {"region": operation.region.rpartition("/")[2]}
        elif operation.zone:
            kind, place = compute_v1.ZoneOperationsClient, {"zone": operation.zone.rpartition("/")[2]}
        return await call(self.client(kind).wait, project=PROJECT, operation=operation.name, **place)


@asynccontextmanager
async def simulated() -> AsyncIterator[Google]:
    """A simulation and clients of it."""
    async with served() as fake:
        with ExitStack() as closing:
            yield Google(fake, closing)


async def call(method: Callable[..., Any], **arguments: Any) -> Any:
    """A blocking call in a thread, without retries."""
    return await asyncio.to_thread(lambda: method(arguments, **STRICT))


RESOURCES: list[tuple[str, str, str, dict[str, str], Any]] = [
    ("Networks", "network", "networks", {}, {"name": "net", "auto_create_subnetworks": False, "mtu": 8244}),
    (
        "Subnetworks",
        "subnetwork",
        "subnetworks",
        {"region": "us-central1"},
        {"name": "sub", "network": "global/networks/default", "ip_cidr_range": "192.168.1.0/24"},
    ),
    (
        "Firewalls",
        "firewall",
        "firewalls",
        {},
        {
            "name": "rule",
            "network": "global/networks/default",
            "allowed": [{"I_p_protocol": "tcp", "ports": ["0-65535"]}],
        },
    ),
    (
        "ResourcePolicies",
        "resource_policy",
        "resourcePolicies",
        {"region": "us-central1"},
        {"name": "near", "group_placement_policy": {"collocation": "COLLOCATED"}},
    ),
    (
        "Reservations",
        "reservation",
        "reservations",
        {"zone": "us-central1-a"},
        {
            "name": "kept",
            "specific_reservation": {"count": 2, "instance_properties": {"machine_type": "a3-megagpu-8g"}},
        },
    ),
]


@pytest.mark.parametrize(("name", "one", "collection", "place", "body"), RESOURCES, ids=[each[2] for each in RESOURCES])
async def test_a_resource_of_compute_is_inserted_got_listed_and_deleted(
    name: str, one: str, collection: str, place: dict[str, str], body: Any
) -> None:
    async with simulated() as google:
        fake = google.fake
        client: Any = google.client(getattr(compute_v1, f"{name}Client"))
        insert = {"project": PROJECT, f"{one}_resource": body, **place}
        get = {"project": PROJECT, one: body["name"], **place}

        fake.faults.add(Kind.QUOTA, f"POST .*/{collection}$")
        with pytest.raises(exceptions.Forbidden, match="exceeded"):
            await call(client.insert_unary, **insert)

        done = await google.wait(await call(client.insert_unary, **insert))
        assert (done.status.name, done.http_error_status_code) == ("DONE", 0)
        found = await call(client.get, **get)
        assert found.id == done.target_id
        rows = await asyncio.to_thread(
            lambda: list(client.list({"project": PROJECT, "max_results": 1, **place}, **STRICT))
        )
        assert found in rows
        with pytest.raises(exceptions.Conflict):
            await call(client.insert_unary, **insert)
        await google.wait(await call(client.delete_unary, **get))
        with pytest.raises(exceptions.NotFound):
            await call(client.get, **get)
        assert fake.store.made() == []


async def test_a_quota_that_is_noticed_at_the_end_is_read_from_the_operation() -> None:
    async with simulated() as google:
        google.fake.world.catalog.global_quotas["NETWORKS"] = 1
        client = google.client(compute_v1.NetworksClient)
        body = {"name": "net", "auto_create_subnetworks": False}
        done = await google.wait(await call(client.insert_unary, project=PROJECT, network_resource=body))
        assert (done.error.errors[0].code, done.http_error_status_code) == ("QUOTA_EXCEEDED", 403)
        assert done.error.errors[0].error_details[0].quota_info.limit_name == "NETWORKS-per-project"


async def poll(client: Any, operation: Any) -> Any:
    """The operation of container when it has ended."""
    async with asyncio.timeout(30):
        while operation.status != container_v1.Operation.Status.DONE:
            await asyncio.sleep(0.01)
            operation = await call(client.get_operation, name=f"{PARENT}/operations/{operation.name}")
    return operation


async def test_clusters_and_pools_are_created_got_listed_and_deleted() -> None:
    async with simulated() as google:
        fake = google.fake
        client = google.client(container_v1.ClusterManagerClient)
        cluster = json_format.ParseDict(cluster_body(), container_v1.Cluster.pb(container_v1.Cluster()))
        pool = json_format.ParseDict(pool_body(), container_v1.NodePool.pb(container_v1.NodePool()))

        fake.faults.add(Kind.PERMISSION_DENIED, "POST .*/clusters$")
        with pytest.raises(exceptions.Forbidden, match=r"container\.clusters\.create"):
            await call(client.create_cluster, parent=PARENT, cluster=cluster)
        started = await call(client.create_cluster, parent=PARENT, cluster=cluster)
        assert started.progress.metrics[0].name == "CLUSTER_CONFIGURING"
        await poll(client, started)
        found = await call(client.get_cluster, name=CLUSTER)
        assert (found.status.name, found.network_config.enable_multi_networking) == ("RUNNING", True)
        assert [each.name for each in (await call(client.list_clusters, parent=PARENT)).clusters] == ["example-cluster"]

        fake.faults.add(Kind.HAS_OPERATION, "POST .*/nodePools$")
        with pytest.raises(exceptions.BadRequest, match="incompatible operation"):
            await call(client.create_node_pool, parent=CLUSTER, node_pool=pool)
        await poll(client, await call(client.create_node_pool, parent=CLUSTER, node_pool=pool))
        name = f"{CLUSTER}/nodePools/gpu-pool"
        assert (await call(client.get_node_pool, name=name)).config.accelerators[0].accelerator_count == 8
        await poll(client, await call(client.set_node_pool_size, name=name, node_count=1))
        assert len((await call(client.list_node_pools, parent=CLUSTER)).node_pools) == 2
        await poll(client, await call(client.delete_node_pool, name=name))
        await poll(client, await call(client.delete_cluster, name=CLUSTER))
        with pytest.raises(exceptions.NotFound):
            await call(client.get_cluster, name=CLUSTER)
        assert fake.store.made() == []


async def test_every_answer_can_be_read_by_messages_that_refuse_unknown_fields() -> None:
    async with simulated() as google:
        fake = google.fake
        client = google.client(container_v1.ClusterManagerClient)
        cluster = json_format.ParseDict(cluster_body(), container_v1.Cluster.pb(container_v1.Cluster()))
        await poll(client, await call(client.create_cluster, parent=PARENT, cluster=cluster))
        await call(client.get_cluster, name=CLUSTER)
        await call(google.client(compute_v1.NetworksClient).get, project=PROJECT, network="default")
        messages: dict[str, Any] = {
            "clusters.create": container_v1.Operation,
            "operations.get": container_v1.Operation,
            "clusters.get": container_v1.Cluster,
            "networks.get": compute_v1.Network,
        }
        for entry in fake.log:
            assert entry.answer is not None
            message = messages[entry.answer.method]
            json_format.ParseDict(entry.answer.body, message.pb(message()), ignore_unknown_fields=False)
