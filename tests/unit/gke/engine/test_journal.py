"""The journal survives what a kill leaves of it, and says what an earlier run left open."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from interlace.gke.client import Client
from interlace.gke.journal import Entry, Journal, JournalError, adopted, unfinished
from interlace.gke.lock import Locked, hold
from interlace.gke.resource import Key
from tests.unit.gke.engine.sky import SMALL, Sky, apply_on

NETWORK = Key("network", "global", "a-net-1")
POOL = Key("nodePool", "us-central1-a/a", "gpu")

entries = st.lists(
    st.builds(
        Entry,
        event=st.sampled_from(["sent", "running", "done", "failed", "adopted", "released"]),
        key=st.sampled_from([NETWORK, POOL]),
        verb=st.sampled_from(["create", "delete", "size"]),
        request_id=st.text(max_size=8),
        operation=st.text(max_size=20),
        text=st.text(max_size=20),
    ),
    max_size=8,
)


@settings(max_examples=60, deadline=None)
@given(entries=entries, cut=st.integers(0, 10_000))
def test_a_journal_that_was_cut_anywhere_keeps_its_whole_lines(entries: list[Entry], cut: int) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with Journal(folder, sync=lambda _: None) as journal:
            for entry in entries:
                journal.append(entry)
        path = folder / "journal.jsonl"
        text = path.read_bytes()[: cut % (path.stat().st_size + 1)]
        path.write_bytes(text)
        whole = text.count(b"\n")
        with Journal(folder, sync=lambda _: None) as journal:
            assert journal.entries == entries[:whole]
            journal.append(Entry(event="sent", key=POOL, verb="create"))
        assert Journal(folder).peek() == [*entries[:whole], Entry(event="sent", key=POOL, verb="create")]


def test_a_line_that_is_no_entry_is_named_with_its_number(tmp_path: Path) -> None:
    (tmp_path / "journal.jsonl").write_bytes(
        b'{"event":"sent","key":{"kind":"network","place":"global","name":"n"}}\n{"event":"lost"}\n'
    )
    with pytest.raises(JournalError, match=r"journal\.jsonl:2: .*move the file away"), Journal(tmp_path):
        pass


def test_a_journal_that_cannot_be_opened_is_an_error_with_a_remedy(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(JournalError, match=r"--state"), Journal(tmp_path / "file"):
        pass


def test_what_was_sent_is_open_until_its_end_is_written() -> None:
    sent = Entry(event="sent", key=NETWORK, verb="create", request_id="r")
    running = Entry(event="running", key=NETWORK, verb="create", operation="compute global operation-1")
    assert unfinished([sent]) == {NETWORK: sent}
    assert unfinished([sent, running]) == {NETWORK: running}
    for event in ("done", "failed"):
        assert unfinished([sent, running, Entry(event=event, key=NETWORK, verb="create")]) == {}


def test_what_was_adopted_is_ours_until_it_is_deleted() -> None:
    taken = Entry(event="adopted", key=NETWORK)
    assert adopted([taken]) == {NETWORK}
    assert adopted([taken, Entry(event="done", key=NETWORK, verb="create")]) == {NETWORK}
    assert adopted([taken, Entry(event="done", key=NETWORK, verb="delete")]) == frozenset()
    assert adopted([taken, Entry(event="released", key=NETWORK)]) == frozenset()


@pytest.mark.looptime
async def test_a_mutation_leaves_only_when_its_line_is_on_the_disk(tmp_path: Path) -> None:
    sky = Sky(text=SMALL, seconds=0.1, narrow=True)
    on_disk: set[str] = set()
    unsafe: list[str] = []

    def sync(handle: int) -> None:
        os.fsync(handle)
        for entry in Journal(tmp_path).peek():
            if entry.event == "sent":
                on_disk.add(str(entry.key))

    def watch(number: int, moment: str) -> bool:
        made = {line.rpartition(" ")[2] for line in sky.mutations()}
        unsafe.extend(name for name in made if not any(key.endswith(f"/{name}") for key in on_disk))
        return False

    sky.crash = watch
    await apply_on(sky, tmp_path, sync=sync)
    assert len(sky.mutations()) == 7
    assert unsafe == []


@pytest.mark.looptime
async def test_a_full_disk_stops_sending(tmp_path: Path) -> None:
    sky = Sky(text=SMALL, seconds=0.1, narrow=True)
    lines = 0

    def full(_: int) -> None:
        nonlocal lines
        lines += 1
        if lines > 3:
            raise OSError(28, "No space left on device")

    with pytest.raises(ExceptionGroup) as caught:
        await apply_on(sky, tmp_path, sync=full)
    assert caught.group_contains(JournalError, match="No space left on device")
    assert len(sky.mutations()) <= 3
    run = await apply_on(sky, tmp_path)
    assert {ending.state for ending in run.endings.values()} == {"done"}


def test_the_lock_is_free_again_after_its_holder(tmp_path: Path) -> None:
    refused = pytest.raises(Locked, match=f"apply, process {os.getpid()}")
    with hold(tmp_path, verb="apply"), refused, hold(tmp_path, verb="destroy"):
        pass
    with hold(tmp_path, verb="destroy"):
        assert "destroy" in (tmp_path / "lock").read_text()


def test_a_client_is_not_simulated_before_it_was_answered() -> None:
    async def never(*_: object) -> object:
        raise AssertionError

    assert Client(never).simulated is None  # type: ignore[arg-type]


def test_a_disk_that_takes_half_a_line_leaves_whole_lines_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = os.write
    taken: list[int] = []

    def full(handle: int, line: bytes) -> int:
        if taken:
            raise OSError(28, "No space left on device")
        taken.append(write(handle, line[:10]))
        return 10

    first, second, third = (Entry(event="sent", key=NETWORK, verb=verb) for verb in ("create", "size", "delete"))
    with Journal(tmp_path) as journal:
        journal.append(first)
        monkeypatch.setattr(os, "write", full)
        with pytest.raises(JournalError, match="No space left on device"):
            journal.append(second)
        monkeypatch.setattr(os, "write", lambda handle, line: write(handle, line[:10]))
        journal.append(third)
    assert Journal(tmp_path).peek() == [first, third]


def test_a_journal_that_is_not_there_is_empty(tmp_path: Path) -> None:
    assert Journal(tmp_path / "none").peek() == []
    (tmp_path / "journal.jsonl").mkdir()
    with pytest.raises(JournalError, match="cannot be read"):
        Journal(tmp_path).peek()
