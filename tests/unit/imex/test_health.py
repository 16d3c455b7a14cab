from __future__ import annotations

import asyncio
import contextlib
import errno
import json
import os
import signal
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlace.imex.health import MISSES, Judge, NoAnswerError, ask, read_table, says_ready
from interlace.imex.process import Handle
from interlace.imex.reasons import ImexError, Reason
from tests.unit.imex.support import alive, until

ENV = {"PATH": os.environ["PATH"]}


def table(*broken: tuple[int, int], unavailable: frozenset[int] = frozenset(), count: int = 4) -> dict[str, Any]:
    """The form that the real program is reported to print."""

    def word(one: int, other: int) -> str:
        if one in unavailable:
            return "INVALID"
        return "DISCONNECTED" if (one, other) in broken or other in unavailable else "CONNECTED"

    return {
        "nodes": {
            str(one): {
                "status": "UNAVAILABLE" if one in unavailable else "READY",
                "host": f"10.0.0.{one}",
                "connections": {
                    str(other): {"host": f"10.0.0.{other}", "status": word(one, other), "changed": False}
                    for other in range(count)
                },
            }
            for one in range(count)
        },
        "timestamp": "9/4/2026 00:00:00.000",
        "status": "UP",
    }


def missing(table: object, *, present: set[int] | None = None, own: int = 0) -> set[int]:
    return read_table(json.dumps(table).encode(), own=own, present=present or {0, 1, 2, 3})


def test_a_whole_domain_has_no_missing_peer() -> None:
    assert missing(table()) == set()


def test_a_peer_counts_as_missing_when_either_direction_is_broken() -> None:
    assert missing(table((0, 1))) == {1}
    assert missing(table((2, 0))) == {2}


def test_a_pair_without_us_is_not_ours_to_report() -> None:
    assert missing(table((1, 2), (2, 1))) == set()


def test_only_present_indexes_count() -> None:
    whole = table(unavailable=frozenset({2, 3}))
    assert missing(whole, present={0, 1}) == set()
    assert missing(whole) == {2, 3}


def test_a_peer_whose_own_row_is_unknown_counts_by_our_row_alone() -> None:
    whole = table()
    whole["nodes"]["1"]["connections"]["0"]["status"] = "INVALID"
    del whole["nodes"]["2"]
    assert missing(whole) == set()


def test_words_before_and_after_the_object_do_not_matter() -> None:
    answer = b"WARNING: old config key\n" + json.dumps(table()).encode() + b"\ndone\n"
    assert read_table(answer, own=0, present={0, 1}) == set()


def test_letters_instead_of_words_are_understood() -> None:
    nodes = {str(i): {"connections": {str(j): "C" if j != 2 else "N" for j in range(3)}} for i in range(3)}
    assert missing({"nodes": nodes}, present={0, 1, 2}) == {2}


@pytest.mark.parametrize(
    "answer",
    [b"", b"READY\n", b"{", b"[]", b'{"nodes": []}', b'{"nodes": {"1": {}}}', b'{"nodes": {"0": 5}}', b"\xff{\xfe}"],
)
def test_an_answer_without_our_row_is_unknown(answer: bytes) -> None:
    with pytest.raises(ImexError) as caught:
        read_table(answer, own=0, present={0, 1})
    assert caught.value.reason is Reason.HEALTH_UNKNOWN


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["nodes", "0", "1", "connections", "status"]), inner, max_size=4)
    ),
    max_leaves=12,
)


@given(json_values)
def test_any_json_gives_present_peers_or_unknown(value: object) -> None:
    try:
        found = missing(value, present={0, 1})
    except ImexError:
        return
    assert found <= {1}


def test_ready_is_one_line_and_warnings_beside_it_do_not_matter() -> None:
    assert says_ready(b"READY\n")
    assert says_ready(b"warning: deprecated key\nREADY\n")
    assert not says_ready(b"NOT READY\n")
    assert not says_ready(b"WAITING_FOR_RECOVERY\n")
    assert not says_ready(b"")


def test_a_peer_is_disconnected_only_after_several_misses_in_a_row() -> None:
    judge, names = Judge(), ["a", "b", "c"]
    for _ in range(MISSES - 1):
        assert judge.judge({2}, names=names) is None
        assert judge.doubtful
    verdict = judge.judge({2}, names=names)
    assert verdict is not None
    assert (verdict.peers, verdict.disconnected) == ("Disconnected", (2,))
    healed = judge.judge(set(), names=names)
    assert healed is not None
    assert healed.peers == "Connected"
    assert not judge.doubtful


def test_a_miss_that_heals_between_is_forgotten() -> None:
    judge = Judge()
    for _ in range(MISSES):
        assert judge.judge({1}, names=["a", "b"]) is None
        judge.forget()


