"""Launchers, loggers, line ends, colours, gzip and garbage around a table, in any combination."""

from __future__ import annotations

import gzip
import random
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from interlace.verify.blocks import LONGEST
from interlace.verify.events import LogEvent
from interlace.verify.prefix import strip
from interlace.verify.reader import Reader, read, read_log, read_text
from interlace.verify.run import Run, document
from tests.unit.verify.printers import ERAS, Sweep, show

LOGS = Path(__file__).parents[2] / "data" / "nccl-logs"
STAMP = "2026-11-30T08:46:49.123456789Z"
PREFIXES: dict[str, Callable[[int], str]] = {
    "mpirun --tag-output": lambda _: "[1,0]<stdout>:",
    "mpirun --tag-output, stderr": lambda _: "[1,0]<stderr>: ",
    "prterun": lambda _: "[prterun-host-1@1,0]<stdout>: ",
    "mpiexec -l": lambda _: "[0] ",
    "srun --label": lambda _: "0: ",
    "srun --label, many tasks": lambda _: "   0:",
    "a host": lambda _: "gke-a3-mega-1: ",
    "a host and a rank": lambda _: "nid00012 0: ",
    "kubectl logs --prefix": lambda _: "[pod/nccl-test-1/nccl-test] ",
    "a Pod": lambda _: "pod/nccl-test-1 ",
    "docker compose": lambda _: "nccl-1  | ",
    "kubectl logs --timestamps": lambda i: f"2026-11-30T08:46:{i % 60:02d}.123456789Z ",
    "a logger": lambda i: f"[2026-11-30 08:46:{i % 60:02d},123] ",
    "a clock": lambda i: f"08:46:{i % 60:02d} ",
    "syslog": lambda i: f"Nov 30 08:46:{i % 60:02d} gke-1: ",
    "a diff": lambda _: "+",
    "a quotation": lambda _: "> ",
    "two of them": lambda _: f"[pod/launcher-x/mpi] {STAMP} [1,0]<stdout>:",
    "three of them": lambda _: f"> {STAMP} 0: [1,0]<stdout>: ",
}
ENDS = {"unix": "\n", "dos": "\r\n", "mac": "\r"}


def wrapped(text: str, prefix: Callable[[int], str], end: str) -> str:
    return "".join(f"{prefix(i)}{line}{end}" for i, line in enumerate(text.splitlines()))


@pytest.mark.parametrize("name", PREFIXES)
def test_a_table_behind_a_prefix_reads_the_same(name: str) -> None:
    for era in ERAS[1::4]:
        log = show(era, Sweep(collective="all_reduce"))
        (bare,), (run,) = read_text(log.text), read_text(wrapped(log.text, PREFIXES[name], "\n"))
        assert document(run) == document(bare)
        assert run.rows == bare.rows


@settings(max_examples=100, deadline=None)
@given(
    era=st.sampled_from(ERAS),
    prefix=st.sampled_from(sorted(PREFIXES)),
    end=st.sampled_from(sorted(ENDS)),
    coloured=st.booleans(),
    packed=st.booleans(),
    seed=st.integers(0, 2**32),
)
def test_any_wrapping_of_any_era_in_blocks_of_any_size_reads_the_same(
    *, era: object, prefix: str, end: str, coloured: bool, packed: bool, seed: int
) -> None:
    chance = random.Random(seed)
    log = show(era, Sweep(collective=chance.choice(["all_reduce", "reduce_scatter", "reduce"])))  # type: ignore[arg-type]
    text = log.text
    if coloured:
        text = text.replace("# ", "\x1b[1;32m# \x1b[0m").replace(" float", " \x1b[33mfloat\x1b[0m")
    data = wrapped(text, PREFIXES[prefix], ENDS[end]).encode()
    data = gzip.compress(data, mtime=0) if packed else data
    blocks, at = [], 0
    while at < len(data):
        size = chance.choice([1, 2, 7, 100, 1000])
        blocks.append(data[at : at + size])
        at += size
    (run,) = read(blocks)
    assert document(run)["rows"] == log.rows
    assert run.ranks == 16
    assert [warning for warning in run.warnings if "own part" not in warning] == []


@pytest.mark.parametrize(
    ("name", "rows", "average"),
    [
        ("all_gather.log", 11, 167.722),
        ("all_gather_info.log", 4, 121.033),
        ("all_reduce.log", 11, 215.531),
        ("alltoall.log", 11, 190.801),
        ("broadcast.log", 11, 259.506),
        ("reduce_scatter.log", 11, 167.324),
        ("sendrecv.log", 11, 220.894),
        ("ag.json", 6, 1.1342),
    ],
)
def test_each_real_log_reads_as_printed(name: str, rows: int, average: float) -> None:
    (run,) = read_log(LOGS / name)
    assert (len(run.rows), run.partial_rows, run.ranks, run.nodes) == (rows, 0, 2, 1)
    assert run.avg_busbw_printed == average
    assert run.avg_busbw_mean == pytest.approx(average, rel=1e-4)
    assert run.collective == {"ag.json": "all_gather", "all_gather_info.log": "all_gather"}.get(name, name[:-4])
    assert (run.out_of_bounds, run.wrong_total, run.warnings) == (0, 0, ())
    assert run.device == "NVIDIA H200"


def test_all_real_logs_in_one_are_read_one_after_the_other() -> None:
    paths = sorted(LOGS.glob("*.log"))
    data = b"".join(path.read_bytes() for path in paths)
    runs = list(read([data]))
    assert [run.avg_busbw_printed for run in runs] == [next(read_log(path)).avg_busbw_printed for path in paths]
    assert [run.transport for run in runs if run.transport] == ["P2P"]


