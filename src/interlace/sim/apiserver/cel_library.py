"""The Kubernetes functions of CEL that device selectors use: quantities and semantic versions.

CEL sees both as maps with one tagged entry in a canonical spelling, so ``==`` means what it means
on the real server (``1Gi`` equals ``1024Mi``). Invariant: only this module builds or reads the tags.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from fractions import Fraction
from typing import Any, Final

from cel_expr_python import cel

from interlace.sim.apiserver.quantity import is_quantity, parse_quantity

_QUANTITY: Final = "kubernetes.Quantity"
_SEMVER: Final = "kubernetes.Semver"
_SEMVER_PATTERN: Final = re.compile(
    r"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)"
    r"(?:-((?:0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*)(?:\.(?:0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*))*))?"
    r"(?:\+[0-9a-zA-Z-]+(?:\.[0-9a-zA-Z-]+)*)?",
    re.ASCII,
)


def quantity_value(text: str | float) -> dict[str, str]:
    """A quantity as CEL sees it. Raises ``QuantityError``."""
    return {_QUANTITY: str(parse_quantity(text))}


def is_semver(text: object) -> bool:
    """Whether the text is a version by semver.org 2.0.0."""
    return isinstance(text, str) and _SEMVER_PATTERN.fullmatch(text) is not None


def semver_value(text: str) -> dict[str, str]:
    """A version as CEL sees it. Raises ``ValueError``."""
    if not is_semver(text):
        raise ValueError(f"invalid semantic version {text!r}")
    return {_SEMVER: text.partition("+")[0]}


def _number(value: dict[str, str]) -> Fraction:
    if _QUANTITY not in value:
        raise ValueError("no such overload")
    return Fraction(value[_QUANTITY])


def _version(value: dict[str, str]) -> tuple[int, int, int, tuple[tuple[int, int, str], ...]]:
    """A sort key: numeric identifiers before others, a pre-release before its release."""
    match = _SEMVER_PATTERN.fullmatch(value.get(_SEMVER, ""))
    if match is None:
        raise ValueError("no such overload")
    major, minor, patch, pre = match.groups()
    if pre is None:
        tail: tuple[tuple[int, int, str], ...] = ((2, 0, ""),)
    else:
        tail = tuple((0, int(p), "") if p.isdigit() else (1, 0, p) for p in pre.split("."))
    return int(major), int(minor), int(patch), tail


def _compare(left: dict[str, str], right: dict[str, str]) -> int:
    if _QUANTITY in left:
        a, b = _number(left), _number(right)
        return (a > b) - (a < b)
    v, w = _version(left), _version(right)
    return (v > w) - (v < w)


def _operand(other: Any) -> Fraction:
    return Fraction(other) if isinstance(other, int) else _number(other)


def _whole(value: dict[str, str]) -> int:
    number = _number(value)
    if number.denominator != 1:
        raise ValueError("cannot convert value to integer")
    return int(number)


def _sign(value: dict[str, str]) -> int:
    number = _number(value)
    return (number > 0) - (number < 0)


def _declare(name: str, result: cel.Type, parameters: list[cel.Type], impl: Callable[..., Any]) -> cel.FunctionDecl:
    """A global function if its one parameter is a string, else a member function."""
    member = parameters[0] != cel.Type.STRING
    overload = cel.Overload(f"k8s_{name}", result, parameters, is_member=member, impl=impl)
    return cel.FunctionDecl(name, [overload])


def kubernetes_functions() -> cel.CelExtension:
    """The extension to hand to ``cel.NewEnv``."""
    t = cel.Type
    return cel.CelExtension(
        "kubernetes",
        [
            _declare("quantity", t.DYN, [t.STRING], quantity_value),
            _declare("isQuantity", t.BOOL, [t.STRING], is_quantity),
            _declare("semver", t.DYN, [t.STRING], semver_value),
            _declare("isSemver", t.BOOL, [t.STRING], is_semver),
            _declare("compareTo", t.INT, [t.DYN, t.DYN], _compare),
            _declare("isGreaterThan", t.BOOL, [t.DYN, t.DYN], lambda a, b: _compare(a, b) > 0),
            _declare("isLessThan", t.BOOL, [t.DYN, t.DYN], lambda a, b: _compare(a, b) < 0),
            _declare("add", t.DYN, [t.DYN, t.DYN], lambda a, b: {_QUANTITY: str(_number(a) + _operand(b))}),
            _declare("sub", t.DYN, [t.DYN, t.DYN], lambda a, b: {_QUANTITY: str(_number(a) - _operand(b))}),
            _declare("sign", t.INT, [t.DYN], _sign),
            _declare("isInteger", t.BOOL, [t.DYN], lambda a: _number(a).denominator == 1),
            _declare("asInteger", t.INT, [t.DYN], _whole),
            _declare("asApproximateFloat", t.DOUBLE, [t.DYN], lambda a: float(_number(a))),
            _declare("major", t.INT, [t.DYN], lambda a: _version(a)[0]),
            _declare("minor", t.INT, [t.DYN], lambda a: _version(a)[1]),
            _declare("patch", t.INT, [t.DYN], lambda a: _version(a)[2]),
        ],
    )
