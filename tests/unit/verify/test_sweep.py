"""What is measured, and what it will take."""

from __future__ import annotations

import pytest

from interlace.fabric.family import find
from interlace.verify.keeping import thinned
from interlace.verify.run import Run
from interlace.verify.sweep import Sweep, SweepError, duration, scope_of, size, sweep

MEGA, A4X = find("a3-mega"), find("a4x")


def test_the_collective_is_the_one_that_the_band_is_for() -> None:
    assert sweep(collective=None, least="1M", most="8G", family=MEGA, scope="nodes").collective == "all_gather"
    assert sweep(collective=None, least="1M", most="8G", family=A4X, scope="nvlink").collective == "all_reduce"


def test_sizes_double_up_to_the_largest() -> None:
    assert Sweep(collective="all_gather", least=1 << 20, most=8 << 30).sizes == tuple(1 << n for n in range(20, 34))
    assert Sweep(collective="all_gather", least=3, most=11).sizes == (3, 6)


@pytest.mark.parametrize(("text", "bytes_"), [("1M", 1 << 20), ("8g", 8 << 30), ("1048576", 1 << 20), ("2KB", 2048)])
def test_sizes_are_read_as_nccl_tests_reads_them(text: str, bytes_: int) -> None:
    assert size(text, option="--min") == bytes_


@pytest.mark.parametrize(
    ("collective", "least", "most", "says"),
    [
        ("hypercube", "1M", "8G", "'hypercube' is not one of"),
        (None, "x", "8G", "--min: 'x' is not a size"),
        (None, "1M", "0", "--max: '0' is not a size"),
        (None, "8G", "1M", "is more than --max 1M"),
        (None, "1M", "9999G", "not a size"),
    ],
)
def test_what_cannot_be_measured_is_refused(collective: str | None, least: str, most: str, says: str) -> None:
    with pytest.raises(SweepError, match=says):
        sweep(collective=collective, least=least, most=most, family=MEGA, scope="nodes")


def test_larger_sizes_are_thought_to_take_longer() -> None:
    small, large = (Sweep(collective="all_gather", least=1 << 20, most=most) for most in (1 << 20, 64 << 30))
    assert small.seconds(MEGA, nodes=2, scope="nodes") < large.seconds(MEGA, nodes=2, scope="nodes")
    assert [duration(each) for each in (42.0, 200.0, 9000.0)] == [
        "about 40 seconds",
        "about 4 minutes",
        "about 2.5 hours",
    ]


def test_nvlink_joins_nodes_of_one_domain_alone() -> None:
    assert scope_of(A4X, nodes=18) == "nvlink"
    assert scope_of(A4X, nodes=19) == scope_of(A4X, nodes=2, one_clique=False) == scope_of(MEGA, nodes=2) == "nodes"


def test_a_baseline_keeps_its_oldest_runs_and_its_newest() -> None:
    runs = [Run(line=number) for number in range(30)]
    assert [each.line for each in thinned(runs)] == [*range(5), *range(15, 30)]
    assert thinned(runs[:20]) == runs[:20]
