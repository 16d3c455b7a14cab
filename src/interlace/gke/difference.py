"""What differs between a resource as it is meant and as it is. Pure.

Invariant: what only looks different is no difference: a URL and a name, the text of a number and the number, a field
that is absent and one with its default, lists whose order means nothing, and what the server adds (see `fields`). The
order of NICs is a difference.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from fnmatch import fnmatchcase
from typing import Any, Final

import msgspec

from interlace.fabric.version import VersionError, gke_version
from interlace.gke.fields import ANY, IGNORE, REPLACE, Row, defaults_under, row_of
from interlace.gke.resource import Kind

_EMPTY: Final[tuple[Any, ...]] = (None, False, 0, "", "0", [], {}, ())
_NUMBER: Final = re.compile(r"-?\d{1,20}\Z", re.ASCII)
_MOMENT: Final = re.compile(r"\d{4}-\d\d-\d\dT\d")
_REFERENCE: Final = re.compile(r"(?:https?://|projects/|(?:global|regions|zones)/)\S+\Z")
_UNSPECIFIED: Final = re.compile(r"(?:[A-Z0-9_]*_)?UNSPECIFIED\Z")
_DEFAULT_ROW: Final = Row()


class Difference(msgspec.Struct, frozen=True, kw_only=True):
    """``path`` with dots; ``have`` and ``want`` as JSON, None for absent. ``how``: an update, or ``replace``."""

    path: str
    have: Any
    want: Any
    how: str = REPLACE
    why: str = ""

    @property
    def replaces(self) -> bool:
        """Whether it needs another resource in place of this one."""
        return self.how == REPLACE


def differences(kind: Kind, *, want: Mapping[str, Any], have: Mapping[str, Any]) -> tuple[Difference, ...]:
    """All differences, in the order of the wanted body."""
    if kind == "cluster" and have.get("currentMasterVersion") and "initialClusterVersion" in want:
        first, now = str(have.get("initialClusterVersion") or ""), str(have["currentMasterVersion"])
        if not _same_version(want["initialClusterVersion"], first):  # what it was born with stays as it was
            have = {**have, "initialClusterVersion": now}
    found = list(_in_object(kind, "", want, have))
    scaling = want.get("autoscaling")
    if kind == "nodePool" and isinstance(scaling, Mapping) and scaling.get("enabled"):
        found = [each for each in found if each.path != "initialNodeCount"]  # the autoscaler decides
    if kind == "network" and want.get("networkProfile") and "mtu" not in want:
        found = [each for each in found if each.path != "mtu"]  # the profile decides
    return tuple(found)


def _in_object(kind: Kind, path: str, want: Mapping[str, Any], have: Mapping[str, Any]) -> Iterator[Difference]:
    for name, value in want.items():
        yield from _in_field(kind, f"{path}.{name}" if path else name, value, have.get(name))
    for name, default in defaults_under(kind, path).items():
        if name not in want and name in have:
            inner = f"{path}.{name}" if path else name
            if default is ANY and isinstance(have[name], Mapping):
                yield from _in_object(kind, inner, {}, have[name])
            elif default is not ANY:
                yield from _in_field(kind, inner, default, have[name])


def _in_field(kind: Kind, path: str, want: Any, have: Any) -> Iterator[Difference]:
    row = row_of(kind, path) or _DEFAULT_ROW
    if row.how == IGNORE or _same(row, path, want, have):
        return
    # An empty object wants nothing to be there, whatever fields it would have.
    whole = row.theirs or not want or path in {"releaseChannel", "autoscaling", "networkProfile"}
    if isinstance(want, Mapping) and isinstance(have, Mapping | None) and not whole:
        yield from _in_object(kind, path, want, have or {})
        return
    yield Difference(path=path, have=have, want=want, how=row.how, why=row.why)


def _same(row: Row, path: str, want: Any, have: Any) -> bool:
    if path == "initialClusterVersion":
        return _same_version(want, have)
    if _empty(want) and _empty(have):
        return True
    if isinstance(want, Mapping) and isinstance(have, Mapping | None):
        return bool(_plain(_without(want, row.theirs)) == _plain(_without(have or {}, row.theirs)))
    if isinstance(want, Sequence) and not isinstance(want, str):
        return _same_list(row, want, have or [])
    if have is None and row.default is not ANY:
        have = row.default
    return _same_value(want, have)


def _same_list(row: Row, want: Sequence[Any], have: Any) -> bool:
    if not isinstance(have, Sequence) or isinstance(have, str):
        return False
    if row.theirs:
        wanted = {_label(each) for each in want}
        have = [
            each
            for each in have
            if _label(each) in wanted or not any(fnmatchcase(_label(each), pattern) for pattern in row.theirs)
        ]
    left, right = [_plain(each) for each in want], [_plain(each) for each in have]
    if row.order == "list":
        return len(left) == len(right) and all(_same_value(a, b) for a, b in zip(left, right, strict=True))
    return sorted(map(_sortable, left)) == sorted(map(_sortable, right))


def _same_value(want: Any, have: Any) -> bool:
    if isinstance(want, Mapping) and isinstance(have, Mapping):
        return all(_same_value(want.get(name), have.get(name)) for name in {*want, *have})
    if _empty(want) and _empty(have):
        return True
    want, have = _plain(want), _plain(have)
    if want == have:
        return True
    if not isinstance(want, str) or not isinstance(have, str):
        return False
    if _MOMENT.match(want) and _MOMENT.match(have):
        return _same_moment(want, have)
    if _REFERENCE.match(want) or _REFERENCE.match(have):
        return _same_reference(want, have)
    if "/" in want and "/" not in have:
        return False
    return bool(re.fullmatch(r"/\d{1,2}", want)) and _prefix(have) == want  # only a size was asked for


def _same_moment(want: str, have: str) -> bool:
    try:
        return datetime.fromisoformat(want) == datetime.fromisoformat(have)
    except (ValueError, TypeError):
        return False


def _same_reference(want: str, have: str) -> bool:
    """Two references mean one thing if the longer one ends with the shorter, parts of the API's address apart."""
    left, right = _parts(want), _parts(have)
    shorter = min(len(left), len(right))
    return left[-shorter:] == right[-shorter:]


