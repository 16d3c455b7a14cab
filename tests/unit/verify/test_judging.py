"""Verdicts of single measurements: what passes, what does not, and what cannot be told."""

from __future__ import annotations

import pytest

from interlace.verify.judgement import Judgement
from tests.unit.verify.scenes import (
    GIB,
    HEALTHY,
    MIB,
    SWEEP,
    judged,
    line,
    said,
    seen,
    table,
    times,
    with_lines,
)

RACK_SWEEP = tuple(MIB << step for step in range(14))
"""1 MiB to 8 GiB."""


def texts(judgement: Judgement, kind: str) -> str:
    return "\n".join(each.text for each in judgement.evidence if each.kind == kind)


def rack(rate: float, *, mnnvl: bool = True, collective: str = "all_reduce") -> Judgement:
    """72 ranks of one GB200 rack that reach ``rate`` GB/s."""
    curve = times(rate=rate, floor_us=40, collective=collective, ranks=72)
    output = table(curve, collective=collective, ranks=72, nodes=18, sizes=RACK_SWEEP, device="NVIDIA GB200")
    return judged(with_lines(output, said(network="gIB", ranks=72, nodes=18, mnnvl=mnnvl)), family="gb200-nvl72")


def test_a_healthy_run_passes_and_says_what_it_did_not_test() -> None:
    judgement = judged(with_lines(table(HEALTHY), said()))
    assert judgement.verdict == "pass"
    assert judgement.transport == "FasTrak"
    assert "93% of the bound of 200 GB/s" in judgement.cause
    assert judgement.not_tested == ("NVLink inside the nodes: it is faster than the NICs, which hide it",)
    (run,) = judgement.assessments
    assert (run.size, run.bound, run.nodes) == (GIB, 200, 2)
    assert run.busbw == pytest.approx(185.4, abs=0.1)


@pytest.mark.parametrize("rest", ["", "  1073741824      16777216     float    none      -1"])
def test_a_log_that_ends_before_its_sweep_never_passes(rest: str) -> None:
    whole = table(HEALTHY, footer=False)
    judgement = judged([*whole[:-1], *([rest] if rest else [])])
    assert judgement.verdict == "cannot tell"
    assert "181.1 GB/s at 512 MiB" in judgement.cause
    assert "the log ends before the test does" in judgement.cause
    assert judged(whole[:-1], nodes=2, family="a3-ultra").verdict != "pass"
    assert judged(table(times(rate=90, floor_us=130), footer=False)[:-1]).verdict == "fail"


@pytest.mark.parametrize("rate", [185, 70, 30])
def test_a_log_whose_network_is_of_another_family_is_not_judged_by_this_one(rate: int) -> None:
    judgement = judged(with_lines(table(times(rate=rate, floor_us=130)), said()), family="a3-high")
    assert judgement.verdict == "cannot tell"
    assert "the network of the log is FasTrak, and family a3-high has GPUDirectTCPX" in judgement.cause


def test_a_log_of_other_gpus_is_not_blamed_for_what_the_family_should_have_used() -> None:
    judgement = judged(with_lines(table(HEALTHY), said()), family="gb200-nvl72")
    assert judgement.verdict == "cannot tell"
    assert "the log is of NVIDIA H100 80GB HBM3" in judgement.cause
    assert seen(judgement) == set()


def test_a_whole_sweep_without_a_footer_passes_and_says_so() -> None:
    judgement = judged(table(HEALTHY, footer=False))
    assert judgement.verdict == "pass"
    assert "whether all_gather ended well: its log has no footer" in judgement.not_tested


@pytest.mark.parametrize(
    ("family", "rate", "verdict"),
    [
        ("a3-mega", 165, "pass"),
        ("a3-mega", 150, "degraded"),
        ("a3-mega", 125, "fail"),
        ("a3-ultra", 330, "pass"),
        ("a3-ultra", 270, "degraded"),
        ("a3-ultra", 250, "fail"),
        ("a4", 330, "pass"),
        ("a4", 250, "fail"),
        ("a3-high", 70, "pass"),
        ("a3-high", 55, "degraded"),
        ("a3-high", 45, "fail"),
    ],
)
def test_a_run_over_two_nodes_is_graded_by_its_share_of_the_line_rate(family: str, rate: float, verdict: str) -> None:
    device = {"a3-ultra": "NVIDIA H200", "a4": "NVIDIA B200"}.get(family, "NVIDIA H100 80GB HBM3")
    output = table(times(rate=rate, floor_us=60), sizes=(*SWEEP, 2 * GIB, 4 * GIB), device=device)
    assert judged(output, family=family).verdict == verdict


