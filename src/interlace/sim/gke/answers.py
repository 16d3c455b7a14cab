"""What goes back to the client: an answer, a refusal as one, what a fault says instead, links of the version asked for.

Invariant: an injected answer has the shape that the service itself gives.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from interlace.sim.gke.errors import (
    Refusal,
    already_exists,
    disabled,
    has_operation,
    in_use,
    not_found,
    too_many_operations,
)
from interlace.sim.gke.faults import Fault, Kind
from interlace.sim.gke.operations import COMPUTE
from interlace.sim.gke.routes import Route

Json = dict[str, Any]
_OPERATION: Final = "operation-1700000000002-11111111-2222-3333-4444-555555555555"
_VERBS: Final = {"insert": "create", "aggregatedList": "list", "wait": "get", "testIamPermissions": "get"}
_OWN: Final = frozenset({"create", "get", "list", "delete", "enable"})
_PAGE: Final = "<html><title>502 Bad Gateway</title><body>simulated: a proxy in between failed</body></html>"


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """``text`` where the answer is no JSON; ``service`` and ``method`` say who answered; empty if nobody."""

    status: int
    body: Json = {}
    headers: dict[str, str] = {}
    text: str | None = None
    service: str = ""
    method: str = ""


def refused(service: str, method: str, refusal: Refusal) -> Answer:
    """An error as an answer."""
    headers = {} if refusal.retry_after is None else {"Retry-After": f"{refusal.retry_after:g}"}
    return Answer(status=refusal.code, body=refusal.body(service), headers=headers, service=service, method=method)


def injected(route: Route, fault: Fault, target: str) -> Answer:
    """What ``fault`` says instead of the service. ``target`` is the relative name of the resource that was meant."""
    if fault.kind is Kind.NOT_JSON:
        return Answer(status=502, text=_PAGE, service=route.service, method=route.name)
    refusal = _refusal(route, fault.kind, target)
    if fault.retry_after is not None:
        refusal.retry_after = fault.retry_after
    return refused(route.service, route.name, refusal)


def permission(route: Route) -> str:
    """The permission that a method needs: ``compute.networks.create``; pools are part of their cluster."""
    if route.collection == "nodePools":
        return f"container.clusters.{'get' if route.verb in {'get', 'list'} else 'update'}"
    verb = _VERBS.get(route.verb, route.verb if route.verb in _OWN else "update")
    return f"{route.service}.{route.collection}.{verb}"


def forbidden(route: Route, target: str) -> Refusal:
    """403 for a method whose permission the caller lacks."""
    name = permission(route)
    if route.service == "compute":
        return Refusal(403, f"Required '{name}' permission for '{target}'", "forbidden")
    project = "/".join(target.split("/")[:2])
    return Refusal(403, f'Required "{name}" permission(s) for "{project}".', "forbidden")


def _refusal(route: Route, kind: Kind, target: str) -> Refusal:
    service, compute = route.service, route.service == "compute"
    parts = target.split("/")
    project = "/".join(parts[:2])
    match kind:
        case Kind.UNAUTHENTICATED:
            return Refusal(401, "Request had invalid authentication credentials.", "authError")
        case Kind.PERMISSION_DENIED:
            return forbidden(route, target)
        case Kind.API_DISABLED:
            return disabled(service)
        case Kind.QUOTA if compute:
            return Refusal(403, "Quota 'FIREWALLS' exceeded.  Limit: 100.0 globally.", "quotaExceeded")
        case Kind.QUOTA:
            return Refusal(
                403,
                "Insufficient regional quota to satisfy request: resource \"SSD_TOTAL_GB\": request requires '12000.0' "
                "and is short '2000.0'. project has a quota of '10000.0' with '10000.0' available.",
            )
        case Kind.NOT_FOUND:
            return not_found(service, target)
        case Kind.ALREADY_EXISTS:
            return already_exists(service, target)
        case Kind.ORG_POLICY:
            text = f"Constraint constraints/compute.vmCanIpForward violated for {project}."
            return Refusal(412, text, "conditionNotMet")
        case Kind.RATE_LIMIT:
            return Refusal(
                429, "Rate Limit Exceeded" if compute else "Quota exceeded for requests.", "rateLimitExceeded"
            )
        case Kind.HAS_OPERATION:
            return has_operation(_OPERATION)
        case Kind.TOO_MANY_OPERATIONS:
            return too_many_operations(parts[5] if len(parts) > 5 else parts[-1], 5)
        case Kind.IN_USE:
            return in_use("network", target, f"{project}/global/firewalls/gke-example-cluster-0a1b2c3d-all")
        case _:
            text = "Service is currently unavailable." if compute else "The service is currently unavailable."
            return Refusal(503, text, "backendError")


def with_version(body: Json, version: str) -> Json:
    """``body`` with links of compute in ``version``."""
    if version == "v1":
        return body
    changed: Json = _linked(body, f"{COMPUTE.removesuffix('v1/')}{version}/")
    return changed


def _linked(value: Any, prefix: str) -> Any:
    if isinstance(value, str):
        return prefix + value[len(COMPUTE) :] if value.startswith(COMPUTE) else value
    if isinstance(value, dict):
        return {key: _linked(each, prefix) for key, each in value.items()}
    if isinstance(value, list):
        return [_linked(each, prefix) for each in value]
    return value
