"""The first cause by time and by rank, consequences under it, and failures before NCCL starts."""

from __future__ import annotations

import pytest

from interlace.verify.causes import in_order, moment
from interlace.verify.events import LogEvent
from interlace.verify.judgement import Judgement, judge
from interlace.verify.reader import read
from interlace.verify.run import Run
from tests.unit.verify.scenes import HEALTHY, SWEEP, judged, line, said, seen, table, times, with_lines

CLOSED = "misc/socket.cc:58 NCCL WARN socketProgress: Connection closed by remote peer worker-1<4>"
NO_ROWS = table(HEALTHY, cut=len(SWEEP), footer=False)


def judged_together(logs: dict[str, list[str]]) -> Judgement:
    """The judgement of several logs of one test, each a source."""
    from interlace.fabric.family import find

    runs: list[Run] = []
    events: list[LogEvent] = []
    for source, lines in logs.items():
        runs += read(["\n".join(lines).encode()], source=source, events=events.append, begun=True)
    return judge(runs, events, family=find("a3-mega"))


def stamped(second: int, text: str) -> str:
    return f"2026-05-04T10:00:{second:02d}.000000000Z {text}"


def test_the_end_of_a_peer_is_a_consequence_of_what_ended_it() -> None:
    crash = "kernel: NVRM: Xid (PCI:0000:86:00): 79, pid=4113, GPU has fallen off the bus."
    judgement = judged(with_lines(NO_ROWS, [*said(), line(0, 8, CLOSED), line(1, 8, CLOSED), crash]))
    assert judgement.verdict == "fail"
    assert judgement.causes[0].signature.id == "gpu-off-bus"
    assert [(each.signature.id, each.count) for each in judgement.causes[0].consequences] == [("peer-closed", 2)]


def test_a_consequence_alone_is_still_named() -> None:
    judgement = judged(with_lines(NO_ROWS, [*said(), line(0, 8, CLOSED)]))
    assert judgement.verdict == "fail"
    assert "another rank died first" in judgement.cause


def test_among_several_logs_the_earliest_sign_wins_whatever_the_order_of_the_files() -> None:
    late = [stamped(30, line(0, 8, "init.cc:1 NCCL WARN No transport found for rank 0[60] -> rank 1[70]"))]
    early = [stamped(10, line(9, 8, "bootstrap.cc:45 NCCL WARN Bootstrap : no socket interface found"))]
    for logs in ({"a": late, "b": early}, {"b": early, "a": late}):
        judgement = judged_together(logs)
        assert [each.signature.id for each in judgement.causes] == ["bootstrap-interface", "no-transport"]
        assert judgement.evidence[0].source == "b"


def test_evidence_says_which_log_source_line_rank_and_host_it_is_from() -> None:
    tag = "[1,9]<stderr>:"
    output = with_lines(NO_ROWS, [tag + line(9, 8, "init.cc:1 NCCL WARN Duplicate GPU detected : rank 9 and rank 8")])
    shown = judged(output).evidence[0]
    assert (shown.log, shown.rank, shown.host) == ("rank", 9, "worker-1")
    assert shown.line is not None
    assert output[shown.line - 1].endswith("rank 9 and rank 8")


def test_the_log_of_the_sidecar_explains_what_the_ranks_say() -> None:
    rank = [stamped(5, line(0, 8, "NCCL WARN NET/FasTrak connect() error: 111: Connection refused"))]
    daemon = [
        stamped(20, "Number of GPUs detected in the PCI tree 7 is not equal to the actual number of GPUs by CUDA 8")
    ]
    judgement = judged_together({"nccl-1/test": rank, "nccl-1/tcpxo-daemon": daemon})
    assert judgement.causes[0].signature.id == "gpu-count-differs"
    assert judgement.causes[0].signature.log == "sidecar"
    assert [each.signature.id for each in judgement.causes[0].consequences] == ["rxdm-refused"]


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        ("ssh: connect to host nccl-host-2 port 222: Connection refused", "sshd of a worker"),
        ("ssh: Could not resolve hostname nccl-host-2: Name or service not known", "could not resolve the name"),
        ("0/20 nodes are available: 18 Insufficient nvidia.com/gpu.", "the scheduler found no node"),
        ("waiting: ImagePullBackOff: Back-off pulling image", "image of a Pod could not be pulled"),
        ("There are not enough slots available in the system to satisfy the 16", "fewer slots"),
        ("all_gather_perf: error while loading shared libraries: libnccl.so.2: cannot open", "shared libraries"),
    ],
)
def test_a_test_that_never_started_says_nothing_about_the_fabric(text: str, cause: str) -> None:
    judgement = judged(["starting", text, "ORTE was unable to reliably start one or more daemons."])
    assert judgement.verdict == "cannot tell"
    assert judgement.cause.startswith("the test did not start: ")
    assert cause in judgement.cause
    assert judgement.cause.endswith("the fabric was not tested")
    assert judgement.remedy
    assert judgement.not_tested == ("the fabric: no measurement was made",)


def test_a_fault_of_the_fabric_before_the_first_row_is_a_failure() -> None:
    assert judged(
        with_lines(NO_ROWS, [line(0, 8, "NCCL WARN NET/FasTrak Failed to initialize DXS client")])
    ).verdict == ("fail")


