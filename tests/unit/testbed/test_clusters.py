"""Names and standing of clusters that outlive a command."""

import os
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from testbed import clusters
from testbed.errors import Refused
from testbed.process import Identity

ALL = ("etcd", "kube-apiserver", "kube-scheduler", "kube-controller-manager")


@pytest.mark.parametrize("name", ["a", "a1", "my-cluster", "x" * 40])
def test_short_names_are_taken(name: str) -> None:
    clusters.check_name(name)


@pytest.mark.parametrize("name", ["", "A", "-a", "a-", "a/b", "..", "a b", "x" * 41, "a\n"])
def test_names_that_could_leave_the_folder_or_confuse_are_refused(name: str) -> None:
    with pytest.raises(Refused, match=r"cluster name .* choose another name"):
        clusters.check_name(name)


@given(st.text(min_size=1))
def test_a_users_kubeconfig_never_leaves_the_folder(name: str) -> None:
    file = clusters.User(name=name).file
    assert Path(file).name == file
    assert file.endswith(".kubeconfig")


@pytest.mark.parametrize(
    ("env", "expected"),
    [
        ({"INTERLACE_TESTBED_STATE": "/s", "XDG_STATE_HOME": "/x"}, Path("/s")),
        ({"XDG_STATE_HOME": "/x"}, Path("/x/interlace/testbed")),
        ({}, Path.home() / ".local/state/interlace/testbed"),
    ],
)
def test_clusters_are_kept_in_the_users_state_folder(env: dict[str, str], expected: Path) -> None:
    assert clusters.state_root(env) == expected


def place(root: Path, name: str, *, running: tuple[str, ...], ready: bool = True) -> None:
    folder = root / name
    folder.mkdir(parents=True)
    identity = Identity.of(os.getpid())
    assert identity is not None
    for component in ALL:
        start = identity.start if component in running else identity.start - 1
        (folder / f"{component}.pid").write_text(f"{identity.pid} {start}\n")
    if ready:
        record = clusters.Record(
            name=name, url="https://127.0.0.1:1", version="v1", kubeconfig="k", components=ALL, seconds=1
        )
        (folder / "cluster.json").write_bytes(msgspec.json.encode(record))


def test_standing_tells_whole_broken_and_never_finished_clusters_apart(tmp_path: Path) -> None:
    place(tmp_path, "whole", running=ALL)
    place(tmp_path, "broken", running=ALL[1:])
    place(tmp_path, "stale", running=ALL[:1], ready=False)
    (tmp_path / "whole.lock").touch()
    found = {standing.name: standing for standing in clusters.status(tmp_path)}
    assert {name: standing.state for name, standing in found.items()} == {
        "whole": "up", "broken": "broken", "stale": "stale",
    }  # fmt: skip
    assert [part.name for part in found["broken"].components if part.pid is None] == ["etcd"]
    assert all(part.rss_mib > 0 for part in found["whole"].components)


def test_where_nothing_was_ever_started_there_are_no_clusters(tmp_path: Path) -> None:
    assert clusters.status(tmp_path / "nowhere") == []


async def test_ending_a_cluster_that_is_not_there_says_so(tmp_path: Path) -> None:
    assert await clusters.down(tmp_path, "nobody") is False


async def test_ending_a_cluster_touches_no_process_of_others(tmp_path: Path) -> None:
    place(tmp_path, "broken", running=())  # its pid files name this very process, with another start time
    assert await clusters.down(tmp_path, "broken") is True
    assert not (tmp_path / "broken").exists()
