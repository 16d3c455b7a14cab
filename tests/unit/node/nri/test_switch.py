"""NRI is switched on where it is off, and the runtime restarted only when told to."""

from __future__ import annotations

import socket
import sys
import tomllib
from pathlib import Path

import pytest

from interlace.node.errors import StateError
from interlace.node.nri.switch import switch_on


def marking(path: Path) -> list[str]:
    """A command that leaves a mark."""
    return [sys.executable, "-S", "-c", "import sys; open(sys.argv[1], 'a').write('x')", str(path)]


async def test_the_drop_in_is_written_once_and_the_runtime_restarted_once(tmp_path: Path) -> None:
    target, mark = tmp_path / "conf.d" / "nri.toml", tmp_path / "restarted"
    assert await switch_on(target, socket=tmp_path / "nri.sock", restart=marking(mark))
    assert not await switch_on(target, socket=tmp_path / "nri.sock", restart=marking(mark))
    assert mark.read_text() == "x"
    written = tomllib.loads(target.read_text())
    plugin = written["plugins"]["io.containerd.nri.v1.nri"]
    assert plugin == {"disable": False, "socket_path": str(tmp_path / "nri.sock")}


async def test_nobody_restarts_the_runtime_without_being_told(tmp_path: Path) -> None:
    assert await switch_on(tmp_path / "nri.toml", socket=tmp_path / "nri.sock", restart=())


async def test_where_nri_is_on_nothing_is_written(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(tmp_path / "nri.sock"))
        assert not await switch_on(tmp_path / "nri.toml", socket=tmp_path / "nri.sock", restart=["false"])
    assert not (tmp_path / "nri.toml").exists()


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ([sys.executable, "-S", "-c", "print('no such unit'); raise SystemExit(5)"], "ended with 5: no such unit"),
        (["/nothing/here"], "cannot be started: No such file or directory"),
    ],
)
async def test_a_restart_that_fails_is_said_with_what_it_printed(tmp_path: Path, command: list[str], said: str) -> None:
    with pytest.raises(StateError, match=said):
        await switch_on(tmp_path / "nri.toml", socket=tmp_path / "nri.sock", restart=command)


async def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StateError, match=r"file/nri.toml cannot be written: .*mount containerd's folder there"):
        await switch_on(tmp_path / "file" / "nri.toml", socket=tmp_path / "nri.sock", restart=())
