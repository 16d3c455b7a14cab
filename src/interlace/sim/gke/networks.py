"""Networks, subnetworks and firewall rules: how a body becomes a resource, and what may change in place.

Invariant: pure functions of the state and a body; what they refuse is refused before an operation exists.
"""

from __future__ import annotations

import ipaddress
from typing import Any, Final

from interlace.sim.gke.errors import Refusal, invalid, not_found, not_ready
from interlace.sim.gke.routes import Call
from interlace.sim.gke.store import fingerprint, relative
from interlace.sim.gke.world import World

Json = dict[str, Any]
MTU: Final = range(1300, 8897)


def referred(world: World, call: Call, reference: str, collection: str, field: str) -> str:
    """The relative name of what a body refers to, which must exist."""
    if not reference:
        raise invalid(field, "", "The resource is required.")
    place = call.scope if collection == "subnetworks" else "global"
    path = relative(reference, project=call.project, collection=collection, place=place)
    if path in world.store.creating or path in world.store.leaving:
        raise not_ready(path)
    if world.store.get(path) is None:
        raise not_found("compute", path)
    return path


def network(world: World, call: Call, path: str, body: Json) -> Json:  # noqa: ARG001  the form of a maker
    """A new network."""
    profile = body.get("networkProfile", "")
    mtu = body.get("mtu", 8896 if profile else 1460)
    _check_mtu(mtu)
    ident = world.store.next_id()
    routing = {"routingMode": "REGIONAL", "bgpBestPathSelectionMode": "LEGACY"} | body.get("routingConfig", {})
    return body | {
        "kind": "compute#network",
        "id": ident,
        "creationTimestamp": world.operations.compute_time(world.clock()),
        "selfLink": world.link(path),
        "selfLinkWithId": world.link(f"{path.rpartition('/')[0]}/{ident}"),
        "autoCreateSubnetworks": body.get("autoCreateSubnetworks", False),
        "routingConfig": routing,
        "mtu": mtu,
        "networkFirewallPolicyEnforcementOrder": body.get(
            "networkFirewallPolicyEnforcementOrder", "AFTER_CLASSIC_FIREWALL"
        ),
    }


def subnetwork(world: World, call: Call, path: str, body: Json) -> Json:
    """A new subnetwork; its range must not overlap another one of the same network."""
    owner = referred(world, call, body.get("network", ""), "networks", "resource.network")
    primary = _range(body.get("ipCidrRange", ""), "resource.ipCidrRange")
    secondary = [_range(each.get("ipCidrRange", ""), "ipCidrRange") for each in body.get("secondaryIpRanges", [])]
    for span in (primary, *secondary):
        check_overlap(world, owner, span)
    document = body | {
        "kind": "compute#subnetwork",
        "id": world.store.next_id(),
        "creationTimestamp": world.operations.compute_time(world.clock()),
        "network": world.link(owner),
        "gatewayAddress": str(primary.network_address + 1),
        "region": world.link(f"projects/{call.project}/{call.scope}"),
        "selfLink": world.link(path),
        "privateIpGoogleAccess": body.get("privateIpGoogleAccess", False),
        "privateIpv6GoogleAccess": body.get("privateIpv6GoogleAccess", "DISABLE_GOOGLE_ACCESS"),
        "purpose": body.get("purpose", "PRIVATE"),
        "stackType": body.get("stackType", "IPV4_ONLY"),
    }
    document["fingerprint"] = fingerprint(document)
    return document


def check_overlap(world: World, owner: str, span: ipaddress.IPv4Network) -> None:
    """400 when ``span`` overlaps a range of a subnetwork of the network ``owner``, also of one that is being made."""
    pending = [each for each in world.store.creating.items() if "/subnetworks/" in each[0]]
    for path, other in (*world.store.of(owner.split("/")[1], "subnetworks"), *pending):
        if not other["network"].endswith(f"/{owner}"):
            continue
        ranges = [other["ipCidrRange"], *(each["ipCidrRange"] for each in other.get("secondaryIpRanges", []))]
        if any(span.overlaps(ipaddress.ip_network(each)) for each in ranges):
            region, name = path.split("/")[3], path.rpartition("/")[2]
            raise invalid(
                "resource.ipCidrRange",
                str(span),
                f"Invalid IPCidrRange: {span} conflicts with existing subnetwork '{name}' in region '{region}'.",
            )


