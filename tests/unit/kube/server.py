"""An API server that misbehaves on request: what a client meets on a bad day, from one process.

It keeps monotonic versions and a bounded history, lists with pages and selectors, watches with bookmarks
and initial events, and honours preconditions. It knows nothing of schemas: that is the embedded server's job.
"""

from __future__ import annotations

import asyncio
import json
from collections import deque
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Literal, Self

from aiohttp import web

from interlace.kube.config import Config

JSON = dict[str, Any]
Key = tuple[str, str, str]
"""Collection (group, version and plural), namespace, name."""


@dataclass(eq=False, slots=True)
class Watcher:
    """One open watch."""

    collection: str
    namespace: str
    labels: dict[str, str]
    metadata_only: bool
    bookmarks: bool
    request: web.Request
    lines: asyncio.Queue[bytes | None] = field(default_factory=asyncio.Queue)
    frozen: bool = False

    def send(self, kind: str, obj: JSON) -> None:
        if not self.frozen:
            self.lines.put_nowait(json.dumps({"type": kind, "object": obj}).encode() + b"\n")


@dataclass(frozen=True, slots=True)
class Asked:
    """One request as the server saw it."""

    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: bytes
    time: float


@dataclass(frozen=True, slots=True)
class Refusal:
    """An answer to give instead of the right one."""

    status: int
    headers: dict[str, str] = field(default_factory=dict)
    reason: str = ""
    path: str = ""
    """Only requests whose path ends so."""


@dataclass(frozen=True, slots=True)
class Trouble:
    """How the network treats one client, in seconds: requests arrive late, answers come back late.

    A late request takes effect all the same when its client has long given up.
    """

    there: float = 0.0
    back: float = 0.0


