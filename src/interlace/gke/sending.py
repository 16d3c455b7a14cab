"""One mutation, carried out once: written down, sent, waited for, and found again if an earlier run sent it already.

Invariant: nothing is sent before its line of the journal is on the disk; nothing is sent again while it may still be
under way: the operation is looked for first, then the resource. Mutations of one cluster follow each other.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any, Final

import msgspec

from interlace.gke.client import Client
from interlace.gke.durations import limit
from interlace.gke.errors import GkeError
from interlace.gke.failures import ApiError, OperationFailed, Unsure
from interlace.gke.journal import Entry, Journal, new_request_id, unfinished
from interlace.gke.observing import working_on
from interlace.gke.operations import Operation, finish, from_path, look, read_operation
from interlace.gke.picture import Picture, Scope
from interlace.gke.places import cluster_of
from interlace.gke.request import Request
from interlace.gke.resource import Key

_SENDS: Final = 3
"""How often a mutation is sent whose answer is lost and of which nothing is to be seen afterwards."""
_BUSY_PAUSE: Final = 5.0
_SET_FREE: Final = 60.0
"""Seconds for which a deletion is tried again since something else still uses what is to go."""

_MAKING: Final = frozenset(
    {"insert", "delete", "create_cluster", "create_node_pool", "delete_cluster", "delete_node_pool"}
)
"""Operations whose bad end is one of the resource, whoever began them."""

Told = Callable[[Key, Operation], None]
Reached = Callable[[], Awaitable[bool]]
"""Looks whether what a mutation is for is there already."""


class Mutation(msgspec.Struct, frozen=True, kw_only=True):
    """``verb`` is ``create``, ``delete`` or the name of an update; ``request`` comes without an id."""

    key: Key
    verb: str
    request: Request


class Sender:
    """Carries out mutations. ``picture`` and ``journal`` tell what an earlier run left under way."""

    def __init__(self, client: Client, journal: Journal, picture: Picture, *, told: Told = lambda *_: None) -> None:
        self._client = client
        self._journal = journal
        self._scope = picture.scope
        self._told = told
        self._working = dict(picture.working)
        self._left = unfinished(journal.entries)
        self._clusters: dict[Key, asyncio.Lock] = {}

    @property
    def scope(self) -> Scope:
        return self._scope

    def open(self) -> dict[Key, Entry]:
        """What was sent and has not ended, as far as is known."""
        return unfinished(self._journal.entries)

    @asynccontextmanager
    async def alone(self, key: Key) -> AsyncIterator[None]:
        """Nothing else of ours happens to the same cluster meanwhile."""
        cluster = cluster_of(key)
        if cluster is None:
            yield
            return
        async with self._clusters.setdefault(cluster, asyncio.Lock()):
            yield

    def settled(self, key: Key) -> None:
        """It was seen to be as it is meant, with nothing at work on it: what is open in the journal has ended."""
        left = self._left.pop(key, None)
        if left is not None and key not in self._working:
            self._write(key, left.verb, "done")

    async def catch_up(self, key: Key) -> bool:
        """Wait for what is under way for a resource already; whether there was something.

        Raises OperationFailed if that was still running and ends badly; how an earlier one ended is not held against
        a new try.
        """
        left = self._left.pop(key, None)
        working = self._working.pop(key, None)
        if working is None and left is not None and left.operation:
            working = await self._read(left.operation, key)
            if working is not None and working.done:
                self._write(key, left.verb, "failed" if working.message else "done", text=working.message)
                return not working.message
        if working is None:
            if left is not None and not left.operation:
                self._left[key] = left  # its request id is still good
            return False
        kind = working.kind.lower()
        verb = left.verb if left is not None else "delete" if "delete" in kind else "create"
        try:
            await self._wait(key, verb, working)
        except OperationFailed:
            if left is not None or kind in _MAKING:
                raise
        return True

    async def carry_out(self, mutation: Mutation, *, reached: Reached) -> None:
        """Send it and wait for its end. To be called within ``alone``, after ``catch_up``.

        Raises GkeErrors; then ``open`` tells whether it may still be under way. Raises JournalError.
        """
        key, body = mutation.key, _hash(mutation.request)
        left = self._left.pop(key, None)
        known = left.request_id if left and (left.verb, left.body) == (mutation.verb, body) else ""
        operation = await self._once(mutation, reached, request_id=known)
        if known and operation is not None and operation.done and (operation.message or not await reached()):
            # Google has answered with what came of the earlier request, and that is not so any more.
            operation = await self._once(mutation, reached)
        if operation is None or (operation.done and not operation.message):
            self._write(key, mutation.verb, "done")
            return
        await self._wait(key, mutation.verb, operation)

    async def _once(self, mutation: Mutation, reached: Reached, *, request_id: str = "") -> Operation | None:
        """Write it down and send it, if need be again; the operation, or None if what it is for is reached."""
        key, request = mutation.key, mutation.request
        if request.service == "compute":
            request_id = request_id or new_request_id()
            request = msgspec.structs.replace(request, query={**request.query, "requestId": request_id})
        body = _hash(mutation.request)
        self._journal.append(Entry(event="sent", key=key, verb=mutation.verb, request_id=request_id, body=body))
        turn = 0
        while True:
            turn += 1
            try:
                return await self._send(mutation, request)
            except Unsure:
                found = await working_on(self._client, self._scope, key)
                if found is not None or await reached():
                    return found
                if turn == _SENDS:
                    raise
            except ApiError as error:
                if error.status == 404 and mutation.verb == "delete":
                    return None
                found = await working_on(self._client, self._scope, key) if error.status == 409 else None
                if found is None and not (error.status == 409 and mutation.verb == "create" and await reached()):
                    self._write(key, mutation.verb, "failed", text=error.what)
                    raise
                return found

    async def _send(self, mutation: Mutation, request: Request) -> Operation | None:
        """Send until the cluster is free for it. Raises ApiError, Unsure and the others of a client."""
        loop = asyncio.get_running_loop()
        began = loop.time()
        deadline = began + limit(mutation.key.kind)
        while True:
            try:
                body = await self._client.ask(request)
            except ApiError as error:
                now = loop.time()
                waits = mutation.verb == "delete" and error.refusal.in_use and now < began + _SET_FREE
                if not waits and not (error.refusal.busy and now <= deadline):
                    raise
                await self._wait_for_other(error.refusal.operation, deadline - now)
                continue
            return read_operation(body, service=request.service)

    async def _wait_for_other(self, name: str, within: float) -> None:
        """Wait for the operation of somebody else that holds the cluster; how it ends is not ours to judge."""
        other = Operation(service="container", scope=f"locations/{self._scope.location}", name=name)
        if name:
            try:
                await finish(self._client, other, project=self._scope.project, what=name, within=max(within, 0.0))
            except GkeError:
                await asyncio.sleep(_BUSY_PAUSE)
        else:
            await asyncio.sleep(_BUSY_PAUSE)

    async def _wait(self, key: Key, verb: str, operation: Operation) -> None:
        self._write(key, verb, "running", operation=operation.path)
        self._told(key, operation)
        try:
            await finish(
                self._client,
                operation,
                project=self._scope.project_of(key),
                version=_version(operation, self._scope, key),
                what=f"{verb} {key}",
                within=limit(key.kind),
                told=lambda now: self._told(key, now),
            )
        except OperationFailed as error:
            self._write(key, verb, "failed", text=error.what)
            raise
        self._write(key, verb, "done")

    async def _read(self, path: str, key: Key) -> Operation | None:
        """An operation of an earlier run as it is now; None if Google has forgotten it."""
        operation = from_path(path)
        if operation is None:
            return None
        request = look(operation, project=self._scope.project_of(key), version=_version(operation, self._scope, key))
        if operation.service == "compute":  # not `wait`, which would answer only at its end
            path_ = request.path.removesuffix("/wait")
            request = msgspec.structs.replace(request, method="GET", path=path_)
        try:
            return read_operation(await self._client.ask(request), service=operation.service)
        except ApiError as error:
            if error.status == 404:
                return None
            raise

    def _write(self, key: Key, verb: str, event: Any, *, operation: str = "", text: str = "") -> None:
        self._journal.append(Entry(event=event, key=key, verb=verb, operation=operation, text=text))


def _version(operation: Operation, scope: Scope, key: Key) -> str:
    return scope.version_of(key) if operation.service == "container" else "v1"


def _hash(request: Request) -> str:
    text: Mapping[str, Any] = {"method": request.method, "path": request.path, "body": request.body}
    return hashlib.sha256(msgspec.json.encode(text, order="deterministic")).hexdigest()[:16]
