"""Quotas of a project: the lists of Compute Engine, and the rows of Cloud Quotas."""

from __future__ import annotations

from interlace.gke.observed.api import Api


class Quota(Api, frozen=True, kw_only=True):
    metric: str = ""
    limit: float = 0
    usage: float = 0


class Quotas(Api, frozen=True, kw_only=True):
    """A project or a region of Compute Engine."""

    name: str = ""
    quotas: tuple[Quota, ...] = ()


class QuotaDetails(Api, frozen=True, kw_only=True):
    """``value`` 0 where the row has none; -1: unlimited."""

    value: int = 0


class QuotaRow(Api, frozen=True, kw_only=True):
    dimensions: dict[str, str] = {}
    details: QuotaDetails = QuotaDetails()
    applicable_locations: tuple[str, ...] = ()


class QuotaInfo(Api, frozen=True, kw_only=True):
    quota_id: str = ""
    name: str = ""
    metric: str = ""
    dimensions_infos: tuple[QuotaRow, ...] = ()
