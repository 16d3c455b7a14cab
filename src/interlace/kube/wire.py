"""One API server over one connection pool: requests and streams as bytes.

Invariant: every call ends within ``timeout`` seconds (a stream: within ``idle`` seconds of the
last byte) or raises; a credential plugin, which may ask a person to log in, has a limit of its own
and its time does not count. A call waits as long as the server asked (Retry-After) if that fits,
spends one token of the bucket, and a 401 is tried once more with fresh credentials. Streams have
connections of their own and never keep a request waiting. No secret stands in an error.
"""

from __future__ import annotations

import asyncio
import os
import random
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from types import TracebackType
from typing import Final, Self
from urllib.parse import quote, urlencode

import aiohttp
from multidict import CIMultiDict
from yarl import URL

from interlace.kube.bucket import TokenBucket
from interlace.kube.config import Config
from interlace.kube.credentials import Credentials, Grant
from interlace.kube.errors import ConfigError, Unreachable, api_error
from interlace.kube.metrics import Metrics
from interlace.kube.transport import open_socket

MAX_IN_FLIGHT: Final = 64
"""Requests at a time, streams apart."""
CONNECT_LIMIT: Final = 10.0
KEEP_ALIVE: Final = 50.0
"""Seconds that a connection without a request stays open: a new one costs a TLS handshake on both sides. Below the
minute after which proxies usually close one, and the 90 s of the API server: a write that meets the closing fails."""
DEFAULT_WAIT: Final = 1.0
"""Seconds to wait after a 429 that names no time, or none at all."""


class Wire:
    """An async context manager; the arguments are those of ``Client``."""

    def __init__(
        self,
        config: Config,
        *,
        user_agent: str,
        qps: float,
        burst: int,
        timeout: float,
        idle: float,
        metrics: Metrics | None,
    ) -> None:
        self._config = config
        self._timeout = timeout
        self._idle = idle
        self._bucket = TokenBucket(rate=qps, burst=burst)
        self._in_flight = asyncio.Semaphore(MAX_IN_FLIGHT)
        self._credentials = Credentials(config)
        self._headers = CIMultiDict(
            [("User-Agent", user_agent), ("Accept", "application/json"), *_impersonation(config)]
        )
        self._session: aiohttp.ClientSession | None = None
        self._metrics = metrics
        if config.proxy_url and not config.proxy_url.startswith(("http://", "https://")):
            scheme = config.proxy_url.partition("://")[0]  # what follows may hold a password
            raise ConfigError(f"proxy-url: a proxy of kind {scheme!r} is not supported; use http:// or https://")

    async def __aenter__(self) -> Self:
        # The pool itself has no limit: _in_flight bounds requests, informers bound watches.
        connector = aiohttp.TCPConnector(limit=0, keepalive_timeout=KEEP_ALIVE, socket_factory=open_socket)
        self._session = aiohttp.ClientSession(
            connector=connector,
            headers=self._headers,
            cookie_jar=aiohttp.DummyCookieJar(),
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_LIMIT),
            read_bufsize=2**18,
        )
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def send(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None,
        body: bytes | None,
        headers: Mapping[str, str] | None,
        patient: bool,
    ) -> bytes:
        url = self._url(path, query)
        if body is not None:
            headers = {"Content-Type": "application/json", **(headers or {})}

        async def send(grant: Grant) -> _Answer:
            async with self._in_flight, await self._raw(method, url, grant, headers=headers, body=body) as response:
                return _Answer(response.status, response.headers, await response.read())

        with _telling(self._config.server, f"{method} {path}", late=f"no answer within {self._timeout:g} s"):
            return (await self._patiently(send, method, path, patient=patient)).body

    async def lines(
        self,
        path: str,
        *,
        query: Mapping[str, str],
        headers: Mapping[str, str] | None,
        opened: Callable[[], None] | None = None,
    ) -> AsyncGenerator[list[bytes], None]:
        """GET a stream and yield its lines, in batches as they arrive; ``opened`` is called when it stands.

        ``Unreachable`` when it breaks, stays silent, or ends within a line.
        """
        url = self._url(path, query)

        async def send(grant: Grant) -> _Answer:
            response = await self._raw("GET", url, grant, headers=headers, body=None)
            if 200 <= response.status < 300:
                return _Answer(response.status, response.headers, b"", response)
            async with response:
                return _Answer(response.status, response.headers, await response.read())

        with _telling(self._config.server, f"watch of {path}"):
            answer = await self._patiently(send, "WATCH", path, patient=True)
        if answer.stream is None:
            raise RuntimeError("an accepted watch has no stream")
        async with answer.stream:
            if opened is not None:
                opened()
            late = f"nothing was received for {self._idle:g} s"
            with _telling(self._config.server, f"watch of {path}", late=late):
                async for lines in _lines(answer.stream.content, idle=self._idle):
                    yield lines

    async def _patiently(
        self, send: Callable[[Grant], Awaitable[_Answer]], method: str, path: str, *, patient: bool
    ) -> _Answer:
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self._timeout
        renewed = False
        while True:
            asked = loop.time()
            grant = await self._credentials.current()
            deadline += loop.time() - asked
            async with asyncio.timeout_at(deadline):
                await self._bucket.take()
                answer = await send(grant)
            if self._metrics is not None:
                self._metrics.requests.labels(method, _resource(path), str(answer.status)).inc()
            if 200 <= answer.status < 300:
                return answer
            if answer.status == 401 and not renewed:
                asked = loop.time()
                renewed = await self._credentials.refused(grant)
                deadline += loop.time() - asked
                if renewed:
                    continue
            wait = _retry_after(answer.headers)
            if patient and (answer.status == 429 or (answer.status == 503 and wait is not None)):
                pause = (wait or DEFAULT_WAIT) * random.uniform(1.0, 1.1)
                if loop.time() + pause < deadline:
                    await asyncio.sleep(pause)
                    continue
            raise api_error(answer.status, answer.body, method=method, path=path, retry_after=wait)

    async def _raw(
        self,
        method: str,
        url: URL,
        grant: Grant,
        *,
        headers: Mapping[str, str] | None,
        body: bytes | None,
    ) -> aiohttp.ClientResponse:
        if self._session is None:
            raise RuntimeError("the client is not open: use it as an async context manager")
        all_headers = dict(headers or {})
        if grant.authorization is not None:
            all_headers["Authorization"] = grant.authorization
        return await self._session.request(
            method,
            url,
            data=body,
            headers=all_headers,
            allow_redirects=False,
            ssl=grant.tls if grant.tls is not None else True,
            server_hostname=self._config.tls_server_name if grant.tls is not None else None,
            proxy=self._config.proxy_url,
        )

    def _url(self, path: str, query: Mapping[str, str] | None) -> URL:
        return URL(self._config.server.rstrip("/") + path + (f"?{urlencode(query)}" if query else ""), encoded=True)


