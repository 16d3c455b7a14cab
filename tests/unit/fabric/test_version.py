"""Versions are compared by their numbers, and judged by the minor that they belong to."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from interlace.fabric.family import families, find
from interlace.fabric.minimum import judge
from interlace.fabric.version import (
    GkeVersion,
    Minor,
    VersionError,
    driver_version,
    gke_version,
    minor_version,
)

calm = settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])
"""Nothing here depends on how fast the machine is."""

VERSIONS = st.builds(
    GkeVersion, st.integers(0, 9), st.integers(0, 9999), st.integers(0, 999999), st.integers(0, 10**12 - 1)
)


@calm
@given(VERSIONS)
def test_what_is_written_is_read_back(version: GkeVersion) -> None:
    assert gke_version(str(version)) == version
    assert gke_version(f" v{version} ") == version
    assert minor_version(str(version.of)) == version.of


@calm
@given(VERSIONS, VERSIONS)
def test_the_order_is_that_of_the_numbers(one: GkeVersion, other: GkeVersion) -> None:
    assert (one < other) == (tuple(one) < tuple(other))
    assert (one == other) == (str(one) == str(other))


@calm
@given(st.text(max_size=40))
def test_any_text_is_a_version_or_an_error_that_quotes_it(text: str) -> None:
    for read in (gke_version, minor_version, driver_version):
        said = ""
        try:
            assert min(read(text)) >= 0
        except VersionError as error:
            said = str(error)
        assert not said or repr(text) in said


@pytest.mark.parametrize(
    "text",
    ["", "1.34", "1.34.5", "1.34.5-gke", "1.34.5-gke.", "1.34.5-gke.1.2", "latest", "1.34.5-gke.١", "-1.2.3-gke.4"],
)
def test_what_is_no_gke_version_is_refused(text: str) -> None:
    with pytest.raises(VersionError, match="is not a GKE version; write it like"):
        gke_version(text)


def test_numbers_are_not_compared_as_text() -> None:
    assert gke_version("1.9.10-gke.2") < gke_version("1.10.9-gke.1")
    assert gke_version("1.30.4-gke.1348000") > gke_version("1.30.4-gke.999999")


def test_a_driver_branch_is_the_start_of_its_branch() -> None:
    assert driver_version("580") <= driver_version("580.65.06") < driver_version("581")
    assert driver_version("580.9") < driver_version("580.65")


@pytest.mark.parametrize(
    ("family", "version", "ok", "known", "says"),
    [
        ("a3-high", "1.34.5-gke.1153000", True, True, "is enough"),
        ("a3-high", "1.34.5-gke.1152999", False, True, "needs 1.34.5-gke.1153000 or newer on GKE 1.34"),
        ("a3-high", "1.33.0-gke.1", True, True, "any patch of 1.33"),
        ("a3-high", "1.26.9-gke.1", False, True, "its first minor is 1.27"),
        ("a3-high", "1.99.0-gke.1", True, False, "newer than the table of a3-high, which ends at 1.35"),
        ("a3-mega", "1.30.4-gke.1128999", False, True, "needs 1.30.4-gke.1129000"),
        ("a3-mega", "1.30.4-gke.1129000", True, True, "; 1.30.4-gke.1348000 or newer is recommended"),
        ("a3-mega", "1.30.4-gke.1348000", True, True, "is enough for a3-mega (1.30.4-gke.1129000)"),
        ("a3-mega", "2.0.0-gke.1", True, False, "newer than the table"),
        ("a4x", "1.31.9-gke.1", False, True, "its first minor is 1.32"),
        ("gb200-nvl72", "1.34.5-gke.1153000", False, True, "not offered on GKE"),
    ],
)
def test_a_version_is_judged_by_its_own_minor(family: str, version: str, ok: bool, known: bool, says: str) -> None:
    verdict = judge(find(family), gke_version(version))
    assert (verdict.ok, verdict.known) == (ok, known)
    assert says in verdict.why
    assert bool(verdict.remedy) == (not ok)


@calm
@given(st.sampled_from([f for f in families() if f.node.gke]), VERSIONS)
def test_a_newer_patch_is_never_worse(family: object, version: GkeVersion) -> None:
    from interlace.fabric.family import Family

    assert isinstance(family, Family)
    newer = version._replace(patch=version.patch + 1)
    assert judge(family, newer).ok >= judge(family, version).ok


def test_every_listed_minimum_is_enough_and_one_less_is_not() -> None:
    for family in families():
        for row in family.versions:
            if row.version:
                least = gke_version(row.version)
                assert judge(family, least).ok
                assert not judge(family, least._replace(gke=least.gke - 1)).ok
            if row.recommended:
                assert gke_version(row.recommended) > gke_version(row.version)


def test_a_minor_reads_as_people_write_it() -> None:
    assert str(Minor(1, 34)) == "1.34"
