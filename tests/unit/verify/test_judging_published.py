"""Bands and shapes against runs that were published, good ones and bad ones.

Each is busbw in GB/s by size in MiB, as documentation, benchmarks and issues of their owners give it; the times are
computed from it.
"""

from __future__ import annotations

import pytest

from tests.unit.verify.scenes import FACTORS, MIB, judged, table

H100, H200, B200, GB200 = "NVIDIA H100 80GB HBM3", "NVIDIA H200", "NVIDIA B200", "NVIDIA GB200"


def published(collective: str, points: dict[int, float], *, ranks: int, nodes: int, device: str) -> list[str]:
    """A table with these points alone."""
    factor = FACTORS[collective](ranks)

    def time_us(size: int) -> float:
        nearest = min(points, key=lambda mib: abs(mib * MIB - size))
        return size * factor / points[nearest] / 1e3

    sizes = tuple(mib * MIB for mib in points)
    return table(time_us, collective=collective, ranks=ranks, nodes=nodes, sizes=sizes, device=device)


@pytest.mark.parametrize(
    ("family", "collective", "points", "device", "verdict"),
    [
        ("a3-high", "all_gather", {1: 1.41, 64: 39.5, 512: 70.9}, H100, "pass"),
        ("a3-high", "all_gather", {1: 0.99, 64: 47.1, 512: 70.9}, H100, "pass"),
        ("a3-mega", "all_gather", {1: 7.34, 64: 121.5, 512: 174.8, 1024: 182.0, 8192: 188.7}, H100, "pass"),
        ("a3-mega", "all_gather", {512: 144, 1024: 166, 8192: 187}, H100, "pass"),
        ("a3-mega", "all_reduce", {16384: 340}, H100, "pass"),
        ("a3-mega", "all_reduce", {16384: 4}, H100, "fail"),
        ("a3-mega", "all_reduce", {64: 53, 512: 87, 1024: 87, 4096: 89}, H100, "fail"),
        ("a3-mega", "all_gather", {1: 0.21, 64: 11.3, 512: 56.3, 1024: 122.1}, H100, "fail"),
        ("a3-ultra", "all_gather", {1: 12.3, 64: 213.5, 512: 316.6, 1024: 324.1, 8192: 328.9}, H200, "pass"),
        ("a4", "all_gather", {1: 0.98, 64: 38.8, 512: 151, 1024: 248, 8192: 260}, B200, "degraded"),
    ],
)
def test_published_runs_over_two_nodes_are_judged_as_they_were(
    family: str, collective: str, points: dict[int, float], device: str, verdict: str
) -> None:
    output = published(collective, points, ranks=16, nodes=2, device=device)
    assert judged(output, family=family).verdict == verdict


@pytest.mark.parametrize(
    ("points", "verdict"),
    [
        ({512: 586, 1024: 681, 8192: 835}, "pass"),
        ({512: 586, 1024: 681}, "cannot tell"),
        ({512: 394, 8192: 486}, "fail"),
    ],
)
def test_published_runs_in_a_rack_are_judged_at_8_gib(points: dict[int, float], verdict: str) -> None:
    output = published("all_reduce", points, ranks=72, nodes=18, device=GB200)
    assert judged(output, family="gb200-nvl72").verdict == verdict


def test_a_pair_with_one_gpu_a_node_has_no_band() -> None:
    output = published("all_reduce", {1: 10.6, 64: 29.8, 1024: 31.7, 8192: 31.9}, ranks=2, nodes=2, device=H200)
    assert judged(output, family="a3-ultra").verdict == "cannot tell"


def test_a_label_that_contradicts_the_numbers_is_not_believed() -> None:
    """One table was published under 144 ranks, and its bandwidths are those of 128."""
    output = published("all_reduce", {1024: 596, 8192: 793}, ranks=128, nodes=32, device=GB200)
    at = next(number for number, each in enumerate(output) if each.startswith("#  Rank 127"))
    more = [
        output[at].replace("Rank 127", f"Rank {rank}").replace("Pid    227", f"Pid  {rank}") for rank in range(128, 144)
    ]
    judgement = judged([*output[: at + 1], *more, *output[at + 1 :]], family="gb200-nvl72")
    assert judgement.verdict == "cannot tell"
    assert "contradict" in judgement.cause