def test_a_cut_gzip_gives_what_was_there() -> None:
    log = show(ERAS[-1], Sweep(collective="all_reduce"))
    packed = gzip.compress(log.text.encode() * 200, mtime=0)
    runs = list(read([packed[: len(packed) // 2]]))
    assert 10 < len(runs) < 200
    assert document(runs[0])["rows"] == log.rows
    assert list(read([packed[:1]])) == []


def test_several_gzip_members_are_one_log() -> None:
    log = show(ERAS[-1], Sweep(collective="all_reduce"))
    middle = log.text.index(" float ")
    packed = gzip.compress(log.text[:middle].encode()) + gzip.compress(log.text[middle:].encode())
    (run,) = read([packed])
    assert document(run)["rows"] == log.rows


def test_a_line_without_an_end_does_not_hide_the_table_behind_it() -> None:
    log = show(ERAS[-1], Sweep(collective="all_reduce"))
    (run,) = read([b"x" * 300_000] * 8 + [b"\n" + log.text.encode()])
    assert LONGEST < 300_000 * 8
    assert document(run)["rows"] == log.rows


def fragments() -> st.SearchStrategy[bytes]:
    """Pieces of real logs, torn anywhere, and bytes."""
    data = b"".join(path.read_bytes() for path in sorted(LOGS.iterdir()) if path.suffix != ".md")
    torn = st.tuples(st.integers(0, len(data)), st.integers(1, 400)).map(lambda at: data[at[0] : at[0] + at[1]])
    words = b"float|{|\r|\x1b[|\x1f\x8b|e+99|inf|-1|\n|  |# Out of bounds values : |nan|\xff\xfe|1e400|Rank 0".split(
        b"|"
    )
    words += [b" NCCL INFO ", b"[1,0]<stdout>:", b'"results": [', b"9" * 5000]
    return st.lists(torn | st.sampled_from(words) | st.binary(max_size=40), max_size=30).map(b"".join)


@settings(max_examples=200, deadline=None)
@given(st.lists(fragments(), max_size=4))
@example([b"{" * 100])
@example([b'{"results": [[[', b'"config": {}'])
@example([b" 1 1 float none -1 inf inf inf inf nan nan nan nan\n# Avg bus bandwidth : nan\n"])
@example([b"# size count type redop root time algbw busbw #wrong\n"])
def test_no_input_makes_the_reader_raise(blocks: list[bytes]) -> None:
    events: list[LogEvent] = []
    for run in read(blocks, events=events.append, begun=True):
        assert document(run)["partial_rows"] >= 0


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=120))
def test_a_prefix_is_a_beginning_and_nothing_is_lost(line: str) -> None:
    assert line.endswith(strip(line, hosts=True).text)


@pytest.mark.parametrize(
    ("line", "text", "rank", "host", "time"),
    [
        ("[1,5]<stderr>: ssh: no", "ssh: no", 5, None, None),
        (f"[pod/w-1/nccl] {STAMP} text", "text", None, "w-1", STAMP),
        ("12: text", "text", 12, None, None),
        ("[7] text", "text", 7, None, None),
        ("08:46:49 text", "text", None, None, "08:46:49"),
        ("# 1: text", "# 1: text", None, None, None),
        ("vm:1:2 [0] NCCL INFO x", "vm:1:2 [0] NCCL INFO x", None, None, None),
    ],
)
def test_a_prefix_tells_rank_host_and_time(
    line: str, text: str, rank: int | None, host: str | None, time: str | None
) -> None:
    found = strip(line, hosts=False)
    assert (found.text.strip(), found.rank, found.host, found.time) == (text, rank, host, time)


def test_runs_come_out_as_they_end() -> None:
    reader = Reader()
    log = show(ERAS[-1], Sweep(collective="all_reduce"))
    runs: list[Run] = []
    for line in log.text.splitlines(keepends=True):
        runs += reader.feed(line.encode())
    assert len(runs) == 1
    assert reader.close() == []


def test_other_encodings_and_blanks_of_web_pages_change_nothing() -> None:
    log = show(ERAS[-1], Sweep(collective="all_reduce"))
    for data in (log.text.encode("utf-16"), log.text.encode("utf-8-sig"), log.text.replace(" ", "\u00a0").encode()):
        for size in (len(data), 3):
            (run,) = read(data[at : at + size] for at in range(0, len(data), size))
            assert document(run)["rows"] == log.rows


@pytest.mark.parametrize("ends", ["\n", "\r\n"])
def test_pieces_of_a_row_on_lines_of_their_own_are_joined(ends: str) -> None:
    log = show(ERAS[-1], Sweep(collective="all_reduce"))
    pieces = [
        piece for line in log.lines for piece in ([line[:52], line[52:80], line[80:]] if " float" in line else [line])
    ]
    (run,) = read_text("".join(f"[1,0]<stdout>:{piece}{ends}" for piece in pieces))
    assert document(run)["rows"] == log.rows


def test_numbers_of_lines_and_labels_of_files_are_passed_over() -> None:
    log = show(ERAS[-1], Sweep(collective="all_reduce"))
    for label in ("{0:6d}\t", "{0}:", "I1130 08:46:49.123456       1 run.go:12] ", "nccl-1 nccl-test ", "x.log-"):
        (run,) = read_text("".join(f"{label.format(i)}{line}\n" for i, line in enumerate(log.lines, 1)))
        assert document(run)["rows"] == log.rows
