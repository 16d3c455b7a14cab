"""Requests that gcloud was recorded to send, sent to the simulated cloud: it takes them, or says why they cannot be."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.unit.sim.gke.cloud import ZONE, Clouded, cluster_body, pool_body
from tests.unit.sim.gke.judge import DATA

CASES = sorted(path.stem for path in (DATA / "golden").glob("*.json") if path.stem.split("-")[0] in {"net", "sub", "fw", "cl", "np", "gp", "rsv"})
REFUSED = {
    "cl-channel-regular-no-upgrade": "Auto_upgrade cannot be false when release_channel REGULAR is set.",
}
"""What the service is known to refuse."""


def bodies(name: str) -> list[tuple[str, str, Any]]:
    case = json.loads(Path(DATA / "golden" / f"{name}.json").read_text(encoding="utf-8"))
    return [
        (each["method"], each["path"], each["body"])
        for step in case.get("steps", [case])
        for each in step["requests"]
        if each["method"] != "GET" and not each["path"].endswith("/wait")
    ]


def furnished() -> Clouded:
    """A cloud in which everything exists that recorded requests refer to."""
    cloud = Clouded(projects=("example-project", "host-project", "owner-project"))
    cloud.world.catalog.gpu_family_quota = 10_000
    for table in (cloud.world.catalog.global_quotas, cloud.world.catalog.region_quotas):
        for metric in table:
            table[metric] = 1e6
    return cloud


@pytest.mark.parametrize("name", [name for name in CASES if name.split("-")[0] in {"net", "gp", "rsv"}])
def test_recorded_inserts_that_refer_to_nothing_are_taken(name: str) -> None:
    cloud = furnished()
    for method, path, body in bodies(name):
        assert cloud.do(method, path, body)["status"] == "DONE"
