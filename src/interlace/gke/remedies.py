"""Errors of the Google APIs as people meet them: what stands behind them and what to do.

Invariant: one table, first match wins; what is not in it keeps Google's own words alone.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple


class _Known(NamedTuple):
    pattern: re.Pattern[str]
    """Searched in ``STATUS REASON: MESSAGE``."""
    cause: str
    remedy: str


def _known(pattern: str, cause: str, remedy: str) -> _Known:
    return _Known(re.compile(pattern, re.IGNORECASE), cause, remedy)


_TABLE: Final = (
    _known(
        r"GCE_STOCKOUT|ZONE_RESOURCE_POOL_EXHAUSTED|does not have enough resources available",
        "The zone has no free machines of this type; the node pool stays and GKE keeps trying",
        "Wait and run the same command again, or set the pool's nodes to 0, take another zone, or use a reservation",
    ),
    _known(
        r"quota '?NETWORKS|NETWORKS-per-project",
        "The project may not have this many VPC networks; each GPU NIC needs one",
        "Delete networks that nobody uses or have NETWORKS-per-project raised, then run the same command again",
    ),
    _known(
        r"GPUS?[-_]PER[-_]GPU[-_]FAMILY|gpus_per_gpu_family|GPUS[-_]ALL[-_]REGIONS",
        "The project may not have this many GPUs",
        "Have the GPU quota raised or use a reservation, then run the same command again",
    ),
    _known(
        r"QUOTA_?EXCEEDED|quotaExceeded|insufficient regional quota|quota '[^']*' exceeded|GCE_QUOTA_EXCEEDED",
        "A quota of the project is used up",
        "`interlace gke check` shows quotas and usage; have it raised, then run the same command again",
    ),
    _known(
        r"SERVICE_DISABLED|accessNotConfigured",
        "The API is not enabled in this project",
        "Enable it: gcloud services enable compute.googleapis.com container.googleapis.com",
    ),
    _known(
        r"fingerprint|resourceVersion",
        "Somebody else changed it in the meantime",
        "Run the same command again: it looks first",
    ),
    _known(
        r"conditionNotMet|CONDITION_NOT_MET|constraint constraints/|\b412 ",
        "A policy of the organization forbids it",
        "Ask who administers the organization for an exception, or change what the policy names",
    ),
    _known(
        r"resourceInUseByAnotherResource|RESOURCE_IN_USE_BY_ANOTHER_RESOURCE|already being used by",
        "Something that is not managed here still uses it",
        "Take away what the message names, then run the same command again",
    ),
    _known(
        r"CLUSTER_ALREADY_HAS_OPERATION|incompatible operation",
        "The cluster is at work on something else",
        "Wait until that has ended, then run the same command again",
    ),
    _known(
        r"concurrent operations quota|rateLimitExceeded|\b429 ",
        "Too many requests at once",
        "Run the same command again in a while, with a smaller --parallel",
    ),
    _known(
        r"auto_?upgrade cannot be false",
        "A cluster in a release channel upgrades its nodes",
        "Take a maintenance exclusion instead of switching upgrades off, or leave the channel",
    ),
    _known(
        r"no network named \"?default|network \"?default\"? (was )?not found",
        "The project has no network called default",
        "Name a network and a subnetwork for the cluster",
    ),
    _known(
        r"\b403 (PERMISSION_DENIED|forbidden)|permission",
        "The account in use lacks a permission",
        "Grant the role that holds it; `interlace gke check` lists what is needed",
    ),
    _known(
        r"\b401 ",
        "Google does not take the credentials",
        "Log in again: gcloud auth application-default login",
    ),
    _known(
        r"\b409 |alreadyExists|ALREADY_EXISTS",
        "Something of this name exists",
        "`interlace gke plan` shows what it is; `interlace gke adopt` takes it over",
    ),
    _known(r"\b404 |notFound|NOT_FOUND", "It does not exist, or the account may not see it", ""),
    _known(r"\b5\d\d ", "The API is in trouble", "Run the same command again in a while"),
)


def advice(reason: str, message: str, *, status: int = 0) -> tuple[str, str]:
    """Cause and remedy of an error; both empty where nothing is known about it."""
    text = f"{status} {reason}: {message}"
    for known in _TABLE:
        if known.pattern.search(text):
            return known.cause, known.remedy
    return "", ""
