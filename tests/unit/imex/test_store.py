from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlace.imex.process import Identity
from interlace.imex.store import Record, Running, load, replace_file, save
from tests.unit.imex.support import make_order, short_folder

ORDER = make_order(0, {0: "10.0.0.1"})
RECORD = Record(
    wanted=ORDER,
    running=Running(identity=Identity(pid=7, start_time=99, boot="b"), order=ORDER, reload_pending=True),
    restarts=2,
)


def test_what_was_saved_is_loaded(tmp_path: Path) -> None:
    save(tmp_path / "order.json", RECORD)
    assert load(tmp_path / "order.json") == RECORD
    assert [path.name for path in tmp_path.iterdir()] == ["order.json"]
    assert (tmp_path / "order.json").stat().st_mode & 0o777 == 0o600


def test_without_a_file_nothing_is_wanted(tmp_path: Path) -> None:
    assert load(tmp_path / "order.json") == Record()


@given(st.one_of(st.binary(max_size=60), st.integers(0, 200).map(lambda size: msgspec.json.encode(RECORD)[:size])))
def test_a_damaged_file_is_set_aside_and_nothing_is_wanted(data: bytes) -> None:
    with short_folder() as folder:
        path = folder / "order.json"
        path.write_bytes(data)
        assert load(path) == Record()
        assert path.exists() or (folder / "order.damaged").read_bytes() == data


def test_a_record_of_another_version_is_set_aside(tmp_path: Path) -> None:
    path = tmp_path / "order.json"
    path.write_bytes(msgspec.json.encode(msgspec.structs.replace(RECORD, version=2)))
    assert load(path) == Record()
    assert (tmp_path / "order.damaged").exists()


def test_a_file_that_cannot_be_replaced_leaves_nothing_behind(tmp_path: Path) -> None:
    (tmp_path / "order.json").mkdir()
    with pytest.raises(OSError, match="directory"):
        replace_file(tmp_path / "order.json", b"x")
    assert [path.name for path in tmp_path.iterdir()] == ["order.json"]


def test_an_empty_record_is_no_file(tmp_path: Path) -> None:
    path = tmp_path / "order.json"
    save(path, Record())
    save(path, RECORD)
    save(path, Record())
    assert list(tmp_path.iterdir()) == []
    assert load(path) == Record()
