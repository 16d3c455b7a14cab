"""Long-running operations: how recorded ones ended, and waiting for them in virtual time."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from interlace.gke.failures import Late, OperationFailed
from interlace.gke.operations import Operation, finish, from_path, look, read_operation
from interlace.gke.places import cluster_of, key_of
from interlace.gke.request import Request
from interlace.gke.resource import Key

SERVER = Path(__file__).parents[3] / "data/gke/server"
NETWORK = Key("network", "global", "example-net-1")
POOL = Key("nodePool", "us-central1-a/example-cluster", "gpu-pool")


def recorded(name: str) -> Operation:
    body: dict[str, Any] = json.loads((SERVER / f"{name}.json").read_text())["body"]
    found = read_operation(body, service=name.partition("-")[0])
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("name", "done", "code", "words"),
    [
        ("compute-operation-running", False, "", ""),
        ("compute-operation-done", True, "", ""),
        ("compute-operation-delete-done", True, "", ""),
        ("compute-operation-quota-at-completion", True, "QUOTA_EXCEEDED", "NETWORKS"),
        ("compute-operation-stockout", True, "ZONE_RESOURCE_POOL_EXHAUSTED", "resources"),
        ("container-operation-running", False, "", ""),
        ("container-operation-done", True, "", ""),
        ("container-operation-nodepool-done", True, "", ""),
        ("container-operation-stockout", True, "GCE_STOCKOUT", "enough resources"),
        ("container-operation-error-only", True, "", "GCE_QUOTA_EXCEEDED"),
        ("container-operation-quota-at-completion", True, "GCE_QUOTA_EXCEEDED", "GPUS"),
    ],
)
def test_recorded_operations_are_read_with_every_form_of_error(name: str, done: bool, code: str, words: str) -> None:
    found = recorded(name)
    assert found.done is done
    assert found.code.startswith(code)
    assert words in found.message
    assert bool(found.message) is bool(words)


def test_where_an_operation_lives_and_what_it_is_about() -> None:
    assert recorded("compute-operation-running").scope == "global"
    assert recorded("compute-operation-running").target == NETWORK
    assert recorded("compute-operation-regional-done").scope == "regions/us-central1"
    assert recorded("compute-operation-zonal-done").scope == "zones/us-central1-a"
    assert recorded("container-operation-regional-running").scope == "locations/us-central1"
    stockout = recorded("container-operation-stockout")
    assert stockout.target == POOL
    assert cluster_of(POOL) == Key("cluster", "us-central1-a", "example-cluster")


def test_progress_comes_from_the_counted_steps() -> None:
    assert recorded("container-operation-running").progress == pytest.approx(13 / 23)
    assert recorded("compute-operation-running").progress == 0.0


def test_the_journal_can_name_an_operation() -> None:
    found = recorded("compute-operation-regional-done")
    again = from_path(found.path)
    assert again is not None
    assert look(again, project="p") == look(found, project="p")
    assert look(found, project="p").path.endswith("/wait")
    assert from_path("") is None


@pytest.mark.parametrize(
    ("link", "key"),
    [
        ("https://www.googleapis.com/compute/v1/projects/p/global/networks/n", Key("network", "global", "n")),
        (
            "https://compute.googleapis.com/compute/beta/projects/p/regions/r/resourcePolicies/x",
            Key("resourcePolicy", "r", "x"),
        ),
        ("projects/p/regions/r/subnetworks/s", Key("subnetwork", "r", "s")),
        ("https://container.googleapis.com/v1/projects/12/zones/z/clusters/c/nodePools/n", Key("nodePool", "z/c", "n")),
        ("https://container.googleapis.com/v1beta1/projects/12/locations/r/clusters/c", Key("cluster", "r", "c")),
        ("https://www.googleapis.com/compute/v1/projects/p/zones/z/instances/i", None),
        ("", None),
    ],
)
def test_links_of_any_form_mean_the_same_resource(link: str, key: Key | None) -> None:
    assert key_of(link) == key


@pytest.mark.parametrize(
    "body", [None, [], "", {}, {"name": "x"}, {"name": "n", "status": "RUNNING", "kind": "compute#network"}]
)
def test_what_is_no_operation_is_none(body: Any) -> None:
    assert read_operation(body, service="compute") is None


class Server:
    """Answers looks at one operation, which ends after ``seconds`` with ``end``."""

    def __init__(self, *, seconds: float, end: dict[str, Any] | None = None, service: str = "container") -> None:
        self.due = asyncio.get_running_loop().time() + seconds
        self.end = end or {}
        self.service = service
        self.looks: list[float] = []

    def operation(self) -> Operation:
        return Operation(service=self.service, scope="locations/z", name="operation-1")

    async def ask(self, _: Request) -> Any:
        now = asyncio.get_running_loop().time()
        self.looks.append(now)
        done = now >= self.due
        body = {
            "name": "operation-1",
            "status": "DONE" if done else "RUNNING",
            "operationType": "insert",
            "location": "z",
        }
        return {**body, **(self.end if done else {})}


@pytest.mark.looptime
@pytest.mark.parametrize("service", ["compute", "container"])
@pytest.mark.parametrize("seconds", [0.0, 1.0, 60.0, 600.0])
async def test_the_end_is_seen_soon_without_asking_often(service: str, seconds: float) -> None:
    server = Server(seconds=seconds, service=service)
    began = asyncio.get_running_loop().time()
    await finish(server, server.operation(), project="p", what="x", within=3600)
    took = asyncio.get_running_loop().time() - began
    assert seconds <= took <= seconds + max(0.2, min(0.1 * seconds + 0.1, 5.0))
    assert len(server.looks) <= 2 + 35 + seconds / 5


@pytest.mark.looptime
async def test_what_does_not_end_is_late_and_is_left_alone() -> None:
    server = Server(seconds=1e9)
    began = asyncio.get_running_loop().time()
    with pytest.raises(Late, match="has not ended within 10 min"):
        await finish(server, server.operation(), project="p", what="x", within=600)
    assert asyncio.get_running_loop().time() - began == pytest.approx(600, abs=1)


@pytest.mark.looptime
@pytest.mark.parametrize(
    "end",
    [
        {"error": {"code": 8, "message": "no room"}},
        {"statusMessage": "no room"},
        {"nodepoolConditions": [{"code": "GCE_STOCKOUT", "message": "no room"}]},
    ],
)
async def test_each_form_of_error_is_one(end: dict[str, Any]) -> None:
    server = Server(seconds=1, end=end)
    with pytest.raises(OperationFailed, match="no room"):
        await finish(server, server.operation(), project="p", what="x", within=600)
