"""``interlace domains leftovers`` in a cluster that the known driver has left. Every test runs on both servers."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
import pytest_asyncio

from interlace.api.computedomain import DRIVER, ComputeDomainClique
from interlace.api.core import Namespace, Node, Pod
from interlace.api.meta import Resource
from interlace.api.resource import ResourceClaim, ResourceClaimTemplate, ResourceSlice
from interlace.cli.leftovers import DAEMON_SETS, DEPLOYMENTS
from interlace.kube.client import Client
from interlace.kube.errors import AlreadyExists, NotFound
from interlace.kube.untyped import untyped
from interlace.sim.plane import Plane
from tests.contract.space import our_kinds, pod
from tests.contract.wire import ADMIN, admin
from tests.unit.cli.programs import Ended, interlace
from tests.waiting import eventually

pytestmark = pytest.mark.asyncio(loop_scope="module")

LABEL = "resource.nvidia.com/computeDomain"
FINALIZER = LABEL
GONE = "0b2a8e0a-0000-4000-8000-000000000001"
"""uid of a domain that does not exist any more."""
HELD = "0b2a8e0a-0000-4000-8000-000000000002"
"""uid of a domain on which a Pod still works."""
THEIRS = "dra-driver"
ACCOUNTS = untyped(Resource("", "v1", "serviceaccounts", "ServiceAccount", True))
CONTAINER = {"name": "c", "image": "registry.example.com/c:1"}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def client(plane: Plane) -> AsyncIterator[Client]:
    """An administrator, and the cluster as the known driver left it."""
    user, groups = ADMIN
    async with admin(plane) as wire:
        await our_kinds(wire)
    async with Client(plane.credentials(user, groups=groups), user_agent="contract-client/1", qps=0) as made:
        await furnish(made)
        yield made


async def furnish(client: Client) -> None:
    """What the known driver makes for two domains, and two objects of ours of the same kinds."""
    await client.create(Namespace, {"metadata": {"name": THEIRS}})
    for uid in (GONE, HELD):
        mine = {"labels": {LABEL: uid}, "finalizers": [FINALIZER]}
        selector = {LABEL: uid}
        await client.create(
            DAEMON_SETS,
            {
                "metadata": {"name": f"computedomain-daemon-{uid}", **mine},
                "spec": {
                    "selector": {"matchLabels": selector},
                    "template": {
                        "metadata": {"labels": selector},
                        "spec": {"containers": [CONTAINER], "nodeSelector": selector},
                    },
                },
            },
            namespace=THEIRS,
        )
        await client.create(
            ResourceClaimTemplate,
            _template(f"computedomain-daemon-{uid}", uid=uid, target="Daemon", labelled=False),
            namespace=THEIRS,
        )
        await client.create(Node, {"metadata": {"name": f"tray-{uid[-1]}", "labels": {LABEL: uid, "other": "stays"}}})
    await client.create(
        ResourceClaimTemplate, _template("theirs", uid=GONE, target="Workload", labelled=False), namespace="default"
    )
    await client.create(
        ResourceClaimTemplate, _template("ours", uid=GONE, target="Workload", labelled=True), namespace="default"
    )
    await client.create(ComputeDomainClique, _clique("theirs", uid=GONE), namespace=THEIRS)
    note = {"interlace.dev/domain-name": "x"}
    await client.create(ComputeDomainClique, _clique("ours", uid=GONE, annotations=note), namespace="default")
    for name, devices in (("theirs", ["channel-0", "daemon-0"]), ("ours", ["channel-0"])):
        pool = {"name": f"tray-1-{name}", "generation": 1, "resourceSliceCount": 1}
        slice_spec = {"driver": DRIVER, "nodeName": "tray-1", "pool": pool, "devices": [{"name": d} for d in devices]}
        await client.create(ResourceSlice, {"metadata": {"name": name}, "spec": slice_spec})
    await _hold(client)


async def _hold(client: Client) -> None:
    """A claim of the known driver that a Pod uses."""
    parameters = {
        "apiVersion": "resource.nvidia.com/v1beta1",
        "domainID": HELD,
        "kind": "ComputeDomainChannelConfig",
    }
    opaque = {"driver": DRIVER, "parameters": parameters}
    request = {"name": "channel", "exactly": {"deviceClassName": "c.example.com"}}
    spec = {"devices": {"requests": [request], "config": [{"requests": ["channel"], "opaque": opaque}]}}
    await client.create(ResourceClaim, {"metadata": {"name": "held"}, "spec": spec}, namespace="default")
    with contextlib.suppress(AlreadyExists):  # the controllers of a real server make it
        await client.create(ACCOUNTS, {"metadata": {"name": "default"}}, namespace="default")
    worker = pod("worker", resourceClaims=[{"name": "channel", "resourceClaimName": "held"}])
    consumer = await client.create(Pod, worker, namespace="default")
    result = {"request": "channel", "driver": DRIVER, "pool": "tray-2", "device": "channel-0"}
    config = {"source": "FromClaim", "requests": ["channel"], "opaque": opaque}
    status = {
        "allocation": {"devices": {"results": [result], "config": [config]}},
        "reservedFor": [{"resource": "pods", "name": "worker", "uid": consumer.metadata.uid}],
    }
    await client.merge_patch(ResourceClaim, "held", {"status": status}, namespace="default", subresource="status")


def _template(name: str, *, uid: str, target: str, labelled: bool) -> dict[str, Any]:
    request = {"name": "channel", "exactly": {"deviceClassName": "c.example.com"}}
    meta = {"metadata": {"labels": {LABEL: uid}}} if labelled else {}
    return {
        "metadata": {
            "name": name,
            "labels": {LABEL: uid, "resource.nvidia.com/computeDomainTarget": target},
            "finalizers": [FINALIZER],
        },
        "spec": {**meta, "spec": {"devices": {"requests": [request]}}},
    }


def _clique(name: str, *, uid: str, annotations: dict[str, str] | None = None) -> dict[str, Any]:
    return {"metadata": {"name": f"{uid}.{name}", "labels": {LABEL: uid}, "annotations": annotations or {}}}


async def ask(plane: Plane, *arguments: str) -> Ended:
    """The command, as a person runs it."""
    return await interlace("domains", "leftovers", *arguments, env={"KUBECONFIG": str(plane.kubeconfig)})


async def test_all_that_is_left_is_listed_and_nothing_of_ours(plane: Plane, client: Client) -> None:
    ended = await ask(plane, "--json")
    assert ended.code == 1, ended
    found = json.loads(ended.out)["leftovers"]
    listed = [(item["what"], item["name"], bool(item["inUse"])) for item in found]
    assert listed == [
        ("DaemonSet", f"computedomain-daemon-{GONE}", False),
        ("DaemonSet", f"computedomain-daemon-{HELD}", True),
        ("ResourceClaimTemplate", "theirs", False),
        ("ResourceClaimTemplate", f"computedomain-daemon-{GONE}", False),
        ("ResourceClaimTemplate", f"computedomain-daemon-{HELD}", True),
        ("ComputeDomainClique", f"{GONE}.theirs", False),
        ("node label", "tray-1", False),
        ("node label", "tray-2", True),
        ("ResourceSlice", "theirs", False),
    ]
    (held,) = {item["inUse"] for item in found if item["inUse"]}
    assert "ResourceClaim default/held" in held
    assert (await client.get(ResourceSlice, "theirs")).metadata.name == "theirs"


async def test_nothing_goes_where_nobody_can_be_asked(plane: Plane, client: Client) -> None:
    ended = await ask(plane, "--remove")
    assert (ended.code, ended.out) == (2, "")
    assert "--remove --yes" in ended.errors
    assert (await client.get(ResourceSlice, "theirs")).metadata.name == "theirs"


async def test_nothing_goes_while_that_driver_is_installed(plane: Plane, client: Client) -> None:
    labels = {"dra-driver-nvidia-gpu-component": "controller"}
    container = {"name": "compute-domain", "image": "registry.example.com/driver:1"}
    body = {
        "metadata": {"name": "controller", "labels": labels},
        "spec": {
            "replicas": 0,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}},
        },
    }
    await client.create(DEPLOYMENTS, body, namespace=THEIRS)
    ended = await ask(plane, "--remove", "--yes", "--json")
    document = json.loads(ended.out)
    assert ended.code == 1
    assert document["removed"] == []
    assert document["driverInstalled"] == [{"kind": "Deployment", "namespace": THEIRS, "name": "controller"}]
    await client.delete(DEPLOYMENTS, "controller", namespace=THEIRS, propagation="Background")


@asynccontextmanager
async def at_a_terminal(plane: Plane, *arguments: str) -> AsyncIterator[tuple[asyncio.subprocess.Process, int]]:
    """The command at a terminal of its own; yields the process and the end at which the person sits."""
    person, command = os.openpty()
    try:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "interlace.cli.main", "domains", "leftovers", *arguments),
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "KUBECONFIG": str(plane.kubeconfig)},
            stdin=command,
            stdout=command,
            stderr=command,
            start_new_session=True,
        )
        os.set_blocking(person, False)
        async with asyncio.timeout(60):
            yield process, person
    finally:
        os.close(person)
        os.close(command)


@pytest.mark.parametrize("said", ["n\n", "\x04"], ids=["no", "the end of the input"])
async def test_at_a_terminal_it_asks_and_no_means_no(plane: Plane, client: Client, said: str) -> None:
    async with at_a_terminal(plane, "--remove") as (process, person):
        shown = b""

        def asked() -> bool:
            nonlocal shown
            with contextlib.suppress(BlockingIOError):
                shown += os.read(person, 65536)
            return b"free to go? [y/N]" in shown

        await eventually(asked, within=50, what="the question")
        os.write(person, said.encode())
        assert await process.wait() == (1 if said == "n\n" else 130)
    assert (await client.get(ResourceSlice, "theirs")).metadata.name == "theirs"


async def test_what_is_free_to_go_goes_and_the_rest_stays(plane: Plane, client: Client) -> None:
    ended = await ask(plane, "--remove", "--yes")
    assert ended.code == 1, ended
    assert f"removed DaemonSet {THEIRS}/computedomain-daemon-{GONE}" in ended.out
    left = json.loads((await ask(plane, "--json")).out)["leftovers"]
    assert [(item["what"], item["name"]) for item in left] == [
        ("DaemonSet", f"computedomain-daemon-{HELD}"),
        ("ResourceClaimTemplate", f"computedomain-daemon-{HELD}"),
        ("node label", "tray-2"),
    ]
    assert (await client.get(Node, "tray-1")).metadata.labels == {"other": "stays"}
    with pytest.raises(NotFound):
        await client.get(DAEMON_SETS, f"computedomain-daemon-{GONE}", namespace=THEIRS)
    assert (await client.get(ResourceClaimTemplate, "ours", namespace="default")).metadata.finalizers == [FINALIZER]
    assert (await client.get(ComputeDomainClique, f"{GONE}.ours", namespace="default")).metadata.labels
    assert (await client.get(ResourceSlice, "ours")).metadata.name == "ours"


async def test_once_the_pod_has_ended_nothing_is_left(plane: Plane, client: Client) -> None:
    await client.delete(Pod, "worker", namespace="default", grace_period=0)
    await client.merge_patch(
        ResourceClaim, "held", {"status": {"reservedFor": None}}, namespace="default", subresource="status"
    )
    assert (await ask(plane, "--remove", "--yes")).code == 0
    ended = await ask(plane)
    assert (ended.code, ended.out) == (0, "nothing of another ComputeDomain driver is left in the cluster's objects\n")
    assert "on the nodes" in ended.errors
