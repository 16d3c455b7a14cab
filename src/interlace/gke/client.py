"""Requests to Google's APIs, or to a simulation of them: retries with the server's hints, deadlines, credentials.

Invariant: every call ends within its time or raises; a mutation goes out twice only where `answers` allows it. Given an
``endpoint``, every service is asked there, without credentials.
"""

from __future__ import annotations

import asyncio
import os
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any, Final
from urllib.parse import urlsplit

import aiohttp
import msgspec
from yarl import URL

from interlace import __version__
from interlace.gke.answers import SIMULATED, Answer, Next, is_safe, pause, refusal, retry_after, what_next
from interlace.gke.credentials import Anonymous, Authorizer, GoogleCredentials
from interlace.gke.errors import Refused
from interlace.gke.failures import ApiError, Unreachable, Unsure
from interlace.gke.request import HOSTS, Request

ONCE: Final = 150.0
"""Seconds for one try: more than the two minutes for which waiting for an operation may stay open."""
PATIENCE: Final = 180.0
"""Seconds for all tries of one call, the last one apart."""
CONNECTS: Final = 3
"""Tries to get a connection at all, and to get an answer that a Google API would give."""

Send = Callable[[Request, Mapping[str, str]], Awaitable[Answer]]
"""Sends a request with headers once. Raises Dropped where no whole answer came."""


class Dropped(Exception):
    """No answer. ``sent``: the request may have reached the server."""

    def __init__(self, why: str, *, sent: bool) -> None:
        super().__init__(why)
        self.sent = sent


class Client:
    """Calls over ``send``. ``simulated`` is None until an answer has come."""

    def __init__(
        self, send: Send, *, authorizer: Authorizer | None = None, patience: float = PATIENCE, where: str = ""
    ) -> None:
        self._send = send
        self._where = where
        self._authorizer = authorizer or Anonymous()
        self._patience = patience
        self.simulated: bool | None = None

    async def ask(self, request: Request) -> Any:
        """The decoded body of a good answer, a JSON object.

        Raises ApiError, Unreachable, CredentialsError, and Unsure where a mutation may have been carried out.
        """
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self._patience
        tries, connects, refused = 0, 0, ""
        while True:
            headers = await self._authorizer.headers(refused=refused)
            tries += 1
            answer: Answer | None = None
            why = ""
            try:
                async with asyncio.timeout(ONCE):
                    answer = await self._send(request, headers)
            except TimeoutError:
                why = f"nothing within {ONCE:.0f} s"
            except Dropped as error:
                why = str(error)
                if not error.sent:
                    connects += 1
                    if connects >= CONNECTS or loop.time() > deadline:
                        raise self._unreachable(request, why) from None
                    await asyncio.sleep(pause(connects, asked=None, chance=random.random()))
                    continue
            if answer is not None:
                self.simulated = bool(answer.headers.get(SIMULATED))
                if answer.good and isinstance(answer.body, Mapping):
                    return answer.body
                if answer.good:  # such as the login page of a network in between
                    why, answer, connects = f"HTTP {answer.status} without a JSON object", None, connects + 1
                    if is_safe(request) and connects >= CONNECTS:
                        raise self._unreachable(request, why)
            step = what_next(request, answer)
            if step is Next.RENEW and not refused:
                refused = headers.get("authorization", "none")
                continue
            if step is Next.LOOK:
                raise Unsure(request, why or refusal(answer).message if answer else why)
            wait = pause(tries, asked=retry_after(answer.headers) if answer else None, chance=random.random())
            if step is Next.AGAIN and loop.time() + wait <= deadline:
                refused = ""
                await asyncio.sleep(wait)
                continue
            if answer is None:
                raise self._unreachable(request, why)
            raise ApiError(request, refusal(answer))

    async def ask_all(self, request: Request) -> list[Any]:
        """``items`` of all pages of a list."""
        items: list[Any] = []
        while True:
            page = await self.ask(request)
            items += page.get("items") or []
            token = page.get("nextPageToken")
            if not token:
                return items
            if token == request.query.get("pageToken"):
                raise self._unreachable(request, "the same page again and again")
            request = msgspec.structs.replace(request, query={**request.query, "pageToken": token})

    def _unreachable(self, request: Request, why: str) -> Unreachable:
        where = self._where or HOSTS.get(request.service, request.service)
        return Unreachable(
            f"{where}: no answer to {request.method} {request.path} ({why})",
            remedy="Check the network and the proxy of this machine, then run the same command again",
        )


@asynccontextmanager
async def open_client(
    *, endpoint: str | None = None, authorizer: Authorizer | None = None, patience: float = PATIENCE
) -> AsyncIterator[Client]:
    """A client over one connection pool. ``endpoint``: URL of a simulation. Raises Refused for a URL that is none."""
    base = None if endpoint is None else _checked(endpoint)
    timeout = aiohttp.ClientTimeout(total=None, sock_connect=10)
    headers = {"User-Agent": f"interlace/{__version__}", "Accept": "application/json"}
    async with aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=0),
        timeout=timeout,
        headers=headers,
        cookie_jar=aiohttp.DummyCookieJar(),
        trust_env=base is None,
    ) as session:

        async def send(request: Request, more: Mapping[str, str]) -> Answer:
            return await _send(session, request, more, base=base)

        if authorizer is None:
            authorizer = GoogleCredentials() if base is None else Anonymous()
        yield Client(send, authorizer=authorizer, patience=patience, where=base or "")


async def _send(
    session: aiohttp.ClientSession, request: Request, headers: Mapping[str, str], *, base: str | None
) -> Answer:
    url = URL((base or f"https://{HOSTS[request.service]}") + request.path, encoded=True).with_query(request.query)
    data = None if request.body is None else msgspec.json.encode(request.body)
    if data is not None:
        headers = {**headers, "content-type": "application/json"}
    try:
        async with session.request(request.method, url, data=data, headers=headers, allow_redirects=False) as response:
            raw = await response.read()
            names = {name.lower(): value for name, value in response.headers.items()}
            return Answer(status=response.status, headers=names, body=_decoded(raw))
    except aiohttp.ClientConnectorCertificateError as error:
        cause = error.certificate_error
        said = getattr(cause, "verify_message", "") or cause
        raise Dropped(f"its certificate is not trusted: {said}", sent=False) from None
    except aiohttp.ClientConnectorError as error:
        raise Dropped(_said(error.os_error), sent=False) from None
    except (aiohttp.ClientError, OSError) as error:
        raise Dropped(str(error) or type(error).__name__, sent=True) from None


def _said(error: OSError) -> str:
    return os.strerror(error.errno) if error.errno and error.errno > 0 else str(error.strerror or error)


def _decoded(raw: bytes) -> Any:
    if not raw:
        return None
    try:
        return msgspec.json.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return raw.decode(errors="replace")


def _checked(endpoint: str) -> str:
    parts = urlsplit(endpoint)
    if parts.scheme not in {"http", "https"} or not parts.netloc or parts.query or parts.fragment:
        raise Refused(
            f"--endpoint {endpoint}: this is no URL of a server", remedy="Write it like http://127.0.0.1:8080"
        )
    return endpoint.rstrip("/")
