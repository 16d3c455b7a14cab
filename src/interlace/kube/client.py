"""One API server over one connection pool: typed requests, paging, watches.

Invariant: every call ends within ``timeout`` seconds (a watch: within ``idle`` seconds of the
last byte) or raises; it waits as long as the server asked (Retry-After) if that fits, spends
one token of the client's bucket, and a 401 is tried once more with fresh credentials. Watches
have connections of their own and never keep a request waiting.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Final, Self, TypeVar
from urllib.parse import quote, urlencode

import aiohttp
import msgspec
from multidict import CIMultiDict
from yarl import URL

from interlace.api.core import Pod
from interlace.api.meta import Object
from interlace.kube.bucket import TokenBucket
from interlace.kube.codec import Codec, Listing, WatchEvent, encode_object
from interlace.kube.config import Config
from interlace.kube.credentials import Credentials, Grant
from interlace.kube.errors import ConfigError, Expired, Unreachable, api_error
from interlace.kube.metrics import Metrics
from interlace.kube.transport import open_socket

T = TypeVar("T", bound=Object)
Body = Mapping[str, Any] | msgspec.Struct

MAX_IN_FLIGHT: Final = 64
"""Requests at a time, watches apart."""
CONNECT_LIMIT: Final = 10.0
DEFAULT_WAIT: Final = 1.0
"""Seconds to wait after a 429 that names no time."""

_METADATA = "application/json;as=PartialObjectMetadata{};g=meta.k8s.io;v=v1,application/json"


class Client:
    """An async context manager; all methods raise the errors of ``interlace.kube.errors``.

    ``qps`` and ``burst`` bound all requests of this client (``qps=0``: no bound), ``timeout``
    each call in seconds, ``idle`` the silence on a watch (the server sends a bookmark a minute).
    """

    def __init__(
        self,
        config: Config,
        *,
        user_agent: str,
        qps: float = 50,
        burst: int = 100,
        timeout: float = 30,
        idle: float = 100,
        metrics: Metrics | None = None,
    ) -> None:
        self.config = config
        self.namespace = config.namespace
        self._timeout = timeout
        self._idle = idle
        self._bucket = TokenBucket(rate=qps, burst=burst)
        self._in_flight = asyncio.Semaphore(MAX_IN_FLIGHT)
        self._credentials = Credentials(config)
        self._codecs: dict[type[Any], Codec[Any]] = {}
        self._headers = CIMultiDict(
            [("User-Agent", user_agent), ("Accept", "application/json"), *_impersonation(config)]
        )
        self._session: aiohttp.ClientSession | None = None
        self._metrics = metrics
        if config.proxy_url and not config.proxy_url.startswith(("http://", "https://")):
            raise ConfigError(f"proxy {config.proxy_url!r}: only http:// and https:// proxies are supported")

    async def __aenter__(self) -> Self:
        # The pool itself has no limit: _in_flight bounds requests, informers bound watches.
        connector = aiohttp.TCPConnector(limit=0, socket_factory=open_socket)
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

    async def get(self, kind: type[T], name: str, *, namespace: str | None = None) -> T:
        """One object."""
        path = _path(kind, namespace, name)
        return self._codec(kind).object(await self.request("GET", path), path=path)

    async def list(
        self,
        kind: type[T],
        *,
        namespace: str | None = None,
        labels: str = "",
        fields: str = "",
        limit: int = 500,
        resource_version: str | None = None,
        metadata_only: bool = False,
    ) -> Listing[T]:
        """All pages as one list at one version; if the pages expire on the way, the whole again without pages.

        ``resource_version="0"`` takes what the server's cache has, however old; None the newest.
        """
        path, codec = _path(kind, namespace), self._codec(kind)
        query = _selectors(labels, fields)
        if resource_version is not None:
            query["resourceVersion"] = resource_version
        accept = {"Accept": _METADATA.format("List")} if metadata_only else None
        items: list[T] = []
        problems: list[str] = []
        page_query = {**query, "limit": str(limit)} if limit else query
        while True:
            try:
                raw = await self.request("GET", path, query=page_query, headers=accept)
            except Expired:
                if "continue" not in page_query:
                    raise
                items, problems = [], []
                page_query = {k: v for k, v in query.items() if k != "resourceVersion"}
                continue
            found, meta, unreadable = codec.page(raw, path=path)
            items = items + found if items else found
            problems += unreadable
            if not meta.continue_:
                return Listing(items, meta.resource_version, problems)
            page_query = {**_selectors(labels, fields), "limit": str(limit), "continue": meta.continue_}

    async def create(
        self,
        kind: type[T],
        body: Body,
        *,
        namespace: str | None = None,
        name: str | None = None,
        subresource: str | None = None,
        dry_run: bool = False,
    ) -> T:
        """POST an object, or a subresource of the object ``name``."""
        path = _path(kind, namespace, name if subresource else None, subresource)
        return await self._write("POST", kind, path, encode_object(body, kind.resource), query=_dry(dry_run=dry_run))

    async def apply(
        self,
        kind: type[T],
        body: Body,
        *,
        name: str,
        namespace: str | None = None,
        manager: str,
        force: bool = True,
        subresource: str | None = None,
        dry_run: bool = False,
    ) -> T:
        """Server-side apply as field manager ``manager``; without ``force``, ``Conflict`` if others own a field."""
        query = {"fieldManager": manager, **_dry(dry_run=dry_run)}
        if force:
            query["force"] = "true"
        path = _path(kind, namespace, name, subresource)
        return await self._write(
            "PATCH", kind, path, encode_object(body, kind.resource), query=query, content="application/apply-patch+yaml"
        )

    async def merge_patch(
        self, kind: type[T], name: str, body: Body, *, namespace: str | None = None, subresource: str | None = None
    ) -> T:
        """JSON merge patch; with ``metadata.resourceVersion`` in it, ``Conflict`` if the object has another."""
        path, content = _path(kind, namespace, name, subresource), "application/merge-patch+json"
        return await self._write("PATCH", kind, path, msgspec.json.encode(body), content=content)

    async def json_patch(
        self,
        kind: type[T],
        name: str,
        body: Sequence[Body],
        *,
        namespace: str | None = None,
        subresource: str | None = None,
    ) -> T:
        """JSON patch (RFC 6902); a failed ``test`` is ``Invalid``."""
        path, content = _path(kind, namespace, name, subresource), "application/json-patch+json"
        return await self._write("PATCH", kind, path, msgspec.json.encode(body), content=content)

    async def replace(
        self, kind: type[T], name: str, body: Body, *, namespace: str | None = None, subresource: str | None = None
    ) -> T:
        """PUT a whole object that we built ourselves, never one that was read as a partial struct."""
        path = _path(kind, namespace, name, subresource)
        return await self._write("PUT", kind, path, encode_object(body, kind.resource))

    async def delete(
        self,
        kind: type[T],
        name: str,
        *,
        namespace: str | None = None,
        uid: str | None = None,
        resource_version: str | None = None,
        grace_period: int | None = None,
        propagation: str | None = None,
    ) -> None:
        """DELETE; ``Conflict`` if uid or version are others. ``propagation``: Orphan, Background or Foreground."""
        options: dict[str, Any] = {"apiVersion": "v1", "kind": "DeleteOptions", **_preconditions(uid, resource_version)}
        if grace_period is not None:
            options["gracePeriodSeconds"] = grace_period
        if propagation is not None:
            options["propagationPolicy"] = propagation
        await self.request("DELETE", _path(kind, namespace, name), body=msgspec.json.encode(options))

    async def evict(self, name: str, *, namespace: str, uid: str | None = None) -> None:
        """Evict a Pod; ``TooManyRequests`` if a disruption budget forbids it now (not tried again here)."""
        body = {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": name, "namespace": namespace},
            "deleteOptions": _preconditions(uid, None),
        }
        path = _path(Pod, namespace, name, "eviction")
        await self._send("POST", path, query=None, body=msgspec.json.encode(body), headers=None, patient=False)

    async def watch(
        self,
        kind: type[T],
        *,
        namespace: str | None = None,
        labels: str = "",
        fields: str = "",
        resource_version: str = "",
        bookmarks: bool = True,
        initial_events: bool = False,
        timeout: float = 300,
        metadata_only: bool = False,
    ) -> AsyncGenerator[WatchEvent[T], None]:
        """Changes after ``resource_version`` until the server ends the stream, ``timeout`` seconds or so later.

        Bookmarks are yielded too. With ``initial_events`` the present objects come first as
        ``ADDED``, then a bookmark with ``initial_events_end``. Raises ``Expired`` for a version out
        of history, ``Unreachable`` when the connection breaks, stays silent, or ends within a line.
        Close it (``contextlib.aclosing``) if you leave it early.
        """
        query = {**_selectors(labels, fields), "watch": "true", "timeoutSeconds": str(max(1, round(timeout)))}
        if resource_version:
            query["resourceVersion"] = resource_version
        if bookmarks or initial_events:
            query["allowWatchBookmarks"] = "true"
        if initial_events:
            query |= {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan"}
        accept = {"Accept": _METADATA.format("")} if metadata_only else None
        path, codec = _path(kind, namespace), self._codec(kind)
        wait = aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_LIMIT, sock_read=self._idle)
        url = self._url(path, query)

        async def send(grant: Grant) -> _Answer:
            response = await self._raw("GET", url, grant, headers=accept, body=None, timeout=wait)
            if response.ok:
                return _Answer(response.status, response.headers, b"", response)
            async with response:
                return _Answer(response.status, response.headers, await response.read())

        with _telling(self.config.server, f"watch of {path}"):
            async with asyncio.timeout(self._timeout):
                answer = await self._patiently(send, "WATCH", path, patient=True)
        if answer.stream is None:
            raise RuntimeError("an accepted watch has no stream")
        async with answer.stream:
            with _telling(self.config.server, f"watch of {path}"):
                async for line in _lines(answer.stream.content):
                    yield codec.event(line, path=path)

    async def request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> bytes:
        """Any request; the body of a 2xx answer. 429, and 503 with Retry-After, are waited for within ``timeout``."""
        return await self._send(method, path, query=query, body=body, headers=headers, patient=True)

    async def _write(
        self,
        method: str,
        kind: type[T],
        path: str,
        body: bytes,
        *,
        query: Mapping[str, str] | None = None,
        content: str = "application/json",
    ) -> T:
        raw = await self.request(method, path, query=query, body=body, headers={"Content-Type": content})
        return self._codec(kind).object(raw, path=path)

    async def _send(
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

        with _telling(self.config.server, f"{method} {path}"):
            async with asyncio.timeout(self._timeout):
                return (await self._patiently(send, method, path, patient=patient)).body

    async def _patiently(
        self, send: Callable[[Grant], Awaitable[_Answer]], method: str, path: str, *, patient: bool
    ) -> _Answer:
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self._timeout
        renewed = False
        while True:
            await self._bucket.take()
            grant = await self._credentials.current()
            answer = await send(grant)
            if self._metrics is not None:
                self._metrics.requests.labels(method, _resource(path), str(answer.status)).inc()
            if 200 <= answer.status < 300:
                return answer
            if answer.status == 401 and not renewed and await self._credentials.refused(grant):
                renewed = True
                continue
            wait = _retry_after(answer.headers)
            if patient and (answer.status == 429 or (answer.status == 503 and wait is not None)):
                pause = (DEFAULT_WAIT if wait is None else wait) * random.uniform(1.0, 1.1)
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
        timeout: aiohttp.ClientTimeout | None = None,
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
            server_hostname=self.config.tls_server_name if grant.tls is not None else None,
            proxy=self.config.proxy_url,
            timeout=timeout or self._session.timeout,
        )

    def _url(self, path: str, query: Mapping[str, str] | None) -> URL:
        return URL(self.config.server.rstrip("/") + path + (f"?{urlencode(query)}" if query else ""), encoded=True)

    def _codec(self, kind: type[T]) -> Codec[T]:
        codec = self._codecs.get(kind)
        if codec is None:
            codec = self._codecs[kind] = Codec(kind)
        return codec


@dataclass(frozen=True, slots=True)
class _Answer:
    status: int
    headers: Mapping[str, str]
    body: bytes
    stream: aiohttp.ClientResponse | None = None


@contextmanager
def _telling(url: str, what: str) -> Iterator[None]:
    """Failures of the connection as ``Unreachable``."""
    try:
        yield
    except aiohttp.ClientConnectorCertificateError as error:
        cause = f"its certificate is not trusted: {error.certificate_error}; check certificate-authority"
        raise Unreachable(f"{what}: {url}: {cause}", url=url) from error
    except aiohttp.SocketTimeoutError as error:
        raise Unreachable(f"{what}: {url}: nothing was received for too long", url=url) from error
    except TimeoutError as error:
        raise Unreachable(f"{what}: {url}: no answer in time", url=url) from error
    except (aiohttp.ClientError, OSError) as error:
        raise Unreachable(f"{what}: {url}: {str(error) or type(error).__name__}", url=url) from error


async def _lines(content: aiohttp.StreamReader) -> AsyncIterator[bytes]:
    """Lines of any length; the last one must be complete."""
    parts: list[bytes] = []
    async for chunk in content.iter_any():
        first, *more = chunk.split(b"\n")
        parts.append(first)
        if more:
            yield b"".join(parts)
            for line in more[:-1]:
                yield line
            parts = [more[-1]]
    if any(parts):
        raise aiohttp.ClientPayloadError("the stream ended within a line")


def _path(kind: type[Object], namespace: str | None, name: str | None = None, subresource: str | None = None) -> str:
    resource = kind.resource
    if name == "":
        raise ValueError(f"a {resource.kind} needs a name")
    return resource.path(
        quote(namespace, safe="") if namespace else None, quote(name, safe="") if name else None, subresource
    )


def _resource(path: str) -> str:
    """``resource`` or ``resource/subresource`` in a path, for metrics."""
    parts = path.split("/")[1:]
    parts = parts[2:] if parts[0] == "api" else parts[3:]
    if parts[:1] == ["namespaces"] and len(parts) > 2:
        parts = parts[2:]
    return "/".join(parts[::2][:2])


def _selectors(labels: str, fields: str) -> dict[str, str]:
    query = {"labelSelector": labels, "fieldSelector": fields}
    return {key: value for key, value in query.items() if value}


def _preconditions(uid: str | None, resource_version: str | None) -> dict[str, Any]:
    wanted = {"uid": uid, "resourceVersion": resource_version}
    wanted = {key: value for key, value in wanted.items() if value is not None}
    return {"preconditions": wanted} if wanted else {}


def _dry(*, dry_run: bool) -> dict[str, str]:
    return {"dryRun": "All"} if dry_run else {}


def _retry_after(headers: Mapping[str, str]) -> float | None:
    value = headers.get("Retry-After", "")
    return float(value) if value.isdigit() else None


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