def firewall(world: World, call: Call, path: str, body: Json) -> Json:
    """A new firewall rule."""
    owner = referred(world, call, body.get("network", "global/networks/default"), "networks", "resource.network")
    if bool(body.get("allowed")) == bool(body.get("denied")):
        raise invalid("resource.allowed", "", "Exactly one of allowed and denied is required.")
    direction = body.get("direction", "INGRESS")
    document = body | {
        "kind": "compute#firewall",
        "id": world.store.next_id(),
        "creationTimestamp": world.operations.compute_time(world.clock()),
        "description": body.get("description", ""),
        "network": world.link(owner),
        "priority": body.get("priority", 1000),
        "direction": direction,
        "logConfig": {"enable": False} | body.get("logConfig", {}),
        "disabled": body.get("disabled", False),
        "selfLink": world.link(path),
    }
    named = ("sourceRanges", "sourceTags", "sourceServiceAccounts", "destinationRanges")
    if not any(document.get(each) for each in named):
        document["sourceRanges" if direction == "INGRESS" else "destinationRanges"] = ["0.0.0.0/0"]
    for field in ("sourceRanges", "destinationRanges"):
        for each in document.get(field, []):
            _range(each, f"resource.{field}")
    return document


def patch_network(current: Json, body: Json) -> Json:
    """A network after PATCH: mtu, routing mode and the order of firewall policies change in place."""
    free = {"mtu", "routingConfig", "networkFirewallPolicyEnforcementOrder", "name", "kind"}
    _refuse_fixed(current, body, free, "network")
    if "mtu" in body:
        _check_mtu(body["mtu"])
    routing = current["routingConfig"] | body.get("routingConfig", {})
    return current | body | {"routingConfig": routing}


def patch_subnetwork(current: Json, body: Json) -> Json:
    """A subnetwork after PATCH, which needs the fingerprint that was read."""
    if body.get("fingerprint") != current["fingerprint"]:
        raise Refusal(412, "Invalid fingerprint.", "conditionNotMet")
    free = {
        "fingerprint",
        "privateIpGoogleAccess",
        "secondaryIpRanges",
        "logConfig",
        "stackType",
        "name",
        "description",
    }
    _refuse_fixed(current, body, free, "subnetwork")
    return refreshed(current | body)


def refreshed(document: Json) -> Json:
    """With the fingerprint of its content."""
    return document | {"fingerprint": fingerprint({k: v for k, v in document.items() if k != "fingerprint"})}


def patch_firewall(world: World, call: Call, current: Json, body: Json) -> Json:
    """A firewall rule after PATCH; its network and direction are fixed."""
    if "network" in body:
        owner = referred(world, call, body["network"], "networks", "resource.network")
        body = body | {"network": world.link(owner)}
    _refuse_fixed(current, body, set(body) - {"network", "direction", "name"}, "firewall")
    merged = current | body
    if "allowed" in body:
        merged.pop("denied", None)
    elif "denied" in body:
        merged.pop("allowed", None)
    return merged


def _refuse_fixed(current: Json, body: Json, free: set[str], kind: str) -> None:
    for field, value in body.items():
        if field not in free and value != current.get(field):
            raise invalid(f"resource.{field}", str(value), f"The field cannot be changed on an existing {kind}.")


def _check_mtu(mtu: int) -> None:
    if mtu not in MTU:
        raise invalid("resource.mtu", str(mtu), f"Must be between {MTU.start} and {MTU.stop - 1}, inclusive.")


def _range(text: str, field: str) -> ipaddress.IPv4Network:
    try:
        span = ipaddress.ip_network(text)
    except ValueError:
        raise invalid(field, text, "Must be a CIDR address range.") from None
    if isinstance(span, ipaddress.IPv6Network):
        raise invalid(field, text, "Must be an IPv4 CIDR address range.")
    return span
