"""Lists: pages, filters and the answer by scope.

The filter language is the part of it that clients use: ``name = "x"``, ``name eq 'regex'``, ``name : x`` and ``!=`` or
``ne``, joined by ``AND`` or put into parentheses side by side. Anything else is refused, never ignored.

Invariant: pages cover the list without gap or repetition while nothing changes; a token is only good for its list.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable, Sequence
from typing import Any, Final

import msgspec

from interlace.sim.gke.catalog import Catalog
from interlace.sim.gke.errors import invalid
from interlace.sim.gke.operations import COMPUTE
from interlace.sim.gke.routes import Call

Json = dict[str, Any]
_KINDS: Final = {
    "networks": "network",
    "subnetworks": "subnetwork",
    "firewalls": "firewall",
    "resourcePolicies": "resourcePolicy",
    "reservations": "reservation",
    "operations": "operation",
    "regions": "region",
    "zones": "zone",
    "machineTypes": "machineType",
    "acceleratorTypes": "acceleratorType",
    "networkProfiles": "networkProfile",
    "reservationBlocks": "reservationBlock",
}
_TERM: Final = re.compile(r"""\s*([\w.]+)\s*(!=|=|:|\beq\b|\bne\b)\s*("[^"]*"|'[^']*'|[^\s()]+)\s*""")


class Page(msgspec.Struct, frozen=True):
    """``start`` is the index of the first entry."""

    start: int
    size: int

    @classmethod
    def of(cls, call: Call) -> Page:
        """From ``maxResults`` and ``pageToken``. Refusal."""
        text = call.query.get("maxResults", "500")
        if not text.isdigit() or not 1 <= int(text) <= 500:
            raise invalid("maxResults", text, "Values must be within the range: [1, 500].")
        token = call.query.get("pageToken", "")
        return cls(_start(token, call.path) if token else 0, int(text))


def listed(call: Call, documents: Sequence[Json], collection: str) -> Json:
    """The answer of ``list``: one page of what the filter takes."""
    keep = matching(call.query.get("filter", ""))
    page = Page.of(call)
    taken = [each for each in documents if keep(each)]
    rows = taken[page.start : page.start + page.size]
    scope = call.path.rpartition("/operations")[0] if collection == "operations" else call.path
    body: Json = {
        "kind": f"compute#{_KINDS[collection]}List",
        "id": scope,
        "selfLink": COMPUTE + call.path,
    }
    if rows:
        body["items"] = rows
    if page.start + page.size < len(taken):
        body["nextPageToken"] = _token(page.start + page.size, call.path)
    return body


def aggregated(call: Call, pairs: Sequence[tuple[str, Json]], collection: str, catalog: Catalog) -> Json:
    """The answer of ``aggregatedList``: by scope, with the warning of compute where a scope has nothing."""
    keep = matching(call.query.get("filter", ""))
    page = Page.of(call)
    taken = [(path, each) for path, each in pairs if keep(each)]
    items: dict[str, Json] = {}
    for path, document in taken[page.start : page.start + page.size]:
        parts = path.split("/")
        scope = "global" if parts[2] == "global" else "/".join(parts[2:4])
        items.setdefault(scope, {collection: []})[collection].append(document)
    regional = collection in {"subnetworks", "resourcePolicies"}
    places = (
        [f"regions/{each}" for each in catalog.regions] if regional else [f"zones/{each}" for each in catalog.zones]
    )
    for scope in places:
        items.setdefault(scope, {"warning": _empty(scope)})
    body: Json = {
        "kind": f"compute#{_KINDS[collection]}AggregatedList",
        "id": call.path,
        "items": items,
        "selfLink": COMPUTE + call.path,
    }
    if page.start + page.size < len(taken):
        body["nextPageToken"] = _token(page.start + page.size, call.path)
    return body


def matching(text: str) -> Callable[[Json], bool]:
    """Whether a document passes the filter ``text``. Refusal for what is not understood."""
    terms: list[tuple[list[str], bool, Callable[[str], bool]]] = []
    for part in re.split(r"\bAND\b|\)\s*\(", text):
        bare = part.strip().strip("()").strip()
        if not bare:
            continue
        found = _TERM.fullmatch(bare)
        if found is None:
            raise invalid("filter", text, "Invalid list filter expression.")
        terms.append((found[1].split("."), found[2] in {"!=", "ne"}, _test(found[2], found[3].strip("\"'"), text)))

    def keep(document: Json) -> bool:
        return all(_passes(document, path, negated, test) for path, negated, test in terms)

    return keep


def _passes(document: Json, path: list[str], negated: bool, test: Callable[[str], bool]) -> bool:  # noqa: FBT001  a triple of a term
    value: Any = document
    for step in path:
        value = value.get(step) if isinstance(value, dict) else None
    text = str(value).lower() if isinstance(value, bool) else "" if value is None else str(value)
    return test(text) != negated


def _test(operator: str, wanted: str, whole: str) -> Callable[[str], bool]:
    if operator == ":":
        return lambda text: wanted.replace("*", "") in text
    if operator in {"eq", "ne"}:
        try:
            pattern = re.compile(wanted)
        except re.error:
            raise invalid("filter", whole, "Invalid regular expression.") from None
        return lambda text: pattern.fullmatch(text) is not None
    return lambda text: text == wanted


def _empty(scope: str) -> Json:
    return {
        "code": "NO_RESULTS_ON_PAGE",
        "message": f"There are no results for scope '{scope}' on this page.",
        "data": [{"key": "scope", "value": scope}],
    }


def _token(start: int, path: str) -> str:
    return base64.urlsafe_b64encode(f"{start} {path}".encode()).decode()


def _start(token: str, path: str) -> int:
    try:
        start, _, of = base64.urlsafe_b64decode(token).decode().partition(" ")
        if of == path:
            return int(start)
    except (binascii.Error, UnicodeDecodeError, ValueError):
        pass
    raise invalid("pageToken", token, "Invalid page token.")
