"""One call: tries, pauses, deadlines and credentials."""

from __future__ import annotations

import asyncio
import json
import ssl
import threading
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from interlace.gke.answers import Answer
from interlace.gke.client import Client, Dropped, open_client
from interlace.gke.credentials import GoogleCredentials
from interlace.gke.failures import ApiError, CredentialsError, Unreachable, Unsure
from interlace.gke.request import Request
from interlace.sim.gke import serve_gke

READ = Request(service="compute", method="GET", path="/compute/v1/projects/p/global/networks", query={"alt": "json"})
MAKE = Request(
    service="compute", method="POST", path="/compute/v1/projects/p/global/networks", query={"requestId": "x"}
)


class Line:
    """A line that gives prepared answers, the last one for ever."""

    def __init__(self, *answers: Answer | Exception) -> None:
        self.answers = list(answers)
        self.sent: list[tuple[Request, Mapping[str, str]]] = []

    async def send(self, request: Request, headers: Mapping[str, str]) -> Answer:
        self.sent.append((request, headers))
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer


class Tokens:
    """Gives a new token whenever the last one was refused."""

    def __init__(self) -> None:
        self.number = 1

    async def headers(self, *, refused: str = "") -> Mapping[str, str]:
        self.number += refused == f"Bearer {self.number}"
        return {"authorization": f"Bearer {self.number}"}


@pytest.mark.looptime
async def test_all_pages_of_a_list_are_read() -> None:
    line = Line(
        Answer(status=200, body={"items": [1], "nextPageToken": "a"}),
        Answer(status=200, body={"nextPageToken": "b"}),
        Answer(status=200, body={"items": [2, 3]}),
    )
    assert await Client(line.send).ask_all(READ) == [1, 2, 3]
    assert [request.query.get("pageToken") for request, _ in line.sent] == [None, "a", "b"]


@pytest.mark.looptime
async def test_a_list_that_does_not_end_is_an_error_and_not_a_short_list() -> None:
    line = Line(Answer(status=200, body={"items": [1], "nextPageToken": "a"}))
    with pytest.raises(Unreachable, match="the same page again and again"):
        await Client(line.send).ask_all(READ)
    assert len(line.sent) == 2


@pytest.mark.looptime
async def test_patience_has_an_end() -> None:
    line = Line(Answer(status=503, body="busy"))
    loop = asyncio.get_running_loop()
    began = loop.time()
    with pytest.raises(ApiError, match="HTTP 503"):
        await Client(line.send, patience=60).ask(READ)
    assert loop.time() - began <= 60
    assert 4 <= len(line.sent) <= 30


@pytest.mark.looptime
async def test_a_hint_that_is_longer_than_our_patience_ends_the_call_at_once() -> None:
    line = Line(Answer(status=429, headers={"retry-after": "4000"}))
    loop = asyncio.get_running_loop()
    began = loop.time()
    with pytest.raises(ApiError, match="HTTP 429"):
        await Client(line.send, patience=60).ask(READ)
    assert (len(line.sent), loop.time() - began) == (1, 0)


@pytest.mark.looptime
async def test_silence_has_an_end() -> None:
    async def silent(_: Request, __: Mapping[str, str]) -> Answer:
        await asyncio.sleep(1e6)
        raise AssertionError

    with pytest.raises(Unsure, match="nothing within 150 s"):
        await Client(silent).ask(MAKE)
    with pytest.raises(Unreachable):
        await Client(silent, patience=100).ask(READ)


@pytest.mark.looptime
async def test_what_never_left_this_machine_is_unreachable_also_for_a_mutation() -> None:
    line = Line(Dropped("Connection refused", sent=False))
    with pytest.raises(Unreachable, match="Connection refused"):
        await Client(line.send).ask(MAKE)
    assert len(line.sent) == 3


@pytest.mark.looptime
async def test_credentials_are_renewed_once() -> None:
    line, tokens = Line(Answer(status=401), Answer(status=200, body={})), Tokens()
    await Client(line.send, authorizer=tokens).ask(READ)
    assert [headers["authorization"] for _, headers in line.sent] == ["Bearer 1", "Bearer 2"]
    refused = Line(Answer(status=401))
    with pytest.raises(ApiError, match="gcloud auth application-default login"):
        await Client(refused.send, authorizer=tokens).ask(READ)
    assert len(refused.sent) == 2


@pytest.mark.looptime
async def test_cancelling_ends_a_pause() -> None:
    line = Line(Answer(status=429, headers={"retry-after": "100"}))
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(10):
            await Client(line.send).ask(READ)
    assert len(line.sent) == 1


