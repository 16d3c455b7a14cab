"""What boxes need of a machine, said in one line."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from testbed import box
from testbed.errors import BedError


def test_without_root_the_cause_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(BedError, match=r"^real nodes need root, .*; run as root$"):
        box.require_system()


def test_tools_that_are_missing_are_named_with_their_packages(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(
        BedError, match=r"^real nodes need unshare, nsenter, mount, umount, ip, not on PATH; .*iproute2"
    ):
        box.require_system()


def test_each_controller_of_version_1_is_a_hierarchy_and_links_count_once(tmp_path: Path) -> None:
    for name in ("cpu,cpuacct", "memory"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "cgroup.procs").touch()
    (tmp_path / "cpu").symlink_to("cpu,cpuacct")
    (tmp_path / "other").mkdir()
    assert box.hierarchies(tmp_path) == [tmp_path / "cpu,cpuacct", tmp_path / "memory"]


def test_version_2_is_one_hierarchy(tmp_path: Path) -> None:
    (tmp_path / "cgroup.controllers").touch()
    (tmp_path / "system.slice").mkdir()
    (tmp_path / "system.slice/cgroup.procs").touch()
    assert box.hierarchies(tmp_path) == [tmp_path]
