"""CEL for device selectors and for CRD rules, over Google's runtime.

Every expression is compiled once a process. Invariant: failures surface as ``CelError``, those of
an evaluation with the text of the real server (compilers word theirs differently); a selector that
fails on one device (``no such key: domain``) is an error, not a mismatch, because the real
scheduler then gives up on the whole pod.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from typing import Any, Final

from cel_expr_python import cel
from cel_expr_python.ext import ext_bindings, ext_optional, ext_strings

from interlace.sim.apiserver.cel_library import kubernetes_functions, quantity_value, semver_value

_CODE: Final = re.compile(r"^[A-Z_]+: ")
_MISSING_KEY: Final = re.compile(r'Key not found in map : "?(.*?)"?$', re.DOTALL)
_STRING_LITERAL: Final = re.compile(r"\"([^\"\\]*)\"|'([^'\\]*)'")
_OLD_SELF: Final = re.compile(r"\boldSelf\b")


class CelError(Exception):
    """An expression could not be compiled or evaluated; the text says why."""


def _reason(text: str) -> str:
    """The runtime's wording turned into that of the server."""
    text = _CODE.sub("", text).removesuffix(" [INVALID_ARGUMENT]")
    if missing := _MISSING_KEY.search(text):
        return f"no such key: {missing[1]}"
    if text.startswith("No matching overloads found"):
        return "no such overload"
    if text == "divide by zero":
        return "division by zero"
    return text


def _extensions() -> list[cel.CelExtensionBase]:
    return [ext_optional.ExtOptional(), ext_strings.ExtStrings(), ext_bindings.ExtBindings(), kubernetes_functions()]


@functools.cache
def _device_environment() -> cel.Env:
    # Dotted names let the type checker refuse `device.foo`, as the declared object type does on the server.
    attributes = cel.Type.Map(cel.Type.STRING, cel.Type.Map(cel.Type.STRING, cel.Type.DYN))
    variables = {
        "device.driver": cel.Type.STRING,
        "device.allowMultipleAllocations": cel.Type.BOOL,
        "device.attributes": attributes,
        "device.capacity": attributes,
    }
    return cel.NewEnv(variables=variables, extensions=_extensions())


@functools.cache
def _rule_environment() -> cel.Env:
    variables = {"self": cel.Type.DYN, "oldSelf": cel.Type.DYN, "olds": cel.Type.List(cel.Type.DYN)}
    return cel.NewEnv(variables=variables, extensions=_extensions())


def _compile(environment: cel.Env, expression: str) -> cel.Expression:
    try:
        return environment.compile(expression)
    except RuntimeError as error:
        raise CelError(f"compilation failed: {_reason(str(error))}") from None


@functools.lru_cache(maxsize=4096)
def _compile_selector(expression: str) -> cel.Expression:
    program = _compile(_device_environment(), expression)
    result = program.return_type()
    if cel.Type.BOOL != result != cel.Type.DYN:
        raise CelError(f"must evaluate to bool or the unknown type, not {result.name().lower()}")
    return program


@functools.lru_cache(maxsize=4096)
def _compile_rule(expression: str) -> cel.Expression:
    return _compile(_rule_environment(), expression)


def _evaluate(program: cel.Expression, data: dict[str, Any]) -> Any:
    value = program.eval(data=data)
    plain = value.plain_value()
    if value.type() == cel.Type.ERROR:
        raise CelError(_reason(str(plain)))
    return plain


def _plain(value: Any) -> Any:
    """Exact dicts and lists all the way down: the runtime takes no subclasses."""
    if isinstance(value, dict):
        return {k: _plain(v) for k, v in value.items()}
    if isinstance(value, list):
        return [_plain(v) for v in value]
    return value


def _attribute(attribute: Mapping[str, Any]) -> Any:
    for kind in ("int", "bool", "string"):
        if attribute.get(kind) is not None:
            return attribute[kind]
    if attribute.get("version") is not None:
        return semver_value(attribute["version"])
    raise CelError("unsupported attribute value")


