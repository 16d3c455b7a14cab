"""From a request for a resource to its answer.

Invariant: every verb answers with an :class:`Answer` or raises ApiFault; nothing here knows sockets.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from interlace.sim.apiserver import errors, intake, lifecycle, patching
from interlace.sim.apiserver.calls import JSON_PATCH, Call
from interlace.sim.apiserver.events import present_event
from interlace.sim.apiserver.kinds import Kind, Kinds
from interlace.sim.apiserver.objects import Json, encode
from interlace.sim.apiserver.reading import read_list, selection
from interlace.sim.apiserver.store import Store
from interlace.sim.apiserver.subresources import Subresources
from interlace.sim.apiserver.views import negotiate, present
from interlace.sim.apiserver.writing import Writer


@dataclass(slots=True)
class Answer:
    """What goes back."""

    body: bytes
    status: int = 200
    content_type: str = "application/json"
    headers: dict[str, str] = field(default_factory=dict)
    reason: str = ""
    """Reason of a Status, for the audit log."""
    warnings: list[str] = field(default_factory=list)
    name: str = ""
    """Name of a created object, for the audit log."""


def _wrong_place(call: Call) -> bool:
    """Whether the path does not take the verb: one object where a collection is needed, or the reverse."""
    target, kind = call.target, call.kind
    if kind.namespaced and not target.namespace:
        return call.verb not in ("list", "watch")
    if call.verb == "deletecollection":
        return kind.storage == "namespaces."
    if call.verb == "create":
        return bool(target.name)
    return call.verb in ("update", "patch", "delete", "get") and not target.name


class Verbs:
    """All verbs but watch."""

    def __init__(self, *, store: Store, kinds: Kinds, writer: Writer, subresources: Subresources) -> None:
        self._store = store
        self._kinds = kinds
        self._writer = writer
        self._sub = subresources

    async def answer(self, call: Call) -> Answer:
        """Raises ApiFault."""
        target = call.target
        if call.verb not in call.kind.verbs and not target.subresource:
            raise errors.method_not_allowed()
        if target.subresource in ("binding", "eviction", "scale", "token"):
            return await self._special(call)
        if call.kind.verbs == ("create",):
            return Answer(encode(self._sub.review(call, intake.parse(call))), status=201)
        if call.kind.storage == "events." and call.kind.group and call.verb in ("create", "update"):
            self._to_core(call)
        if _wrong_place(call):
            raise errors.method_not_allowed()
        match call.verb:
            case "list":
                return Answer(read_list(call, self._store))
            case "get":
                return self._get(call)
            case "create":
                obj = await self._writer.create(call, intake.parse(call))
                return self._object(call, obj, status=201)
            case "update":
                obj, created = await self._writer.update(call, intake.parse(call))
                return self._object(call, obj, status=201 if created else 200)
            case "patch":
                obj, created = await self._writer.patch(call)
                return self._object(call, obj, status=201 if created else 200)
            case "delete":
                return await self._delete(call)
            case "deletecollection":
                return await self._delete_all(call)
            case _:
                raise errors.method_not_allowed()

    def newborn(self, kind: Kind, name: str) -> Json:
        """A cluster-scoped object with nothing but a name."""
        obj: Json = {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": {"name": name}}
        intake.fill(obj, kind)
        return lifecycle.be_born(obj, kind)

    def _to_core(self, call: Call) -> None:
        core = self._kinds.core("events")
        body = intake.parse(call)
        call.body = encode(present_event(body, core))
        call.kind = core

    def _object(self, call: Call, obj: Json, *, status: int = 200) -> Answer:
        view = negotiate(call.accept, call.asked, include=call.query.get("includeObject", ""))
        return Answer(encode(view.show(obj, call.asked)), status=status, name=obj["metadata"]["name"])

    def _get(self, call: Call) -> Answer:
        kind, key = call.kind, call.key
        obj = self._store.get(kind.storage, key)
        if obj is None:
            raise errors.not_found(kind.group, kind.plural, key[1])
        view = negotiate(call.accept, call.asked, include=call.query.get("includeObject", ""))
        if view.form == "object" and obj["apiVersion"] == call.asked.api_version:
            return Answer(self._store.collection(kind.storage).bytes_of(key))
        return Answer(encode(view.show(obj, call.asked)))

    async def _delete(self, call: Call) -> Answer:
        kind = call.kind
        obj, gone = await self._writer.delete(call, call.key, call.delete_options())
        if gone and not kind.returns_deleted:
            details = {"name": call.target.name, "kind": kind.plural, "uid": obj["metadata"]["uid"]}
            if kind.group:
                details["group"] = kind.group
            status = {
                "kind": "Status",
                "apiVersion": "v1",
                "metadata": {},
                "status": "Success",
                "details": details,
            }
            return Answer(encode(status))
        if gone and kind.storage == "pods.":  # a pod that goes at once is answered as one on its way
            meta = dict(obj["metadata"])
            if not meta.get("deletionTimestamp") and meta.get("generation"):
                meta["generation"] += 1
            meta.setdefault("deletionTimestamp", lifecycle.now())
            obj = {**obj, "metadata": {**meta, "deletionGracePeriodSeconds": 0}}
        return self._object(call, obj)

    async def _delete_all(self, call: Call) -> Answer:
        kind = call.kind
        keep = selection(call)
        options = call.delete_options()
        objects = self._store.collection(kind.storage).objects
        keys = sorted(key for key, obj in objects.items() if keep is None or keep(obj))
        deleted: list[Json] = []
        for key in keys:
            try:
                obj, _ = await self._writer.delete(call, key, options)
            except errors.ApiFault as fault:
                if fault.code != 404:
                    raise
            else:
                deleted.append(present(obj, call.asked))
        meta = {"resourceVersion": str(self._store.version)}
        body = {"kind": kind.list_kind, "apiVersion": call.asked.api_version, "metadata": meta, "items": deleted}
        return Answer(encode(body))

    async def _special(self, call: Call) -> Answer:
        name = call.target.subresource
        if name == "scale":
            return await self._scale(call)
        if call.verb != "create":
            raise errors.method_not_allowed()
        body = call.json() if call.body else {}
        if not isinstance(body, dict):
            raise errors.bad_request(f"the body of a request for {name} must be an object")
        if name == "binding":
            return Answer(encode(await self._sub.binding(call, body)), status=201)
        if name == "eviction":
            return Answer(encode(await self._sub.eviction(call, body)), status=201)
        return Answer(encode(self._sub.token(call, body)), status=201)

    async def _scale(self, call: Call) -> Answer:
        if call.verb == "get":
            obj = self._store.get(call.kind.storage, call.key)
            if obj is None:
                raise errors.not_found(call.kind.group, call.kind.plural, call.target.name)
            return Answer(encode(self._sub.scale(obj)))
        body = call.json()
        change: Callable[[Json], Json]
        if call.verb == "update":

            def change(_: Json) -> Json:
                return dict(body)

        elif call.verb == "patch" and call.patch_type == JSON_PATCH:

            def change(old: Json) -> Json:
                return dict(patching.json_patch(old, body))

        elif call.verb == "patch":

            def change(old: Json) -> Json:
                return dict(patching.merge_patch(old, body))

        else:
            raise errors.method_not_allowed()
        return Answer(encode(await self._sub.set_scale(call, change)))