def _parts(reference: str) -> list[str]:
    text = re.sub(r"^https?://[^/]+/(?:compute/)?(?:[a-z0-9]+/)?(?=projects/)", "", reference)
    return text.strip("/").split("/")


def _same_version(want: Any, have: Any) -> bool:
    """A cluster made with an alias or part of a version has a whole one; upgrades since then are no difference."""
    want, have = str(want or ""), str(have or "")
    if not want or want in {"latest", "-"} or have == want or have.startswith((f"{want}.", f"{want}-")):
        return True
    try:
        return gke_version(have) >= gke_version(want)
    except VersionError:
        return False


def _empty(value: Any) -> bool:
    if isinstance(value, str) and _UNSPECIFIED.match(value):
        return True
    if isinstance(value, Mapping):
        return all(_empty(each) for each in value.values())
    return any(value is each or (type(value) is type(each) and value == each) for each in _EMPTY)


def _plain(value: Any) -> Any:
    """Without what is empty; numbers as numbers; references by their path."""
    if isinstance(value, Mapping):
        return {name: _plain(each) for name, each in value.items() if not _empty(each)}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_plain(each) for each in value]
    if isinstance(value, str) and _NUMBER.match(value):
        return int(value)
    return value


def _without(have: Mapping[str, Any], theirs: tuple[str, ...]) -> dict[str, Any]:
    return {k: v for k, v in have.items() if not any(fnmatchcase(k, pattern) for pattern in theirs)}


def _label(item: Any) -> str:
    """By which an item of a list is known."""
    if isinstance(item, Mapping):
        return str(item.get("key") or item.get("rangeName") or item.get("name") or "")
    return str(item)


def _sortable(value: Any) -> str:
    if isinstance(value, Mapping):
        value = {
            name: sorted(map(str, each)) if isinstance(each, list) else each for name, each in sorted(value.items())
        }
    elif isinstance(value, str) and "/" in value and _REFERENCE.match(value):
        value = _parts(value)[-1]
    return msgspec.json.encode(value).decode()


def _prefix(text: str) -> str:
    try:
        return f"/{ipaddress.ip_network(text, strict=False).prefixlen}"
    except ValueError:
        return ""
