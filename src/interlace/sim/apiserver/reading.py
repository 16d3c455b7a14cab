"""The verbs that read: get, list and watch.

Lists are consistent snapshots, also over several pages; watches start now, at a version in the remembered past, or
with all objects (``sendInitialEvents``), and can be bookmarked.

Invariant: a watch tells every change of its selection exactly once and in order, or ends with an error event.
"""

from __future__ import annotations

import asyncio
import base64
from collections import deque
from collections.abc import AsyncGenerator
from typing import Any

import msgspec

from interlace.sim.apiserver import cause, errors, selectors
from interlace.sim.apiserver.calls import Call
from interlace.sim.apiserver.cause import Cause
from interlace.sim.apiserver.kinds import Kind
from interlace.sim.apiserver.objects import Json, encode
from interlace.sim.apiserver.selectors import Predicate
from interlace.sim.apiserver.store import Change, Collection, Expired, Key, Store, with_version
from interlace.sim.apiserver.views import View, negotiate

_INITIAL_END = "k8s.io/initial-events-end"
_EARLY = 0.01
"""Seconds that an alarm may ring before its time."""
_CONTINUE_EXPIRED = (
    "The provided continue parameter is too old to display a consistent list result. You can start a new list "
    "without the continue parameter, or use the continue token in this response to retrieve the remainder of the "
    "results. Continuing with the provided token results in an inconsistent list - objects that were created, "
    "modified, or deleted between the time the first chunk was returned and now may show up in the list."
)


def selection(call: Call) -> Predicate | None:
    """What namespace, name and selectors of a request let through; None lets everything."""
    tests: list[Predicate] = []
    namespace = call.target.namespace
    if namespace and call.kind.namespaced:
        tests.append(lambda obj: bool(obj["metadata"].get("namespace") == namespace))
    if name := call.target.name:
        tests.append(lambda obj: bool(obj["metadata"]["name"] == name))
    if labels := selectors.parse_labels(call.query.get("labelSelector", "")):
        tests.append(labels)
    if fields := selectors.parse_fields(call.query.get("fieldSelector", ""), call.kind):
        tests.append(fields)
    if not tests:
        return None
    return tests[0] if len(tests) == 1 else lambda obj: all(test(obj) for test in tests)


def _version(call: Call) -> int:
    """The resourceVersion of a request; 0 for none and for "0". Raises ApiFault 400."""
    text = call.query.get("resourceVersion", "")
    if not text:
        return 0
    if not text.isdigit():
        why = cause.invalid("resourceVersion", text, f'strconv.ParseUint: parsing "{text}": invalid syntax')
        raise errors.bad_request(f"invalid resource version: {why}")
    return int(text)


def read_list(call: Call, store: Store) -> bytes:
    """One page. Raises ApiFault."""
    kind, query = call.kind, call.query
    view = negotiate(call.accept, call.asked, include=query.get("includeObject", ""))
    collection = store.collection(kind.storage)
    keep = selection(call)
    limit = call.integer("limit") or 0
    version, start = store.version, ("", "")
    objects = collection.objects
    token = query.get("continue", "")
    match = query.get("resourceVersionMatch", "")
    wanted = _version(call)
    _check_match(match, query)
    if query.get("sendInitialEvents") is not None:
        why = cause.forbidden("sendInitialEvents", "sendInitialEvents is forbidden for list")
        raise errors.invalid("meta.k8s.io", "ListOptions", "", [why])
    if token:
        if query.get("resourceVersion", "") not in ("", "0"):
            raise errors.bad_request("specifying resource version is not allowed when using continue")
        version, start = _parse_token(token)
        if version < 0:
            version = store.version
        try:
            objects = collection.at(version)
        except Expired as error:
            fault = errors.expired(_CONTINUE_EXPIRED)
            fault.status["metadata"] = {"continue": _token(-1, start)}
            raise fault from error
    elif match == "Exact":
        version = wanted
        if wanted > store.version:
            raise errors.too_large_version(wanted, store.version)
        try:
            objects = collection.at(wanted)
        except Expired as error:
            raise errors.expired(f"The resourceVersion for the provided list is too old: {wanted}") from error
    elif wanted > store.version:
        raise errors.too_large_version(wanted, store.version)
    keys = sorted(key for key, obj in objects.items() if key > start and (keep is None or keep(obj)))
    meta: Json = {"resourceVersion": str(version)}
    if limit and len(keys) > limit:
        meta["continue"] = _token(version, keys[limit - 1])
        if not query.get("labelSelector") and not query.get("fieldSelector"):
            meta["remainingItemCount"] = len(keys) - limit
        keys = keys[:limit]
    live = objects is collection.objects and view.form == "object"
    items = [(objects[key], collection.bytes_of(key) if live else None) for key in keys]
    return view.list_bytes(items, call.asked, meta)