class Server:
    """An async context manager. Tests change ``objects`` by ``put`` and ``remove`` and read ``asked``."""

    def __init__(self, *, window: int = 1000) -> None:
        self.version = 100
        self.window = window
        self.objects: dict[Key, JSON] = {}
        self.history: deque[tuple[int, str, JSON, JSON | None]] = deque()
        self.oldest = self.version
        self.watchers: set[Watcher] = set()
        self.asked: list[Asked] = []
        self.refusals: deque[Refusal] = deque()
        self.token: str | None = None
        self.expired: Literal["status", "event"] = "event"
        self.watch_list: Literal["yes", "refused", "ignored"] = "yes"
        self.doom: Literal["", "expire", "end"] = ""
        """What becomes of every new watch, after its first events."""
        self.delay = 0.0
        self.trouble: dict[str, Trouble] = {}
        """By user agent."""
        self._late: set[asyncio.Task[web.StreamResponse]] = set()
        self.lose_answers = 0
        """So many writes take effect and are not answered."""
        self.expiring_pages = 0
        """So many pages are out of history as soon as they are read."""
        self.port = 0
        self._app = web.Application()
        self._app.router.add_route("*", "/{path:.*}", self._serve)
        self._runner: web.AppRunner | None = None
        self._open: set[asyncio.Transport] = set()

    async def __aenter__(self) -> Self:
        await self.back()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.away()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def is_here(self) -> bool:
        """Whether it listens."""
        return self._runner is not None

    @property
    def config(self) -> Config:
        return Config(server=self.url)

    # What happens in the cluster.

    def put(self, collection: str, name: str, *, namespace: str = "default", **parts: Any) -> JSON:
        """Create or update an object; ``labels`` go into its metadata, the rest beside it."""
        key = (collection, namespace, name)
        old = self.objects.get(key)
        self.version += 1
        meta = {
            "name": name,
            "namespace": namespace,
            "uid": old["metadata"]["uid"] if old else f"uid-{self.version}",
            "resourceVersion": str(self.version),
            "labels": parts.pop("labels", {}),
        }
        meta = {**meta, **parts.pop("metadata", {}), "resourceVersion": str(self.version)}
        obj = {"metadata": {k: v for k, v in meta.items() if v != ""}, **parts}
        self.objects[key] = obj
        self._record(collection, obj, old)
        return obj

    def remove(self, collection: str, name: str, *, namespace: str = "default") -> None:
        old = self.objects.pop((collection, namespace, name))
        self.version += 1
        gone = {**old, "metadata": {**old["metadata"], "resourceVersion": str(self.version)}}
        self._record(collection, gone, old, deleted=True)

    def replace(self, collection: str, name: str, *, namespace: str = "default", **parts: Any) -> JSON:
        """Delete and create again: the same name with another uid."""
        self.remove(collection, name, namespace=namespace)
        return self.put(collection, name, namespace=namespace, **parts)

    def list(self, collection: str) -> list[JSON]:
        return [obj for (where, _, _), obj in sorted(self.objects.items()) if where == collection]

    # What goes wrong.

    def refuse(self, status: int, *, times: int = 1, reason: str = "", path: str = "", **headers: str) -> None:
        """Answer the next requests with this status; header names are given with underscores."""
        named = {key.replace("_", "-"): value for key, value in headers.items()}
        self.refusals.extend([Refusal(status, named, reason, path)] * times)

    def compact(self) -> None:
        """Forget the history: a watch from an earlier version has expired."""
        self.history.clear()
        self.oldest = self.version

    def bookmark(self) -> None:
        for watcher in self.watchers:
            if watcher.bookmarks:
                watcher.send("BOOKMARK", {"metadata": {"resourceVersion": str(self.version)}})

    def error(self, code: int, reason: str) -> None:
        """An ERROR event on every open watch, which then ends."""
        for watcher in self.watchers:
            watcher.send("ERROR", _status(code, reason))
            watcher.lines.put_nowait(None)

    def end_watches(self) -> None:
        for watcher in self.watchers:
            watcher.lines.put_nowait(None)

    def cut(self, *, mid_line: bool = True) -> None:
        """Break the connection of every open watch."""
        for watcher in self.watchers:
            watcher.frozen = True
            transport = _transport(watcher.request)
            if mid_line:
                transport.write(b'20\r\n{"type":"MODIFIED","object":{"me\r\n')
            transport.close()

    def freeze(self) -> None:
        """Open watches stay open and never say anything again, as through a dead middle box."""
        for watcher in self.watchers:
            watcher.frozen = True

    async def away(self) -> None:
        """Stop listening and break all connections."""
        if self._runner is not None:
            for transport in self._open:
                transport.abort()
            for task in self._late:
                task.cancel()
            runner, self._runner = self._runner, None
            await runner.cleanup()

    async def back(self) -> None:
        """Listen again on the same port."""
        runner = web.AppRunner(self._app, access_log=None, handler_cancellation=True, shutdown_timeout=0.1)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", self.port, reuse_address=True, backlog=512).start()
        self.port = runner.addresses[0][1]
        self._runner = runner

    # How it answers.

    async def _serve(self, request: web.Request) -> web.StreamResponse:
        now = asyncio.get_running_loop().time()
        body = await request.read()
        query, headers = dict(request.query), dict(request.headers)
        self.asked.append(Asked(request.method, request.path, query, headers, body, now))
        transport = _transport(request)
        self._open.add(transport)
        try:
            if self.delay:
                await asyncio.sleep(self.delay)
            if self.refusals and request.path.endswith(self.refusals[0].path):
                refusal = self.refusals.popleft()
                return _answer(_status(refusal.status, refusal.reason), status=refusal.status, headers=refusal.headers)
            if self.token is not None and request.headers.get("Authorization") != f"Bearer {self.token}":
                return _answer(_status(401, "Unauthorized"), status=401)
            trouble = self.trouble.get(headers.get("User-Agent", ""))
            if trouble is None:
                return await self._route(request, body)
            task = asyncio.ensure_future(self._late_route(request, body, trouble))
            self._late.add(task)
            task.add_done_callback(self._late.discard)
            return await asyncio.shield(task)
        finally:
            self._open.discard(transport)

    async def _route(self, request: web.Request, body: bytes) -> web.StreamResponse:
        collection, namespace, name, subresource = _parse(request.path)
        metadata_only = "as=PartialObjectMetadata" in request.headers.get("Accept", "")
        if not name and request.method == "GET":
            if request.query.get("watch") == "true":
                return await self._watch(request, collection, namespace, metadata_only=metadata_only)
            return self._list(request, collection, namespace, metadata_only=metadata_only)
        before = self.version
        answer = self._object(request, body, collection, namespace, name, subresource)
        if self.lose_answers and self.version != before:
            self.lose_answers -= 1
            if request.transport is not None:
                _transport(request).abort()
        return answer

    async def _late_route(self, request: web.Request, body: bytes, trouble: Trouble) -> web.StreamResponse:
        await asyncio.sleep(trouble.there)
        answer = await self._route(request, body)
        await asyncio.sleep(trouble.back)
        return answer

    def _list(self, request: web.Request, collection: str, namespace: str, *, metadata_only: bool) -> web.Response:
        limit, token = int(request.query.get("limit") or 0), request.query.get("continue", "")
        version, start = (int(part) for part in token.split(":")) if token else (self.version, 0)
        if token and version < self.oldest:
            return _answer(_status(410, "Expired"), status=410)
        labels = _labels(request.query.get("labelSelector", ""))
        found = [obj for obj in self.list(collection) if _selected(obj, namespace, labels)]
        page = found[start : start + limit] if limit else found[start:]
        meta: JSON = {"resourceVersion": str(version)}
        if limit and start + limit < len(found):
            meta["continue"] = f"{version}:{start + limit}"
            if self.expiring_pages:
                self.expiring_pages -= 1
                self.put(collection, "new")
                self.compact()
        items = [_metadata(obj) if metadata_only else obj for obj in page]
        return _answer({"kind": "List", "metadata": meta, "items": items or None})

    async def _watch(
        self, request: web.Request, collection: str, namespace: str, *, metadata_only: bool
    ) -> web.StreamResponse:
        query = request.query
        initial = query.get("sendInitialEvents") == "true"
        if initial and self.watch_list == "refused":
            return _answer(_status(422, "Invalid"), status=422)
        since = int(query.get("resourceVersion") or 0)
        expired = 0 < since < self.oldest
        if expired and self.expired == "status":
            return _answer(_status(410, "Expired"), status=410)
        watcher = Watcher(
            collection,
            namespace,
            _labels(query.get("labelSelector", "")),
            metadata_only,
            query.get("allowWatchBookmarks") == "true",
            request,
        )
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        await response.prepare(request)
        if expired:
            watcher.send("ERROR", _status(410, "Expired"))
            watcher.lines.put_nowait(None)
        elif since == 0:
            for obj in self.list(collection):
                if _selected(obj, namespace, watcher.labels):
                    watcher.send("ADDED", _metadata(obj) if metadata_only else obj)
            if initial and self.watch_list == "yes":
                annotations = {"k8s.io/initial-events-end": "true"}
                watcher.send(
                    "BOOKMARK", {"metadata": {"resourceVersion": str(self.version), "annotations": annotations}}
                )
        else:
            for version, where, obj, old in self.history:
                if version > since and where == collection:
                    _send(watcher, obj, old)
        if self.doom == "expire":
            watcher.send("ERROR", _status(410, "Expired"))
        if self.doom:
            watcher.lines.put_nowait(None)
        self.watchers.add(watcher)
        try:
            while (line := await watcher.lines.get()) is not None:
                await response.write(line)
        except ConnectionError:
            pass
        finally:
            self.watchers.discard(watcher)
        return response

    def _object(
        self, request: web.Request, body: bytes, collection: str, namespace: str, name: str, subresource: str
    ) -> web.Response:
        sent: JSON = json.loads(body) if body else {}
        if request.method == "POST" and not subresource:
            name = sent["metadata"]["name"]
            if (collection, namespace, name) in self.objects:
                return _answer(_status(409, "AlreadyExists"), status=409)
            extra = {k: v for k, v in sent.items() if k != "metadata"}
            return _answer(self.put(collection, name, namespace=namespace, metadata=sent["metadata"], **extra), 201)
        if request.method == "POST" and subresource == "token":
            return _answer({"metadata": {"name": name}, "status": {"token": f"token-{self.version}"}}, 201)
        obj = self.objects.get((collection, namespace, name))
        if obj is None:
            return _answer(_status(404, "NotFound"), status=404)
        if request.method == "GET":
            return _answer(obj)
        if request.method == "DELETE":
            wanted = sent.get("preconditions", {})
            if any(wanted[key] != obj["metadata"][key] for key in wanted):
                return _answer(_status(409, "Conflict"), status=409)
            self.remove(collection, name, namespace=namespace)
            return _answer(_status(200, ""))
        if request.method == "PATCH":
            version = sent.get("metadata", {}).pop("resourceVersion", None)
            if version is not None and version != obj["metadata"]["resourceVersion"]:
                return _answer(_status(409, "Conflict"), status=409)
            merged = _merge(obj, sent)
            extra = {k: v for k, v in merged.items() if k != "metadata"}
            return _answer(self.put(collection, name, namespace=namespace, metadata=merged["metadata"], **extra))
        return _answer(_status(405, "MethodNotAllowed"), status=405)

    def _record(self, collection: str, obj: JSON, old: JSON | None, *, deleted: bool = False) -> None:
        change = {**obj, "deleted": True} if deleted else obj
        self.history.append((self.version, collection, change, old))
        while len(self.history) > self.window:
            self.oldest = self.history.popleft()[0]
        for watcher in self.watchers:
            if watcher.collection == collection:
                _send(watcher, change, old)


