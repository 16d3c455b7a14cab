"""Whatever a file says: once it is applied nothing is left to plan, and once it is destroyed nothing is left at all.

On the simulated cloud, in virtual time.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.unit.gke.engine.sky import PROJECT, Sky, apply_on, destroy_on, plan_on
from tests.unit.gke.spec.clusters import document, pool, text

pytestmark = pytest.mark.looptime

HELD = {"upgrades": {"hold": {"start": "2026-12-01T00:00:00Z"}}}
NODES = {
    "nodes": 1,
    "disk": {"type": "pd-ssd", "sizeGb": 200, "localSsds": 16},
    "labels": {"team": "ml"},
    "taints": [{"key": "dedicated", "value": "gpu", "effect": "NoExecute"}],
    "tags": ["gpu"],
    "scopes": ["cloud-platform"],
    "serviceAccount": f"nodes@{PROJECT}.iam.gserviceaccount.com",
    "maxPods": 32,
    "autoRepair": False,
    "surge": {"maxSurge": 0, "maxUnavailable": 1},
}


@pytest.mark.parametrize(
    ("family", "spec"),
    [
        ("a3-high", {**HELD, "pools": [pool(**NODES, placement={}, hostMaintenance="PERIODIC")]}),
        ("a3-high", {"upgrades": {"channel": "none"}, "pools": [pool(nodes=1, autoscaling={"min": 0, "max": 2})]}),
        ("a3-mega", {"controlPlane": {"privateNodes": True, "authorizedNetworks": ["203.0.113.0/24"]}}),
        ("a3-mega", {"network": {"prefixLength": 22, "avoid": ["10.0.0.0/9"]}, "workloadIdentity": True}),
        ("a3-ultra", {**HELD, "location": "us-central1", "nodeLocations": ["us-central1-a"]}),
        ("a4", {"location": "us-central1-b", "system": {"nodes": 2, "labels": {"a": "b"}, "taints": [{"key": "x"}]}}),
        ("a4x", {"pools": [pool(nodes=1, placement={"maxDistance": 2}, driver="disabled")]}),
    ],
)
async def test_what_was_applied_leaves_nothing_to_plan_and_destroyed_nothing_behind(
    family: str, spec: dict[str, Any], tmp_path: Path
) -> None:
    found = document(family, **{"project": PROJECT, "pools": [pool(nodes=1)], **spec})
    found["metadata"]["labels"] = {"team": "ml"}
    sky = Sky(text=text(found))
    before = sky.paths()
    run = await apply_on(sky, tmp_path)
    assert [str(each.reason) for each in run.endings.values() if each.reason] == []
    left = [step for step in (await plan_on(sky, tmp_path)).steps if step.action != "keep"]
    assert [(str(step.key), step.action, step.differences) for step in left] == []
    await destroy_on(sky, tmp_path)
    assert sky.paths() == before
