"""Lines beside the tables are handed on, in order and bounded."""

from __future__ import annotations

from pathlib import Path

import pytest

from interlace.verify.events import EACH, LogEvent
from interlace.verify.reader import read, read_log, read_text
from interlace.verify.teller import Teller
from tests.unit.verify.printers import ERAS, Sweep, show

LOGS = Path(__file__).parents[2] / "data" / "nccl-logs"


def events_of(text: str) -> list[LogEvent]:
    events: list[LogEvent] = []
    read_text(text, events=events.append)
    return events


def test_lines_of_nccl_keep_host_process_device_and_rank() -> None:
    events: list[LogEvent] = []
    list(read_log(LOGS / "all_gather_info.log", events=events.append))
    first = events[0]
    assert (first.line, first.level, first.host, first.pid, first.device, first.rank) == (8, "INFO", "vm", 1492, 0, 0)
    assert first.text == "ENV/Plugin: Could not find: libnccl-env.so"
    assert sum("Init COMPLETE" in event.text for event in events) == 2
    assert [event.line for event in events] == sorted(event.line for event in events)
    assert len(events) > 120


def test_no_line_of_a_table_is_an_event() -> None:
    assert events_of(show(ERAS[-1], Sweep(collective="all_reduce")).text) == []


def test_a_line_of_a_launcher_keeps_rank_time_and_words() -> None:
    (event,) = events_of("[1,3]<stderr>:2026-11-30T08:46:49.1Z ssh: Could not resolve hostname worker-1\n")
    assert (event.level, event.rank, event.time) == ("", 3, "2026-11-30T08:46:49.1Z")
    assert event.text == "ssh: Could not resolve hostname worker-1"


def test_warnings_and_failures_have_their_level() -> None:
    text = (
        "w-1:9:10 [2] transport/net_ib.cc:77 NCCL WARN NET/IB : Got completion from peer with status=12\n"
        "w-1: Test NCCL failure common.cu:303 'remote process exited'\n"
        "plain words\n"
    )
    assert [(event.level, event.host, event.device) for event in events_of(text)] == [
        ("WARN", "w-1", 2),
        ("TEST", None, None),
        ("", None, None),
    ]


def test_of_lines_that_differ_in_numbers_only_the_first_are_handed_on() -> None:
    text = "".join(f"w-1:{i}:{i} [0] NCCL INFO comm 0x55f{i:x} rank {i} nranks 9000\n" for i in range(EACH + 500))
    events = events_of(text + "w-1:1:1 [0] NCCL INFO another line\n")
    assert len(events) == EACH + 1
    assert events[-1].text == "another line"


def test_channels_are_counted_by_their_path_so_that_no_path_is_lost() -> None:
    line = "w-1:1:1 [0] NCCL INFO Channel {0:02d}/0 : {0}[0] -> 1[1] [send] via NET/FasTrak/{1}/GDRDMA\n"
    text = "".join(line.format(i, 0) for i in range(EACH + 100)) + "".join(line.format(1, nic) for nic in range(8))
    events = events_of(text)
    assert {event.text.rpartition("via ")[2] for event in events} == {f"NET/FasTrak/{nic}/GDRDMA" for nic in range(8)}


def test_events_are_bounded_and_warnings_still_come_after_that(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("interlace.verify.teller.MOST", 100)
    names = ("".join(chr(97 + (i // 26**place) % 26) for place in range(4)) for i in range(300))
    blocks = [f"some {name} noise\n".encode() for name in names]
    blocks.append(b"w-1:9:10 [2] a.cc:77 NCCL WARN the cause\n")
    events: list[LogEvent] = []
    assert list(read(blocks, events=events.append)) == []
    assert len(events) == 101
    assert events[-1].text == "the cause"


def test_each_run_states_its_own_transport() -> None:
    def log(network: str) -> str:
        text = show(ERAS[-1], Sweep(collective="all_reduce")).text
        info = f"host-0:1197:1 [0] NCCL INFO Using network {network}\n"
        info += f"host-0:1197:1 [0] NCCL INFO Channel 00/0 : 0[0] -> 8[0] [send] via NET/{network}/0\n"
        return text.replace("#\n#   ", f"#\n{info}#   ", 1)

    runs = read_text(log("IB") + log("Socket") + log("IB") + log("FasTrak") * 2)
    assert [run.transport for run in runs] == ["IB", "Socket", "IB", "FasTrak", "FasTrak"]


def test_a_chosen_network_is_no_transport_inside_one_node() -> None:
    text = show(ERAS[-1], Sweep(collective="all_reduce")).text
    info = "h:1:1 [0] NCCL INFO Using network Socket\nh:1:1 [0] NCCL INFO comm 0x1 rank 0 nRanks 8 nNodes {}\n"
    one = read_text(text.replace("#\n#   ", f"#\n{info.format(1)}#   ", 1))
    two = read_text(text.replace("#\n#   ", f"#\n{info.format(2)}#   ", 1))
    assert [run.transport for run in (*one, *two)] == [None, "Socket"]


def test_a_run_that_measured_nothing_is_given_when_asked_for() -> None:
    text = show(ERAS[-1], Sweep(collective="all_reduce")).text
    text = text[: text.index(" float ")].rpartition("\n")[0] + "\nhost-0: Test NCCL failure common.cu:1 'unhandled'\n"
    assert read_text(text) == []
    (run,) = read_text(text, begun=True)
    assert (run.collective, run.ranks, run.rows, len(run.errors)) == ("all_reduce", 16, (), 1)


def test_ranks_of_ever_more_lists_are_forgotten_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("interlace.verify.teller._KNOWN", 100)
    teller = Teller(None, source="-")
    for pid in range(1000):
        teller.learn(f"host-{pid}", pid, 0, rank=pid % 8)
    assert max(len(teller.ranks), len(teller.hosts)) <= 100
    assert teller.ranks["host-999", 999, 0] == 7