def program(folder: Path, body: str) -> list[str]:
    path = folder / "ctl.py"
    path.write_text(f"import os, sys, time\nopen({str(folder / 'pid')!r}, 'w').write(str(os.getpid()))\n{body}\n")
    return [sys.executable, "-S", str(path)]


def descriptors() -> list[str]:
    """What this process has open, the folder that is being read for that apart."""
    return sorted(str(entry.readlink()) for entry in Path("/proc/self/fd").iterdir() if entry.is_symlink())


async def test_an_answer_is_what_went_to_stdout_alone_whatever_the_exit_status(tmp_path: Path) -> None:
    words = program(tmp_path, "print('READY'); print('noise', file=sys.stderr); sys.exit(3)")
    assert await ask(words, env=ENV) == b"READY\n"


async def test_a_program_that_hangs_is_killed_when_its_time_is_over(tmp_path: Path) -> None:
    words = program(tmp_path, "print('x', flush=True); time.sleep(600)")
    with pytest.raises(NoAnswerError, match=r"did not answer within 1 s and was killed"):
        await ask(words, env=ENV, timeout=1.0)
    assert not alive(int((tmp_path / "pid").read_text()))


async def test_a_program_that_floods_is_killed(tmp_path: Path) -> None:
    words = program(tmp_path, "while True: sys.stdout.write('x' * 65536)")
    with pytest.raises(NoAnswerError, match="printed more than"):
        await ask(words, env=ENV, timeout=20)
    assert not alive(int((tmp_path / "pid").read_text()))


async def test_an_answer_longer_than_a_pipe_holds_comes_whole(tmp_path: Path) -> None:
    words = program(tmp_path, "sys.stdout.write('x' * 3_000_000)")
    assert await ask(words, env=ENV, timeout=20) == b"x" * 3_000_000


async def test_a_program_that_closes_its_output_and_goes_on_is_killed(tmp_path: Path) -> None:
    words = program(tmp_path, "os.close(1); time.sleep(600)")
    with pytest.raises(NoAnswerError, match="was killed"):
        await ask(words, env=ENV, timeout=1.0)
    assert not alive(int((tmp_path / "pid").read_text()))


async def test_a_cancelled_question_leaves_no_program_no_thread_and_no_descriptor(tmp_path: Path) -> None:
    words = program(tmp_path, "print('x', flush=True); time.sleep(600)")
    open_before, threads = descriptors(), threading.active_count()
    asking = asyncio.create_task(ask(words, env=ENV, timeout=20))
    pid = tmp_path / "pid"
    await until(lambda: pid.exists() and bool(pid.read_text()), what="the program to run")
    assert threading.active_count() == threads
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    assert not alive(int(pid.read_text()))
    assert descriptors() == open_before


async def test_a_question_cancelled_at_any_moment_leaves_no_descriptor_and_no_zombie(tmp_path: Path) -> None:
    words, before = program(tmp_path, "print('READY')"), descriptors()
    pid = tmp_path / "pid"
    for turns in range(12):
        pid.unlink(missing_ok=True)
        asking = asyncio.create_task(ask(words, env=ENV, timeout=20))
        await until(lambda: pid.exists() and bool(pid.read_text()) and not alive(int(pid.read_text())), what="its end")
        for _ in range(turns):
            await asyncio.sleep(0)
        asking.cancel()
        asking.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await asking
        assert descriptors() == before
        assert not Path(f"/proc/{pid.read_text()}").exists(), "it was not reaped"


async def test_a_program_that_outlives_its_kill_for_long_is_reaped_when_it_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words, before = program(tmp_path, "time.sleep(600)"), descriptors()
    monkeypatch.setattr("interlace.imex.health._LAST_BREATH", 0.05)
    monkeypatch.setattr(Handle, "send", lambda _handle, _number: None)  # as if the kernel did not let it go yet
    with pytest.raises(NoAnswerError, match="was killed"):
        await ask(words, env=ENV, timeout=1.0)
    pid = int((tmp_path / "pid").read_text())
    assert alive(pid)
    os.kill(pid, signal.SIGKILL)
    await until(lambda: not Path(f"/proc/{pid}").exists(), what="the program to be reaped")
    assert descriptors() == before


async def test_a_program_that_cannot_be_held_is_ended_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[int] = []

    def refuse(pid: int) -> int:
        started.append(pid)
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    before = descriptors()
    monkeypatch.setattr(os, "pidfd_open", refuse)
    with pytest.raises(NoAnswerError, match="Too many open files"):
        await ask(program(tmp_path, "time.sleep(600)"), env=ENV)
    assert not Path(f"/proc/{started[0]}").exists()
    assert descriptors() == before


async def test_a_missing_program_is_named() -> None:
    with pytest.raises(NoAnswerError, match="cannot start /no/such/program"):
        await ask(["/no/such/program"], env=ENV)
