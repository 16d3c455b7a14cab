"""Formats of strings that several kinds share: names, qualified names, conditions.

Pure; each function yields its findings in the order and the words of the real server.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from interlace.sim.apiserver.cause import Cause, duplicate, invalid, not_supported, required, too_long

_LABEL: Final = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN: Final = rf"{_LABEL}(\.{_LABEL})*"
_IDENTIFIER: Final = "[A-Za-z_][A-Za-z0-9_]*"
_REASON: Final = "[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?"
_MAX_LABEL: Final = 63
_MAX_SUBDOMAIN: Final = 253
_MAX_DRIVER: Final = 63
_MAX_IDENTIFIER: Final = 32
_MAX_REASON: Final = 1024
_MAX_MESSAGE: Final = 32 * 1024
_STATUSES: Final = ("False", "True", "Unknown")


def _explain(rule: str, pattern: str, *examples: str) -> str:
    shown = " or ".join(f"'{e}', " for e in examples)
    return f"{rule} (e.g. {shown}regex used for validation is '{pattern}')"


def label_errors(value: str) -> Iterator[str]:
    """What keeps a text from being a DNS label (RFC 1123)."""
    if len(value) > _MAX_LABEL:
        yield f"must be no more than {_MAX_LABEL} bytes"
    if not re.fullmatch(_LABEL, value):
        if re.fullmatch(_SUBDOMAIN, value):
            yield "must not contain dots"
        else:
            yield _explain(
                "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', "
                "and must start and end with an alphanumeric character",
                _LABEL,
                "my-name",
                "123-abc",
            )


def subdomain_errors(value: str) -> Iterator[str]:
    """What keeps a text from being a DNS subdomain (RFC 1123)."""
    if len(value) > _MAX_SUBDOMAIN:
        yield f"must be no more than {_MAX_SUBDOMAIN} bytes"
    if not re.fullmatch(_SUBDOMAIN, value):
        yield _explain(
            "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', "
            "and must start and end with an alphanumeric character",
            _SUBDOMAIN,
            "example.com",
        )


def object_name(value: str, path: str = "metadata.name") -> Iterator[Cause]:
    """Name of an object."""
    if value:
        yield from (invalid(path, value, e) for e in subdomain_errors(value))
    else:
        yield required(path, "name or generateName is required")


def driver_name(value: str, path: str) -> Iterator[Cause]:
    """Name of a DRA driver: a subdomain of at most 63 bytes, in any case."""
    if not value:
        yield required(path)
        return
    if len(value) > _MAX_DRIVER:
        yield too_long(path, _MAX_DRIVER)
    yield from (invalid(path, value, e) for e in subdomain_errors(value.lower()))


def pool_name(value: str, path: str) -> Iterator[Cause]:
    """Name of a pool: subdomains separated by slashes."""
    if not value:
        yield required(path)
        return
    if len(value) > _MAX_SUBDOMAIN:
        yield too_long(path, _MAX_SUBDOMAIN)
    for part in value.split("/"):
        yield from (invalid(path, part, e) for e in subdomain_errors(part))


def label_name(value: str, path: str) -> Iterator[Cause]:
    """Name of a device or a request."""
    yield from (invalid(path, value, e) for e in label_errors(value))


def class_name(value: str, path: str) -> Iterator[Cause]:
    """Name of a DeviceClass."""
    if value:
        yield from (invalid(path, value, e) for e in subdomain_errors(value))
    else:
        yield required(path)


def qualified_name(value: str, path: str) -> Iterator[Cause]:
    """Key of an attribute or a capacity: an identifier, with or without a domain before a slash."""
    parts = value.split("/")
    if len(parts) == 1:
        yield from _identifier(parts[0], path)
    elif len(parts) == 2:
        domain, name = parts
        yield from driver_name(domain, path) if domain else [invalid(path, "", "the domain must not be empty")]
        yield from _identifier(name, path) if name else [invalid(path, "", "the name must not be empty")]


def _identifier(value: str, path: str) -> Iterator[Cause]:
    if len(value) > _MAX_IDENTIFIER:
        yield too_long(path, _MAX_IDENTIFIER)
    if not re.fullmatch(_IDENTIFIER, value):
        rule = (
            "a valid C identifier must start with alphabetic character or '_', "
            "followed by a string of alphanumeric characters or '_'"
        )
        yield invalid(path, value, _explain(rule, _IDENTIFIER, "my_name", "MY_NAME", "MyName"))


def condition_findings(conditions: Sequence[Mapping[str, Any]], path: str) -> Iterator[Cause]:
    """A list of ``metav1.Condition``."""
    seen: set[str] = set()
    for index, condition in enumerate(conditions):
        where = f"{path}[{index}]"
        kind = condition.get("type", "")
        if kind in seen:
            yield duplicate(f"{where}.type", kind)
        seen.add(kind)
        if (status := condition.get("status", "")) not in _STATUSES:
            yield not_supported(f"{where}.status", status, _STATUSES)
        if not condition.get("lastTransitionTime"):
            yield required(f"{where}.lastTransitionTime")
        yield from _reason(condition.get("reason", ""), f"{where}.reason")
        if len(condition.get("message", "")) > _MAX_MESSAGE:
            yield too_long(f"{where}.message", _MAX_MESSAGE)


def _reason(reason: str, path: str) -> Iterator[Cause]:
    if not reason:
        yield required(path)
        return
    if not re.fullmatch(_REASON, reason):
        rule = (
            "a condition reason must start with alphabetic character, optionally followed by a string of "
            "alphanumeric characters or '_,:', and must end with an alphanumeric character or '_'"
        )
        examples = ("my_name", "MY_NAME", "MyName", "ReasonA,ReasonB", "ReasonA:ReasonB")
        yield invalid(path, reason, _explain(rule, _REASON, *examples))
    if len(reason) > _MAX_REASON:
        yield too_long(path, _MAX_REASON)