@pytest.mark.parametrize(("rate", "verdict"), [(840, "pass"), (700, "degraded"), (500, "fail")])
def test_a_rack_is_graded_at_8_gib(rate: float, verdict: str) -> None:
    judgement = rack(rate)
    assert judgement.verdict == verdict
    assert judgement.transport == "NVLink"
    assert "the NICs: data stayed on NVLink" in judgement.not_tested


def test_a_rack_at_the_rate_of_its_nics_has_lost_nvlink() -> None:
    judgement = rack(190, mnnvl=False)
    assert judgement.verdict == "fail"
    assert judgement.cause.startswith("NVLink across nodes is off")
    assert "within the 200 GB/s of the node's NICs" in texts(judgement, "shape")


def test_a_rack_at_the_rate_of_its_nics_fails_also_where_no_line_tells_why() -> None:
    curve = times(rate=190, floor_us=40, collective="all_gather", ranks=72)
    output = table(curve, ranks=72, nodes=18, sizes=RACK_SWEEP, device="NVIDIA GB200")
    judgement = judged(output, family="gb200-nvl72")
    assert judgement.verdict == "fail"
    assert "data went over the NICs and not over NVLink" in judgement.cause


def test_other_collectives_in_a_rack_have_no_band() -> None:
    judgement = rack(840, collective="all_gather")
    assert judgement.verdict == "cannot tell"
    assert "no band is known for all_gather over NVLink" in judgement.cause


def test_more_nodes_than_a_domain_has_have_no_band() -> None:
    curve = times(rate=400, floor_us=40, collective="all_reduce", ranks=80)
    output = table(curve, collective="all_reduce", ranks=80, nodes=20, sizes=RACK_SWEEP, device="NVIDIA GB200")
    judgement = judged(output, family="gb200-nvl72")
    assert judgement.verdict == "cannot tell"
    assert "beyond the 18 nodes of one NVLink domain" in judgement.cause


def test_one_rank_is_never_a_pass() -> None:
    judgement = judged(table(HEALTHY, collective="broadcast", ranks=1, nodes=1))
    assert judgement.verdict == "cannot tell"
    assert "one rank" in judgement.cause


def test_data_that_were_not_checked_are_never_a_pass_and_slow_ones_still_fail() -> None:
    unchecked = judged(table(HEALTHY, wrong="N/A"))
    assert unchecked.verdict == "cannot tell"
    assert "not checked" in unchecked.cause
    assert any(each.startswith("the data of all_gather") for each in unchecked.not_tested)
    assert judged(table(times(rate=80, floor_us=60), wrong="N/A")).verdict == "fail"


def test_sizes_of_zero_measure_nothing() -> None:
    output = [
        f"{0:12d}{each[12:26].replace(each[12:26].strip(), '0'.rjust(len(each[12:26].strip())))}{each[26:]}"
        if each.lstrip()[:1].isdigit()
        else each
        for each in table(lambda _: 20.0, sizes=(MIB, 2 * MIB))
    ]
    rows = [each for each in output if each.lstrip().startswith("0 ")]
    assert len(rows) == 2
    judgement = judged(output)
    assert judgement.verdict == "cannot tell"


def test_bandwidth_below_256_mib_cannot_be_told() -> None:
    judgement = judged(table(HEALTHY, sizes=SWEEP[:8]))
    assert judgement.verdict == "cannot tell"
    assert "too small to judge bandwidth" in judgement.cause
    assert "bandwidth: no size is 256 MiB or more" in judgement.not_tested


def test_a_test_that_was_ended_before_its_large_sizes_is_said_to_have_been() -> None:
    judgement = judged([*table(HEALTHY, cut=len(SWEEP) - 6, footer=False), "Killed"])
    assert judgement.verdict == "cannot tell"
    assert "the log ends at 32 MiB, before the test does" in judgement.cause
    assert "See what ended the test" in judgement.remedy


def test_bandwidth_below_256_mib_cannot_be_told_however_high_it_is() -> None:
    judgement = judged(table(times(rate=199, floor_us=20), sizes=SWEEP[:8]))
    assert judgement.assessments[0].busbw == pytest.approx(195, abs=5)
    assert judgement.verdict == "cannot tell"


