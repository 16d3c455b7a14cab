"""What a measurement has to reach: the published runs, good and bad, fall where they should."""

from __future__ import annotations

import pytest

from interlace.fabric.bands import LEAST_SIZE, MIB, band, floor, most_busbw, table
from interlace.fabric.family import families, find

GIB = 1024 * MIB


@pytest.mark.parametrize("row", table().bands, ids=lambda row: f"{row.family}-{row.scope}")
def test_a_band_is_of_a_family_and_its_bound_is_the_line_rate(row: object) -> None:
    from interlace.fabric.bands import Band

    assert isinstance(row, Band)
    family = find(row.family)
    assert family.id == row.family
    assert 0 < row.degraded_share < row.pass_share < 1
    assert row.from_bytes >= LEAST_SIZE
    if row.scope == "nodes":
        assert row.bound_gb_s == family.node.rate_gb_s
    else:
        assert family.node.mnnvl
        assert row.bound_gb_s == 900


def test_every_row_has_a_source_and_every_source_a_row() -> None:
    used = {row.source for row in table().bands} | {row.source for row in table().floors}
    assert used == set(table().sources)


def test_no_family_has_two_rows_for_one_question() -> None:
    keys = [(row.family, row.scope, name) for row in table().bands for name in row.collectives]
    assert len(keys) == len(set(keys))
    floors = [(row.family, row.scope) for row in table().floors]
    assert len(floors) == len(set(floors))


@pytest.mark.parametrize(
    ("family", "busbw", "size", "verdict"),
    [
        ("a3-mega", 122.14, GIB, "fail"),
        ("a3-mega", 182.0, GIB, "pass"),
        ("a3-mega", 188.7, 8 * GIB, "pass"),
        ("a3-high", 70.87, 512 * MIB, "pass"),
        ("a3-ultra", 328.9, 8 * GIB, "pass"),
        ("a4", 260.0, 8 * GIB, "degraded"),
    ],
)
def test_published_runs_fall_into_their_bands(family: str, busbw: float, size: int, verdict: str) -> None:
    row = band(family, scope="nodes", collective="all_gather")
    assert row is not None
    assert size >= row.from_bytes
    share = busbw / row.bound_gb_s
    found = "pass" if share >= row.pass_share else "degraded" if share >= row.degraded_share else "fail"
    assert found == verdict


def test_a_healthy_rack_passes() -> None:
    row = band("gb200-nvl72", scope="nvlink", collective="all_reduce")
    assert row is not None
    assert 835 / row.bound_gb_s >= row.pass_share > 700 / row.bound_gb_s >= row.degraded_share


def test_hardware_without_a_row_is_not_judged() -> None:
    assert band("gb200-nvl72", scope="nodes", collective="all_gather") is None
    assert band("a3-mega", scope="nodes", collective="alltoall") is None
    assert floor("a4", scope="nodes") is None


def test_the_floor_of_each_fabric_is_the_published_one() -> None:
    wanted = {("a3-mega", "nodes"): 0.3, ("a3-high", "nodes"): 1.2, ("a3-ultra", "nodes"): 0.2, ("a4x", "nvlink"): 0.1}
    for (family, scope), most in wanted.items():
        found = floor(family, scope=scope)  # type: ignore[arg-type]
        assert found is not None
        assert (found.bytes, found.most_ms) == (MIB, most)


def test_two_nodes_may_exceed_the_line_rate_and_many_nodes_may_not() -> None:
    assert most_busbw(200, nodes=2, ranks=16) == pytest.approx(375)
    assert most_busbw(200, nodes=1000, ranks=8000) == pytest.approx(200, rel=0.002)


def test_every_family_with_nics_of_gpus_on_gke_has_a_band() -> None:
    for family in families():
        if family.node.gke:
            assert band(family.id, scope="nodes", collective="all_gather") is not None
