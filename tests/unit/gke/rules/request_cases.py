"""Requests that break a rule: what gcloud sends without noticing that it is wrong."""

from __future__ import annotations

import json
from functools import cache
from typing import Any, Final

import msgspec

from interlace.gke.request import Request
from tests.unit.gke.rules.bundles import DATA

RULES: Final = ("cluster.channel-unset", "cluster.default-network")
"""Rules that judge requests alone."""

ACCEPTED: Final = {
    "mtu-out-of-range-accepted-by-parser": "network.mtu-range",
    "subnet-no-range": "subnet.range",
    "subnet-bad-cidr-accepted-by-parser": "subnet.range",
    "firewall-source-and-egress": "firewall.egress-source",
    "pool-autoscaling-without-max": "pool.autoscaling",
    "pool-min-above-max": "pool.autoscaling",
    "pool-bad-metadata-label": "pool.labels",
    "pool-bad-num-nodes": "pool.size",
}
"""Recorded commands that gcloud takes (exit status 0) although they are wrong, and the rule that finds it."""


@cache
def golden(name: str) -> tuple[Request, ...]:
    """The changing requests of a recorded case or sequence."""
    document: dict[str, Any] = json.loads((DATA / "golden" / f"{name}.json").read_text())
    steps = document.get("steps") or [document]
    return tuple(
        msgspec.convert(request, Request)
        for step in steps
        for request in step["requests"]
        if request["method"] != "GET" and not request["path"].endswith("/wait")
    )


def changed(requests: tuple[Request, ...], index: int, **members: Any) -> tuple[Request, ...]:
    """With members of a body replaced, None taking one away."""
    body = {**(requests[index].body or {}), **members}
    body = {key: value for key, value in body.items() if value is not None}
    return (*requests[:index], msgspec.structs.replace(requests[index], body=body), *requests[index + 1 :])