def _check_match(match: str, query: Any) -> None:
    if not match:
        return
    version = query.get("resourceVersion", "")
    reason = ""
    if match not in ("Exact", "NotOlderThan"):
        reason = f'Unsupported value: "{match}": supported values: "Exact", "NotOlderThan", ""'
    elif query.get("continue"):
        reason = "Forbidden: resourceVersionMatch is forbidden when continue is provided"
    elif not version and query.get("sendInitialEvents") is None:
        reason = "Forbidden: resourceVersionMatch is forbidden unless resourceVersion is provided"
    elif match == "Exact" and version == "0":
        reason = 'Forbidden: resourceVersionMatch "exact" is forbidden for resourceVersion "0"'
    if reason:
        head = reason.split(":")[0]
        kind = {"Forbidden": "FieldValueForbidden"}.get(head, "FieldValueNotSupported")
        raise errors.invalid("meta.k8s.io", "ListOptions", "", [Cause("resourceVersionMatch", reason, kind)])


def _token(version: int, last: Key) -> str:
    body = {"v": "meta.k8s.io/v1", "rv": version, "start": list(last)}
    return base64.urlsafe_b64encode(msgspec.json.encode(body)).rstrip(b"=").decode()


def _parse_token(token: str) -> tuple[int, Key]:
    try:
        body = msgspec.json.decode(base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)))
        namespace, name = body["start"]
        return int(body["rv"]), (str(namespace), str(name))
    except (ValueError, KeyError, TypeError) as error:
        raise errors.bad_request(f"invalid continue token: continue key is not valid: {error}") from error