def test_a_rack_that_passes_at_1_gib_need_not_be_measured_to_8() -> None:
    curve = times(rate=880, floor_us=40, collective="all_reduce", ranks=72)
    for sizes, verdict in ((SWEEP, "pass"), (SWEEP[:8], "cannot tell")):
        output = table(curve, collective="all_reduce", ranks=72, nodes=18, sizes=sizes, device="NVIDIA GB200")
        assert judged(with_lines(output, said(ranks=72, nodes=18, mnnvl=True)), family="a4x").verdict == verdict


def test_sizes_that_were_cut_to_whole_elements_count_as_what_was_asked_for() -> None:
    sizes = SWEEP[:9]
    output = table(times(rate=180, floor_us=60, ranks=24), ranks=24, nodes=3, sizes=sizes)
    judgement = judged(output)
    assert (judgement.assessments[0].size or 0) < 256 * MIB
    assert judgement.verdict == "pass"


def test_a_high_floor_of_time_degrades_a_run_of_good_bandwidth() -> None:
    slow_start = judged(table(times(rate=198, floor_us=900), sizes=(*SWEEP, 2 * GIB, 4 * GIB, 8 * GIB)))
    assert slow_start.verdict == "degraded"
    assert "at most 300 us is expected" in texts(slow_start, "latency")
    assert "1 MiB takes" in slow_start.cause


def test_wrong_data_fail_whatever_the_bandwidth() -> None:
    judgement = judged(table(HEALTHY, wrong=2))
    assert judgement.verdict == "fail"
    assert judgement.cause.startswith("data arrived wrong")
    assert texts(judgement, "bandwidth") == ""


def test_hypercube_fails_its_own_check_on_good_hardware() -> None:
    judgement = judged(table(HEALTHY, collective="hypercube", wrong=2))
    assert judgement.verdict == "cannot tell"
    assert judgement.causes == ()


def test_numbers_that_contradict_each_other_are_no_measurement() -> None:
    output = table(HEALTHY)
    at = next(number for number, each in enumerate(output) if each.lstrip().startswith("1073741824"))
    time, algbw, busbw = output[at].split()[5:8]
    output[at] = output[at].replace(f"{algbw}    {busbw}", f"{algbw}    9{busbw[1:]}", 1)
    assert time in output[at]
    judgement = judged(output)
    assert judgement.verdict == "cannot tell"
    assert "1073741824" in texts(judgement, "numbers")


def test_more_than_the_nics_can_carry_is_an_error_of_the_measurement() -> None:
    judgement = judged(table(times(rate=430, floor_us=60)))
    assert judgement.verdict == "cannot tell"
    assert "no algorithm can exceed 375 GB/s" in texts(judgement, "bandwidth")


def test_two_nodes_may_exceed_the_line_rate_of_one() -> None:
    output = table(times(rate=340, floor_us=60, collective="all_reduce"), collective="all_reduce")
    judgement = judged(output)
    assert judgement.verdict == "pass"
    assert "of the 375 GB/s that a tree could reach over two nodes" in texts(judgement, "bandwidth")


def test_another_gpu_than_the_family_has_is_not_judged_by_its_band() -> None:
    judgement = judged(table(HEALTHY, device="NVIDIA H200"))
    assert judgement.verdict == "cannot tell"
    assert "NVIDIA H200" in judgement.cause


def test_unknown_hardware_has_no_band() -> None:
    judgement = judged(table(HEALTHY), family=None)
    assert judgement.verdict == "cannot tell"
    assert "the hardware is not known" in judgement.cause


def test_a_part_of_each_node_has_no_band() -> None:
    judgement = judged(table(times(rate=24, floor_us=60, ranks=2), ranks=2, nodes=2))
    assert judgement.verdict == "cannot tell"
    assert "7 of the 8 GPUs of each node, and the NICs beside them" in judgement.not_tested


def test_one_node_does_not_test_the_network() -> None:
    judgement = judged(table(times(rate=440, floor_us=30, ranks=8), ranks=8, nodes=1))
    assert judgement.verdict == "cannot tell"
    assert "the network between nodes: all ranks ran on one node" in judgement.not_tested


def test_broadcast_tests_one_direction_only() -> None:
    judgement = judged(table(HEALTHY, collective="broadcast"))
    assert "the way back to the root (broadcast only leaves it)" in judgement.not_tested


def test_a_placement_that_falls_below_the_band_degrades_the_other() -> None:
    assert judged(table(HEALTHY, in_place=1.05)).verdict == "pass"
    assert judged(table(HEALTHY, in_place=1.5)).verdict == "degraded"


