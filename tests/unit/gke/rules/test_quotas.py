"""Rows of Cloud Quotas: which one counts."""

from __future__ import annotations

import json
import math

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from interlace.gke.observed.quota import Quota, QuotaDetails, QuotaInfo, QuotaRow, Quotas
from interlace.gke.quotas import GPU_FAMILY, gpu_families, gpu_limit, gpu_rows, limit, metric, row
from tests.unit.gke.rules.bundles import DATA


def info(*rows: tuple[dict[str, str], int, tuple[str, ...]]) -> QuotaInfo:
    return QuotaInfo(
        quota_id=GPU_FAMILY,
        dimensions_infos=tuple(
            QuotaRow(dimensions=dimensions, details=QuotaDetails(value=value), applicable_locations=places)
            for dimensions, value, places in rows
        ),
    )


H100 = {"gpu_family": "NVIDIA_H100"}
HERE = {"region": "us-central1"}


def test_the_row_with_the_most_dimensions_that_all_fit_wins() -> None:
    rows = info((H100 | HERE, 16, ()), (H100, 8, ()), ({}, 1, ()), (H100 | {"region": "us-east4"}, 99, ()))
    found = gpu_limit([rows], "nvidia-h100-80gb", region="us-central1")
    assert found is not None
    assert (found.value, found.pointer) == (16, "/quotaInfos/0/dimensionsInfos/0/details/value")
    elsewhere = gpu_limit([rows], "nvidia-h100-80gb", region="europe-west4")
    assert elsewhere is not None
    assert elsewhere.value == 8


def test_a_row_that_says_where_it_applies_counts_there_alone() -> None:
    rows = info((H100, 8, ("us-east4",)), ({}, 1, ()))
    found = gpu_limit([rows], "nvidia-h100-80gb", region="us-central1")
    assert found is not None
    assert found.value == 1


def test_a_row_without_value_is_zero_and_minus_one_is_no_limit() -> None:
    document = json.loads((DATA / "server" / "cloudquotas-gpu-family.json").read_text())["body"]
    recorded = msgspec.convert(document, QuotaInfo, strict=False)
    here = gpu_limit([recorded], "nvidia-h100-80gb", region="us-central1")
    there = gpu_limit([recorded], "nvidia-h100-80gb", region="us-east4")
    assert here is not None
    assert there is not None
    assert (here.value, there.value) == (16, 0)
    endless = gpu_limit([info((H100, -1, ()))], "nvidia-h100-80gb", region="us-central1")
    assert endless is not None
    assert endless.value == math.inf
    assert gpu_limit([recorded], "nvidia-h100-80gb", region="asia-southeast1") is None
    assert gpu_rows([recorded]) == ("NVIDIA_H100 in us-central1", "NVIDIA_H100 in us-east4, europe-west4")


def test_a_mega_machine_counts_by_its_own_family_where_a_row_names_it_and_by_the_h100_else() -> None:
    both = info((H100 | HERE, 16, ()), ({"gpu_family": "NVIDIA_H100_MEGA"} | HERE, 64, ()))
    own = gpu_limit([both], "nvidia-h100-mega-80gb", region="us-central1")
    shared = gpu_limit([info((H100 | HERE, 16, ()))], "nvidia-h100-mega-80gb", region="us-central1")
    assert own is not None
    assert shared is not None
    assert (own.value, shared.value) == (64, 16)
    assert gpu_limit([both], "nvidia-b200", region="us-central1") is None


@pytest.mark.parametrize(
    ("accelerator", "families"),
    [
        ("nvidia-h100-80gb", ("NVIDIA_H100",)),
        ("nvidia-h100-mega-80gb", ("NVIDIA_H100_MEGA", "NVIDIA_H100")),
        ("nvidia-h200-141gb", ("NVIDIA_H200",)),
        ("nvidia-gb200", ("NVIDIA_GB200",)),
    ],
)
def test_families_of_an_accelerator_are_named_narrowest_first(accelerator: str, families: tuple[str, ...]) -> None:
    assert gpu_families(accelerator) == families


def test_a_quota_without_id_is_known_by_its_name() -> None:
    named = QuotaInfo(name=f"projects/1/locations/global/services/s/quotaInfos/{GPU_FAMILY}", dimensions_infos=())
    assert limit([named], GPU_FAMILY, dimensions={}, location="global") is None
    assert gpu_rows([named]) == ()


def test_a_metric_is_found_in_the_list_with_limit_and_usage() -> None:
    listed = Quotas(quotas=(Quota(metric="A", limit=1), Quota(metric="NETWORKS", limit=5, usage=3)))
    found = metric(listed, "NETWORKS", section="projectInfo")
    assert found is not None
    assert (found.pointer, found.free) == ("/projectInfo/quotas/1/limit", 2)
    assert metric(listed, "ROUTES", section="projectInfo") is None
    assert metric(None, "ROUTES", section="projectInfo") is None


KEYS = st.sampled_from(["region", "gpu_family", "zone"])
VALUES = st.sampled_from(["a", "b"])
DIMENSIONS = st.dictionaries(KEYS, VALUES, max_size=3)


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(DIMENSIONS, max_size=6), DIMENSIONS)
def test_the_chosen_row_fits_and_no_row_that_fits_is_more_specific(
    rows: list[dict[str, str]], asked: dict[str, str]
) -> None:
    quota = info(*((each, 1, ()) for each in rows))
    fitting = [each for each in rows if each.items() <= asked.items()]
    chosen = row(quota, dimensions=asked, location="a")
    if not fitting:
        assert chosen is None
    else:
        assert chosen is not None
        assert chosen[1].dimensions in fitting
        assert len(chosen[1].dimensions) == max(map(len, fitting))
