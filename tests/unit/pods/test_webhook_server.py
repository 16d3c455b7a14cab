"""The HTTP side of the webhook: what is no review is told so, and what cannot be decided is never allowed."""

from __future__ import annotations

import asyncio
import io
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from aiohttp.test_utils import TestClient, TestServer

from interlace.kube.meters import Registry
from interlace.pods.review import ALLOWED, Request, Verdict, refuse
from interlace.pods.webhook import LARGEST_BODY, Metrics, Server


async def allow(_request: Request) -> Verdict:
    return ALLOWED


async def deny(request: Request) -> Verdict:
    return refuse([f"no {request.name}"])


async def break_down(_request: Request) -> Verdict:
    raise RuntimeError("a fault of ours")


async def hang(_request: Request) -> Verdict:
    await asyncio.Event().wait()
    raise AssertionError("unreachable")


@asynccontextmanager
async def serving() -> AsyncIterator[tuple[TestClient, Registry]]:  # type: ignore[type-arg]
    registry = Registry()
    paths = {"/allow": allow, "/deny": deny, "/break": break_down, "/hang": hang}
    server = Server(paths, metrics=Metrics(registry), deadline=0.05)
    async with TestClient(TestServer(server.app())) as client:
        yield client, registry


def review(name: str = "a") -> bytes:
    request = {"uid": "u", "name": name, "object": {"metadata": {"name": name}}}
    return json.dumps({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}).encode()


async def test_a_review_is_answered_with_its_uid() -> None:
    async with serving() as (client, registry):
        answer = await client.post("/allow?timeout=5s", data=review())
        assert answer.status == 200
        assert (await answer.json())["response"] == {"uid": "u", "allowed": True}
        assert registry.value("interlace_admission_total", path="/allow", verdict="allowed") == 1
        assert registry.value("interlace_admission_seconds_count", path="/allow") == 1


async def test_a_refusal_is_an_answer_like_any_other() -> None:
    async with serving() as (client, registry):
        answer = await client.post("/deny", data=review("b"))
        assert answer.status == 200
        response = (await answer.json())["response"]
        assert (response["allowed"], response["status"]["message"]) == (False, "no b.")
        assert registry.value("interlace_admission_total", path="/deny", verdict="refused") == 1


async def test_what_cannot_be_decided_is_an_error_and_no_allowance() -> None:
    async with serving() as (client, registry):
        for path in ("/break", "/hang"):
            assert (await client.post(path, data=review())).status == 500
            assert registry.value("interlace_admission_total", path=path, verdict="failed") == 1


async def test_other_requests_are_told_what_is_served() -> None:
    async with serving() as (client, _):
        assert (await client.post("/else", data=review())).status == 404
        assert (await client.get("/allow")).status == 405
        for body in (b"", b"{", b"[]", b"[" * 100_000, review()[:-3]):
            answer = await client.post("/allow", data=body)
            assert answer.status == 400
            assert "no AdmissionReview" in await answer.text()


async def test_a_body_that_no_object_can_have_is_not_read() -> None:
    async with serving() as (client, _):
        body = io.BytesIO(b" " * (LARGEST_BODY + 1))
        assert (await client.post("/allow", data=body)).status == 413
