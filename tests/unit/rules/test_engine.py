"""The rule engine: what it reports, what it skips, and what it refuses to register."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from interlace.rules.finding import Finding, lines, ordered, worst
from interlace.rules.pointer import moved, pointer
from interlace.rules.rule import Breach, Rules


def numbers() -> Rules[list[int]]:
    rules: Rules[list[int]] = Rules()

    @rules.rule("number.negative", cause="negative numbers cannot be drawn", remedy="take its absolute value")
    def _(subject: list[int]) -> Iterator[Breach]:
        for index, each in enumerate(subject):
            if each < 0:
                yield Breach(pointer=pointer(index), text=f"{each} is negative")

    @rules.rule(
        "number.large", severity="warning", cause="large numbers are slow", remedy="divide it", needs=("size", "unit")
    )
    def _(subject: list[int]) -> Iterator[Breach]:
        for index, each in enumerate(subject):
            if each > 1000:
                yield Breach(
                    pointer=pointer(index),
                    text=f"{each} is large",
                    cause="it takes a while",
                    remedy="halve it",
                    severity="info",
                )

    return rules


def test_a_breach_becomes_a_finding_with_severity_and_remedy_of_its_rule() -> None:
    assert numbers().check([1, -2]).findings == (
        Finding(
            rule="number.negative",
            severity="error",
            pointer="/1",
            text="-2 is negative. Negative numbers cannot be drawn",
            remedy="take its absolute value",
        ),
    )


def test_a_breach_may_have_cause_remedy_and_severity_of_its_own() -> None:
    (finding,) = numbers().check([2000]).findings
    assert (finding.severity, finding.text, finding.remedy) == ("info", "2000 is large. It takes a while", "halve it")


def test_a_rule_that_needs_what_was_not_read_is_skipped_and_says_so() -> None:
    outcome = numbers().check([2000, -1], unread={"size", "colour"})
    assert [finding.rule for finding in outcome.findings] == ["number.negative"]
    assert outcome.skipped == {"size": ("number.large",)}


def test_registries_are_joined_in_order_and_know_their_rules_by_id() -> None:
    joined = Rules(numbers())
    assert [rule.id for rule in joined] == ["number.negative", "number.large"]
    assert len(joined) == 2
    assert joined["number.large"].severity == "warning"


@pytest.mark.parametrize(
    ("id", "cause", "remedy", "says"),
    [
        ("number", "c", "r", "is no id of a rule"),
        ("Number.Odd", "c", "r", "is no id of a rule"),
        ("number.negative", "c", "r", "there is a rule number.negative already"),
        ("number.odd", "", "r", "needs a cause and a remedy"),
        ("number.odd", "c", "", "needs a cause and a remedy"),
    ],
)
def test_a_rule_without_id_cause_or_remedy_or_with_a_taken_id_is_refused(
    id: str, cause: str, remedy: str, says: str
) -> None:
    with pytest.raises(ValueError, match=says):
        numbers().rule(id, cause=cause, remedy=remedy)(lambda _: ())


def finding(severity: str, rule: str = "a.b") -> Finding:
    return Finding(rule=rule, severity=severity, pointer="/x", text="it is so", remedy="do this")  # type: ignore[arg-type]


def test_findings_are_ordered_worst_first_and_each_comes_once() -> None:
    mixed = [finding("info"), finding("error"), finding("warning"), finding("error")]
    assert [each.severity for each in ordered(mixed)] == ["error", "warning", "info"]
    assert worst(mixed) == "error"
    assert worst([finding("info")]) == "info"
    assert worst([]) is None


def test_lines_name_rule_place_cause_and_remedy_and_count_at_the_end() -> None:
    assert list(lines([finding("warning"), finding("error"), finding("error", rule="c.d")])) == [
        "error   a.b  /x",
        "        it is so.",
        "        To do: do this.",
        "error   c.d  /x",
        "        it is so.",
        "        To do: do this.",
        "warning a.b  /x",
        "        it is so.",
        "        To do: do this.",
        "2 errors, 1 warning",
    ]
    assert list(lines([])) == ["no findings"]


def test_lines_are_single_ones_without_anything_that_a_terminal_obeys() -> None:
    odd = Finding(rule="a.b", severity="info", pointer="/x\x1b[2J", text="it\nis \x1b[31mred.", remedy="")
    assert list(lines([odd])) == [
        "info    a.b  /x\N{REPLACEMENT CHARACTER}[2J",
        "        it is \N{REPLACEMENT CHARACTER}[31mred.",
        "1 info",
    ]


def test_a_pointer_escapes_what_its_form_reserves() -> None:
    assert pointer() == ""
    assert pointer("metadata", "labels", "a/b~c", 0) == "/metadata/labels/a~1b~0c/0"


def test_a_place_is_moved_by_the_longest_origin_above_it() -> None:
    origins = {"/cluster": "/requests/3/body/cluster", "/cluster/nodePools/1": "/requests/4/body/nodePool"}
    assert moved("/cluster/status", origins=origins) == "/requests/3/body/cluster/status"
    assert moved("/cluster/nodePools/1/config", origins=origins) == "/requests/4/body/nodePool/config"
    assert moved("/cluster/nodePools/10", origins=origins) == "/requests/3/body/cluster/nodePools/10"
    assert moved("/networks/0", origins=origins) == "/networks/0"
    assert moved("/networks/0", origins={"": "/body"}) == "/body/networks/0"


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.text(max_size=5), max_size=4), st.lists(st.text(max_size=5), max_size=4))
def test_moving_keeps_what_is_below_the_origin(above: list[str], below: list[str]) -> None:
    assert moved(pointer(*above, *below), origins={pointer(*above): "/new"}) == "/new" + pointer(*below)
