"""Every rule speaks where it should and is silent where it should, and none is without proof."""

from __future__ import annotations

import pytest

from interlace.gke.rules.checking import RULES
from tests.unit.gke.rules import cases, fabric_cases, request_cases
from tests.unit.gke.rules.bundles import check, healthy, mega, of_rule, put, reserved
from tests.unit.gke.rules.cases import Case

CASES = (*cases.CASES, *fabric_cases.CASES)


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


def test_each_rule_is_silent_about_some_case_of_another() -> None:
    quiet = {rule.id for rule in RULES}
    for base in (healthy, mega, reserved):
        quiet -= {finding.rule for finding in check(base())} - {"placement.none"}
    assert quiet == {rule.id for rule in RULES}