def test_the_transport_must_be_right_even_if_the_bandwidth_is() -> None:
    judgement = judged(with_lines(table(HEALTHY), said(network="Socket")))
    assert judgement.verdict == "fail"
    assert "TCP sockets" in judgement.cause


def test_a_sign_that_a_whole_measurement_disproves_is_only_noted() -> None:
    refused = line(3, 8, "misc/socket.cc:541 NCCL WARN socketStartConnect: Connect to 192.0.2.7<4> failed : refused")
    judgement = judged(with_lines(table(HEALTHY), [*said(), refused]))
    assert judgement.verdict == "pass"
    assert [each.signature.id for each in judgement.noted] == ["connect-refused"]


def test_a_run_that_ended_with_an_error_does_not_pass_on_the_rows_that_it_had() -> None:
    error = "worker-0: Test NCCL failure common.cu:1005 'unhandled system error (run with NCCL_DEBUG=INFO) / '"
    output = [*table(HEALTHY, footer=False), error, " .. worker-0 pid 100: Test failure common.cu:1200"]
    judgement = judged(output)
    assert judgement.verdict == "fail"
    assert "nccl-error" in seen(judgement)


def test_no_table_at_all_cannot_be_told() -> None:
    assert judged(["nothing", "of interest"]).verdict == "cannot tell"
    assert judged([]).cause == "no table of nccl-tests was read"


def test_pods_that_share_a_host_name_are_counted_as_nccl_counts_them() -> None:
    output = [each.replace("worker-1", "worker-0") for each in with_lines(table(HEALTHY), said())]
    judgement = judged(output)
    assert judgement.nodes == 2
    assert judgement.verdict == "pass"


def test_what_the_reader_doubts_is_evidence() -> None:
    output = [each if "Rank  9" not in each else "..." for each in table(HEALTHY)]
    judgement = judged(output, nodes=2)
    doubts = [text for each in judgement.assessments for text in each.run.warnings]
    assert "the list of ranks is cut" in doubts
    assert "the list of ranks is cut" in texts(judgement, "numbers")


def test_what_could_slow_a_run_and_did_not_is_only_noted() -> None:
    retries = [line(0, 8, "NCCL INFO Call to connect returned Connection timed out, retrying")] * 3
    good = judged(with_lines(table(HEALTHY), [*said(), *retries]))
    assert (good.verdict, good.causes) == ("pass", ())
    assert [each.signature.id for each in good.noted] == ["connect-retries"]
    slow = judged(with_lines(table(times(rate=150, floor_us=130)), [*said(), *retries]))
    assert slow.verdict == "degraded"
    assert "a rank tries to reach an address that is not routed" in slow.cause


def test_a_rack_whose_user_turned_nvlink_off_is_judged_by_its_nics() -> None:
    output = table(times(rate=170, floor_us=60, ranks=8), ranks=8, device="NVIDIA GB200")
    start = said(network="gIB", ranks=8, nics=4, settings={"NCCL_MNNVL_ENABLE": "0"})
    judgement = judged(with_lines(output, start), family="a4x")
    assert judgement.verdict == "pass"
    assert judgement.transport == "gIB"
    assert "NVLink between nodes: the NICs carried the data" in judgement.not_tested


def test_an_unknown_warning_does_not_fail_rows_that_were_measured_without_an_error() -> None:
    strange = line(9, 8, "net_fastsocket.cc:765 NCCL WARN Cannot get incoming CPU.")
    for footer in (True, False):
        judgement = judged(with_lines(table(HEALTHY, footer=footer), [*said(), strange]))
        assert judgement.verdict == "pass"
        assert [each.signature.id for each in judgement.noted] == ["unknown-warning"]


@pytest.mark.parametrize(
    "harmless",
    [
        "kernel: nvidia-nvswitch0: SXid (PCI:0000:c8:00.0): 22013, Non-fatal, Link 24 Minion Link DLREQ interrupt",
        line(0, 8, "NCCL INFO NET/IB : mlx5_0:1 Got non-fatal async event: client reregistration(17)"),
        line(0, 8, "NCCL INFO NET/FasTrak DXS flow ID 0 connecting to 192.0.2.3:4001 comm_trace_id:0x1"),
        line(0, 8, "NCCL INFO [Service thread] Connection closed by localRank 3"),
        line(0, 8, "NCCL INFO TUNER/Plugin: Could not find: libnccl-tuner.so"),
    ],
)
def test_what_healthy_runs_print_too_is_no_sign(harmless: str) -> None:
    assert seen(judged(with_lines(table(HEALTHY), [*said(), harmless]))) == set()
