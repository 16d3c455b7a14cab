"""Ending a collision against the embedded API server, with the controller's real rights."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from interlace.api.core import ObjectReference, Pod
from interlace.api.meta import ObjectMeta, OwnerReference
from interlace.api.resource import ResourceClaim
from interlace.domains.collisions import Collision
from interlace.domains.eviction import Evictor, Outcome
from interlace.kube.client import Client
from interlace.kube.errors import Forbidden, KubeError, NotFound, TooManyRequests
from interlace.kube.untyped import apply_manifest, untyped
from interlace.manifests import NAMESPACE, manifests
from interlace.sim.plane import Plane

pytestmark = pytest.mark.asyncio(loop_scope="module")

ACCOUNT = f"system:serviceaccount:{NAMESPACE}:interlace-controller"
GROUPS = ["system:serviceaccounts", f"system:serviceaccounts:{NAMESPACE}", "system:authenticated"]
SET = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "rs", "uid": "uid-of-rs", "controller": True}


class Events:
    """A recorder that keeps what it is told."""

    def __init__(self) -> None:
        self.told: list[tuple[str, str, str]] = []

    def event(self, about: ObjectReference, *, reason: str, message: str, warning: bool = False) -> None:
        assert warning
        self.told.append((about.name, str(reason), message))


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def admin(embedded_plane: Plane) -> AsyncIterator[Client]:
    config = embedded_plane.credentials("admin", groups=["system:masters"])
    async with Client(config, user_agent="test", qps=0) as client:
        for manifest in manifests(namespace=NAMESPACE):
            if manifest["kind"] in {"Namespace", "ClusterRole", "ClusterRoleBinding", "ServiceAccount"}:
                await apply_manifest(client, manifest, manager="test")
        account = {
            "apiVersion": "v1",
            "kind": "ServiceAccount",
            "metadata": {"name": "default", "namespace": "default"},
        }
        await apply_manifest(client, account, manager="test")
        yield client


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def controller(embedded_plane: Plane) -> AsyncIterator[Client]:
    async with Client(embedded_plane.credentials(ACCOUNT, groups=GROUPS), user_agent="test", qps=0) as client:
        yield client


async def _pod(admin: Client, name: str, *, owners: list[dict[str, Any]]) -> Pod:
    body = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default", "ownerReferences": owners},
        "spec": {"terminationGracePeriodSeconds": 0, "containers": [{"name": "c", "image": "localhost/pause:1"}]},
    }
    await admin.create(untyped(Pod.resource), body, namespace="default")
    return await admin.get(Pod, name, namespace="default")


def _collision(name: str, uid: str) -> Collision:
    owner = OwnerReference(api_version="v1", kind="Pod", name=name, uid=uid)
    claim = ResourceClaim(metadata=ObjectMeta(name="claim", namespace="default", uid="u", owner_references=[owner]))
    return Collision(claim=claim, node="tray-1", holder="holder")


async def _end(controller: Client, collision: Collision) -> tuple[Outcome, list[tuple[str, str, str]]]:
    events = Events()
    evictor = Evictor(controller, recorder=events)  # type: ignore[arg-type]
    return await evictor.end(collision, mine="team/guest", theirs="team/owner"), events.told


async def test_a_pod_with_a_controller_is_evicted_and_told_why(admin: Client, controller: Client) -> None:
    pod = await _pod(admin, "owned", owners=[SET])
    outcome, told = await _end(controller, _collision("owned", pod.metadata.uid))
    assert outcome == Outcome(evicted=1)
    ((name, reason, message),) = told
    assert (name, reason) == ("owned", "NodeOfOtherDomain")
    assert "Node tray-1 belongs to ComputeDomain team/owner" in message
    assert "evicted" in message
    with pytest.raises(NotFound):
        await admin.get(Pod, "owned", namespace="default")


async def test_a_pod_that_nobody_would_make_again_stays_and_its_owner_is_told(
    admin: Client, controller: Client
) -> None:
    pod = await _pod(admin, "lonely", owners=[])
    outcome, told = await _end(controller, _collision("lonely", pod.metadata.uid))
    assert outcome == Outcome()
    assert "delete it and create it again" in told[0][2]
    await admin.get(Pod, "lonely", namespace="default")


async def test_another_pod_of_the_same_name_is_left_alone(admin: Client, controller: Client) -> None:
    await _pod(admin, "again", owners=[SET])
    assert await _end(controller, _collision("again", "uid-of-the-one-before")) == (Outcome(), [])
    assert await _end(controller, _collision("nobody", "uid")) == (Outcome(), [])
    await admin.get(Pod, "again", namespace="default")


async def test_a_pod_that_runs_by_now_is_left_alone(admin: Client, controller: Client) -> None:
    pod = await _pod(admin, "late", owners=[SET])
    await admin.merge_patch(Pod, "late", {"status": {"phase": "Running"}}, namespace="default", subresource="status")
    assert await _end(controller, _collision("late", pod.metadata.uid)) == (Outcome(), [])
    await admin.get(Pod, "late", namespace="default")


class Guarded(Client):
    """A server that refuses evictions."""

    refusal: KubeError

    async def evict(self, name: str, *, namespace: str, uid: str | None = None) -> None:
        raise self.refusal


@pytest.mark.parametrize(
    ("refusal", "blocked", "remedy"),
    [
        (TooManyRequests("the disruption budget pdb needs 1 healthy pod", status=429), True, "is tried again"),
        (Forbidden("policy says no", status=403), False, "so delete it"),
    ],
)
async def test_a_refused_eviction_is_told_and_fails_nothing(
    embedded_plane: Plane, admin: Client, refusal: KubeError, blocked: bool, remedy: str
) -> None:
    pod = await _pod(admin, f"guarded-{blocked}".lower(), owners=[SET])
    config = embedded_plane.credentials(ACCOUNT, groups=GROUPS)
    async with Guarded(config, user_agent="test", qps=0) as client:
        client.refusal = refusal
        outcome, told = await _end(client, _collision(pod.metadata.name, pod.metadata.uid))
    assert outcome == Outcome(blocked=blocked)
    ((_, _, message),) = told
    assert str(getattr(refusal, "message", "")) in message
    assert remedy in message
