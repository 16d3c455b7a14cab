"""Values of flags: lists, dictionaries, numbers, sizes and times as gcloud's parser takes them.

Invariant: what gcloud's parser refuses is refused here, with the flag and the value; nothing is rounded or repaired.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime
from typing import Final

from interlace.gke.gcloud.call import Call

MAY_BE_EMPTY: Final = frozenset({"--addons", "--scopes"})
"""Lists that may have no items."""

_DELIMITED: Final = re.compile(r"\^([^^]+)\^")
_SIZE: Final = re.compile(r"(\d+)\s*(?:([kmgt]?)(i?)b|([kmgt])(i?))?\Z", re.IGNORECASE)
_POWERS: Final[dict[str, int]] = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4}
_GB: Final = 2**30


def listed(call: Call, flag: str) -> list[str] | None:
    """Items between commas, or between what ``^:^`` at the beginning says instead; None if the flag is not there."""
    value = call.text(flag)
    if value == "" and flag not in MAY_BE_EMPTY:
        call.refuse(f"{flag} has no value", remedy=f"Write {flag}=VALUE,VALUE, or leave it out.")
    return None if value is None else items(call, flag, value)


def items(call: Call, flag: str, value: str) -> list[str]:
    """Items of one value of a list."""
    if value == "":
        return []
    match = _DELIMITED.match(value)
    if match:
        return value[match.end() :].split(match[1])
    if value.endswith(",") or value.startswith(",") or ",," in value:
        call.refuse(f"{flag}={value} has an empty item", remedy="Take the comma out.")
    return value.split(",")


def pairs(call: Call, flag: str) -> dict[str, str] | None:
    """A dictionary ``k=v,k=v``; None if the flag is not there."""
    value = call.text(flag)
    return None if value is None else members(call, flag, value)


def members(call: Call, flag: str, value: str) -> dict[str, str]:
    """A dictionary of one value; its keys are those that the flag knows."""
    entry = call.entry.flags[flag]
    known = entry.members(call.track)
    found: dict[str, str] = {}
    for item in items(call, flag, value):
        key, equals, inner = item.partition("=")
        if not equals:
            call.refuse(f"{flag}: {item!r} is no KEY=VALUE", remedy="Write KEY=VALUE, with commas between them.")
        if known and key not in known:
            call.refuse(f"{flag}: the key {key!r} is not known", remedy=f"Keys are {', '.join(known)}.")
        if key in found:
            call.refuse(f"{flag}: the key {key!r} stands there twice")
        found[key] = inner
    missing = [key for key in entry.required_keys if not found.get(key)]
    if missing:
        call.refuse(f"{flag}: the key {missing[0]!r} is missing", remedy=f"Write {missing[0]}=VALUE.")
    return found


def number(call: Call, flag: str) -> int | None:
    """An integer."""
    value = call.text(flag)
    return None if value is None else integer(call, flag, value)


def integer(call: Call, flag: str, value: str) -> int:
    """An integer that stands in a value of ``flag``."""
    if not re.fullmatch(r"[-+]?\d{1,12}", value.strip()):
        call.refuse(f"{flag}: {value!r} is no whole number")
    return int(value)


def decimal(call: Call, flag: str, value: str) -> float:
    """A number with a point."""
    if not re.fullmatch(r"-?\d{1,9}(\.\d{1,9})?", value):
        call.refuse(f"{flag}: {value!r} is no number")
    return float(value)


def size_gb(call: Call, flag: str) -> int | None:
    """A disk size in GB: a number of GB, or with a unit; a GB is 2^30 bytes, and at least 10 are taken."""
    value = call.text(flag)
    if value is None:
        return None
    match = _SIZE.fullmatch(value)
    if match is None:
        call.refuse(f"{flag}={value} is no size", remedy="Write it like 100GB.")
    unit = (match[2] if match[2] is not None else match[4] or "g").lower()
    size: int = int(match[1]) * 1024 ** _POWERS[unit]
    if size < 10 * _GB:
        call.refuse(f"{flag}={value} is too small", remedy="Ask for 10GB or more.")
    if size % _GB:
        call.refuse(f"{flag}={value} is no whole number of GB")
    return size // _GB


def moment(call: Call, flag: str) -> str | None:
    """A time with its offset, as gcloud sends it: ``2026-01-01T00:00:00+00:00``."""
    value = call.text(flag)
    if value is None:
        return None
    try:
        when = datetime.fromisoformat(value)
    except ValueError:
        when = None
    if when is None or when.tzinfo is None or when.microsecond or "T" not in value:
        call.refuse(f"{flag}={value} is no time with an offset", remedy="Write it like 2026-01-01T00:00:00Z.")
    return when.isoformat()


def mapped(call: Call, flag: str, values: Mapping[str, str]) -> str | None:
    """A choice, in the words of the API."""
    value = call.text(flag)
    if value is None:
        return None
    if value not in values:
        call.refuse(f"{flag}={value} is not taken", remedy=f"Write one of {', '.join(values)}.")
    return values[value]
