"""The verbs that write: create, update, patch, apply, delete.

One path for all of them: read the stored state, make the new one, ask admission, and store it only if nobody was
faster; else again (patches) or 409 (updates that named a version).

Invariant: a request that ends in an error, or is a dry run, leaves the store as it was.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from interlace.sim.apiserver import cause, claims, errors, fieldsets, intake, lifecycle, managed, patching, raw
from interlace.sim.apiserver.admission import Operation
from interlace.sim.apiserver.calls import APPLY_PATCH, JSON_PATCH, MERGE_PATCH, Call
from interlace.sim.apiserver.cause import Cause
from interlace.sim.apiserver.claims import Allowed
from interlace.sim.apiserver.defaults import admit_pod
from interlace.sim.apiserver.kinds import Kind
from interlace.sim.apiserver.lifecycle import DeleteOptions
from interlace.sim.apiserver.objects import Json, clone, encode, get, name_of, restyle
from interlace.sim.apiserver.store import Key, Store, with_version

_TRIES = 5


class Admission(Protocol):
    """Asks the admission webhooks. Returns the object as they left it; raises ApiFault if one refuses."""

    async def __call__(
        self, call: Call, operation: Operation, key: Key, *, new: Json | None, old: Json | None, dry_run: bool
    ) -> Json | None: ...


Change = Callable[[Json], Json]


class Writer:
    """Changes objects in the store on behalf of clients."""

    def __init__(
        self, *, store: Store, admission: Admission, allowed: Allowed, granular_claims: bool, device_status: bool
    ) -> None:
        self._store = store
        self._admission = admission
        self._allowed = allowed
        self._granular = granular_claims
        self._device_status = device_status

    # -- create

    async def create(self, call: Call, obj: Json) -> Json:
        """Store a new object. Raises ApiFault."""
        intake.place(obj, call)
        meta = obj["metadata"]
        if not meta.get("name"):
            if not meta.get("generateName"):
                raise errors.invalid(
                    call.kind.group,
                    call.kind.kind,
                    "",
                    [Cause("metadata.name", "Required value: name or generateName is required", "FieldValueRequired")],
                )
            meta["name"] = lifecycle.generate_name(meta["generateName"])
        if intake.meta_version(obj):
            raise errors.ApiFault(500, "", "resourceVersion should not be set on objects to be created")
        return await self._create(call, obj, manager=self._manager(call))

    async def _create(self, call: Call, obj: Json, *, manager: managed.Manager | None) -> Json:
        kind, key = call.kind, (obj["metadata"].get("namespace", ""), name_of(obj))
        self._check_namespace(kind, key)
        intake.fill(obj, kind)
        if manager is not None:
            obj = clone(self._owned(None, obj, call, manager))
        if kind.storage == "pods.":
            self._admit_pod(obj, key)
        new = await self._ask("CREATE", call, key, obj, None)
        intake.fill(new, kind)
        new = lifecycle.be_born(new, kind)
        intake.check(new, None, kind)
        existing = self._store.get(kind.storage, key)
        if existing is not None:
            raise errors.already_exists(
                kind.group, kind.plural, key[1], deleting=bool(existing["metadata"].get("deletionTimestamp"))
            )
        if call.dry_run:
            return new
        return self._store.put(kind.storage, key, new)

    def _check_namespace(self, kind: Kind, key: Key) -> None:
        if not kind.namespaced:
            return
        namespace = self._store.get("namespaces.", ("", key[0]))
        if namespace is None:
            raise errors.not_found("", "namespaces", key[0])
        if namespace["metadata"].get("deletionTimestamp"):
            fault = errors.forbidden(
                kind.group,
                kind.plural,
                key[1],
                f"unable to create new content in namespace {key[0]} because it is being terminated",
            )
            fault.status["details"]["causes"] = [
                {
                    "reason": "NamespaceTerminating",
                    "message": f"namespace {key[0]} is being terminated",
                    "field": "metadata.namespace",
                }
            ]
            raise fault

    def _admit_pod(self, pod: Json, key: Key) -> None:
        account = get(pod, "spec", "serviceAccountName") or "default"
        if self._store.get("serviceaccounts.", (key[0], account)) is None:
            raise errors.forbidden(
                "",
                "pods",
                key[1],
                f'error looking up service account {key[0]}/{account}: serviceaccount "{account}" not found',
            )
        admit_pod(pod)
        name = pod["spec"].get("priorityClassName")
        if name:
            found = self._store.get("priorityclasses.scheduling.k8s.io", ("", name))
            value = found["value"] if found else _SYSTEM_PRIORITIES.get(name)
            if value is None:
                raise errors.forbidden("", "pods", key[1], f"no PriorityClass with name {name} was found")
            pod["spec"]["priority"] = value

    # -- update and patch

    async def update(self, call: Call, obj: Json) -> tuple[Json, bool]:
        """Replace an object; the flag says whether it was created. Raises ApiFault."""
        kind, name = call.kind, call.target.name
        if not name_of(obj):
            raise errors.bad_request(
                f"the name of the object ({name} based on URL) was undeterminable: name must be provided"
            )
        if name_of(obj) != name:
            raise errors.bad_request(
                f"the name of the object ({name_of(obj)}) does not match the name on the URL ({name})"
            )
        intake.place(obj, call)
        if self._store.get(kind.storage, call.key) is None:
            if kind.create_on_update and not call.target.subresource:
                obj["metadata"].pop("resourceVersion", None)
                return await self._create(call, obj, manager=self._manager(call)), True
            raise errors.not_found(kind.group, kind.plural, name)
        version = intake.meta_version(obj)
        if not version and not kind.unconditional_update:
            raise errors.invalid(
                kind.group,
                kind.plural,
                name,
                [
                    Cause(
                        "metadata.resourceVersion",
                        "Invalid value: 0: must be specified for an update",
                        "FieldValueInvalid",
                    )
                ],
            )
        intake.fill(obj, kind)
        return await self.change(call, lambda _old: clone(obj), retry=not version), False

    async def patch(self, call: Call) -> tuple[Json, bool]:
        """Any of the four kinds of patch; the flag says whether apply created the object. Raises ApiFault."""
        media = call.patch_type
        if media == APPLY_PATCH:
            return await self._apply(call)
        body = call.json()
        kind = call.kind
        if media == JSON_PATCH:

            def patched(old: Json) -> Json:
                result = patching.json_patch(restyle(old, "compact"), body)
                return self._typed(result, call)

        elif media == MERGE_PATCH:

            def patched(old: Json) -> Json:
                return self._typed(clone(patching.merge_patch(restyle(old, "compact"), body)), call)

        else:
            if kind.custom:
                raise errors.ApiFault(
                    415,
                    "UnsupportedMediaType",
                    "the body of the request was in an unknown format - accepted media types include: "
                    f"{JSON_PATCH}, {MERGE_PATCH}, {APPLY_PATCH}",
                )

            def patched(old: Json) -> Json:
                result = patching.strategic_patch(restyle(old, "sorted"), body, kind.shape)
                return self._typed(clone(result), call)

        if not isinstance(body, dict) and media != JSON_PATCH:
            raise errors.bad_request("error decoding patch: json: cannot unmarshal array into Go value of type map")
        return await self.change(call, patched), False

    def _typed(self, obj: Json, call: Call) -> Json:
        if not isinstance(obj, dict):
            raise errors.bad_request("a patch must leave an object")
        if obj.get("apiVersion") != call.kind.api_version or obj.get("kind") != call.kind.kind:
            raise errors.bad_request("a patch may not change apiVersion or kind")
        try:
            intake.settle(obj, call, what="")
        except errors.ApiFault as fault:
            text = encode(obj).decode()
            raise errors.invalid("", "", "", [cause.invalid("patch", text, str(fault))]) from fault
        intake.fill(obj, call.kind)
        return obj

    async def _apply(self, call: Call) -> tuple[Json, bool]:
        kind, name = call.kind, call.target.name
        config = self._configuration(call)
        manager = self._manager(call, apply=True)
        force = call.query.get("force") in ("true", "1")
        reset = lifecycle.reset_fields(kind, call.target.subresource)
        shape = kind.shape

        def applied(old: Json | None) -> Json:
            result = managed.apply(old, config, manager, shape=shape, reset=reset, now=lifecycle.now(), force=force)
            copy: Json = clone(result)
            intake.fill(copy, kind)
            return copy

        if self._store.get(kind.storage, call.key) is None:
            if call.target.subresource:
                raise errors.not_found(kind.group, kind.plural, name)
            if get(config, "metadata", "uid"):
                uid = config["metadata"]["uid"]
                why = f"uid mismatch: the provided object specified uid {uid}, and no existing object was found"
                raise errors.conflict(kind.group, kind.plural, name, why)
            return await self._create(call, applied(None), manager=None), True
        return await self.change(call, applied, owned=True), False

    def _configuration(self, call: Call) -> Json:
        kind = call.kind
        config = call.json()
        if not isinstance(config, dict):
            raise errors.bad_request("error decoding YAML: an apply configuration must be an object")
        if not call.query.get("fieldManager"):
            raise errors.invalid(
                "meta.k8s.io",
                "PatchOptions",
                "",
                [Cause("fieldManager", "Required value: is required for apply patch", "FieldValueRequired")],
            )
        if config.get("kind") != kind.kind or config.get("apiVersion") != kind.api_version:
            raise errors.bad_request(f"invalid object type: {config.get('apiVersion')}, Kind={config.get('kind')}")
        title = managed.title(config)
        meta = config.setdefault("metadata", {})
        nameless = not meta.get("name")
        if meta.get("name", call.target.name) != call.target.name:
            raise errors.bad_request(
                f"the name of the object ({meta['name']}) does not match the name on the URL ({call.target.name})"
            )
        meta["name"] = call.target.name
        intake.place(config, call)
        if unknown := intake.undeclared(config, kind):
            shown = "; ".join(f".{path}: field not declared in schema" for path in unknown)
            raise errors.plain(f"failed to create typed patch object ({title}): {shown}")
        if nameless and self._store.get(kind.storage, call.key) is None and not call.target.subresource:
            raise errors.bad_request(
                f"the name of the object ({call.target.name} based on URL) was undeterminable: name must be provided"
            )
        if repeated := fieldsets.repeated(config, kind.shape):
            raise errors.plain(f"failed to create typed patch object ({title}): {repeated}")
        intake.settle(config, call, what="")
        return config

    async def change(
        self, call: Call, make: Change, *, owned: bool = False, retry: bool = True, system: bool = False
    ) -> Json:
        """Store what ``make`` makes of the stored object.

        ``owned``: ``make`` kept managedFields itself. ``system``: the server's own change, taken as it is.

        Raises ApiFault; 404 if the object is gone, 409 if its uid or version is not the one that ``make`` states.
        """
        kind, key = call.kind, call.key
        for attempt in range(_TRIES):
            old = self._store.get(kind.storage, key)
            if old is None:
                raise errors.not_found(kind.group, kind.plural, key[1])
            made = make(old)
            self._check_identity(made, old, call)
            if system:
                return self._finish(made, old, call)
            new = self._step(made, old, call, owned=owned)
            new = await self._ask("UPDATE", call, key, new, old)
            if self._store.get(kind.storage, key) is not old:
                if retry and attempt < _TRIES - 1:
                    continue
                raise errors.conflict(kind.group, kind.plural, key[1])
            new = lifecycle.be_updated(new, old, kind)
            self._check(new, old, call)
            return self._finish(new, old, call)
        raise AssertionError("unreachable: the last try returns or raises")

    def _check_identity(self, made: Json, old: Json, call: Call) -> None:
        kind, meta = call.kind, made["metadata"]
        uid = meta.get("uid")
        if uid and uid != old["metadata"]["uid"]:
            if call.verb == "update":
                raise lifecycle.storage_conflict(old, kind, uid)
            if call.patch_type == APPLY_PATCH:
                raise lifecycle.storage_conflict(old, kind, uid)
            immutable = cause.invalid("metadata.uid", uid, "field is immutable")
            raise errors.invalid(kind.group, kind.kind, call.target.name, [immutable, immutable])
        version = intake.meta_version(made)
        if version and version != old["metadata"]["resourceVersion"]:
            raise errors.conflict(kind.group, kind.plural, call.target.name)
        if not version and not kind.unconditional_update and call.verb == "update":
            raise errors.conflict(kind.group, kind.plural, call.target.name)
        if meta.get("name") != old["metadata"]["name"]:
            raise errors.bad_request(
                f"the name of the object ({meta.get('name')}) does not match the name on the URL ({call.target.name})"
            )

    def _step(self, made: Json, old: Json, call: Call, *, owned: bool) -> Json:
        new = lifecycle.keep_rest(made, old, call.kind, call.target.subresource)
        new = lifecycle.be_updated(new, old, call.kind)
        if call.kind.storage == "resourceclaims.resource.k8s.io" and call.target.subresource == "status":
            new = {**new, "status": dict(new.get("status") or {})}
            claims.settle_claim_status(new, old)
            if not self._device_status and not get(old, "status", "devices"):
                new["status"].pop("devices", None)
        return new if owned else self._owned(old, new, call, self._manager(call))

    def _check(self, new: Json, old: Json, call: Call) -> None:
        kind, subresource = call.kind, call.target.subresource
        intake.check(new, old, kind, subresource=subresource)
        if kind.storage == "resourceclaims.resource.k8s.io" and subresource == "status":
            found = claims.validate_claim_status_update(
                new,
                old,
                call.user,
                self._allowed,
                verb="patch" if call.verb == "patch" else "update",
                granular=self._granular,
            )
            if found:
                raise errors.invalid(kind.group, kind.kind, name_of(new), found)

    def _finish(self, new: Json, old: Json, call: Call) -> Json:
        kind, key = call.kind, call.key
        if lifecycle.is_finished(new, old, kind):
            if not call.dry_run:
                self._store.delete(kind.storage, key)
            return new
        if _same(new, old):
            return old
        if call.dry_run:
            return with_version(new, int(old["metadata"]["resourceVersion"]))
        return self._store.put(kind.storage, key, new)

    def _owned(self, old: Json | None, new: Json, call: Call, manager: managed.Manager) -> Json:
        try:
            return managed.record_update(
                old,
                new,
                manager,
                shape=call.kind.shape,
                reset=lifecycle.reset_fields(call.kind, call.target.subresource),
                now=lifecycle.now(),
            )
        except ValueError:  # a list that does not fit its keys: validation comes next, and says so
            return new

    def _manager(self, call: Call, *, apply: bool = False) -> managed.Manager:
        return managed.Manager(
            name=call.manager,
            apply=apply,
            api_version=call.asked.api_version,
            subresource=call.target.subresource,
        )

    async def _ask(self, operation: Operation, call: Call, key: Key, new: Json, old: Json | None) -> Json:
        answer = await self._admission(call, operation, key, new=new, old=old, dry_run=call.dry_run)
        return new if answer is None else answer

    # -- delete

    async def delete(self, call: Call, key: Key, options: DeleteOptions) -> tuple[Json, bool]:
        """The object as it is now, and whether it is gone. Raises ApiFault."""
        kind = call.kind
        for _ in range(_TRIES):
            old = self._store.get(kind.storage, key)
            if old is None:
                raise errors.not_found(kind.group, kind.plural, key[1])
            lifecycle.check_preconditions(old, kind, options)
            await self._admission(call, "DELETE", key, new=None, old=old, dry_run=options.dry_run)
            if self._store.get(kind.storage, key) is not old:
                continue
            left = lifecycle.be_deleted(old, kind, options)
            if options.dry_run:
                return left or old, left is None
            if left is None:
                return self._store.delete(kind.storage, key), True
            if left == old:
                return old, False
            return self._store.put(kind.storage, key, left), False
        raise errors.conflict(kind.group, kind.plural, key[1])


_SYSTEM_PRIORITIES = {"system-node-critical": 2000001000, "system-cluster-critical": 2000000000}


def _same(new: Json, old: Json) -> bool:
    """Whether a write changes nothing but times in managedFields."""
    if not raw.same(
        {k: v for k, v in new.items() if k != "metadata"}, {k: v for k, v in old.items() if k != "metadata"}
    ):
        return False

    def comparable(obj: Json) -> Json:
        meta = {key: value for key, value in obj["metadata"].items() if key != "resourceVersion"}
        if "managedFields" in meta:
            meta["managedFields"] = [{k: v for k, v in item.items() if k != "time"} for item in meta["managedFields"]]
        return meta

    return comparable(new) == comparable(old)
