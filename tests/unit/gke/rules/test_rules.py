"""Every rule speaks where it should and is silent where it should, and none is without proof."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from interlace.gke.rules.checking import NOT_OBSERVED, RULES
from tests.unit.gke.rules import cases, fabric_cases, firewall_cases, object_cases, placement_cases, request_cases
from tests.unit.gke.rules.bundles import Bundle, check, healthy, mega, of_rule, put, reserved, ultra
from tests.unit.gke.rules.cases import Case

CASES = (
    *cases.CASES,
    *placement_cases.CASES,
    *fabric_cases.CASES,
    *firewall_cases.CASES,
    *object_cases.CASES,
)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_a_rule_speaks_of_the_state_that_breaks_it_and_is_silent_about_the_one_that_does_not(case: Case) -> None:
    broken = of_rule(check(put(case.base(), case.broken)), case.rule)
    named = [each for each in broken if each.pointer == case.pointer and case.says in each.text]
    assert named, broken
    assert named[0].severity == case.severity
    assert named[0].remedy
    sound = of_rule(check(put(case.base(), case.sound)), case.rule)
    assert not [each for each in sound if each.pointer == case.pointer and case.says in each.text]


def test_each_rule_has_a_case_and_each_case_a_rule() -> None:
    with_cases = {case.rule for case in CASES} | set(request_cases.RULES)
    assert with_cases == {rule.id for rule in RULES}


@pytest.mark.parametrize("base", [healthy, mega, reserved, ultra])
def test_a_healthy_state_breaks_no_rule_but_may_lack_a_placement(base: Callable[[], Bundle]) -> None:
    assert {finding.rule for finding in check(base())} <= {"placement.none", NOT_OBSERVED}
