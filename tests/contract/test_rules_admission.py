"""Webhooks change and refuse objects in the same way on both servers."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from interlace.sim.plane import Plane
from tests.contract.wire import Reply, Wire
from tests.contract.wire import admin as as_admin
from tests.unit.sim.rules.hooks import PODS, Hooks, patch, serving
from tests.waiting import eventually

CONFIGS = "/apis/admissionregistration.k8s.io/v1"
MAPS = "/api/v1/namespaces/hooked/configmaps"
RULE = PODS | {"operations": ["CREATE", "DELETE"], "resources": ["configmaps"]}
_numbers = itertools.count(1)


class Hooked:
    """A plane whose webhooks for config maps of one namespace we answer."""

    def __init__(self, admin: Wire, hooks: Hooks) -> None:
        self.admin = admin
        self.hooks = hooks

    async def install(self, path: str, *, mutating: bool = True, **hook: Any) -> str:
        """Install one webhook and wait until the server asks it; returns its name."""
        selector = {"matchLabels": {"kubernetes.io/metadata.name": "hooked"}}
        found = {"rules": [RULE], "namespaceSelector": selector, "timeoutSeconds": 5} | hook
        config = self.hooks.config(path, mutating=mutating, name=path.strip("/"), **found)
        config["apiVersion"] = "admissionregistration.k8s.io/v1"
        assert (await self.admin("POST", f"{CONFIGS}/{self._plural(mutating=mutating)}", config)).code == 201

        async def asked() -> bool:
            await self.create(dry_run=True, team="x")
            return path in self.hooks.paths()

        await eventually(asked, within=10, what=f"calls of the webhook {path}")
        self.hooks.asked.clear()
        return str(config["webhooks"][0]["name"])

    @staticmethod
    def _plural(*, mutating: bool) -> str:
        return f"{'mutating' if mutating else 'validating'}webhookconfigurations"

    async def create(self, *, team: str = "y", dry_run: bool = False) -> Reply:
        """A new config map with a label."""
        metadata = {"name": f"map-{next(_numbers)}", "labels": {"team": team}}
        content = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}
        return await self.admin("POST", MAPS + ("?dryRun=All" if dry_run else ""), content)

    async def remove_all(self) -> None:
        """Remove every configuration, and wait until none is asked any more."""
        for mutating in (True, False):
            assert (await self.admin("DELETE", f"{CONFIGS}/{self._plural(mutating=mutating)}")).code == 200
        self.hooks.answers.clear()

        async def silent() -> bool:
            self.hooks.asked.clear()
            reply = await self.create(dry_run=True)
            return reply.code == 201 and not self.hooks.asked

        await eventually(silent, within=10, what="the end of the webhook calls")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def hooks(tmp_path_factory: pytest.TempPathFactory, plane: Plane) -> AsyncIterator[Hooks]:
    async with serving(tmp_path_factory.mktemp("hooks")) as found:
        yield found


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def admin(plane: Plane) -> AsyncIterator[Wire]:
    async with as_admin(plane) as wire:
        assert (await wire("POST", "/api/v1/namespaces", {"metadata": {"name": "hooked"}})).code == 201
        yield wire


@pytest_asyncio.fixture(loop_scope="module")
async def hooked(admin: Wire, hooks: Hooks) -> AsyncIterator[Hooked]:
    found = Hooked(admin, hooks)
    yield found
    await found.remove_all()


async def test_a_mutation_is_stored_and_seen_by_validation(hooked: Hooked) -> None:
    hooked.hooks.answers["/change"] = lambda request: (
        patch([{"op": "add", "path": "/data", "value": {"by": "webhook"}}])
        if request["operation"] == "CREATE"
        else {"allowed": True}
    )
    await hooked.install("/look", mutating=False)
    await hooked.install("/change")
    reply = await hooked.create()
    assert reply.code == 201
    assert reply.body["data"] == {"by": "webhook"}
    assert hooked.hooks.paths() == ["/change", "/look"]
    ((_, first), (_, second)) = hooked.hooks.asked
    assert "data" not in first["object"]
    assert second["object"]["data"] == {"by": "webhook"}
    assert first["object"]["metadata"]["managedFields"][0]["manager"] == "contract"
    assert first["userInfo"]["username"] == "contract-admin"
    assert first["userInfo"]["groups"] == ["system:masters", "system:authenticated"]
    about = {"group": "", "version": "v1", "kind": "ConfigMap"}
    resource = {"group": "", "version": "v1", "resource": "configmaps"}
    assert (first["kind"], first["requestKind"], first["resource"]) == (about, about, resource)
    assert first["name"] == reply.body["metadata"]["name"]
    assert (first["namespace"], first["operation"], first["dryRun"]) == ("hooked", "CREATE", False)
    assert first["options"]["kind"] == "CreateOptions"


async def test_a_deleted_object_is_shown_as_the_old_one(hooked: Hooked) -> None:
    made = await hooked.create()
    await hooked.install("/gone", mutating=False)
    assert (await hooked.admin("DELETE", f"{MAPS}/{made.body['metadata']['name']}")).code == 200
    ((_, request),) = hooked.hooks.asked
    assert (request["operation"], request["object"]) == ("DELETE", None)
    assert request["oldObject"]["metadata"]["name"] == made.body["metadata"]["name"]


@pytest.mark.parametrize("mutating", [True, False])
@pytest.mark.parametrize(
    ("status", "code", "reason", "text"),
    [
        ({"code": 403, "reason": "Forbidden", "message": "no"}, 403, "Forbidden", "denied the request: no"),
        ({"code": 422, "message": "wrong"}, 422, "", "denied the request: wrong"),
        ({}, 400, "", "denied the request without explanation"),
    ],
)
async def test_a_refusal_reaches_the_user(
    hooked: Hooked, *, mutating: bool, status: dict[str, Any], code: int, reason: str, text: str
) -> None:
    name = await hooked.install("/deny", mutating=mutating, failurePolicy="Ignore")
    hooked.hooks.answers["/deny"] = lambda _request: {"allowed": False, "status": status}
    reply = await hooked.create()
    assert (reply.code, reply.reason) == (code, reason)
    assert reply.message == f'admission webhook "{name}" {text}'


async def test_a_failing_webhook_closes_or_opens_as_its_policy_says(hooked: Hooked) -> None:
    name = await hooked.install("/broken", failurePolicy="Fail")
    hooked.hooks.answers["/broken"] = lambda _request: {"allowed": True, "uid": "other"}
    reply = await hooked.create()
    assert (reply.code, reply.reason) == (500, "InternalError")
    uid = hooked.hooks.asked[-1][1]["uid"]
    assert reply.message == (
        f'Internal error occurred: failed calling webhook "{name}": received invalid webhook response: '
        f'expected response.uid="{uid}", got "other"'
    )
    await hooked.remove_all()
    await hooked.install("/broken", failurePolicy="Ignore")
    hooked.hooks.answers["/broken"] = lambda _request: {"allowed": True, "uid": "other"}
    assert (await hooked.create()).code == 201


async def test_a_webhook_that_is_too_slow_has_failed(hooked: Hooked) -> None:
    name = await hooked.install("/slow", timeoutSeconds=1)
    hooked.hooks.answers["/slow"] = lambda _request: "hold"
    reply = await hooked.create()
    hooked.hooks.hold.set()
    assert (reply.code, reply.reason) == (500, "InternalError")
    assert reply.message == (
        f'Internal error occurred: failed calling webhook "{name}": failed to call webhook: '
        f'Post "https://localhost:{hooked.hooks.port}/slow?timeout=1s": context deadline exceeded'
    )


async def test_labels_choose_and_a_dry_run_says_so(hooked: Hooked) -> None:
    await hooked.install("/some", objectSelector={"matchLabels": {"team": "x"}})
    assert (await hooked.create()).code == 201
    assert not hooked.hooks.asked
    assert (await hooked.create(team="x", dry_run=True)).code == 201
    assert hooked.hooks.asked[0][1]["dryRun"] is True


async def test_warnings_reach_the_client(hooked: Hooked) -> None:
    await hooked.install("/warn", mutating=False)
    hooked.hooks.answers["/warn"] = lambda _request: {"allowed": True, "warnings": ["mind the gap"]}
    reply = await hooked.create()
    assert '299 - "mind the gap"' in reply.headers["Warning"]
