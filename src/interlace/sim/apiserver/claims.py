"""ResourceClaim status: who may write what, and what must never change.

Invariants, as on Kubernetes 1.36: an allocation once set is compared byte by byte, opaque
parameters included, until it is taken away whole; ``status.devices`` of a driver may be written
by whoever holds the verb for the driver, and by an agent only for the node of its own token.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, Protocol

from interlace.sim.apiserver.auth import UserInfo
from interlace.sim.apiserver.cause import Cause, InOrder, duplicate, forbidden, invalid, required, too_many
from interlace.sim.apiserver.formats import condition_findings, driver_name, label_name, pool_name
from interlace.sim.apiserver.raw import same
from interlace.sim.apiserver.rbac import Request, forbidden_message
from interlace.sim.apiserver.resources import allocation_findings, raw_findings, request_names
from interlace.sim.apiserver.resources import validate_resource as validate_resource  # noqa: PLC0414 - callers take it from here

GROUP: Final = "resource.k8s.io"
_CLAIMS: Final = "resourceclaims"
_MAX_CONDITIONS: Final = 8
_MAX_RESERVED: Final = 256
_MAX_DATA: Final = 10 * 1024


class Allowed(Protocol):
    """``Authorizer.allowed``."""

    def __call__(
        self,
        user: UserInfo,
        *,
        verb: str,
        group: str = "",
        resource: str = "",
        subresource: str = "",
        namespace: str = "",
        name: str = "",
    ) -> bool: ...


def settle_claim_status(new: dict[str, Any], old: Mapping[str, Any]) -> None:
    """Drop, in place, device entries of devices that this update deallocates. Call before validating."""
    status = new.get("status") or {}
    gone = _allocated(old.get("status") or {}) - _allocated(status)
    if "devices" in status:
        kept = [d for d in status["devices"] or () if _device_key(d) not in gone]
        if kept:
            status["devices"] = kept
        else:
            del status["devices"]


def validate_claim_status_update(
    new: Mapping[str, Any],
    old: Mapping[str, Any],
    user: UserInfo,
    allowed: Allowed,
    *,
    verb: str = "update",
    granular: bool = True,
) -> list[Cause]:
    """Findings on a write to ``resourceclaims/status``; any finding makes it a 422.

    ``verb`` is that of the request (``patch`` for every kind of patch); ``granular`` is the feature
    DRAResourceClaimGranularStatusAuthorization, on from 1.36.
    """
    status, before = new.get("status") or {}, old.get("status") or {}
    found: list[Cause] = []
    if granular:
        found += _binding_findings(status, before, user, allowed, verb)
        if status.get("allocation"):
            namespace = new["metadata"].get("namespace", "")
            found += _device_rights(status, before, user, allowed, verb, namespace)
    found += _reserved_findings(status)
    found += _device_findings(status)
    found += _reservation_findings(status, before, deleted=bool(new["metadata"].get("deletionTimestamp")))
    allocation, earlier = status.get("allocation"), before.get("allocation")
    if allocation and earlier:
        if not same(allocation, earlier):
            found.append(invalid("status.allocation", allocation, "field is immutable"))
    elif allocation:
        found += allocation_findings(allocation, "status.allocation", request_names(new.get("spec") or {}))
    return found


def _binding_findings(
    status: Mapping[str, Any], before: Mapping[str, Any], user: UserInfo, allowed: Allowed, verb: str
) -> list[Cause]:
    if all(same(status.get(k), before.get(k)) for k in ("allocation", "reservedFor")):
        return []
    if allowed(user, verb=verb, group=GROUP, resource=_CLAIMS, subresource="binding"):
        return []
    request = Request(verb=verb, group=GROUP, resource=_CLAIMS, subresource="binding")
    detail = (
        'changing status.allocation or status.reservedFor requires resource="resourceclaims/binding", '
        f'verb="{verb}" permission: {forbidden_message(user, request)}'
    )
    return [forbidden("status.allocation", detail)]


def allocated_node(allocation: Mapping[str, Any] | None) -> str:
    """The one node that an allocation is usable on; empty if it is not tied to just one by name."""
    terms = ((allocation or {}).get("nodeSelector") or {}).get("nodeSelectorTerms") or []
    if len(terms) != 1 or terms[0].get("matchExpressions") or len(terms[0].get("matchFields") or ()) != 1:
        return ""
    field = terms[0]["matchFields"][0]
    values = field.get("values") or []
    named = field.get("key") == "metadata.name" and field.get("operator") == "In" and len(values) == 1
    return str(values[0]) if named else ""


def _device_rights(
    status: Mapping[str, Any],
    before: Mapping[str, Any],
    user: UserInfo,
    allowed: Allowed,
    verb: str,
    namespace: str,
) -> Iterator[Cause]:
    node = allocated_node(status.get("allocation"))
    verbs = [f"arbitrary-node:{verb}"]
    if node and user.service_account is not None and user.node == node:
        verbs.insert(0, f"associated-node:{verb}")
    for driver in sorted(_changed_drivers(status.get("devices") or (), before.get("devices") or ())):
        requests = [
            Request(verb=v, group=GROUP, resource=_CLAIMS, subresource="driver", namespace=namespace, name=driver)
            for v in verbs
        ]
        if any(
            allowed(
                user,
                verb=r.verb,
                group=GROUP,
                resource=_CLAIMS,
                subresource="driver",
                namespace=namespace,
                name=driver,
            )
            for r in requests
        ):
            continue
        detail = (
            'changing status.devices requires resource="resourceclaims/driver", '
            f'verb="[{" ".join(verbs)}]" permission: {forbidden_message(user, requests[0])}'
        )
        yield forbidden("status.devices", detail)


def _changed_drivers(new: Sequence[Mapping[str, Any]], old: Sequence[Mapping[str, Any]]) -> set[str]:
    before = {_device_key(d): d for d in old}
    changed: set[str] = set()
    for device in new:
        earlier = before.pop(_device_key(device), None)
        if earlier is None or not same(earlier, device):
            changed.add(str(device.get("driver", "")))
    return changed | {str(d.get("driver", "")) for d in before.values()}


def _device_key(device: Mapping[str, Any]) -> tuple[str, str, str, str]:
    driver, pool, name, share = (str(device.get(k) or "") for k in ("driver", "pool", "device", "shareID"))
    return driver, pool, name, share


def _allocated(status: Mapping[str, Any]) -> set[tuple[str, str, str, str]]:
    results = ((status.get("allocation") or {}).get("devices") or {}).get("results") or ()
    return {_device_key(r) for r in results}


def _reserved_findings(status: Mapping[str, Any]) -> Iterator[Cause]:
    path = "status.reservedFor"
    consumers = status.get("reservedFor") or ()
    if len(consumers) > _MAX_RESERVED:
        yield too_many(path, len(consumers), _MAX_RESERVED)
        return
    for index, consumer in enumerate(consumers):
        yield from (required(f"{path}[{index}].{k}") for k in ("resource", "name", "uid") if not consumer.get(k))
    yield from _repeated(path, [c.get("uid", "") for c in consumers])


def _reservation_findings(status: Mapping[str, Any], before: Mapping[str, Any], *, deleted: bool) -> Iterator[Cause]:
    consumers = status.get("reservedFor") or ()
    if not consumers:
        return
    if not status.get("allocation"):
        yield forbidden("status.reservedFor", "may not be specified when `allocated` is not set")
    elif deleted and any(c not in (before.get("reservedFor") or ()) for c in consumers):
        detail = "new entries may not be added while `deallocationRequested` or `deletionTimestamp` are set"
        yield forbidden("status.reservedFor", detail)


def _repeated(path: str, keys: Iterable[Any]) -> Iterator[Cause]:
    seen: list[Any] = []
    for index, key in enumerate(keys):
        if key in seen:
            yield duplicate(f"{path}[{index}]", key)
        seen.append(key)


def _device_findings(status: Mapping[str, Any]) -> Iterator[Cause]:
    allocated = _allocated(status)
    devices = status.get("devices") or ()
    for index, device in enumerate(devices):
        path = f"status.devices[{index}]"
        yield from driver_name(device.get("driver", ""), f"{path}.driver")
        yield from pool_name(device.get("pool", ""), f"{path}.pool")
        yield from label_name(device.get("device", ""), f"{path}.device")
        if _device_key(device) not in allocated:
            yield invalid(path, _shown(device), "must be an allocated device in the claim")
        conditions = device.get("conditions") or ()
        if len(conditions) > _MAX_CONDITIONS:
            yield too_many(f"{path}.conditions", len(conditions), _MAX_CONDITIONS)
        yield from condition_findings(conditions, f"{path}.conditions")
        if device.get("data") is not None:
            yield from raw_findings(device["data"], f"{path}.data", _MAX_DATA)
    yield from _repeated("status.devices", [_shown(d) for d in devices])


def _shown(device: Mapping[str, Any]) -> InOrder:
    fields = (("Driver", "driver"), ("Pool", "pool"), ("Device", "device"), ("ShareID", "shareID"))
    return InOrder({name: device.get(key) or "" for name, key in fields})
