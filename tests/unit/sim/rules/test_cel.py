"""Selectors and rules answer, and fail, as they do on the real server."""

from __future__ import annotations

from typing import Any

import pytest

from interlace.sim.apiserver.cel import CelError, Rule, Selector

DRIVER = "compute-domain.nvidia.com"
DEVICE: dict[str, Any] = {
    "name": "channel-0",
    "attributes": {
        "type": {"string": "channel"},
        "id": {"int": 0},
        "healthy": {"bool": True},
        "firmware": {"version": "1.2.3"},
        "other.example.com/rack": {"string": "r1"},
    },
    "capacity": {"memory": {"value": "80Gi"}},
}


def matches(expression: str, device: dict[str, Any] = DEVICE) -> bool:
    return Selector(expression).matches(device, driver=DRIVER)


@pytest.mark.parametrize(
    "expression",
    [
        f'device.driver == "{DRIVER}"',
        f'device.attributes["{DRIVER}"].type == "channel" && device.attributes["{DRIVER}"].id == 0',
        f"device.attributes['{DRIVER}'].healthy",
        'device.attributes["other.example.com"].rack == "r1"',
        f'!has(device.attributes["{DRIVER}"].domain)',
        f'!("domain" in device.attributes["{DRIVER}"])',
        f'device.attributes["{DRIVER}"].?domain.orValue("") in ["", "uid"]',
        f'!has(device.attributes["{DRIVER}"].domain) || device.attributes["{DRIVER}"].domain in ["", "uid"]',
        '!has(device.attributes["unknown.example.com"].anything)',
        f'cel.bind(own, device.attributes["{DRIVER}"], own.type == "channel" && own.id == 0)',
        f'device.capacity["{DRIVER}"].memory.compareTo(quantity("40Gi")) > 0',
        f'device.capacity["{DRIVER}"].memory == quantity("81920Mi")',
        f'device.capacity["{DRIVER}"].memory.isLessThan(quantity("1Ti"))',
        f'device.capacity["{DRIVER}"].memory.sub(quantity("16Gi")) == quantity("64Gi")',
        f'device.attributes["{DRIVER}"].firmware.isGreaterThan(semver("1.2.3-rc.10"))',
        'semver("1.0.0-rc.2").isLessThan(semver("1.0.0-rc.10"))',
        'semver("1.0.0-alpha").isLessThan(semver("1.0.0-alpha.1"))',
        'isQuantity("5m") && !isQuantity("5x") && isSemver("1.0.0") && !isSemver("1.0")',
        "!device.allowMultipleAllocations",
    ],
)
def test_a_selector_that_describes_the_device_matches(expression: str) -> None:
    assert matches(expression)


@pytest.mark.parametrize(
    "expression",
    [
        'device.driver == "gpu.nvidia.com"',
        f'device.attributes["{DRIVER}"].id == 1',
        f'device.attributes["{DRIVER}"].type == device.attributes["other.example.com"].rack',
    ],
)
def test_a_selector_that_describes_another_device_does_not_match(expression: str) -> None:
    assert not matches(expression)


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        (f'device.attributes["{DRIVER}"].domain == ""', "no such key: domain"),
        ('device.attributes["unknown.example.com"].domain == ""', "no such key: domain"),
        (f'device.attributes["{DRIVER}"].id < "x"', "no such overload"),
        (f'device.attributes["{DRIVER}"].id', "could not be converted to bool"),
        ("1 / 0 == 1", "division by zero"),
        (f'device.attributes["{DRIVER}"].firmware.compareTo(quantity("1")) == 0', "no such overload"),
    ],
)
def test_what_the_server_cannot_evaluate_is_an_error_and_not_a_mismatch(expression: str, text: str) -> None:
    selector = Selector(expression)
    with pytest.raises(CelError, match=text):
        selector.matches(DEVICE, driver=DRIVER)


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        ("device.foo == 1", "compilation failed: ERROR: <input>:1:7: undeclared reference"),
        ("device.driver ==", "compilation failed: ERROR: <input>:1:17: Syntax error"),
        ("pod.name == 'x'", "undeclared reference to 'pod.name'"),
        ("device.driver", "must evaluate to bool or the unknown type, not string"),
        ("1 + 1", "must evaluate to bool or the unknown type, not int"),
    ],
)
def test_an_expression_that_can_never_work_is_refused_at_once(expression: str, text: str) -> None:
    with pytest.raises(CelError, match=text):
        Selector(expression)


def test_an_attribute_without_a_value_stops_the_evaluation() -> None:
    with pytest.raises(CelError, match="unsupported attribute value"):
        matches("true", {"name": "x", "attributes": {"broken": {}}})


def test_a_rule_knows_whether_it_reads_the_old_value() -> None:
    assert Rule({"rule": "self == oldSelf"}).uses_old
    assert not Rule({"rule": "self.note != 'oldSelf'"}).uses_old


def test_a_transition_rule_compares_whole_objects() -> None:
    rule = Rule({"rule": "self == oldSelf"})
    assert rule.holds({"a": [1, {"b": None}]}, {"a": [1, {"b": None}]})
    assert not rule.holds({"a": [1, {"b": 2}]}, {"a": [1, {"b": None}]})


def test_an_optional_old_value_is_none_on_create() -> None:
    rule = Rule({"rule": "!oldSelf.hasValue() || self >= oldSelf.value()", "optionalOldSelf": True})
    assert rule.holds(1)
    assert rule.holds(2, 1)
    assert not rule.holds(1, 2)


def test_a_message_comes_from_the_expression_then_the_text_then_the_rule() -> None:
    by_expression = Rule({"rule": "self < 3", "message": "too big", "messageExpression": "'got ' + string(self)"})
    assert by_expression.message(5) == "got 5"
    broken = Rule({"rule": "self < 3", "message": "too big", "messageExpression": "self.missing"})
    assert broken.message(5) == "too big"
    assert Rule({"rule": " self < 3 "}).message(5) == "failed rule: self < 3"
