"""Verdicts on tables that were published, and on a run that was healthy."""

from __future__ import annotations

from tests.unit.verify.recorded import TCPX, TCPXO, published
from tests.unit.verify.scenes import H100, HEALTHY, judged, line, said, seen, table, times, with_lines


def test_the_published_tcpxo_table_fails_for_a3_mega() -> None:
    judgement = judged(published(TCPXO, "22.449"), family="a3-mega")
    assert judgement.verdict == "fail"
    assert "122.1 GB/s at 1 GiB, 61% of the bound of 200 GB/s" in judgement.cause
    assert "the time is flat from 1 MiB to 512 MiB" in judgement.cause
    assert "tuner" in judgement.remedy
    assert any(each.kind == "latency" and "4.65 ms" in each.text for each in judgement.evidence)
    assert any("56.3 and 43 GB/s" in each.text for each in judgement.evidence)
    assert judgement.nodes == 2


def test_the_published_tcpx_table_passes_for_a3_high_at_512_mib() -> None:
    judgement = judged(published(TCPX, "29.8293"), family="a3-high")
    assert judgement.verdict == "pass"
    assert "70.87 GB/s at 512 MiB, 71% of the bound of 100 GB/s" in judgement.cause
    assert judgement.assessments[0].shapes == ()
    assert any(each.startswith("which transport carried the data") for each in judgement.not_tested)


def test_the_tcpxo_table_with_a_wrong_digit_is_no_measurement() -> None:
    rows = (*TCPXO[:-1], (8241.7, 130.28, 112.14, *TCPXO[-1][3:]))
    judgement = judged(published(rows, "22.449"), family="a3-mega")
    assert judgement.verdict == "cannot tell"
    assert "1073741824" in judgement.cause


def healthy_nvlink() -> list[str]:
    """Two GPUs of one host: everything that it prints and that would be a fault between nodes."""
    start = [
        line(0, 2, "NCCL INFO ENV/Plugin: Could not find: libnccl-env.so"),
        line(0, 2, "NCCL INFO Bootstrap: Using eth0:192.0.2.2<0>"),
        line(1, 2, "NCCL INFO NET/Plugin: Could not find: libnccl-net.so"),
        line(1, 2, "NCCL INFO NET/IB : No device found."),
        line(1, 2, "NCCL INFO NET/IB : Using [RO]; OOB eth0:192.0.2.2<0>"),
        line(1, 2, "NCCL INFO Failed to initialize NET plugin IB"),
        line(1, 2, "NCCL INFO NET/Socket : Using [0]eth0:192.0.2.2<0>"),
        line(1, 2, "NCCL INFO Initialized NET plugin Socket"),
        line(1, 2, "NCCL INFO Assigned NET plugin Socket to comm"),
        line(0, 2, "NCCL INFO MNNVL busId 0x60 fabric UUID 0.0 cliqueId 0x0 state 3 healthMask 0x0"),
        line(1, 2, "NCCL INFO ncclTopoGetCpuAffinity: Affinity for GPU 1 is empty, ignoring."),
        line(1, 2, "NCCL INFO PROFILER/Plugin: Could not find: libnccl-profiler.so"),
        line(1, 2, "NCCL INFO TUNER/Plugin: Could not find: libnccl-tuner.so"),
        line(1, 2, "NCCL INFO 24 coll channels, 24 collnet channels, 0 nvls channels, 32 p2p channels"),
        line(0, 2, "NCCL INFO Connected all rings, use ring PXN 0 GDR 1"),
    ]
    start += said(network="Socket", ranks=2, nodes=1, settings={"NCCL_NVLS_ENABLE": "0"})
    output = table(times(rate=250, floor_us=18, ranks=2), ranks=2, nodes=1, device="NVIDIA H200")
    return with_lines(output, start)


def test_a_healthy_run_over_nvlink_is_blamed_for_no_harmless_line() -> None:
    for family in ("a3-ultra", "gb200-nvl72", None):
        judgement = judged(healthy_nvlink(), family=family)
        assert seen(judgement) == set()
        assert judgement.verdict == "cannot tell"
        assert judgement.causes == ()


def test_the_same_lines_between_nodes_are_a_fault() -> None:
    start = [each for each in healthy_nvlink() if "Plugin: Could not find: libnccl-net.so" in each]
    judgement = judged(with_lines(table(HEALTHY, device=H100), [*said(network="Socket", channels=False), *start]))
    assert judgement.verdict == "fail"
    assert judgement.causes[0].signature.id == "plugin-not-found"
    assert [each.signature.id for each in judgement.causes[0].consequences] == ["socket-fallback"]
