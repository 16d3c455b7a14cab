"""A site's own baseline in place of bands, and runs that disagree."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import pytest

from interlace.verify.baseline import decode, stand
from interlace.verify.run import Run, document
from tests.unit.verify.scenes import GIB, HEALTHY, MIB, SWEEP, judged, read, table, times

RATE_150 = times(rate=150, floor_us=130)


def baseline(time_us: Callable[[int], float] = RATE_150, *, repeats: int = 1, ranks: int = 16) -> list[Run]:
    return [run for _ in range(repeats) for run in read(table(time_us, ranks=ranks, nodes=ranks // 8))[0]]


def test_a_baseline_replaces_the_band() -> None:
    assert judged(table(RATE_150)).verdict == "degraded"
    judgement = judged(table(RATE_150), baseline=baseline())
    assert judgement.verdict == "pass"
    assert "where the baseline has" in judgement.cause


@pytest.mark.parametrize(("rate", "verdict"), [(150, "pass"), (125, "pass"), (100, "degraded"), (55, "fail")])
def test_a_run_is_graded_by_its_distance_from_a_noisy_baseline(rate: float, verdict: str) -> None:
    assert judged(table(times(rate=rate, floor_us=130)), baseline=baseline()).verdict == verdict


def test_runs_with_wrong_data_or_numbers_are_no_baseline() -> None:
    slow = times(rate=90, floor_us=130)
    corrupt = read(table(slow, wrong=3))[0]
    row = next(line for line in table(slow) if line.lstrip().startswith(f"{GIB} "))
    changed = read([line if line != row else row.replace(row.split()[6], "888.88", 1) for line in table(slow)])[0]
    for unsound in (corrupt, changed):
        judgement = judged(table(slow), baseline=unsound)
        assert judgement.verdict == "cannot tell"
        assert "no sound all_gather" in judgement.cause
        assert judged(table(slow), baseline=[*unsound, *baseline(HEALTHY)]).verdict == "degraded"


@pytest.mark.parametrize(("rate", "verdict"), [(147, "pass"), (138, "degraded"), (110, "fail")])
def test_a_baseline_that_repeats_well_is_stricter(rate: float, verdict: str) -> None:
    steady = baseline(repeats=4)
    assert judged(table(times(rate=rate, floor_us=130)), baseline=steady).verdict == verdict


def test_a_higher_start_cost_degrades_a_run_whose_large_sizes_are_as_before() -> None:
    sizes = (*SWEEP, 2 * GIB, 4 * GIB, 8 * GIB)
    before = read(table(RATE_150, sizes=sizes))[0]
    judgement = judged(table(times(rate=151, floor_us=400), sizes=sizes), baseline=before)
    assert judgement.verdict == "degraded"
    assert "up to 1 MiB" in judgement.cause


def test_each_size_that_changed_is_named_with_its_noise() -> None:
    judgement = judged(table(times(rate=100, floor_us=130)), baseline=baseline())
    named = [each.text for each in judgement.evidence if each.kind == "baseline"]
    assert any(
        "at 1 GiB, out-of-place: 147.2 to 98.73 GB/s (-32.9%, noise 10.0% assumed): slower" in text for text in named
    )
    assert not any(" at 1 MiB" in text for text in named)


def test_a_baseline_judges_what_has_no_band() -> None:
    alone = table(times(rate=440, floor_us=30, ranks=8), ranks=8, nodes=1)
    before = read(alone)[0]
    assert judged(alone, family=None, baseline=before).verdict == "pass"
    slow = table(times(rate=150, floor_us=30, ranks=8), ranks=8, nodes=1)
    assert judged(slow, family=None, baseline=before).verdict == "fail"


def test_a_baseline_of_other_runs_judges_nothing() -> None:
    judgement = judged(table(HEALTHY), baseline=baseline(ranks=32))
    assert judgement.verdict == "cannot tell"
    assert "the baseline has no sound all_gather over 16 ranks" in judgement.cause
    small = read(table(HEALTHY, sizes=(3 * MIB,)))[0]
    assert stand(small[0], baseline(), noise=0.1) is None


def test_unchecked_data_do_not_pass_by_a_baseline_either() -> None:
    assert judged(table(RATE_150, wrong="N/A"), baseline=baseline()).verdict == "cannot tell"


def test_a_document_of_parse_is_a_baseline_and_anything_else_is_none() -> None:
    before = baseline()
    found = decode(msgspec.json.encode({"runs": [document(run) for run in before]}))
    assert found is not None
    assert [row.size for row in found[0].rows] == [row.size for row in before[0].rows]
    assert judged(table(RATE_150), baseline=found).verdict == "pass"
    assert decode(b"# nccl-tests version") is None
    assert decode(b'{"runs": 3}') is None


def test_runs_of_one_thing_that_differ_by_more_than_noise_are_named() -> None:
    judgement = judged([*table(HEALTHY), *table(times(rate=90, floor_us=130))])
    assert judgement.verdict == "fail"
    assert "runs disagree: 2 runs of all_gather over 16 ranks reach" in judgement.cause
    assert len(judgement.disagreements) == 1
    assert [each.verdict for each in judgement.assessments] == ["pass", "fail"]
    assert judged([*table(HEALTHY), *table(times(rate=188, floor_us=130))]).disagreements == ()


def test_a_run_without_a_band_does_not_spoil_the_pass_of_another_and_is_named() -> None:
    judgement = judged([*table(HEALTHY), *table(times(rate=20, floor_us=90), collective="alltoall")])
    assert judgement.verdict == "pass"
    assert any(each.startswith("alltoall over 16 ranks, which was not judged") for each in judgement.not_tested)