def _transport(request: web.Request) -> asyncio.Transport:
    if not isinstance(request.transport, asyncio.Transport):
        raise TypeError("the connection is gone")
    return request.transport


def _send(watcher: Watcher, obj: JSON, old: JSON | None) -> None:
    """What a watch with these selectors sees of a change."""
    deleted = obj.get("deleted", False)
    now = not deleted and _selected(obj, watcher.namespace, watcher.labels)
    before = old is not None and _selected(old, watcher.namespace, watcher.labels)
    shown = {k: v for k, v in obj.items() if k != "deleted"}
    if watcher.metadata_only:
        shown = _metadata(shown)
    if now or before:
        watcher.send("MODIFIED" if now and before else "ADDED" if now else "DELETED", shown)


def _selected(obj: JSON, namespace: str, labels: dict[str, str]) -> bool:
    meta: JSON = obj["metadata"]
    has: dict[str, str] = meta.get("labels", {})
    return namespace in ("", meta.get("namespace")) and labels.items() <= has.items()


def _labels(selector: str) -> dict[str, str]:
    return dict(part.split("=", 1) for part in selector.split(",") if part)


def _metadata(obj: JSON) -> JSON:
    return {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": obj["metadata"]}


def _merge(old: Any, patch: JSON) -> JSON:
    merged: JSON = dict(old) if isinstance(old, dict) else {}
    for key, value in patch.items():
        if value is None:
            merged.pop(key, None)
        else:
            merged[key] = _merge(merged.get(key), value) if isinstance(value, dict) else value
    return merged


def _parse(path: str) -> tuple[str, str, str, str]:
    """Collection, namespace, name, subresource."""
    parts = path.strip("/").split("/")
    head = 2 if parts[0] == "api" else 3
    group, rest = "/".join(parts[:head]), parts[head:]
    namespace = ""
    if rest[:1] == ["namespaces"] and len(rest) > 2:
        namespace, rest = rest[1], rest[2:]
    plural, name, subresource = [*rest, "", "", ""][:3]
    return f"{group}/{plural}", namespace, name, subresource


def _status(code: int, reason: str) -> JSON:
    return {"kind": "Status", "code": code, "reason": reason, "message": f"the server says {reason or code}"}


def _answer(body: JSON, status: int = 200, headers: dict[str, str] | None = None) -> web.Response:
    return web.json_response(body, status=status, headers=headers)
