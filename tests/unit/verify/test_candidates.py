"""Nodes that may be measured, and those that are refused by name."""

from __future__ import annotations

import pytest

from interlace.api.core import Node, NodeSpec, NodeStatus, PodCondition
from interlace.api.meta import ObjectMeta
from interlace.fabric.family import find
from interlace.verify.candidates import (
    GPU,
    MACHINE,
    Choice,
    GpuContainer,
    GpuPod,
    GpuPodSpec,
    Requirements,
    Survey,
    choose,
    cliques,
)

MEGA = find("a3-mega")


def node(name: str, *, machine: str = MEGA.machines[0], gpus: int = 8, clique: str = "", **spec: bool) -> Node:
    ready = "False" if spec.pop("broken", False) else "True"
    labels = {MACHINE: machine} | ({"nvidia.com/gpu.clique": clique} if clique else {})
    return Node(
        metadata=ObjectMeta(name=name, labels=labels),
        spec=NodeSpec(unschedulable=spec.get("cordoned", False)),
        status=NodeStatus(conditions=[PodCondition(type="Ready", status=ready)], allocatable={GPU: str(gpus)}),
    )


def user(name: str, *, on: str, gpus: int) -> GpuPod:
    limits: dict[str, str | int] = {GPU: str(gpus)} if gpus else {}
    return GpuPod(
        metadata=ObjectMeta(name=name, namespace="team"),
        spec=GpuPodSpec(node_name=on, containers=[GpuContainer(resources=Requirements(limits=limits))]),
    )


def survey(*nodes: Node, pods: tuple[GpuPod, ...] | None = ()) -> Survey:
    return Survey(nodes=nodes, pods=pods)


def test_free_nodes_of_the_family_are_taken_in_order() -> None:
    found = survey(node("c"), node("a"), node("b", machine="e2-standard-4", gpus=0))
    assert choose(found, family=MEGA, count=2) == Choice(nodes=("a", "c"))


@pytest.mark.parametrize(
    ("bad", "says"),
    [
        (node("x", cordoned=True), "node x is cordoned"),
        (node("x", broken=True), "node x is not Ready"),
        (node("x", gpus=7), "node x has 7 of 8 GPUs"),
        (node("x", machine="a2-highgpu-1g"), "node x is of type a2-highgpu-1g, and a3-mega is"),
    ],
)
def test_a_named_node_that_cannot_be_measured_is_refused_with_the_reason(bad: Node, says: str) -> None:
    found = choose(survey(bad, node("y")), family=MEGA, named=("x", "y"))
    assert len(found.refused) == 1
    assert says in found.refused[0]


def test_a_busy_node_is_refused_with_the_names_of_its_users() -> None:
    pods = (user("train-0", on="x", gpus=8), user("small", on="y", gpus=0))
    found = choose(survey(node("x"), node("y"), pods=pods), family=MEGA, named=("x", "y"))
    assert found.refused == ("node x is busy: 8 of its 8 GPUs are taken by team/train-0",)


def test_busy_nodes_are_passed_over_when_none_is_named() -> None:
    found = choose(survey(node("x"), node("y"), pods=(user("p", on="x", gpus=1),)), family=MEGA)
    assert found.nodes == ("y",)
    assert "node x is busy" in found.passed_over[0]


def test_too_few_free_nodes_are_refused_with_what_holds_the_others() -> None:
    found = choose(survey(node("x"), node("y", cordoned=True)), family=MEGA, count=2)
    assert found.refused == ("2 free nodes of a3-mega were asked for and there are 1 among 2",)
    assert found.passed_over == ("node y is cordoned; `kubectl uncordon y` if it may be used",)


def test_a_count_is_taken_from_one_clique_where_one_has_enough() -> None:
    a4x = find("a4x")
    nodes = [node(f"n{i}", machine=a4x.machines[0], gpus=4, clique="ab"[i % 2]) for i in range(4)]
    found = survey(*nodes)
    assert choose(found, family=a4x, count=2).nodes == ("n0", "n2")
    assert choose(found, family=a4x, count=3).nodes == ("n0", "n1", "n2")
    assert cliques(found, ["n0", "n1"]) == {"n0": "a", "n1": "b"}


def test_without_rights_the_scheduler_chooses_and_the_user_is_told() -> None:
    blind = Survey(nodes=None, pods=None)
    assert choose(blind, family=MEGA, named=("x",)) == Choice(nodes=("x",))
    assert choose(blind, family=MEGA, count=2) == Choice()
    assert "nodes may not be read" in blind.unknown
    assert "other namespaces" in survey(node("x"), pods=None).unknown
    assert survey(node("x")).unknown == ""
