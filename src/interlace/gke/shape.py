"""Whether plain values have the shape of a struct, and all that is wrong with them at once.

Invariant: an unknown key is named with the nearest known one; every error has the pointer of what is wrong.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from difflib import get_close_matches
from typing import Any, Final

from msgspec import inspect

from interlace.gke.cluster import ACCOUNT, LOCATION, NAME, PROJECT, RANGE, RANGE_NAME, SCOPE, ZONE
from interlace.gke.errors import SpecError
from interlace.rules.pointer import pointer as join

_PATTERNS: Final = {
    NAME: ("a name has lower-case letters, digits and '-', and begins with a letter", "take a name like train-a3"),
    RANGE: ("it is no IPv4 address range", "write it like 192.168.1.0/24"),
    PROJECT: ("a project id has 6 to 30 lower-case letters, digits and '-'", "take the id, not number or title"),
    LOCATION: ("it is neither a zone nor a region", "write it like us-central1-a or us-central1"),
    ZONE: ("it is no zone", "write it like us-central1-a"),
    SCOPE: ("it is no access scope", "write it like logging.write or cloud-platform"),
    RANGE_NAME: ("a name has lower-case letters, digits and '-', and begins with a letter", "take a name like pods"),
    ACCOUNT: ("it is no address of a service account", "write it like nodes@my-project.iam.gserviceaccount.com"),
}
"""What a pattern means to people: cause and remedy."""


def judge(value: Any, wanted: inspect.Type, *, at: str = "") -> Iterator[SpecError]:
    """All that is wrong with ``value``, in the order of its keys."""
    if isinstance(wanted, inspect.Metadata):
        yield from judge(value, wanted.type, at=at)
    elif isinstance(wanted, inspect.UnionType):
        if value is not None:
            yield from judge(value, next(each for each in wanted.types if not _nothing(each)), at=at)
    elif value is None:
        yield SpecError("there is no value", pointer=at, remedy="give one, or leave the key out")
    elif isinstance(wanted, inspect.StructType):
        yield from _struct(value, wanted, at)
    elif isinstance(wanted, inspect.DictType):
        if not isinstance(value, dict):
            yield _type(value, "a mapping", at)
        else:
            for key, each in value.items():
                yield from judge(each, wanted.value_type, at=at + join(key))
    elif isinstance(wanted, inspect.VarTupleType):
        if not isinstance(value, list):
            yield _type(value, "a list", at)
        else:
            for index, each in enumerate(value):
                yield from judge(each, wanted.item_type, at=at + join(index))
    else:
        yield from _scalar(value, wanted, at)


def _nothing(kind: inspect.Type) -> bool:
    return isinstance(kind, inspect.NoneType)


def _struct(value: Any, wanted: inspect.StructType, at: str) -> Iterator[SpecError]:
    if not isinstance(value, dict):
        yield _type(value, "a mapping", at)
        return
    fields = {each.encode_name: each for each in wanted.fields}
    for key, each in value.items():
        if key in fields:
            yield from judge(each, fields[key].type, at=at + join(key))
        else:
            yield unknown(key, tuple(fields), at=at)
    for name, field in fields.items():
        if field.required and name not in value:
            yield SpecError(f"the key {name!r} is missing", pointer=at + join(name), remedy=_hint(field.type))


def unknown(key: str, known: tuple[str, ...], *, at: str) -> SpecError:
    """A key that nobody knows, with the nearest known one."""
    folded = {each.lower().replace("-", "").replace("_", ""): each for each in known}
    near = get_close_matches(key.lower().replace("-", "").replace("_", ""), list(folded), n=1, cutoff=0.6)
    remedy = f"did you mean {folded[near[0]]!r}?" if near else ""
    return SpecError(
        f"there is no key {key!r} here",
        pointer=at + join(key),
        cause=f"the keys are {', '.join(known)}",
        remedy=remedy,
    )


def _hint(kind: inspect.Type) -> str:
    """What belongs there, from the field's description."""
    extra = kind.extra_json_schema if isinstance(kind, inspect.Metadata) else None
    description = (extra or {}).get("description", "")
    return f"it is needed: {description}" if description else "it is needed"


def _type(value: Any, wanted: str, at: str) -> SpecError:
    quoted = "; put it in quotes" if wanted == "text" and isinstance(value, bool | int | float) else ""
    return SpecError(f"this must be {wanted}", pointer=at, value=_short(value), cause=f"it is {_word(value)}{quoted}")


def _word(value: Any) -> str:
    if isinstance(value, bool):
        return "true or false"
    words = {dict: "a mapping", list: "a list", str: "text", int: "a whole number", float: "a number", bytes: "binary"}
    return words.get(type(value), type(value).__name__)


def _short(value: Any) -> str:
    text = value if isinstance(value, str) else repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _scalar(value: Any, wanted: inspect.Type, at: str) -> Iterator[SpecError]:
    if isinstance(wanted, inspect.BoolType):
        if not isinstance(value, bool):
            yield _type(value, "true or false", at)
    elif isinstance(wanted, inspect.IntType):
        yield from _number(value, wanted, at)
    elif isinstance(wanted, inspect.LiteralType):
        yield from _choice(value, tuple(str(each) for each in wanted.values), at)
    elif isinstance(wanted, inspect.StrType):
        yield from _text(value, wanted, at)
    else:
        raise TypeError(f"a cluster file has no fields of type {wanted!r}")


def _number(value: Any, wanted: inspect.IntType, at: str) -> Iterator[SpecError]:
    if isinstance(value, bool) or not isinstance(value, int):
        yield _type(value, "a whole number", at)
    elif (wanted.ge is not None and value < wanted.ge) or (wanted.le is not None and value > wanted.le):
        yield SpecError(
            f"this must be {wanted.ge} to {wanted.le}",
            pointer=at,
            value=str(value),
            cause="it is out of these bounds",
            remedy="take a number between them",
        )


def _choice(value: Any, known: tuple[str, ...], at: str) -> Iterator[SpecError]:
    if isinstance(value, str) and value in known:
        return
    near = get_close_matches(str(value).lower(), [each.lower() for each in known], n=1, cutoff=0.6)
    meant = next((each for each in known if near and each.lower() == near[0]), "")
    yield SpecError(
        f"this must be {', '.join(known[:-1])} or {known[-1]}" if len(known) > 1 else f"this must be {known[0]}",
        pointer=at,
        value=_short(value),
        remedy=f"did you mean {meant}?" if meant else "take one of these",
    )


def _text(value: Any, wanted: inspect.StrType, at: str) -> Iterator[SpecError]:
    if not isinstance(value, str):
        yield _type(value, "text", at)
        return
    if wanted.min_length is not None and len(value) < wanted.min_length:
        yield SpecError("this must not be empty", pointer=at)
    elif wanted.max_length is not None and len(value) > wanted.max_length:
        yield SpecError(
            "this is too long",
            pointer=at,
            value=_short(value),
            cause=f"it has {len(value)} characters, and {wanted.max_length} are allowed",
            remedy="shorten it",
        )
    elif wanted.pattern is not None and re.fullmatch(wanted.pattern, value) is None:
        cause, remedy = _PATTERNS[wanted.pattern]
        yield SpecError("this is not taken", pointer=at, value=_short(value), cause=cause, remedy=remedy)
