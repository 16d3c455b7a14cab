"""What is looked at on a live cluster, and what is said about it."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from interlace.fabric.family import IDS, find
from interlace.manifests.status import NRI, Check, Seen, checks, selector

MEGA = find("a3-mega")
PLUGIN = MEGA.software("tcpxo-1.0.15").plugin


def node(name: str, *, gpus: str = "8", networks: int = 8, ready: str = "True", **labels: str) -> dict[str, Any]:
    allocatable = {f"networking.gke.io.networks/vpc{index + 1}.IP": "1" for index in range(networks)}
    return {
        "metadata": {"name": name, "labels": {key.replace("_", "-"): value for key, value in labels.items()}},
        "status": {
            "conditions": [{"type": "Ready", "status": ready}],
            "allocatable": {"nvidia.com/gpu": gpus, **allocatable},
        },
    }


def pod(on: str, *, ready: bool = True, image: str = PLUGIN, component: str = "", **status: Any) -> dict[str, Any]:
    return {
        "metadata": {"name": f"pod-{on}", "labels": {"app.kubernetes.io/component": component}},
        "spec": {"nodeName": on, "initContainers": [{"image": image}], "volumes": []},
        "status": {"conditions": [{"type": "Ready", "status": "True" if ready else "False"}], **status},
    }


def network(name: str, *, ready: str = "True", reason: str = "") -> dict[str, Any]:
    condition = {"type": "Ready", "status": ready} | ({"reason": reason} if reason else {})
    return {"metadata": {"name": name}, "status": {"conditions": [condition]}}


ENDED = {"terminated": {"exitCode": 1}}
NETWORKS = [network(f"vpc{index}") for index in range(1, 9)]
GOOD = Seen(
    nodes=[node("a"), node("b")],
    installers=[pod("a"), pod("b")],
    injectors=[pod("a"), pod("b")],
    components=[],
    networks=NETWORKS,
    parameters=NETWORKS,
)


def found(seen: Seen, name: str) -> Check:
    (check,) = [each for each in checks(MEGA, seen) if each.name == name]
    return check


def changed(**fields: Any) -> Seen:
    return msgspec.structs.replace(GOOD, **fields)


def test_a_cluster_with_everything_is_good() -> None:
    all_of_it = checks(MEGA, GOOD)
    assert [check.name for check in all_of_it] == [
        "nodes",
        "gpus",
        "networks",
        "parameters",
        "nics",
        "installer",
        "injector",
    ]
    assert {check.state for check in all_of_it} == {"ok"}
    assert all(check.have == check.want and not check.remedy for check in all_of_it)
    assert found(GOOD, "installer").says == "Ready on each node, tcpxo-1.0.15"


@pytest.mark.parametrize(
    ("seen", "name", "have", "want", "says"),
    [
        (changed(nodes=[]), "nodes", 0, 1, "no node with a3-megagpu-8g"),
        (changed(nodes=[node("a"), node("b", ready="Unknown")]), "nodes", 1, 2, "b not Ready"),
        (changed(nodes=[node("a"), node("b", gpus="7")]), "gpus", 1, 2, "b has 7 and 8 are expected"),
        (changed(nodes=[node("a", networks=7)]), "nics", 0, 1, "a lacks vpc8"),
        (changed(nodes=[node("a", networks=2)]), "nics", 0, 1, "a lacks vpc3, vpc4, vpc5 and 3 more"),
        (changed(networks=NETWORKS[1:]), "networks", 7, 8, "vpc1 is missing"),
        (
            changed(parameters=[*NETWORKS[:7], network("vpc8", ready="False", reason="SubnetNotFound")]),
            "parameters",
            7,
            8,
            "vpc8 is not Ready (SubnetNotFound)",
        ),
        (changed(installers=[pod("a")]), "installer", 1, 2, "b has none"),
        (changed(installers=[]), "installer", 0, 2, "a has none, b has none"),
        (changed(injectors=[pod("b")]), "injector", 1, 2, "a has none"),
        (
            changed(
                installers=[
                    pod("a"),
                    pod(
                        "b",
                        ready=False,
                        initContainerStatuses=[
                            {"name": "pre", "state": {"waiting": {"reason": "ImagePullBackOff"}}},
                            {"name": "nccl", "state": {"waiting": {"reason": "PodInitializing"}}},
                        ],
                    ),
                ]
            ),
            "installer",
            1,
            2,
            "b: pre waits: ImagePullBackOff",
        ),
        (
            changed(
                installers=[
                    pod(
                        "a",
                        ready=False,
                        initContainerStatuses=[{"name": "pre", "state": {"terminated": {"exitCode": 1}}}],
                    ),
                    pod("b", ready=False, initContainerStatuses=[{"name": "nccl", "state": {"running": {}}}]),
                ]
            ),
            "installer",
            0,
            2,
            "a: pre ended with 1, b: nccl runs",
        ),
        (changed(injectors=[pod("a"), pod("b", ready=False, phase="Pending")]), "injector", 1, 2, "b: pending"),
    ],
)
def test_what_is_not_as_it_should_be_is_named_with_a_remedy(
    seen: Seen, name: str, have: int, want: int, says: str
) -> None:
    check = found(seen, name)
    assert (check.state, check.have, check.want, check.says) == ("bad", have, want, says)
    assert check.remedy


def test_nodes_of_gke_are_judged_by_their_version() -> None:
    old, new = node("a"), node("b")
    old["status"]["nodeInfo"] = {"kubeletVersion": "v1.32.2-gke.1489000"}
    new["status"]["nodeInfo"] = {"kubeletVersion": "v1.33.5-gke.1308000"}
    check = found(changed(nodes=[old, new]), "version")
    assert (check.state, check.have, check.want) == ("bad", 1, 2)
    assert check.says.startswith("a: a3-mega needs 1.32.2-gke.1489001 or newer on GKE 1.32")
    assert found(changed(nodes=[new, node("c")]), "version").says == "new enough"


def test_nodes_with_different_releases_are_not_ready_for_a_job() -> None:
    older = MEGA.software("tcpxo-1.0.14").plugin
    check = found(changed(installers=[pod("a"), pod("b", image=older)]), "installer")
    assert (check.state, check.says) == ("bad", "nodes have different releases: tcpxo-1.0.14, tcpxo-1.0.15")


def test_a_release_that_is_not_in_the_table_is_told_by_its_image() -> None:
    image = "mirror.example.com/nccl-plugin:v9"
    check = found(changed(nodes=[node("a")], installers=[pod("a", image=image)]), "installer")
    assert (check.state, check.says) == ("ok", f"Ready on each node, {image}")


def test_a_pod_that_is_being_replaced_does_not_hide_the_ready_one() -> None:
    leaving = pod("a", ready=False)
    for pods in ([leaving, pod("a"), pod("b")], [pod("a"), pod("b"), leaving]):
        assert found(changed(installers=pods), "installer").state == "ok"


def test_our_agent_counts_as_injector_where_it_has_the_socket() -> None:
    agents = [pod("a", component="agent"), pod("b", component="agent")]
    assert found(changed(injectors=[], components=agents), "injector").state == "bad"
    for agent in agents:
        agent["spec"]["volumes"] = [{"name": "nri", "hostPath": {"path": NRI}}, {"name": "x", "emptyDir": {}}]
    assert found(changed(injectors=[], components=agents), "injector").state == "ok"


def test_gpus_that_are_given_by_claim_are_not_counted() -> None:
    claimed = node("a", gpus="0")
    claimed["metadata"]["labels"]["gke-no-default-nvidia-gpu-device-plugin"] = "true"
    check = found(changed(nodes=[claimed]), "gpus")
    assert (check.state, check.says) == ("ok", "1 nodes give GPUs by claim, the others 8 each")


def test_networks_may_have_other_names() -> None:
    renamed = [network("rail1"), *NETWORKS[1:]]
    seen = changed(networks=renamed, parameters=renamed)
    names = {"vpc1": "rail1"}
    states = {check.name: check.state for check in checks(MEGA, seen, names=names)}
    assert (states["networks"], states["parameters"], states["nics"]) == ("ok", "ok", "bad")


def test_what_may_not_be_read_is_unknown_and_never_good() -> None:
    blind = Seen(nodes=None, installers=None, injectors=None, components=None)
    for check in checks(MEGA, blind):
        assert (check.state, check.want) == ("unknown", 0)
        assert check.says.endswith("cannot be read")
    for check in checks(find("a4x"), blind):
        assert check.state == "unknown"


@pytest.mark.parametrize("id_", IDS)
def test_every_family_has_its_checks(id_: str) -> None:
    family = find(id_)
    empty = Seen(nodes=[], installers=[], injectors=[], components=[], networks=[], parameters=[])
    names = {check.name for check in checks(family, empty)}
    assert ("networks" in names) == bool(family.networks)
    assert ("installer" in names) == bool(family.installer)
    assert ("injector" in names) == (family.pod.sidecar is not None)
    assert ("imex-host" in names) == family.node.mnnvl
    if family.node.gke:
        assert selector(family) == f"node.kubernetes.io/instance-type in ({family.machines[0]})"


def test_nvlink_needs_our_agent_and_imex_host_on_each_node_and_a_controller() -> None:
    family = find("gb200-nvl72")
    nodes = [node("a", gpus="4"), node("b", gpus="4")]
    ours = [pod(on, component=part) for on in ("a", "b") for part in ("agent", "imex-host")]
    seen = Seen(nodes=nodes, installers=[], injectors=[], components=[*ours, pod("c", component="controller")])
    assert {check.name: check.state for check in checks(family, seen)} == {
        "nodes": "ok",
        "gpus": "ok",
        "agent": "ok",
        "imex-host": "ok",
        "controller": "ok",
    }
    seen = msgspec.structs.replace(seen, components=ours[:-1])
    states = {check.name: (check.state, check.says) for check in checks(family, seen)}
    assert states["imex-host"] == ("bad", "b has none")
    assert states["controller"] == ("bad", "none is Ready")
