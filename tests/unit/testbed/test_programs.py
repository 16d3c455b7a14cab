"""Keys and places of built programs."""

import shutil
from pathlib import Path

import pytest

from testbed import programs
from testbed.errors import BedError

GO = "go1.26.8 linux/amd64"
KUBERNETES = next(module for module in programs.MODULES if module.name == "kubernetes")


@pytest.fixture
def mods(tmp_path: Path) -> Path:
    return Path(shutil.copytree(programs.MODS, tmp_path / "mods"))


def test_the_same_pins_give_the_same_key(mods: Path) -> None:
    assert programs.key(KUBERNETES, go_version=GO) == programs.key(KUBERNETES, go_version=GO, mods=mods)


def test_a_key_tells_the_version_that_it_stands_for() -> None:
    assert programs.key(KUBERNETES, go_version=GO).startswith("kubernetes-v1.36.3-")


@pytest.mark.parametrize("name", ["go.mod", "go.sum"])
def test_one_byte_in_a_pin_changes_the_key(mods: Path, name: str) -> None:
    before = programs.key(KUBERNETES, go_version=GO, mods=mods)
    with (mods / "kubernetes" / name).open("ab") as file:
        file.write(b"\n")
    assert programs.key(KUBERNETES, go_version=GO, mods=mods) != before


def test_bytes_moved_from_one_pin_to_the_other_change_the_key(mods: Path) -> None:
    before = programs.key(KUBERNETES, go_version=GO, mods=mods)
    mod, checksums = mods / "kubernetes" / "go.mod", mods / "kubernetes" / "go.sum"
    whole = mod.read_bytes() + checksums.read_bytes()
    cut = len(mod.read_bytes()) + checksums.read_bytes().index(b"\n") + 1
    mod.write_bytes(whole[:cut])
    checksums.write_bytes(whole[cut:])
    assert programs.key(KUBERNETES, go_version=GO, mods=mods) != before


def test_another_go_or_other_flags_change_the_key() -> None:
    before = programs.key(KUBERNETES, go_version=GO)
    tagged = programs.Module(
        name="kubernetes", path=KUBERNETES.path, programs=KUBERNETES.programs, stamp=KUBERNETES.stamp, tags=("seccomp",)
    )
    assert programs.key(KUBERNETES, go_version="go1.27.0 linux/amd64") != before
    assert programs.key(tagged, go_version=GO) != before


def test_adding_a_program_keeps_the_ones_already_built() -> None:
    more = programs.Module(
        name="kubernetes", path=KUBERNETES.path, stamp=KUBERNETES.stamp, programs={"kubelet": "cmd/kubelet"}
    )
    assert programs.key(more, go_version=GO) == programs.key(KUBERNETES, go_version=GO)


def test_servers_are_stamped_with_a_version_that_kubectl_can_parse() -> None:
    flags = " ".join(programs.build_flags(KUBERNETES))
    assert "-X k8s.io/component-base/version.gitVersion=v1.36.3" in flags
    assert "-X k8s.io/component-base/version.gitMinor=36" in flags


def test_a_pin_that_is_not_there_is_named(mods: Path) -> None:
    (mods / "kubernetes" / "go.mod").write_text("module testbed.example/kubernetes\n")
    with pytest.raises(BedError, match=r"kubernetes/go\.mod pins no version of k8s\.io/kubernetes"):
        programs.pinned_version(KUBERNETES, mods=mods)


def test_a_missing_program_is_named_with_the_command_that_builds_it(tmp_path: Path) -> None:
    built = programs.Programs(cache=tmp_path, go_version=GO)
    for name in ("etcd", "kube-apiserver", "kube-scheduler", "kube-controller-manager"):
        built.path(name).parent.mkdir(exist_ok=True)
        built.path(name).touch(mode=0o755)
    assert built.missing(programs.CONTROL_PLANE) == ["kubectl"]
    with pytest.raises(BedError, match=r"kubectl not built in .*run `python -m testbed get`"):
        built.require(programs.CONTROL_PLANE)


def test_a_control_plane_alone_needs_nothing_that_only_nodes_need(tmp_path: Path) -> None:
    built = programs.Programs(cache=tmp_path, go_version=GO)
    for name in programs.CONTROL_PLANE:
        built.path(name).parent.mkdir(exist_ok=True)
        built.path(name).touch(mode=0o755)
    assert built.missing(programs.CONTROL_PLANE) == []
    assert built.missing() == list(programs.NODE)


def test_a_change_in_a_program_of_our_own_gives_it_another_folder(mods: Path) -> None:
    helper = next(module for module in programs.MODULES if module.name == "helper")
    before = programs.key(helper, go_version=GO, mods=mods)
    with (mods / "helper/main.go").open("a") as file:
        file.write("\n")
    assert programs.key(helper, go_version=GO, mods=mods) != before


def test_a_file_that_cannot_be_executed_is_missing(tmp_path: Path) -> None:
    built = programs.Programs(cache=tmp_path, go_version=GO)
    built.path("etcd").parent.mkdir()
    built.path("etcd").touch(mode=0o644)
    assert "etcd" in built.missing()


@pytest.mark.parametrize(
    ("env", "expected"),
    [
        ({"INTERLACE_TESTBED_CACHE": "/c", "XDG_CACHE_HOME": "/x"}, Path("/c")),
        ({"XDG_CACHE_HOME": "/x"}, Path("/x/interlace/testbed")),
        ({}, Path.home() / ".cache/interlace/testbed"),
    ],
)
def test_the_cache_lies_outside_the_checkout(env: dict[str, str], expected: Path) -> None:
    assert programs.cache_root(env) == expected
