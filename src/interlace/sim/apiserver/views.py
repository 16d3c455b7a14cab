"""How an answer shows objects: whole, metadata alone, or as a table, by the Accept header.

Invariant: a view is a value; the same object in the same view is the same bytes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from interlace.sim.apiserver import errors, older
from interlace.sim.apiserver.events import present_event
from interlace.sim.apiserver.kinds import Kind
from interlace.sim.apiserver.objects import Json, encode
from interlace.sim.apiserver.tables import table

_META = "meta.k8s.io"


@dataclass(frozen=True, slots=True)
class View:
    """One way to show the objects of a kind."""

    form: Literal["object", "partial", "table"]
    api_version: str
    """Version of the kind that was asked for."""
    meta_version: str = "v1"
    include: str = "Metadata"
    """What rows of a table carry: None, Metadata or Object."""

    def show(self, obj: Json, kind: Kind) -> Json:
        """The object in this view."""
        if self.form == "partial":
            return {
                "kind": "PartialObjectMetadata",
                "apiVersion": f"{_META}/{self.meta_version}",
                "metadata": obj["metadata"],
            }
        if self.form == "table":
            return self._table([obj], kind, {"resourceVersion": obj["metadata"].get("resourceVersion", "")})
        return present(obj, kind)

    def _table(self, items: list[Json], kind: Kind, meta: Json) -> Json:
        version = f"{_META}/{self.meta_version}"
        shown = table(items, kind)
        for row, obj in zip(shown["rows"], items, strict=True):
            row["object"] = None
            if self.include == "Object":
                row["object"] = present(obj, kind)
            elif self.include == "Metadata":
                row["object"] = {"kind": "PartialObjectMetadata", "apiVersion": version, "metadata": obj["metadata"]}
        return {"kind": "Table", "apiVersion": version, "metadata": meta, **shown}

    def list_bytes(self, items: list[tuple[Json, bytes | None]], kind: Kind, meta: Json) -> bytes:
        """A list of objects, each with its stored encoding if that is known."""
        if self.form == "table":
            return encode(self._table([obj for obj, _ in items], kind, meta))
        if self.form == "partial":
            head = {"kind": "PartialObjectMetadataList", "apiVersion": f"{_META}/{self.meta_version}", "metadata": meta}
            parts = [encode(self.show(obj, kind)) for obj, _ in items]
        else:
            if kind.custom:
                meta = {"continue": "", **meta}
            head = {"kind": kind.list_kind, "apiVersion": kind.api_version, "metadata": meta}
            parts = [
                ready if ready is not None and obj["apiVersion"] == kind.api_version else encode(present(obj, kind))
                for obj, ready in items
            ]
            if not kind.custom:  # items of typed lists carry no type
                cut = len(encode({"kind": kind.kind, "apiVersion": kind.api_version}))
                parts = [b"{" + part[cut:] for part in parts]
        return encode(head)[:-1] + b',"items":[' + b",".join(parts) + b"]}"


def present(obj: Json, kind: Kind) -> Json:
    """A stored object in the version that was asked for."""
    if obj.get("apiVersion") == kind.api_version:
        return obj
    if kind.storage == "events.":
        return present_event(obj, kind)
    return older.shown(obj, kind) if kind.stored_as is not None else {**obj, "apiVersion": kind.api_version}


def negotiate(accept: str, kind: Kind, *, include: str = "") -> View:
    """The first view of an Accept header that the server has. Raises ApiFault 406."""
    for clause in accept.split(",") if accept.strip() else ["application/json"]:
        media, *rest = [part.strip() for part in clause.split(";")]
        params = dict(part.split("=", 1) for part in rest if "=" in part)
        if media not in ("application/json", "application/*", "*/*"):
            continue
        form, version = params.get("as"), params.get("v", "v1")
        if form is None:
            return View("object", kind.api_version)
        if params.get("g") != _META or version not in ("v1", "v1beta1"):
            continue
        if form == "Table":
            return View("table", kind.api_version, version, include or "Metadata")
        if form in ("PartialObjectMetadata", "PartialObjectMetadataList"):
            return View("partial", kind.api_version, version)
    raise errors.ApiFault(
        406,
        "NotAcceptable",
        "406: Not Acceptable\n\nAvailable representations: application/json",
        details={},
    )