def _by_domain(entries: Mapping[str, Any], driver: str, domains: frozenset[str]) -> dict[str, dict[str, Any]]:
    """Names split at the slash; a name without a domain belongs to the driver's."""
    # A lookup of an unknown domain finds an empty map on the server: every literal might be one.
    table: dict[str, dict[str, Any]] = {domain: {} for domain in domains}
    for name, value in entries.items():
        domain, slash, identifier = name.partition("/")
        table.setdefault(domain if slash else driver, {})[identifier if slash else name] = value
    return table


class Selector:
    """One ``selectors[].cel.expression`` of a request or a DeviceClass."""

    __slots__ = ("_domains", "_program", "expression")

    def __init__(self, expression: str) -> None:
        """Raises ``CelError`` if the expression does not compile or cannot be a condition."""
        self.expression = expression
        self._program = _compile_selector(expression)
        self._domains = frozenset(a or b for a, b in _STRING_LITERAL.findall(expression))

    def matches(self, device: Mapping[str, Any], *, driver: str) -> bool:
        """Whether an entry of ``ResourceSlice.spec.devices`` fulfils the expression.

        Raises ``CelError`` on anything that the real server refuses to evaluate.
        """
        attributes = {k: _attribute(v) for k, v in device.get("attributes", {}).items()}
        capacity = {k: quantity_value(v["value"]) for k, v in device.get("capacity", {}).items()}
        result = _evaluate(
            self._program,
            {
                "device.driver": driver,
                "device.allowMultipleAllocations": bool(device.get("allowMultipleAllocations")),
                "device.attributes": _by_domain(attributes, driver, self._domains),
                "device.capacity": _by_domain(capacity, driver, self._domains),
            },
        )
        if not isinstance(result, bool):
            raise CelError("CEL result could not be converted to bool")
        return result


class Rule:
    """One entry of ``x-kubernetes-validations``."""

    __slots__ = ("_message", "_program", "_rule", "optional_old", "uses_old")

    def __init__(self, rule: Mapping[str, Any]) -> None:
        """Raises ``CelError`` if an expression does not compile."""
        self._rule = rule
        self.optional_old = bool(rule.get("optionalOldSelf"))
        self._program = self._compile(rule["rule"])
        expression = rule.get("messageExpression")
        self._message = self._compile(expression) if expression else None
        self.uses_old = bool(_OLD_SELF.search(_STRING_LITERAL.sub("", rule["rule"])))

    def _compile(self, expression: str) -> cel.Expression:
        if self.optional_old:
            # Python cannot hand over an optional value; a list of at most one stands for it.
            return _compile_rule(
                f"cel.bind(oldSelf, olds.size() > 0 ? optional.of(olds[0]) : optional.none(), {expression})"
            )
        return _compile_rule(expression)

    @property
    def field_path(self) -> str:
        """Where a failure is reported, relative to the value: ``.name`` or empty."""
        return str(self._rule.get("fieldPath") or "")

    @property
    def reason(self) -> str:
        """``FieldValueInvalid`` unless the rule says otherwise."""
        return str(self._rule.get("reason") or "FieldValueInvalid")

    @property
    def text(self) -> str:
        """The rule's message, or the rule itself."""
        return str(self._rule.get("message") or self._rule["rule"]).strip()

    def holds(self, value: Any, old: Any = None) -> bool:
        """Evaluate. ``old`` None means that there is no old value. Raises ``CelError``."""
        return _evaluate(self._program, self._data(value, old)) is True

    def message(self, value: Any, old: Any = None) -> str:
        """What to tell the user after ``holds`` was false."""
        if self._message is not None:
            try:
                text = _evaluate(self._message, self._data(value, old))
            except CelError:
                text = None
            if isinstance(text, str) and text.strip() and "\n" not in text:
                return text.strip()
        return self.text if self._rule.get("message") else f"failed rule: {self.text}"

    def _data(self, value: Any, old: Any) -> dict[str, Any]:
        data = {"self": _plain(value)}
        if self.optional_old:
            data["olds"] = [] if old is None else [_plain(old)]
        elif old is not None:
            data["oldSelf"] = _plain(old)
        return data