async def test_over_http_a_simulation_says_what_it_is_and_gets_no_credentials() -> None:
    async with serve_gke() as server, open_client(endpoint=server.url) as client:
        found = await client.ask_all(
            Request(service="compute", method="GET", path="/compute/v1/projects/example-project/global/networks")
        )
        assert [each["name"] for each in found] == ["default"]
        assert client.simulated is True


@pytest.fixture
async def tokens() -> AsyncIterator[tuple[str, list[int]]]:
    """A token service: its URL, and a list whose first number is the status that it answers with."""
    state = [200, 0]

    async def token(_: web.Request) -> web.Response:
        state[1] += 1
        if state[0] != 200:
            return web.json_response({"error": "invalid_grant", "error_description": "revoked"}, status=state[0])
        return web.json_response({"access_token": f"secret-{state[1]}", "expires_in": 3600, "token_type": "Bearer"})

    app = web.Application()
    app.router.add_post("/token", token)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    address = runner.addresses[0]
    yield f"http://{address[0]}:{address[1]}/token", state
    await runner.cleanup()


def _key(path: Path, *, uri: str) -> None:
    """A key of a service account, made for this test, whose tokens come from ``uri``."""
    from cryptography.hazmat.primitives.asymmetric import rsa
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

    private = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    pem = private.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
    fields: dict[str, Any] = {
        "type": "service_account",
        "client_email": "robot@example-project.iam.gserviceaccount.com",
        "private_key": pem,
        "private_key_id": "1",
        "project_id": "example-project",
        "token_uri": uri,
    }
    path.write_text(json.dumps(fields), encoding="utf-8")


async def test_a_token_is_fetched_once_and_again_when_it_was_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tokens: tuple[str, list[int]]
) -> None:
    uri, state = tokens
    _key(tmp_path / "key.json", uri=uri)
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(tmp_path / "key.json"))
    credentials = GoogleCredentials()
    async with asyncio.TaskGroup() as group:
        found = [group.create_task(credentials.headers()) for _ in range(5)]
    assert {each.result()["authorization"] for each in found} == {"Bearer secret-1"}
    async with asyncio.TaskGroup() as group:
        found = [group.create_task(credentials.headers(refused="Bearer secret-1")) for _ in range(5)]
    assert {each.result()["authorization"] for each in found} == {"Bearer secret-2"}
    state[0] = 400
    with pytest.raises(CredentialsError, match="cannot be refreshed") as caught:
        await credentials.headers(refused="Bearer secret-2")
    assert "secret" not in str(caught.value)
    assert "gcloud auth application-default login" in str(caught.value)


@pytest.mark.looptime
@pytest.mark.parametrize("body", [None, "<html>log in</html>", []])
async def test_a_good_status_without_an_object_is_no_answer(body: Any) -> None:
    line = Line(Answer(status=200, body=body))
    with pytest.raises(Unreachable, match="HTTP 200 without a JSON object"):
        await Client(line.send).ask(READ)
    assert len(line.sent) == 3
    with pytest.raises(Unsure, match="HTTP 200 without a JSON object"):
        await Client(line.send).ask(MAKE)
    passing = Line(Answer(status=200, body=body), Answer(status=200, body={"items": []}))
    assert await Client(passing.send).ask(READ) == {"items": []}


async def test_a_certificate_that_is_not_trusted_is_told_and_nothing_was_sent(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def request(*_: Any, **__: Any) -> Any:
        error = ssl.SSLCertVerificationError(1, "certificate verify failed")
        error.verify_message = "self-signed certificate"
        raise aiohttp.ClientConnectorCertificateError(None, error)  # type: ignore[arg-type]

    monkeypatch.setattr(aiohttp.ClientSession, "request", request)
    monkeypatch.setattr("interlace.gke.client.CONNECTS", 1)
    async with open_client(endpoint="https://127.0.0.1:1") as client:
        with pytest.raises(Unreachable, match="its certificate is not trusted: self-signed certificate"):
            await client.ask(MAKE)


def test_a_refresh_that_hangs_does_not_hold_up_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    begun, free = threading.Event(), threading.Event()

    def hang(_: GoogleCredentials, *, refused: str) -> dict[str, str]:
        begun.set()
        free.wait(60)
        return {"refused": refused}

    async def main() -> None:
        async with asyncio.TaskGroup() as group:
            task = group.create_task(GoogleCredentials().headers())
            assert await asyncio.to_thread(begun.wait, 30)
            task.cancel()

    monkeypatch.setattr(GoogleCredentials, "_headers", hang)
    asyncio.run(main())
    (thread,) = [each for each in threading.enumerate() if each.name == "google-auth"]
    assert thread.daemon  # so the process does not wait for it either
    free.set()
    thread.join(30)
    assert not thread.is_alive()
