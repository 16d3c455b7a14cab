"""The simulated cloud judged by google-api-python-client, with its own discovery documents and no network."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import cached_property
from typing import Any

import httplib2  # type: ignore[import-untyped]
import pytest
from google.auth.credentials import AnonymousCredentials
from googleapiclient import discovery
from googleapiclient.errors import HttpError

from interlace.sim.gke import Durations, GkeServer, Kind
from tests.unit.sim.gke.cloud import cluster_body, pool_body
from tests.unit.sim.gke.served import served

PROJECT = "example-project"
PARENT = f"projects/{PROJECT}/locations/us-central1-a"
CLUSTER = f"{PARENT}/clusters/example-cluster"


def anonymous() -> Any:
    """No credentials."""
    return AnonymousCredentials()  # type: ignore[no-untyped-call]


class Google:
    """Calls of the client, each in a thread with a connection of its own: httplib2 blocks and is for one thread."""

    def __init__(self, fake: GkeServer) -> None:
        self.fake = fake

    def _build(self, service: str, version: str, path: str = "") -> Any:
        return discovery.build(
            service,
            version,
            credentials=anonymous(),
            client_options={"api_endpoint": f"{self.fake.url}/{path}"},
            static_discovery=True,
            cache_discovery=False,
        )

    @cached_property
    def compute(self) -> Any:
        return self._build("compute", "v1", "compute/v1/")

    @cached_property
    def locations(self) -> Any:
        return self._build("container", "v1").projects().locations()

    @cached_property
    def usage(self) -> Any:
        return self._build("serviceusage", "v1")

    @cached_property
    def people(self) -> Any:
        return self._build("cloudresourcemanager", "v3")

    async def run(self, request: Any) -> Any:
        """The answer to a request that was built. HttpError."""
        connection = httplib2.Http(timeout=20)
        try:
            return await asyncio.to_thread(request.execute, http=connection, num_retries=0)
        finally:
            connection.close()

    async def wait(self, operation: Any) -> Any:
        """The operation of compute when it has ended, by operations.wait."""
        if "region" in operation:
            kind, place = self.compute.regionOperations(), {"region": operation["region"].rpartition("/")[2]}
        elif "zone" in operation:
            kind, place = self.compute.zoneOperations(), {"zone": operation["zone"].rpartition("/")[2]}
        else:
            kind, place = self.compute.globalOperations(), {}
        return await self.run(kind.wait(project=PROJECT, operation=operation["name"], **place))

    async def poll(self, operation: Any) -> Any:
        """The operation of container when it has ended, by asking again."""
        async with asyncio.timeout(30):
            while operation["status"] != "DONE":
                await asyncio.sleep(0.01)
                operation = await self.run(
                    self.locations.operations().get(name=f"{PARENT}/operations/{operation['name']}")
                )
        return operation


Kinded = tuple[str, dict[str, str], dict[str, Any]]
COMPUTE: list[Kinded] = [
    ("networks", {}, {"name": "net", "autoCreateSubnetworks": False, "mtu": 8244}),
    (
        "subnetworks",
        {"region": "us-central1"},
        {"name": "sub", "network": "global/networks/default", "ipCidrRange": "192.168.1.0/24"},
    ),
    ("firewalls", {}, {"name": "rule", "network": "global/networks/default", "allowed": [{"IPProtocol": "icmp"}]}),
    (
        "resourcePolicies",
        {"region": "us-central1"},
        {"name": "near", "groupPlacementPolicy": {"collocation": "COLLOCATED"}},
    ),
    (
        "reservations",
        {"zone": "us-central1-a"},
        {"name": "kept", "specificReservation": {"count": "2", "instanceProperties": {"machineType": "a3-highgpu-8g"}}},
    ),
]
SINGULAR = {
    "networks": "network",
    "subnetworks": "subnetwork",
    "firewalls": "firewall",
    "resourcePolicies": "resourcePolicy",
    "reservations": "reservation",
}


@pytest.mark.parametrize(("collection", "place", "body"), COMPUTE, ids=[each[0] for each in COMPUTE])
async def test_a_resource_of_compute_is_inserted_got_listed_and_deleted(
    collection: str, place: dict[str, str], body: dict[str, Any]
) -> None:
    async with served() as fake:
        google = Google(fake)
        members: Callable[[], Any] = getattr(google.compute, collection)
        one = {"project": PROJECT, SINGULAR[collection]: body["name"], **place}

        fake.faults.add(Kind.UNAVAILABLE, f"POST .*/{collection}$")
        with pytest.raises(HttpError) as error:
            await google.run(members().insert(project=PROJECT, body=body, **place))
        assert (error.value.status_code, error.value.error_details[0]["reason"]) == (503, "backendError")

        started = await google.run(members().insert(project=PROJECT, body=body, **place))
        assert started["status"] == "RUNNING"
        assert (await google.wait(started))["status"] == "DONE"
        found = await google.run(members().get(**one))
        assert found["id"] == started["targetId"]

        listed: list[Any] = []
        request = members().list(project=PROJECT, maxResults=1, **place)
        while request is not None:
            page = await google.run(request)
            listed += page.get("items", [])
            request = members().list_next(request, page)
        assert found in listed

        with pytest.raises(HttpError) as error:
            await google.run(members().insert(project=PROJECT, body=body, **place))
        assert error.value.status_code == 409

        ended = await google.wait(await google.run(members().delete(**one)))
        assert "error" not in ended
        with pytest.raises(HttpError) as error:
            await google.run(members().get(**one))
        assert error.value.status_code == 404
        assert fake.store.made() == []


async def test_clusters_and_pools_are_created_got_listed_and_deleted() -> None:
    async with served(latency=Durations(cluster=1000)) as fake:
        google = Google(fake)
        clusters = google.locations.clusters()
        body = {"cluster": cluster_body()}

        fake.faults.add(Kind.RATE_LIMIT, "POST .*/clusters$", retry_after=1)
        with pytest.raises(HttpError) as error:
            await google.run(clusters.create(parent=PARENT, body=body))
        assert (error.value.status_code, error.value.resp["retry-after"]) == (429, "1")

        started = await google.run(clusters.create(parent=PARENT, body=body))
        with pytest.raises(HttpError) as error:
            await google.run(clusters.delete(name=CLUSTER))
        assert error.value.error_details[0]["reason"] == "CLUSTER_ALREADY_HAS_OPERATION"
        fake.world.durations = Durations()
        operation = fake.world.operations.find(started["name"])
        assert operation is not None
        fake.finish(operation)
        await google.poll(started)
        found = await google.run(clusters.get(name=CLUSTER))
        assert (await google.run(clusters.list(parent=PARENT)))["clusters"] == [found]

        pools = clusters.nodePools()
        fake.faults.add(Kind.STOCKOUT, "POST .*/nodePools$")
        failed = await google.poll(await google.run(pools.create(parent=CLUSTER, body={"nodePool": pool_body()})))
        assert "GCE_STOCKOUT" in failed["statusMessage"]
        pool = f"{CLUSTER}/nodePools/gpu-pool"
        broken = await google.run(pools.get(name=pool))
        assert broken["status"] == "ERROR"
        assert broken in (await google.run(pools.list(parent=CLUSTER)))["nodePools"]
        await google.poll(await google.run(pools.delete(name=pool)))
        await google.poll(await google.run(clusters.delete(name=CLUSTER)))
        with pytest.raises(HttpError) as error:
            await google.run(clusters.get(name=CLUSTER))
        assert error.value.status_code == 404
        assert fake.store.made() == []


async def test_what_a_plan_asks_before_it_begins() -> None:
    async with served() as fake:
        google = Google(fake)
        compute = google.compute
        assert (await google.run(compute.projects().get(project=PROJECT)))["quotas"]
        region = await google.run(compute.regions().get(project=PROJECT, region="us-central1"))
        assert region["status"] == "UP"
        place = {"project": PROJECT, "zone": "us-central1-a"}
        kind = await google.run(compute.machineTypes().get(machineType="a3-megagpu-8g", **place))
        assert kind["accelerators"][0]["guestAcceleratorCount"] == 8
        await google.run(compute.acceleratorTypes().list(**place))
        await google.run(compute.networkProfiles().list(project=PROJECT))
        await google.run(compute.zones().list(project=PROJECT))
        config = await google.run(google.locations.getServerConfig(name=PARENT))
        assert config["channels"]
        name = f"projects/{PROJECT}/services/container.googleapis.com"
        assert (await google.run(google.usage.services().get(name=name)))["state"] == "ENABLED"
        asked = {"permissions": ["compute.networks.create"]}
        granted = await google.run(
            google.people.projects().testIamPermissions(resource=f"projects/{PROJECT}", body=asked)
        )
        assert granted == asked


async def test_a_change_whose_answer_was_lost_is_found_by_its_token_and_in_the_way_without() -> None:
    """httplib2 sends a request again by itself when the connection has ended without an answer."""
    async with served() as fake:
        google = Google(fake)
        token = "00000000-0000-4000-8000-000000000001"
        fake.faults.add(Kind.DROPPED_AFTER, "POST .*/networks$")
        insert = google.compute.networks().insert
        started = await google.run(insert(project=PROJECT, body={"name": "one"}, requestId=token))
        first, second = fake.log.committed()
        assert (first.dropped, second.dropped) == (True, False)
        assert first.answer is not None
        assert first.answer.body["name"] == started["name"]
        fake.faults.add(Kind.DROPPED_AFTER, "POST .*/networks$")
        with pytest.raises(HttpError) as error:
            await google.run(insert(project=PROJECT, body={"name": "two"}))
        assert error.value.status_code == 409
