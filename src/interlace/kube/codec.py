"""Bytes to objects and back: bodies that we send, single objects, pages, watch lines.

Invariant: a kind decodes from its metadata alone (all else has defaults), which is what
bookmarks, metadata-only answers and unreadable objects rely on; one object that does not
decode never hides the others, also where its bytes are no JSON to the decoder (see ``mending``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Generic, Literal, TypeVar

import msgspec

from interlace.api.meta import ListMeta, Object, PartialObjectMetadata, Resource, Status, Struct
from interlace.kube.errors import Unreadable, api_error
from interlace.kube.mending import mend
from interlace.kube.versions import to_newest

T = TypeVar("T", bound=Object)
R = TypeVar("R")

EventType = Literal["ADDED", "MODIFIED", "DELETED", "BOOKMARK", "UNREADABLE"]
INITIAL_EVENTS_END = "k8s.io/initial-events-end"


class WatchEvent(msgspec.Struct, Generic[T], frozen=True, gc=False):
    """One change.

    A ``BOOKMARK`` tells a version alone. ``UNREADABLE`` is not on the wire: its object did not
    decode, holds metadata alone and is best treated as gone.
    """

    type: EventType
    object: T

    @property
    def resource_version(self) -> str:
        """The version that the watcher has reached with this event."""
        return self.object.metadata.resource_version

    @property
    def initial_events_end(self) -> bool:
        """Whether this bookmark ends the initial events of a watch that asked for them."""
        return self.type == "BOOKMARK" and self.object.metadata.annotations.get(INITIAL_EVENTS_END) == "true"


class Listing(msgspec.Struct, Generic[T], frozen=True):
    """A whole list at one version."""

    items: list[T]
    resource_version: str
    unreadable: list[str] = []
    """One sentence for each object that did not decode and was left out."""


class _Page(Struct, Generic[T], frozen=True):
    metadata: ListMeta = ListMeta()
    items: list[T] | None = None


class _RawPage(Struct, frozen=True):
    metadata: ListMeta = ListMeta()
    items: list[msgspec.Raw] | None = None


class _RawEvent(msgspec.Struct, frozen=True):
    type: str
    object: msgspec.Raw


class Codec(Generic[T]):
    """Decoders of one kind; making them costs a millisecond, so a client keeps them."""

    def __init__(self, kind: type[T]) -> None:
        self._kind = kind
        # A dict subclass (an untyped kind) is decoded as a dict and wrapped.
        self._plain = issubclass(kind, dict)
        wanted: Any = dict[str, Any] if self._plain else kind
        self._object = msgspec.json.Decoder(wanted)
        self._page = msgspec.json.Decoder(_Page[wanted])
        self._event = msgspec.json.Decoder(WatchEvent[wanted])
        self._meta = msgspec.json.Decoder(PartialObjectMetadata)

    def object(self, raw: bytes, *, asked: Resource | None = None, path: str) -> T:
        """One object. Raises ``Unreadable``. ``asked``: the kind in the version that was asked for."""
        return self._read(raw, lambda text: self._wrap(self._object.decode(text)), asked=asked, path=path)

    def page(self, raw: bytes, *, asked: Resource | None = None, path: str) -> tuple[list[T], ListMeta, list[str]]:
        """Items, list metadata and a sentence for each item left out. Raises ``Unreadable``."""
        return self._read(raw, lambda text: self._whole_page(text, path), asked=asked, path=path)

    def event(self, line: bytes, *, asked: Resource | None = None, path: str) -> WatchEvent[T]:
        """One line of a watch. Raises ``ApiError`` for an ``ERROR`` event, ``Unreadable`` for rubbish."""
        return self._read(line, lambda text: self._usual_event(text, path), asked=asked, path=path)

    def _read(self, raw: bytes, read: Callable[[bytes], R], *, asked: Resource | None = None, path: str) -> R:
        translate: Callable[[bytes], bytes] = bytes
        if asked is not None and asked != self._kind.resource:
            translate = partial(to_newest, asked=asked)
        try:
            try:
                return read(translate(raw))
            except (msgspec.MsgspecError, RecursionError):
                mended = mend(raw)
                if mended == raw:
                    raise
            return read(translate(mended))
        except (msgspec.MsgspecError, RecursionError) as error:
            raise Unreadable(f"{path}: not readable as {self._kind.resource.kind}: {error}") from error

    def _whole_page(self, raw: bytes, path: str) -> tuple[list[T], ListMeta, list[str]]:
        try:
            page = self._page.decode(raw)
        except msgspec.ValidationError:
            return self._page_by_item(raw, path)
        items = page.items or []
        return ([self._wrap(item) for item in items] if self._plain else items), page.metadata, []

    def _usual_event(self, line: bytes, path: str) -> WatchEvent[T]:
        try:
            event = self._event.decode(line)
        except msgspec.ValidationError:
            return self._odd_event(line, path)  # an ERROR, or an object that we cannot read
        return WatchEvent(event.type, self._wrap(event.object)) if self._plain else event

    def _odd_event(self, line: bytes, path: str) -> WatchEvent[T]:
        event = msgspec.json.decode(line, type=_RawEvent)
        if event.type == "ERROR":
            status = msgspec.json.decode(event.object, type=Status)
            raise api_error(status.code or 500, status, method="WATCH", path=path)
        # A real server fills the rest of a bookmark's object with nulls where a kind has required fields.
        kind: EventType = "BOOKMARK" if event.type == "BOOKMARK" else "UNREADABLE"
        return WatchEvent(kind, self._metadata_alone(event.object))

    def _page_by_item(self, raw: bytes, path: str) -> tuple[list[T], ListMeta, list[str]]:
        page = msgspec.json.decode(raw, type=_RawPage)
        items: list[T] = []
        problems: list[str] = []
        for item in page.items or []:
            try:
                items.append(self._wrap(self._object.decode(item)))
            except msgspec.ValidationError as error:
                problems.append(f"{path}/{_name(item)}: not readable as {self._kind.resource.kind}: {error}")
        return items, page.metadata, problems

    def _metadata_alone(self, raw: msgspec.Raw) -> T:
        metadata = self._meta.decode(raw).metadata
        return self._wrap(self._object.decode(msgspec.json.encode({"metadata": metadata})))

    def _wrap(self, value: Any) -> T:
        return self._kind(value) if self._plain else value  # type: ignore[call-arg]


def encode_object(body: Mapping[str, Any] | msgspec.Struct, resource: Resource) -> bytes:
    """Compact JSON, keys in the given order; ``apiVersion`` and ``kind`` are put first where they lack.

    ``msgspec.Raw`` values go out byte for byte.
    """
    encoded = msgspec.json.encode(body)
    if isinstance(body, msgspec.Struct):
        missing = {"apiVersion", "kind"} - set(body.__struct_encode_fields__)
    else:
        missing = {"apiVersion", "kind"} - body.keys()
    head = {"apiVersion": resource.api_version, "kind": resource.kind}
    head = {key: value for key, value in head.items() if key in missing}
    if not head:
        return encoded
    return msgspec.json.encode(head)[:-1] + (b"," if encoded != b"{}" else b"") + encoded[1:]


def _name(raw: msgspec.Raw) -> str:
    try:
        return msgspec.json.decode(raw, type=PartialObjectMetadata).metadata.name
    except msgspec.MsgspecError:
        return "?"
