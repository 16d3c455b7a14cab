"""Agents inject devices where the family's daemon needs them, and nowhere else."""

from __future__ import annotations

from typing import Any

import pytest

from interlace.fabric.family import find
from interlace.fabric.vpcs import VpcNames
from interlace.manifests import manifests
from interlace.manifests.family import Plan, family_manifests
from interlace.node.settings import AgentSettings


def agent(objects: list[dict[str, Any]]) -> dict[str, Any]:
    """Pod spec of the agent."""
    (found,) = (one for one in objects if one["metadata"]["name"] == "interlace-agent" and one["kind"] == "DaemonSet")
    spec: dict[str, Any] = found["spec"]["template"]["spec"]
    return spec


def of_family(name: str) -> dict[str, Any]:
    family = find(name)
    plan = Plan(parts=("components",), vpcs=VpcNames(prefix="ml"))
    return agent(family_manifests(family, software=family.tuples[0], plan=plan, wire=lambda template: template))


def settings(spec: dict[str, Any]) -> AgentSettings:
    env = {each["name"]: each["value"] for each in spec["containers"][0]["env"] if "value" in each}
    return AgentSettings.parse(["--node-name=a"], env)


@pytest.mark.parametrize("name", ["a3-mega", "a3-high"])
def test_families_with_a_daemon_have_agents_that_inject(name: str) -> None:
    spec = of_family(name)
    found = settings(spec)
    assert found.nri
    mounts = {each["mountPath"]: each["name"] for each in spec["containers"][0]["volumeMounts"]}
    volumes = {each["name"]: each["hostPath"]["path"] for each in spec["volumes"]}
    assert volumes[mounts[str(found.nri_socket.parent)]] == "/var/run/nri"
    assert volumes[mounts[str(found.host_dev)]] == "/dev"


def test_others_have_agents_that_leave_the_runtime_alone() -> None:
    for spec in (of_family("a4x"), agent(manifests())):
        assert not settings(spec).nri
        assert not {"nri", "dev"} & {each["name"] for each in spec["volumes"]}
