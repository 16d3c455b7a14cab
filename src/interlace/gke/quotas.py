"""Which quota counts: rows of Cloud Quotas, and metrics of Compute Engine. Pure.

Cloud Quotas has one quota with many rows; a row names dimensions (region, GPU family) and holds where all of them fit.
The row with the most dimensions wins; a row without value means 0, and -1 means no limit. Invariant: nothing is
assumed of a row that is not there, and GPU families are looked up among the rows, since projects differ in how they
count machines with mega GPUs.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from interlace.gke.observed.quota import Quota, QuotaInfo, QuotaRow, Quotas

GPU_FAMILY: Final = "GPUS-PER-GPU-FAMILY-per-project-region"
GPUS_ALL_REGIONS: Final = "GPUS-ALL-REGIONS-per-project"
VM_FAMILY: Final = "CPUS-PER-VM-FAMILY-per-project-region"
READ: Final = (GPU_FAMILY, GPUS_ALL_REGIONS, VM_FAMILY)
"""The quotas of Compute Engine that are read from Cloud Quotas."""

_UNLIMITED: Final = -1
_MEMORY: Final = re.compile(r"-\d+gb\Z")


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """A limit, where it stands, and what it is of. ``usage`` None: not known; Cloud Quotas gives limits alone."""

    what: str
    pointer: str
    value: float
    usage: float | None = None

    @property
    def free(self) -> float:
        return self.value - (self.usage or 0)


def metric(quotas: Quotas | None, name: str, *, section: str) -> Limit | None:
    """A metric of a project or region of Compute Engine; None where the list does not have it."""
    for index, each in enumerate(quotas.quotas if quotas else ()):
        if each.metric == name:
            return _metric(each, f"/{section}/quotas/{index}/limit")
    return None


def _metric(quota: Quota, pointer: str) -> Limit:
    value = math.inf if quota.limit == _UNLIMITED else quota.limit
    return Limit(what=f"quota {quota.metric}", pointer=pointer, value=value, usage=quota.usage)


def find(infos: Iterable[QuotaInfo] | None, id: str) -> tuple[int, QuotaInfo] | None:
    """The quota of that id, with its index."""
    return next(
        ((index, each) for index, each in enumerate(infos or ()) if (each.quota_id or _last(each.name)) == id), None
    )


def row(info: QuotaInfo, *, dimensions: Mapping[str, str], location: str) -> tuple[int, QuotaRow] | None:
    """The row that counts for a place, with its index: of those whose dimensions all fit, the most specific one.

    ``location``: the region; a row that says where it applies counts there alone.
    """
    fitting = [
        (index, each)
        for index, each in enumerate(info.dimensions_infos)
        if all(dimensions.get(key) == value for key, value in each.dimensions.items())
        and (
            not each.applicable_locations
            or location in each.applicable_locations
            or "global" in each.applicable_locations
        )
    ]
    return max(fitting, key=lambda pair: len(pair[1].dimensions), default=None)


def limit(infos: Iterable[QuotaInfo] | None, id: str, *, dimensions: Mapping[str, str], location: str) -> Limit | None:
    """The limit that counts for a place; None where the quota was not read or has no row for it."""
    found = find(infos, id)
    chosen = row(found[1], dimensions=dimensions, location=location) if found else None
    if found is None or chosen is None:
        return None
    value = float(chosen[1].details.value)
    named = ", ".join(f"{key} {each}" for key, each in sorted(chosen[1].dimensions.items()))
    return Limit(
        what=f"quota {id}{f' for {named}' if named else ''}",
        pointer=f"/quotaInfos/{found[0]}/dimensionsInfos/{chosen[0]}/details/value",
        value=math.inf if value == _UNLIMITED else value,
    )


def gpu_families(accelerator: str) -> tuple[str, ...]:
    """Names under which Cloud Quotas may count an accelerator, the narrowest first.

    ``nvidia-h100-mega-80gb`` is NVIDIA_H100_MEGA in some projects and NVIDIA_H100 in others.
    """
    name = _MEMORY.sub("", accelerator).upper().replace("-", "_")
    parts = name.split("_")
    return tuple("_".join(parts[:count]) for count in range(len(parts), 1, -1))


def gpu_limit(infos: Iterable[QuotaInfo] | None, accelerator: str, *, region: str) -> Limit | None:
    """The limit for GPUs of an accelerator in a region: by the narrowest family that any row names."""
    listed = tuple(infos or ())
    found = find(listed, GPU_FAMILY)
    if found is None:
        return None
    named = {each.dimensions.get("gpu_family", "") for each in found[1].dimensions_infos}
    candidates = gpu_families(accelerator)
    for family in candidates:
        if family in named:
            return limit(listed, GPU_FAMILY, dimensions={"gpu_family": family, "region": region}, location=region)
    return limit(listed, GPU_FAMILY, dimensions={"region": region}, location=region)


def gpu_rows(infos: Iterable[QuotaInfo] | None) -> tuple[str, ...]:
    """GPU families and regions that the rows name, for people: ``NVIDIA_H100 in us-central1``."""
    found = find(infos, GPU_FAMILY)
    rows = found[1].dimensions_infos if found else ()
    return tuple(
        f"{each.dimensions.get('gpu_family', 'any GPU')} in "
        f"{each.dimensions.get('region') or ', '.join(each.applicable_locations) or 'any region'}"
        for each in rows
    )


def _last(name: str) -> str:
    return name.rpartition("/")[2]
