"""Clusters of every shape: what was applied leaves nothing to plan, and destroying leaves nothing of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.gke.engine.sky import PROJECT, Sky, apply_on, destroy_on, plan_on

pytestmark = pytest.mark.looptime

EXAMPLES = sorted((Path(__file__).parents[4] / "examples").glob("*/cluster.yaml"))
HOST = "example-host"


def cluster(family: str, *, spec: str = "", pool: str = "", location: str = "us-central1-a") -> str:
    return f"""\
apiVersion: interlace.dev/v1alpha1
kind: FabricCluster
metadata:
  name: shaped
  labels: {{team: ml}}
spec:
  project: {PROJECT}
  location: {location}
  family: {family}
{spec}  pools:
    - name: gpu-pool
      nodes: 1
{pool}"""


SHAPES = {
    "held": cluster(
        "a3-mega",
        spec="  upgrades: {channel: regular, hold: {start: 2026-12-01T00:00:00Z, end: 2027-02-01T00:00:00Z}}\n",
    ),
    "no channel": cluster("a3-high", spec="  version: 1.34.5-gke.1153000\n  upgrades: {channel: none, auto: false}\n"),
    "private": cluster(
        "a3-high",
        spec="  controlPlane: {privateNodes: true, range: 172.18.0.0/28, authorizedNetworks: [203.0.113.0/24]}\n",
    ),
    "placement": cluster("a3-mega", pool="      placement: {}\n"),
    "distance": cluster("a3-mega", pool="      placement: {maxDistance: 2}\n"),
    "host maintenance": cluster("a3-mega", pool="      hostMaintenance: PERIODIC\n"),
    "scaling": cluster("a3-high", pool="      autoscaling: {min: 0, max: 2}\n"),
    "dressed": cluster(
        "a3-high",
        pool="      labels: {team: ml}\n      tags: [gpu]\n      maxPods: 64\n      driver: default\n"
        "      taints: [{key: team, value: ml}]\n      disk: {type: pd-ssd, sizeGb: 200}\n"
        "      surge: {maxSurge: 0, maxUnavailable: 1}\n      scopes: [cloud-platform]\n",
    ),
    "regional": cluster("a3-high", location="us-central1", spec="  nodeLocations: [us-central1-a]\n"),
    "system": cluster("a3-high", spec="  system: {nodes: 2, machineType: e2-standard-4}\n"),
    "a3-ultra": cluster("a3-ultra", location="us-central1-b"),
    "a4": cluster("a4", location="us-central1-b"),
    "managed": cluster("a4", location="us-central1-b", spec="  network: {mode: managed}\n"),
    "shared VPC": cluster("a3-high", spec=f"  network: {{hostProject: {HOST}}}\n"),
}


async def _round(sky: Sky, folder: Path) -> None:
    before = sky.paths()
    run = await apply_on(sky, folder)
    assert {str(ending.reason) for ending in run.endings.values() if ending.reason} == set()
    plan = await plan_on(sky, folder)
    assert [(str(s.key), s.action, d.path, d.have, d.want) for s in plan.steps for d in s.differences] == []
    assert plan.empty
    endings = await destroy_on(sky, folder)
    assert {str(ending.reason) for ending in endings.values() if ending.reason} == set()
    assert sky.paths() == before


@pytest.mark.parametrize("name", SHAPES)
async def test_a_cluster_of_this_shape_is_made_kept_and_taken_away(tmp_path: Path, name: str) -> None:
    await _round(Sky(text=SHAPES[name], seconds=0.1, more_projects=(HOST,)), tmp_path)


OLD = "  version: 1.33.4-gke.1036000\n"
CHANGES = {
    "labels of the cluster": (cluster("a3-high"), cluster("a3-high").replace("team: ml", "team: hpc")),
    "hold": (cluster("a3-high"), cluster("a3-high", spec="  upgrades: {hold: {start: 2026-12-01T00:00:00Z}}\n")),
    "no hold": (cluster("a3-high", spec="  upgrades: {hold: {start: 2026-12-01T00:00:00Z}}\n"), cluster("a3-high")),
    "version": (
        cluster("a3-high", spec=OLD),
        cluster("a3-high", spec=OLD.replace("1.33.4-gke.1036000", "1.34.5-gke.1153000")),
    ),
    "authorized networks": (
        cluster("a3-high", spec="  controlPlane: {authorizedNetworks: [203.0.113.0/24]}\n"),
        cluster("a3-high", spec="  controlPlane: {authorizedNetworks: [203.0.113.0/24, 198.51.100.0/24]}\n"),
    ),
    "system nodes": (cluster("a3-high"), cluster("a3-high", spec="  system: {nodes: 2}\n")),
    "taints": (cluster("a3-high"), cluster("a3-high", pool="      taints: [{key: team, value: ml}]\n")),
    "scaling": (cluster("a3-high"), cluster("a3-high", pool="      autoscaling: {min: 0, max: 2}\n")),
    "no scaling": (cluster("a3-high", pool="      autoscaling: {min: 0, max: 2}\n"), cluster("a3-high")),
    "repair": (cluster("a3-high"), cluster("a3-high", pool="      autoRepair: false\n")),
    "surge": (cluster("a3-high"), cluster("a3-high", pool="      surge: {maxSurge: 0, maxUnavailable: 1}\n")),
    "disk": (cluster("a3-high"), cluster("a3-high", pool="      disk: {type: pd-ssd, sizeGb: 200}\n")),
}


@pytest.mark.parametrize("name", CHANGES)
async def test_a_changed_file_is_reached_in_place(tmp_path: Path, name: str) -> None:
    before, after = CHANGES[name]
    sky = Sky(text=before, seconds=0.1)
    await apply_on(sky, tmp_path)
    sky.read(after)
    plan = await plan_on(sky, tmp_path)
    assert {step.action for step in plan.steps} == {"keep", "update"}
    run = await apply_on(sky, tmp_path)
    assert {str(ending.reason) for ending in run.endings.values() if ending.reason} == set()
    again = await plan_on(sky, tmp_path)
    assert [(str(s.key), d.path, d.have, d.want) for s in again.steps for d in s.differences] == []


@pytest.mark.parametrize("file", EXAMPLES, ids=lambda file: file.parent.name)
async def test_the_examples_are_too(tmp_path: Path, file: Path) -> None:
    sky = Sky(text=file.read_text(encoding="utf-8"), seconds=0.1)
    plan = await plan_on(sky, tmp_path)
    assert {step.action for step in plan.steps} == {"create"}
