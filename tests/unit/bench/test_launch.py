"""Our components as processes, and the known driver's: what they are told."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from bench.domains.daemons import DaemonPods
from bench.domains.known import MissingProgramsError, cluster_objects, component, plugin_env
from bench.domains.launch import localize_env
from bench.domains.natives import fabric_env
from bench.domains.ours import parse_start
from interlace.api.meta import ObjectMeta
from interlace.imex.host import HostSettings
from interlace.manifests import manifests
from interlace.node.settings import AgentSettings
from interlace.sim.kubelet.cdi import ContainerEdits
from interlace.sim.kubelet.container import ContainerRecord, describe
from interlace.sim.kubelet.hardware import Tray
from interlace.sim.kubelet.podobject import BoundPod, BoundPodSpec

CLIQUE = "6f1d2c3b-4a59-4877-a6b5-c4d3e2f10918.1"


def _record(name: str, root: Path) -> ContainerRecord:
    """The container of one of our DaemonSets or Deployments, as a hollow node sees it."""
    (workload,) = [
        item
        for item in manifests()
        if item["kind"] in {"DaemonSet", "Deployment"} and item["metadata"]["name"] == f"interlace-{name}"
    ]
    spec: dict[str, Any] = workload["spec"]["template"]["spec"]
    pod = BoundPod(
        metadata=ObjectMeta(name=f"{name}-x", namespace="interlace-system", uid="u"),
        spec=BoundPodSpec(node_name="tray-00", containers=spec["containers"], volumes=spec.get("volumes", [])),
    )
    return describe(
        pod,
        spec["containers"][0],
        edits=ContainerEdits(),
        root=root,
        pod_dir=root / "pod",
        pod_ip="127.20.1.3",
        host_ip="127.20.1.1",
        extra_env={},
    )


def test_every_path_that_the_agent_uses_lies_on_its_own_machine(tmp_path: Path) -> None:
    settings = AgentSettings.parse([], localize_env(_record("agent", tmp_path), root=tmp_path))
    for field in ("cdi_root", "driver_root", "registrar_dir", "plugins_dir", "proc_devices", "imex_socket"):
        assert getattr(settings, field).is_relative_to(tmp_path), field


def test_agents_of_one_computer_listen_on_the_address_of_their_pod(tmp_path: Path) -> None:
    settings = AgentSettings.parse([], localize_env(_record("agent", tmp_path), root=tmp_path))
    assert (settings.http_host, settings.http_port) == ("127.20.1.3", 8080)


def test_every_path_that_the_imex_host_uses_lies_on_its_own_machine(tmp_path: Path) -> None:
    settings = HostSettings.parse([], localize_env(_record("imex-host", tmp_path), root=tmp_path))
    for field in ("socket", "run_dir", "driver_root", "hosts_file"):
        assert getattr(settings, field).is_relative_to(tmp_path), field
    assert settings.address == "127.20.1.3"


def test_the_controller_listens_on_the_address_of_its_pod(tmp_path: Path) -> None:
    env = localize_env(_record("controller", tmp_path), root=tmp_path)
    assert env["HTTP_ENDPOINT"] == "127.20.1.3:8080"


def test_the_nvml_stand_in_shows_the_trays_partition() -> None:
    assert fabric_env(CLIQUE, gpus=4) == {
        "STUB_GPUS": "4",
        "STUB_CLUSTER": "6f1d2c3b4a594877a6b5c4d3e2f10918",
        "STUB_CLIQUE": "1",
    }


def test_the_nvml_stand_in_shows_no_fabric_on_a_tray_without_one() -> None:
    assert fabric_env("", gpus=8) == {"STUB_GPUS": "8"}


def test_the_known_drivers_accounts_are_its_components() -> None:
    account = "system:serviceaccount:dra-driver:"
    assert component(account + "kubelet-plugin") == "plugin"
    assert component(account + "compute-domain-daemon-service-account") == "daemon"
    assert component("system:node:tray-00") == "kubelet"


def test_the_known_drivers_definitions_are_installed_before_anything_of_their_kind(tmp_path: Path) -> None:
    folder = tmp_path / "deployments/helm/chart/crds"
    folder.mkdir(parents=True)
    (folder / "a.yaml").write_text("kind: CustomResourceDefinition\n---\nkind: CustomResourceDefinition\n---\n")
    kinds = [item["kind"] for item in cluster_objects(tmp_path)]
    assert kinds[:3] == ["Namespace", "CustomResourceDefinition", "CustomResourceDefinition"]
    assert kinds.count("ServiceAccount") == 3


def test_a_source_tree_without_definitions_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(MissingProgramsError, match=str(tmp_path)):
        cluster_objects(tmp_path)


def test_the_known_drivers_plugin_uses_the_folders_of_its_node(tmp_path: Path) -> None:
    tray = Tray(name="tray-00", root=tmp_path / "tray-00", network="127.20.1", clique=CLIQUE)
    env = plugin_env(tray, driver_root=tmp_path / "driver", kubeconfig=tmp_path / "config")
    assert env["CDI_ROOT"] == str(tmp_path / "tray-00/var/run/cdi")
    assert env["NODE_NAME"] == "tray-00"
    assert env["STUB_CLIQUE"] == "1"


def test_only_the_known_drivers_own_program_is_looked_up_in_its_folder(tmp_path: Path) -> None:
    daemons = DaemonPods(
        nsbox=tmp_path / "nsbox", natives=tmp_path / "n", programs=tmp_path / "p", imex_start=0.05, names=["daemon"]
    )
    assert daemons.localize(["daemon", "run"]) == [str(tmp_path / "p/daemon"), "run"]
    assert daemons.localize(["sh", "-c", "daemon"]) == ["sh", "-c", "daemon"]
    assert daemons.environment({"PATH": "/bin", "A": "1"})["IMEX_FAKE_DELAY_MS"] == "50"


def test_the_start_of_imex_is_read_from_an_imex_hosts_metrics() -> None:
    text = "# HELP interlace_imex_start_seconds x\n# TYPE y gauge\ninterlace_imex_start_seconds 0.125\nother 1\n"
    assert parse_start(text) == 0.125
    assert not parse_start("other 1\n")
