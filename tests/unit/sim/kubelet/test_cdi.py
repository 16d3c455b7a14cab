"""What a hollow node's container gets from CDI specs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from interlace.sim.kubelet.cdi import ContainerEdits, UnresolvableDeviceError, resolve


def _write(folder: Path, name: str, devices: list[dict[str, Any]], **spec: Any) -> None:
    (folder / name).write_text(
        json.dumps({"cdiVersion": "0.6.0", "kind": "example.com/claim", "devices": devices} | spec)
    )


def test_edits_of_spec_and_device_are_merged_in_order(tmp_path: Path) -> None:
    _write(
        tmp_path,
        "a.json",
        [{"name": "x", "containerEdits": {"deviceNodes": [{"path": "/dev/x"}], "env": ["B=2"]}}],
        containerEdits={"env": ["A=1"], "mounts": [{"hostPath": "/h", "containerPath": "/c"}]},
    )
    edits = resolve(["example.com/claim=x"], root=tmp_path)
    assert edits == ContainerEdits(("A=1", "B=2"), ("/dev/x",), (("/h", "/c"),))


def test_an_id_that_no_spec_defines_is_an_error_that_names_it(tmp_path: Path) -> None:
    _write(tmp_path, "a.json", [{"name": "x", "containerEdits": {}}])
    with pytest.raises(UnresolvableDeviceError, match=r"example\.com/claim=y"):
        resolve(["example.com/claim=y"], root=tmp_path)


def test_a_temporary_file_of_a_driver_is_not_read(tmp_path: Path) -> None:
    (tmp_path / ".a.tmp").write_text("{half a spec")
    _write(tmp_path, "a.json", [{"name": "x", "containerEdits": {}}])
    assert resolve(["example.com/claim=x"], root=tmp_path) == ContainerEdits()


def test_a_damaged_spec_is_an_error_that_names_the_file(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text("{half a spec")
    with pytest.raises(UnresolvableDeviceError, match=r"a\.json"):
        resolve(["example.com/claim=x"], root=tmp_path)


def test_no_ids_need_no_specs(tmp_path: Path) -> None:
    assert resolve([], root=tmp_path / "missing") == ContainerEdits()
