"""Typed requests to one API server: objects, lists with all their pages, patches, watches.

Invariant: what was read is never written back (our structs hold a part of the fields); the
limits of ``interlace.kube.wire`` hold for every call. Kinds of ``resource.k8s.io`` are v1 for the
caller, whatever version the server serves (JSON patches apart, whose paths go out as they are).
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing
from types import TracebackType
from typing import Any, NamedTuple, Self, TypeVar
from urllib.parse import quote

import msgspec

from interlace.api.core import Pod
from interlace.api.meta import Object, Resource
from interlace.kube.codec import Codec, Listing, WatchEvent, encode_object
from interlace.kube.config import Config
from interlace.kube.errors import Expired, NotFound
from interlace.kube.metrics import Metrics
from interlace.kube.versions import Versions, from_newest
from interlace.kube.wire import Wire

T = TypeVar("T", bound=Object)
Body = Mapping[str, Any] | msgspec.Struct

_VERSION_TRIES = 3
"""API servers of two releases behind one address may disagree on every request while a cluster is upgraded."""
_JSON_PATCH = "application/json-patch+json"
_METADATA = "application/json;as=PartialObjectMetadata{};g=meta.k8s.io;v=v1,application/json"


class Client:
    """An async context manager; all methods raise the errors of ``interlace.kube.errors``.

    ``qps`` and ``burst`` bound all requests of this client (``qps=0``: no bound), ``timeout``
    each call in seconds, ``idle`` the silence on a watch: a server sends a bookmark a minute,
    the first one up to 120 s after its own start (seen on 1.36.3).
    """

    def __init__(
        self,
        config: Config,
        *,
        user_agent: str,
        qps: float = 50,
        burst: int = 100,
        timeout: float = 30,
        idle: float = 180,
        metrics: Metrics | None = None,
    ) -> None:
        self.config = config
        self.namespace = config.namespace
        self.timeout = timeout
        self._wire = Wire(
            config, user_agent=user_agent, qps=qps, burst=burst, timeout=timeout, idle=idle, metrics=metrics
        )
        self._codecs: dict[type[Any], Codec[Any]] = {}
        self._versions = Versions(lambda path: self.request("GET", path))

    async def __aenter__(self) -> Self:
        await self._wire.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._wire.__aexit__(kind, error, trace)

    @property
    def versions(self) -> Versions:
        """The version of ``resource.k8s.io`` in which this server is spoken to; right after the first such request."""
        return self._versions

    async def get(self, kind: type[T], name: str, *, namespace: str | None = None) -> T:
        """One object."""
        return await self._ask("GET", kind, _Place(namespace, name))

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
        place, codec = _Place(namespace), self._codec(kind)
        query = _selectors(labels, fields)
        if resource_version is not None:
            query["resourceVersion"] = resource_version
        accept = {"Accept": _METADATA.format("List")} if metadata_only else None
        items: list[T] = []
        problems: list[str] = []
        page_query = {**query, "limit": str(limit)} if limit else query
        while True:
            try:
                raw, asked = await self._answer("GET", kind, place, query=page_query, headers=accept)
            except Expired:
                if "continue" not in page_query:
                    raise
                items, problems = [], []
                page_query = {k: v for k, v in query.items() if k != "resourceVersion"}
                continue
            found, meta, unreadable = codec.page(raw, asked=asked, path=place.path(asked))
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
        place = _Place(namespace, name if subresource else None, subresource)
        return await self._ask("POST", kind, place, encode_object(body, kind.resource), query=_dry(dry_run=dry_run))

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
        place, content = _Place(namespace, name, subresource), "application/apply-patch+yaml"
        return await self._ask("PATCH", kind, place, encode_object(body, kind.resource), query=query, content=content)

    async def merge_patch(
        self, kind: type[T], name: str, body: Body, *, namespace: str | None = None, subresource: str | None = None
    ) -> T:
        """JSON merge patch; with ``metadata.resourceVersion`` in it, ``Conflict`` if the object has another."""
        place, content = _Place(namespace, name, subresource), "application/merge-patch+json"
        return await self._ask("PATCH", kind, place, msgspec.json.encode(body), content=content)

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
        place, content = _Place(namespace, name, subresource), _JSON_PATCH
        return await self._ask("PATCH", kind, place, msgspec.json.encode(body), content=content)

    async def replace(
        self, kind: type[T], name: str, body: Body, *, namespace: str | None = None, subresource: str | None = None
    ) -> T:
        """PUT a whole object that we built ourselves, never one that was read as a partial struct."""
        return await self._ask("PUT", kind, _Place(namespace, name, subresource), encode_object(body, kind.resource))

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
        await self._answer("DELETE", kind, _Place(namespace, name), body=msgspec.json.encode(options))

    async def evict(self, name: str, *, namespace: str, uid: str | None = None) -> None:
        """Evict a Pod; ``TooManyRequests`` if a disruption budget forbids it now (not tried again here)."""
        body = {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": name, "namespace": namespace},
            "deleteOptions": _preconditions(uid, None),
        }
        path = _Place(namespace, name, "eviction").path(Pod.resource)
        await self._wire.send("POST", path, query=None, body=msgspec.json.encode(body), headers=None, patient=False)

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
        opened: Callable[[], None] | None = None,
    ) -> AsyncGenerator[WatchEvent[T], None]:
        """Changes after ``resource_version`` until the server ends the stream, ``timeout`` seconds or so later.

        ``opened`` is called when the server has accepted the watch. Bookmarks are yielded too. With
        ``initial_events`` the present objects come first as ``ADDED``, then a bookmark with
        ``initial_events_end``. Raises ``Expired`` for a version out of history, ``Unreachable`` when
        the connection breaks, stays silent, or ends within a line. Close it (``contextlib.aclosing``)
        if you leave it early.
        """
        query = {**_selectors(labels, fields), "watch": "true", "timeoutSeconds": str(max(1, round(timeout)))}
        if resource_version:
            query["resourceVersion"] = resource_version
        if bookmarks or initial_events:
            query["allowWatchBookmarks"] = "true"
        if initial_events:
            query |= {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan"}
        accept = {"Accept": _METADATA.format("")} if metadata_only else None
        place, codec = _Place(namespace), self._codec(kind)
        for left in reversed(range(_VERSION_TRIES)):
            asked = self._versions.of(kind.resource)
            path = place.path(asked)
            try:
                async with aclosing(self._wire.lines(path, query=query, headers=accept, opened=opened)) as batches:
                    async for lines in batches:
                        for line in lines:
                            yield codec.event(line, asked=asked, path=path)
                return
            except NotFound as error:
                if not left or not await self._versions.changed(kind.resource, asked, error):
                    raise

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
        return await self._wire.send(method, path, query=query, body=body, headers=headers, patient=True)

    async def _ask(
        self,
        method: str,
        kind: type[T],
        place: _Place,
        body: bytes | None = None,
        *,
        query: Mapping[str, str] | None = None,
        content: str = "application/json",
    ) -> T:
        headers = {"Content-Type": content} if body is not None else None
        raw, asked = await self._answer(method, kind, place, body=body, query=query, headers=headers)
        return self._codec(kind).object(raw, asked=asked, path=place.path(asked))

    async def _answer(
        self,
        method: str,
        kind: type[Object],
        place: _Place,
        *,
        body: bytes | None = None,
        query: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> tuple[bytes, Resource]:
        """The answer, and the kind in the version that was asked for."""
        for left in reversed(range(_VERSION_TRIES)):
            asked = self._versions.of(kind.resource)
            text = body
            if body is not None and asked != kind.resource and (headers or {}).get("Content-Type") != _JSON_PATCH:
                text = from_newest(body, asked=asked)
            try:
                return await self.request(method, place.path(asked), query=query, body=text, headers=headers), asked
            except NotFound as error:
                if not left or not await self._versions.changed(kind.resource, asked, error):
                    raise
        raise AssertionError("unreachable: the last try returns or raises")

    def _codec(self, kind: type[T]) -> Codec[T]:
        codec = self._codecs.get(kind)
        if codec is None:
            codec = self._codecs[kind] = Codec(kind)
        return codec


class _Place(NamedTuple):
    """Where an object, a collection or a subresource is, apart from its kind; no name: the collection."""

    namespace: str | None = None
    name: str | None = None
    subresource: str | None = None

    def path(self, resource: Resource) -> str:
        if self.name == "":
            raise ValueError(f"a {resource.kind} needs a name")
        namespace = quote(self.namespace, safe="") if self.namespace else None
        return resource.path(namespace, quote(self.name, safe="") if self.name else None, self.subresource)


def _selectors(labels: str, fields: str) -> dict[str, str]:
    query = {"labelSelector": labels, "fieldSelector": fields}
    return {key: value for key, value in query.items() if value}


def _preconditions(uid: str | None, resource_version: str | None) -> dict[str, Any]:
    wanted = {"uid": uid, "resourceVersion": resource_version}
    wanted = {key: value for key, value in wanted.items() if value is not None}
    return {"preconditions": wanted} if wanted else {}


def _dry(*, dry_run: bool) -> dict[str, str]:
    return {"dryRun": "All"} if dry_run else {}
