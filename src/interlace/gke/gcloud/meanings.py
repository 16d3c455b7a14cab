"""Flags that set one field each: their meaning is a path in the body and a way to write the value (``meanings.toml``).

Invariant: a flag of a section is taken by asking for the section; what needs more than one flag to be understood is
not in the table but in the module of its command.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from functools import cache
from importlib import resources
from typing import Any

from interlace.gke.bodies.fields import Body
from interlace.gke.gcloud import values
from interlace.gke.gcloud.call import Call


def fields(call: Call, *sections: str) -> Body:
    """The fields that the flags of these sections set, nested as in the body. Raises PageError."""
    body: Body = {}
    for section in sections:
        for flag, (path, kind) in _table()[section].items():
            call.understands(flag)
            if call.has(flag):
                value = _value(call, flag, kind)
                if value is not None:
                    put(body, path, value)
    return body


def put(body: Body, path: str, value: Any) -> None:
    """Set the field at ``path``, whose steps have points between them."""
    *steps, last = path.split(".")
    for step in steps:
        body = body.setdefault(step, {})
    body[last] = value


def merged(*bodies: Mapping[str, Any]) -> Body:
    """One body of several; objects are merged, and of other values the last one counts."""
    found: Body = {}
    for body in bodies:
        for name, value in body.items():
            known = found.get(name)
            both = isinstance(known, dict) and isinstance(value, Mapping)
            found[name] = merged(known, value) if both and known is not None else value
    return found


def _value(call: Call, flag: str, kind: str | Mapping[str, str]) -> Any:
    match kind:
        case "text" if call.text(flag) == "" and flag != "--description":
            call.refuse(f"{flag} has no value", remedy=f"Write {flag}=VALUE, or leave it out.")
        case "text":
            return call.text(flag)
        case "upper":
            return (call.text(flag) or "").upper().replace("-", "_")
        case "integer":
            return values.number(call, flag)
        case "digits":
            return str(values.number(call, flag))
        case "decimal":
            return values.decimal(call, flag, call.text(flag) or "")
        case "bool":
            return call.switch(flag)
        case "on":
            return call.switch(flag) or None
        case "list":
            return values.listed(call, flag)
        case "sorted":
            return sorted(values.listed(call, flag) or ())
        case "map":
            return values.pairs(call, flag)
        case _ if isinstance(kind, Mapping) and call.entry.flags[flag].members(call.track):
            return {kind[key]: _tier(call, flag, value) for key, value in (values.pairs(call, flag) or {}).items()}
        case _ if isinstance(kind, Mapping):
            return values.mapped(call, flag, kind)
    raise AssertionError(f"{flag}: {kind} is no way to write a value")


def _tier(call: Call, flag: str, value: str) -> str:
    """The one tier of bandwidth that there is."""
    if value.upper() != "TIER_1":
        call.refuse(f"{flag}: {value} is no tier", remedy="Write TIER_1.")
    return value.upper()


@cache
def _table() -> dict[str, dict[str, tuple[str, Any]]]:
    data = resources.files("interlace.gke.gcloud").joinpath("data/meanings.toml").read_text(encoding="utf-8")
    return {
        section: {flag: (path, kind) for flag, (path, kind) in flags.items()}
        for section, flags in tomllib.loads(data).items()
    }
