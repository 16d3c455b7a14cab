"""The document of pairs: what is taken, what is refused, and what it means."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from interlace.fabric import bands
from interlace.fabric.bands import Band
from interlace.verify.attribution import attribute
from interlace.verify.measurement import Reading
from interlace.verify.pairing import Level
from interlace.verify.report.content import Report
from interlace.verify.report.matrix import MatrixError, decode
from interlace.verify.schedule import Plan, rounds
from interlace.verify.standing import document as pairs_printed
from interlace.verify.standing import stand
from interlace.verify.tournament import Played
from tests.unit.verify.recorded import published
from tests.unit.verify.reports import matrix_of, of_lines, pairs_document


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"nodes": [{"name": "node-00"}]}, "pairs[0] names 'node-01', which is not among the nodes"),
        ({"nodes": [{"name": "a"}, {"name": "a"}]}, "a node is listed twice"),
        ({"pairs": [{"a": "node-00", "b": "node-00", "busbw": 1}]}, "pairs[0] names 'node-00' twice"),
        ({"pairs": [{"a": "node-00", "b": "node-01"}]}, "pairs[0] was measured and has no busbw"),
        ({"pairs": [{"a": "node-00", "b": "node-01", "busbw": -1}]}, "pairs[0] was measured and has no busbw"),
        ({"pairs": [{"a": "node-00", "b": "node-01", "busbw": "fast"}]}, "$.pairs[0].busbw"),
        ({"expected": {"inside": {"bound": 1, "pass": 2, "degraded": 1}}}, "degraded, pass and bound must rise"),
        ({"verdict": "good"}, "$.verdict"),
    ],
)
def test_a_document_that_is_wrong_is_refused_with_its_place(change: dict[str, Any], told: str) -> None:
    with pytest.raises(MatrixError) as refused:
        matrix_of(pairs_document(nodes=3) | change)
    assert told in str(refused.value)


@given(st.binary(max_size=60) | st.recursive(st.none() | st.integers() | st.text(max_size=5), lambda inner:
       st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["nodes", "pairs", "name", "a", "b"]), inner),
       max_leaves=8).map(msgspec.json.encode))  # fmt: skip
@settings(max_examples=80, deadline=None)
def test_no_bytes_are_more_than_refused(data: bytes) -> None:
    try:
        found = decode(data)
    except MatrixError:
        return
    assert found.conclusion()[0] == "cannot tell"


def test_fields_that_a_report_does_not_need_are_passed_over() -> None:
    assert matrix_of(pairs_document(nodes=3) | {"gpu_hours": 3, "schema": "x"}) == matrix_of(pairs_document(nodes=3))


@pytest.mark.parametrize(
    ("document", "verdict", "cause"),
    [
        (pairs_document(), "pass", "all 15 pairs of 6 nodes reach what they should"),
        (pairs_document(slow="node-03"), "fail", "node node-03 reaches 60 % of what it should"),
        (pairs_document(cut=("node-00", "node-01")), "fail", "pairs are slower than they should be"),
        (pairs_document(expected={}), "cannot tell", "nobody said what they should reach"),
        (pairs_document(pairs=[]), "cannot tell", "no pair of nodes was measured"),
        (pairs_document(slow="node-03", expected={}), "degraded", "node node-03 reaches 60 %"),
        (pairs_document(verdict="degraded", cause="as it says"), "degraded", "as it says"),
    ],
)
def test_pairs_have_a_verdict_of_their_own(document: dict[str, Any], verdict: str, cause: str) -> None:
    found = matrix_of(document).conclusion()
    assert found[0] == verdict
    assert cause in found[1]


def test_what_verify_pairs_prints_is_read_whole() -> None:
    nodes = tuple(f"node-{at}" for at in range(8))
    plan = Plan(nodes=nodes)
    readings = [
        Reading(match=each, busbw=180.0 * (0.6 if "node-3" in each.nodes else 1.0), size=1 << 30)
        for step in rounds(plan)
        for each in step
    ]
    band = bands.band("a3-mega", scope="nodes", collective="all_gather")
    assert band is not None
    found = attribute(readings, expected={"inside": band.pass_share * band.bound_gb_s}, noise=0.01)
    known: dict[Level, Band] = {"inside": band}
    standing = stand(found, Played(), readings, bands=known)
    printed = pairs_printed(
        standing, found, plan, readings, bands=known, racks={"node-3": "rack-1"}, simulated=True, gpu_hours=1.0
    )
    matrix = matrix_of(printed)
    assert matrix.conclusion() == (standing.verdict, standing.cause)
    assert [each.names for each in matrix.findings] == [("node-3",)]
    assert len(matrix.pairs) == 28
    assert matrix.simulated
    slow = next(node for node in matrix.nodes if node.name == "node-3")
    assert slow.rack == "rack-1"
    assert slow.share == pytest.approx(0.6)
    expected = matrix.expectation("inside")
    assert expected is not None
    assert (expected.bound, expected.passes, expected.degraded) == (200, 160, 130)


def test_without_a_band_pairs_are_held_against_their_median_and_that_is_said() -> None:
    expected = matrix_of(pairs_document(expected={})).expectation("inside")
    assert expected is not None
    assert (expected.bound, expected.passes, expected.source) == (180, 144, "shares of the median pair")


def test_the_worse_of_logs_and_pairs_decides_and_gives_the_cause() -> None:
    passing, failing = published("nccl-tcpx"), published("nccl-tcpxo")
    good, bad = matrix_of(pairs_document()), matrix_of(pairs_document(slow="node-03"))
    assert of_lines(passing, family="a3-high", matrix=good).verdict == "pass"
    named = of_lines(passing, family="a3-high", matrix=bad)
    assert (named.verdict, named.cause) == ("fail", "node node-03 reaches 60 % of what it should")
    slow = of_lines(failing, matrix=good)
    assert slow.verdict == "fail"
    assert "all_gather" in slow.cause
    assert slow.remedy
    assert Report().verdict == "cannot tell"
