"""Requests as they go over the wire, for tests that compare whole answers.

Invariant: nothing is interpreted: an error status is a :class:`Reply` like any other.
"""

from __future__ import annotations

import asyncio
import io
import json
import ssl
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Self

import aiohttp

from interlace.kube.config import Config
from interlace.kube.transport import add_client_certificate, tls_context
from interlace.sim.plane import Plane

Json = dict[str, Any]

PATIENCE = 10.0
"""Seconds that an answer or an event may take."""
MERGE = "application/merge-patch+json"
JSON_PATCH = "application/json-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
APPLY = "application/apply-patch+yaml"
ADMIN = ("contract-admin", ("system:masters",))


@dataclass(frozen=True, slots=True)
class Reply:
    """One answer."""

    code: int
    body: Any
    headers: Mapping[str, str]

    @property
    def reason(self) -> str:
        """``reason`` of a Status."""
        return str(self.body.get("reason", "")) if isinstance(self.body, dict) else ""

    @property
    def message(self) -> str:
        """``message`` of a Status."""
        return str(self.body.get("message", "")) if isinstance(self.body, dict) else ""

    @property
    def version(self) -> str:
        """``metadata.resourceVersion``."""
        return str(self.body["metadata"]["resourceVersion"])


class Events:
    """The events of one watch, in order."""

    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self._response = response

    async def next(self) -> Json:
        """The next event. ``AssertionError`` if none comes in time or the watch ended."""
        async with asyncio.timeout(PATIENCE):
            line = await self._response.content.readline()
        assert line, "the watch ended"
        event: Json = json.loads(line)
        return event

    async def until(self, test: Callable[[Json], bool]) -> list[Json]:
        """Events up to and with the first that passes ``test``."""
        seen: list[Json] = []
        async with asyncio.timeout(PATIENCE):
            while not (seen and test(seen[-1])):
                seen.append(await self.next())
        return seen

    async def ended(self) -> bytes:
        """What is left until the server ends the watch."""
        async with asyncio.timeout(PATIENCE):
            return await self._response.content.read()


class Wire:
    """A client that hides nothing."""

    def __init__(self, config: Config, *, agent: str = "contract/1") -> None:
        self._base = config.server
        context: ssl.SSLContext = tls_context(ca=config.ca, insecure=config.insecure)
        if config.client_cert is not None and config.client_key is not None:
            add_client_certificate(context, certificate=config.client_cert, key=config.client_key)
        self._headers = {"User-Agent": agent}
        if config.token:
            self._headers["Authorization"] = f"Bearer {config.token}"
        self._connector = aiohttp.TCPConnector(ssl=context, limit=0)
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        self._session = aiohttp.ClientSession(connector=self._connector, headers=self._headers)
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._session is not None
        await self._session.close()

    async def __call__(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        media: str = "application/json",
        accept: str = "application/json",
        act_as: str = "",
        **query: str,
    ) -> Reply:
        """One request; a body that is no bytes is sent as JSON, a trailing underscore of a parameter is cut."""
        assert self._session is not None
        text = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
        data = None if text is None else io.BytesIO(text)
        sent = {"Content-Type": media, "Accept": accept}
        if act_as:
            sent["Impersonate-User"] = act_as
        params = {key.rstrip("_"): value for key, value in query.items()}
        async with (
            asyncio.timeout(PATIENCE),
            self._session.request(method, self._base + path, data=data, headers=sent, params=params) as response,
        ):
            content = await response.read()
            parsed = json.loads(content) if "json" in response.headers.get("Content-Type", "") else content
            return Reply(response.status, parsed, response.headers)

    @asynccontextmanager
    async def watch(self, path: str, *, accept: str = "application/json", **query: str) -> AsyncIterator[Events]:
        """A running watch."""
        assert self._session is not None
        params = {"watch": "true", "timeoutSeconds": "60", **query}
        async with self._session.get(
            self._base + path, params=params, headers={"Accept": accept}, timeout=aiohttp.ClientTimeout(total=None)
        ) as response:
            assert response.status == 200, await response.text()
            yield Events(response)


def admin(plane: Plane) -> Wire:
    """As a member of ``system:masters``."""
    user, groups = ADMIN
    return Wire(plane.credentials(user, groups=groups))