def test_retries_of_a_launcher_before_a_good_run_are_only_noted() -> None:
    waiting = ["ssh: connect to host nccl-host-2 port 222: Connection refused"] * 3
    judgement = judged([*waiting, *with_lines(table(HEALTHY), said())])
    assert judgement.verdict == "pass"
    assert [each.signature.id for each in judgement.noted] == ["sshd-absent"]


def test_a_failed_nic_fails_a_run_whose_data_are_right() -> None:
    failed = line(3, 8, "transport/net_ib/p2p.cc:640 NCCL WARN NET/IB: Device 3 marked as failed. Initiating recovery")
    judgement = judged(with_lines(table(HEALTHY), [*said(), failed]))
    assert judgement.verdict == "fail"
    assert "nic-failover" in seen(judgement)


def test_control_characters_of_a_log_are_not_shown() -> None:
    strange = line(9, 8, "init.cc:77 NCCL WARN before\x07\x1b]0;title\x07after")
    judgement = judged(with_lines(NO_ROWS, [strange]))
    assert all(each.text.isprintable() for each in judgement.evidence)


def test_lines_without_a_time_stay_behind_the_last_one_that_has_it() -> None:
    def event(source: str, number: int, time: str | None) -> LogEvent:
        return LogEvent(line=number, level="", text=str(number), source=source, time=time)

    first = [event("a", 1, "2026-05-04T10:00:01Z"), event("a", 2, None), event("a", 3, "2026-05-04T10:00:05Z")]
    second = [event("b", 4, "2026-05-04T10:00:03Z"), event("b", 5, "never")]
    assert [each.line for each in in_order([*second, *first])] == [1, 2, 4, 5, 3]
    untimed = [event("c", 6, None)]
    assert in_order([*second, *untimed, *first]) == [*second, *untimed, *first]


def test_logs_without_times_stand_in_the_order_of_their_ranks() -> None:
    logs = [
        LogEvent(line=1, level="", text="of a daemon", source="daemon"),
        LogEvent(line=1, level="", text="of rank 7", source="b", rank=7),
        LogEvent(line=1, level="", text="of rank 0", source="a", rank=0),
        LogEvent(line=2, level="", text="of rank 7 again", source="b"),
    ]
    assert [each.source for each in in_order(logs)] == ["a", "b", "b", "daemon"]


def test_times_are_read_in_the_forms_of_kubernetes_and_nccl() -> None:
    assert moment("2026-05-04T10:00:01.123456789Z") is not None
    assert moment("[2026-05-04 10:00:01]") == moment("2026-05-04T10:00:01Z")
    assert moment("10:00:01") is None
    assert moment(None) is None


def test_a_warning_that_names_its_function_too_is_read() -> None:
    text = "Failed to bind NVLink SHARP (NVLS) Multicast memory of size 2097152 : CUDA error 401 'x'"
    shown = "[2026-05-04 15:45:07] " + line(5, 8, f"transport/nvls.cc:379 (nvlsAllocateMem) NCCL WARN {text}")
    judgement = judged(with_lines(NO_ROWS, [*said(), shown]))
    assert judgement.causes[0].signature.id == "multicast-refused"
    assert (judgement.evidence[0].host, judgement.evidence[0].log) == ("worker-0", "rank")


def test_the_first_error_of_a_nic_explains_those_that_follow() -> None:
    peer = "ib_plugin.c:1615 NCCL WARN NET/IB : Got completion from peer 192.0.2.8<44206> with"
    first = line(4, 8, f"{peer} status=12 opcode=129 len=65536 vendor err 129 (Recv) localGid ::ffff:192.0.2.1")
    then = line(4, 8, f"{peer} status=5 opcode=32656 len=32659 vendor err 249 (Recv) localGid ::ffff:192.0.2.1")
    proxy = line(4, 8, "proxy.cc:1519 NCCL WARN [Proxy Service 11] Failed to execute operation Connect from rank 11")
    judgement = judged(with_lines(NO_ROWS, [*said(), then, proxy, first, then]))
    assert judgement.causes[0].signature.id == "rdma-retries-exceeded"
    assert {each.signature.id for each in judgement.causes[0].consequences} == {"rdma-flushed", "proxy-failed"}


def test_a_test_that_was_ended_from_outside_is_no_fault_of_the_fabric() -> None:
    killed = "terminated: OOMKilled: exit code 137"
    before = judged(with_lines(NO_ROWS, [*said(), line(0, 8, CLOSED), killed]))
    assert before.verdict == "cannot tell"
    assert before.cause.startswith("the test was ended before it measured anything: the kernel killed a process")
    between = judged([*with_lines(table(HEALTHY, cut=3, footer=False), said()), killed])
    assert between.verdict == "cannot tell"
    assert between.cause.startswith("the test was cut short: the kernel killed a process")


def test_an_end_from_outside_does_not_excuse_rows_that_were_slow_before() -> None:
    slow = with_lines(table(times(rate=80, floor_us=90), cut=1, footer=False), said())
    judgement = judged([*slow, "terminated: OOMKilled: exit code 137"])
    assert judgement.verdict == "fail"
    assert "GB/s at 512 MiB" in judgement.cause


def test_a_launcher_that_failed_after_nccl_began_is_a_cause() -> None:
    late = "ssh: connect to host nccl-host-2 port 222: Connection refused"
    judgement = judged(with_lines(NO_ROWS, [*said(), late]))
    assert [each.signature.id for each in judgement.causes] == ["sshd-absent"]
