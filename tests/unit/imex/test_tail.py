from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlace.imex import tail as tail_module
from interlace.imex.reasons import Reason
from interlace.imex.tail import LONGEST_LINE, Tail
from tests.unit.imex.support import short_folder


def append(path: Path, data: bytes) -> None:
    with path.open("ab") as file:
        file.write(data)


@given(st.lists(st.binary(max_size=30), max_size=12))
def test_every_line_is_passed_on_once_however_it_was_written(parts: list[bytes]) -> None:
    with short_folder() as folder:
        path, heard = folder / "log", list[str]()
        tail = Tail(path, sink=heard.append)
        for part in parts:
            append(path, part)
            tail.read()
        tail.finish()
        lines = b"".join(parts).split(b"\n")
        assert heard == [text for line in lines if (text := line.decode("utf-8", "replace").rstrip())]


def test_an_adopted_log_is_followed_from_its_end(tmp_path: Path) -> None:
    append(tmp_path / "log", b"old\n")
    heard: list[str] = []
    tail = Tail(tmp_path / "log", sink=heard.append, from_end=True)
    append(tmp_path / "log", b"new\n")
    tail.finish()
    assert heard == ["new"]


def test_a_log_that_has_grown_too_large_is_emptied_and_followed_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tail_module, "LARGEST", 100)
    heard: list[str] = []
    tail = Tail(tmp_path / "log", sink=heard.append)
    for number in range(30):
        append(tmp_path / "log", f"line {number}\n".encode())
        tail.read()
    tail.finish()
    assert heard == [f"line {number}" for number in range(30)]
    assert (tmp_path / "log").stat().st_size <= 110


def test_a_line_without_end_is_cut_and_not_kept(tmp_path: Path) -> None:
    heard: list[str] = []
    append(tmp_path / "log", b"x" * 3_000_000 + b"\nend\n")
    Tail(tmp_path / "log", sink=heard.append).finish()
    assert heard[-1] == "end"
    assert max(map(len, heard)) <= LONGEST_LINE


def end_with(folder: Path, text: str) -> Tail:
    append(folder / "log", text.encode())
    tail = Tail(folder / "log", sink=list[str]().append)
    tail.finish()
    return tail


def test_a_taken_session_is_recognised_in_the_log(tmp_path: Path) -> None:
    fault = end_with(tmp_path, "starting\n[ERROR] NV_ERR_IN_USE Failed to allocate Imex session\nbye\n").cause(
        pid=7, how="status 1"
    )
    assert fault.reason is Reason.IMEX_IN_USE
    assert "NV_ERR_IN_USE" in fault.message


def test_a_crash_is_told_with_how_it_ended_and_the_last_line(tmp_path: Path) -> None:
    fault = end_with(tmp_path, "one\ntwo\n").cause(pid=7, how="SIGSEGV")
    assert fault.reason is Reason.CRASHED
    assert fault.message == "nvidia-imex (pid 7) ended by itself with SIGSEGV; its last line is: two"


def test_a_crash_without_a_log_says_so(tmp_path: Path) -> None:
    assert end_with(tmp_path, "").cause(pid=7, how="").message.endswith("ended by itself; it logged nothing")