class Watch:
    """One watch: takes changes in as they happen and yields the lines to send.

    ``lines`` is for one consumer. ``end`` makes it finish after what is queued, ``cut`` in the middle of a line.
    """

    def __init__(self, call: Call, store: Store, *, bookmark_every: float, timeout: float) -> None:
        self.kind: Kind = call.asked
        self._store = store
        self._collection: Collection = store.collection(call.kind.storage)
        self._view: View = negotiate(call.accept, call.asked, include=call.query.get("includeObject", ""))
        self._keep = selection(call)
        self._queue: deque[bytes] = deque()
        self._wake = asyncio.Event()
        self._ended = False
        self.is_cut = False
        self._bookmarks = call.query.get("allowWatchBookmarks") in ("true", "1")
        self._bookmark_every = bookmark_every
        self._timeout = float(call.integer("timeoutSeconds") or timeout)
        self._begin(call)

    def _begin(self, call: Call) -> None:
        query = call.query
        initial = query.get("sendInitialEvents")
        match = query.get("resourceVersionMatch", "")
        if initial is not None:
            if match != "NotOlderThan":
                raise errors.invalid(
                    "meta.k8s.io",
                    "ListOptions",
                    "",
                    [
                        Cause(
                            "resourceVersionMatch",
                            "Forbidden: sendInitialEvents requires setting resourceVersionMatch to NotOlderThan",
                            "FieldValueForbidden",
                        )
                    ],
                )
        elif match:
            raise errors.invalid(
                "meta.k8s.io",
                "ListOptions",
                "",
                [
                    Cause(
                        "resourceVersionMatch",
                        "Forbidden: resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided",
                        "FieldValueForbidden",
                    )
                ],
            )
        wanted = _version(call)
        if wanted > self._store.version:
            self._put_error(errors.too_large_version(wanted, self._store.version))
            return
        if initial in ("true", "1"):
            self._put_all()
            if self._bookmarks:
                self._queue.append(self._bookmark(initial=True))
        elif wanted == 0 and initial is None:
            self._put_all()
        else:
            try:
                missed = self._collection.since(wanted or self._store.version)
            except Expired as error:
                self._put_error(errors.expired(f"too old resource version: {error.wanted} ({error.oldest})"))
                return
            for change in missed:
                self._offer(change)
        self._collection.listeners.add(self._offer)

    def _put_all(self) -> None:
        for key in sorted(self._collection.objects):
            obj = self._collection.objects[key]
            if self._keep is None or self._keep(obj):
                body = (
                    self._collection.bytes_of(key)
                    if self._view.form == "object" and obj["apiVersion"] == self._view.api_version
                    else encode(self._view.show(obj, self.kind))
                )
                self._queue.append(_line("ADDED", body))

    def _put_error(self, fault: errors.ApiFault) -> None:
        self._queue.append(_line("ERROR", encode(fault.status)))
        self._ended = True

    def _offer(self, change: Change) -> None:
        keep = self._keep
        now = change.new is not None and (keep is None or keep(change.new))
        before = change.old is not None and (keep is None or keep(change.old))
        if not now and not before:
            return
        if not now:
            self._queue.append(self._encoded(change, "DELETED", leaving=change.new is not None))
        else:
            self._queue.append(self._encoded(change, "MODIFIED" if before else "ADDED", leaving=False))
        self._wake.set()

    def _encoded(self, change: Change, event: str, *, leaving: bool) -> bytes:
        slot = (self._view, event, leaving)
        found = change.cache.get(slot)
        if found is None:
            body_slot = (self._view, leaving)
            body = change.cache.get(body_slot)
            if body is None:
                obj = change.last
                if leaving and change.old is not None:
                    obj = with_version(change.old, change.version)
                body = change.cache[body_slot] = encode(self._view.show(obj, self.kind))
            found = change.cache[slot] = _line(event, body)
        return found

    def _bookmark(self, *, initial: bool = False) -> bytes:
        meta: Json = {"resourceVersion": str(self._store.version), "creationTimestamp": None}
        if initial:
            meta["annotations"] = {_INITIAL_END: "true"}
        obj: Json = {"kind": self.kind.kind, "apiVersion": self.kind.api_version, "metadata": meta}
        if self._view.form == "partial":
            obj = {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": meta}
        elif self._view.form == "table":
            obj = {
                "kind": "Table",
                "apiVersion": "meta.k8s.io/v1",
                "metadata": meta,
                "columnDefinitions": [],
                "rows": [],
            }
        return _line("BOOKMARK", encode(obj))

    def end(self) -> None:
        """Finish after what is queued."""
        self._ended = True
        self._wake.set()

    def cut(self) -> None:
        """Finish in the middle of a line."""
        self.is_cut = True
        self.end()

    def error(self, fault: errors.ApiFault) -> None:
        """Send an error event and finish."""
        self._put_error(fault)
        self._wake.set()

    async def lines(self) -> AsyncGenerator[bytes, None]:
        """Chunks of whole lines; ends at the time limit, at :meth:`end` and after an error event."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self._timeout
        bookmark_at = loop.time() + self._bookmark_every if self._bookmarks else deadline
        alarm = loop.call_at(min(deadline, bookmark_at), self._wake.set)
        try:
            while True:
                if self._queue:
                    chunk = b"".join(self._queue)
                    self._queue.clear()
                    yield chunk
                    continue
                now = loop.time() + _EARLY
                if self._ended or now >= deadline:
                    break
                if now >= bookmark_at:
                    bookmark_at = loop.time() + self._bookmark_every
                    alarm = loop.call_at(min(deadline, bookmark_at), self._wake.set)
                    yield self._bookmark()
                    continue
                self._wake.clear()
                await self._wake.wait()  # the alarm is its deadline
            if self.is_cut:
                yield self._bookmark()[:20]
            elif self._bookmarks and not self._ended:
                yield self._bookmark()
        finally:
            alarm.cancel()
            self._collection.listeners.discard(self._offer)


def _line(event: str, body: bytes) -> bytes:
    return b'{"type":"' + event.encode() + b'","object":' + body + b"}\n"