@dataclass(frozen=True, slots=True)
class _Answer:
    status: int
    headers: Mapping[str, str]
    body: bytes
    stream: aiohttp.ClientResponse | None = None


@contextmanager
def _telling(url: str, what: str, *, late: str = "no answer in time") -> Iterator[None]:
    """Failures of the connection as ``Unreachable``."""
    try:
        yield
    except aiohttp.ClientConnectorCertificateError as error:
        cause = f"its certificate is not trusted: {error.certificate_error}; check certificate-authority"
        raise Unreachable(f"{what}: {url}: {cause}", url=url) from error
    except aiohttp.ClientConnectorError as error:
        cause = os.strerror(error.errno) if error.errno and error.errno > 0 else str(error.os_error)
        raise Unreachable(f"{what}: cannot connect to {url}: {cause}; check the server's address", url=url) from error
    except aiohttp.ClientHttpProxyError as error:  # its text would show the proxy's password
        cause = f"the proxy answered {error.status} {error.message}; check proxy-url"
        raise Unreachable(f"{what}: {url}: {cause}", url=url) from None
    except TimeoutError as error:
        raise Unreachable(f"{what}: {url}: {late}", url=url) from error
    except (aiohttp.ClientError, OSError) as error:
        raise Unreachable(f"{what}: {url}: {str(error) or type(error).__name__}", url=url) from error


async def _lines(content: aiohttp.StreamReader, *, idle: float) -> AsyncIterator[list[bytes]]:
    """Lines of any length, those of a chunk together; the last one must be complete.

    The limit is our own: aiohttp's does not fire after some malformed chunks.
    """
    parts: list[bytes] = []
    while True:
        async with asyncio.timeout(idle):
            chunk = await content.readany()
        if not chunk:
            break
        first, *more = chunk.split(b"\n")
        parts.append(first)
        if more:
            lines = [b"".join(parts), *more]
            parts = [lines.pop()]
            yield lines
    if any(parts):
        raise aiohttp.ClientPayloadError("the stream ended within a line")


def _resource(path: str) -> str:
    """``resource`` or ``resource/subresource`` in a path, for metrics."""
    parts = path.split("/")[1:]
    parts = parts[2:] if parts[0] == "api" else parts[3:]
    if parts[:1] == ["namespaces"] and len(parts) > 2:
        parts = parts[2:]
    return "/".join(parts[::2][:2])


def _retry_after(headers: Mapping[str, str]) -> float | None:
    value = headers.get("Retry-After", "")
    return float(value) if value.isascii() and value.isdigit() else None


def _impersonation(config: Config) -> list[tuple[str, str]]:
    who = config.impersonate
    if who is None:
        return []
    headers = [("Impersonate-User", who.user)]
    if who.uid:
        headers.append(("Impersonate-Uid", who.uid))
    headers += [("Impersonate-Group", group) for group in who.groups]
    headers += [(f"Impersonate-Extra-{quote(key, safe='')}", v) for key, values in who.extra.items() for v in values]
    return headers
