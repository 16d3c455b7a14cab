"""What a simulated container sees of its Pod spec."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from interlace.api.meta import ObjectMeta
from interlace.sim.kubelet.cdi import ContainerEdits
from interlace.sim.kubelet.container import ContainerRecord, describe, translate
from interlace.sim.kubelet.podobject import BoundPod, BoundPodSpec


def _describe(container: dict[str, Any], root: Path, *, volumes: list[dict[str, Any]] | None = None) -> ContainerRecord:
    pod = BoundPod(
        metadata=ObjectMeta(name="p", namespace="n", uid="u"),
        spec=BoundPodSpec(node_name="tray-03", containers=[container], volumes=volumes or []),
    )
    return describe(
        pod,
        container,
        edits=ContainerEdits(("FROM_CDI=1",), ("/dev/channel0",)),
        root=root,
        pod_dir=root / "pod",
        pod_ip="127.20.1.3",
        host_ip="127.20.1.1",
        extra_env={},
    )


def test_the_downward_api_and_references_to_earlier_variables_are_filled_in(tmp_path: Path) -> None:
    record = _describe(
        {
            "name": "c",
            "command": ["interlace", "serve", "agent"],
            "args": ["--node-name=$(NODE)", "--raw=$(MISSING)"],
            "env": [
                {"name": "NODE", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}},
                {"name": "GREETING", "value": "on $(NODE)"},
            ],
        },
        tmp_path,
    )
    assert record.env == {"NODE": "tray-03", "GREETING": "on tray-03"}
    assert record.command[3:] == ("--node-name=tray-03", "--raw=$(MISSING)")
    assert record.component == "agent"


def test_only_a_container_that_names_a_claim_gets_its_devices(tmp_path: Path) -> None:
    without = _describe({"name": "a"}, tmp_path)
    with_claim = _describe({"name": "b", "resources": {"claims": [{"name": "cd"}]}}, tmp_path)
    assert (without.devices, without.env) == ((), {})
    assert (with_claim.devices, with_claim.env) == (("/dev/channel0",), {"FROM_CDI": "1"})


def test_a_program_that_is_not_ours_is_only_recorded(tmp_path: Path) -> None:
    assert _describe({"name": "c", "command": ["sleep", "inf"]}, tmp_path).component == ""


def test_mounts_of_the_machine_lie_below_its_root(tmp_path: Path) -> None:
    record = _describe(
        {"name": "c", "volumeMounts": [{"name": "cdi", "mountPath": "/var/run/cdi"}]},
        tmp_path,
        volumes=[{"name": "cdi", "hostPath": {"path": "/var/run/cdi"}}],
    )
    assert record.mounts == {"/var/run/cdi": tmp_path / "var/run/cdi"}
    assert (tmp_path / "var/run/cdi").is_dir()


@pytest.mark.parametrize(
    ("path", "expected"),
    [("/a/b/c", "/inner/c"), ("/a/b", "/inner"), ("/a/x", "/outer/x"), ("/ab", "/ab"), ("/other", "/other")],
)
def test_the_longest_mount_that_covers_a_path_decides(path: str, expected: str) -> None:
    assert translate(Path(path), {"/a": Path("/outer"), "/a/b": Path("/inner")}) == Path(expected)
