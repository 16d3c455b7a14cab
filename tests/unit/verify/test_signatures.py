"""Each known signature in a log with it, and absent from the same log without it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache

import pytest

from interlace.verify.signatures import Signature, named, signatures
from tests.unit.verify.scenes import HEALTHY, SWEEP, line, said, seen, table, with_lines
from tests.unit.verify.scenes import judged as judge_lines
from tools.verdicts import TARGET, render

WORDED = [each for each in signatures() if not each.derived]
HARMLESS = [each for each in WORDED if each.when]


def log(signature: Signature, extra: Sequence[str], *, circumstance: bool = True) -> tuple[list[str], str]:
    """A log of more than 20 lines with ``extra`` in it, and its family; ``circumstance``: what ``when`` asks for."""
    when = set(signature.when) if circumstance else set()
    family = "gb200-nvl72" if "large-mnnvl" in signature.when else "a3-mega"
    ranks, nodes = (72, 18) if "large-mnnvl" in when else (8, 2) if family == "gb200-nvl72" else (16, 2)
    start = said(
        network="Socket" if "socket-between-nodes" in when else "FasTrak",
        direct="no-gdr" not in when,
        ranks=ranks,
        nodes=nodes,
        mnnvl=family == "gb200-nvl72",
    )
    ends = "no-rows" in when or not when
    output = table(
        HEALTHY,
        ranks=ranks,
        nodes=nodes,
        device="NVIDIA GB200" if family == "gb200-nvl72" else "NVIDIA H100 80GB HBM3",
        kind="f8e4m3" if "all-types" in when else "float",
        cut=len(SWEEP) if ends and circumstance else 0,
        footer=not ends or not circumstance,
    )
    mid = len(start) // 2
    return with_lines(output, [*start[:mid], *extra, *start[mid:]]), family


@cache
def signs(lines: tuple[str, ...], family: str) -> set[str]:
    """What a log shows; most of the logs without a line are the same one."""
    return seen(judge_lines(lines, family=family))


def shown(example: str) -> str:
    """An example as it stands in a log: lines of NCCL with their prefix, others as they are."""
    return line(3, 8, example) if re.match(r"(\S+:\d+ )?NCCL (INFO|WARN) ", example) else example


def test_at_least_sixty_signatures_are_known_and_each_has_a_name_of_its_own() -> None:
    names = [each.id for each in signatures()]
    assert len(names) >= 60
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("signature", signatures(), ids=lambda each: each.id)
def test_a_signature_has_cause_remedy_and_known_relations(signature: Signature) -> None:
    assert signature.cause
    assert not signature.cause.endswith(".")
    assert signature.remedy.endswith((".", "`."))
    assert signature.example
    for other in signature.follows:
        assert other == "*" or named(other) is not signature


def test_no_signature_follows_from_itself() -> None:
    def causes(name: str, seen: tuple[str, ...]) -> None:
        assert name not in seen, (*seen, name)
        for other in named(name).follows:
            if other != "*":
                causes(other, (*seen, name))

    for each in signatures():
        causes(each.id, ())


@pytest.mark.parametrize("signature", WORDED, ids=lambda each: each.id)
def test_a_signature_is_recognised_by_words_and_not_by_numbers_alone(signature: Signature) -> None:
    assert all(re.search(r"[A-Za-z]{3,}", words) and len(words) >= 8 for words in signature.words)


@pytest.mark.parametrize(
    ("signature", "example"),
    [pytest.param(each, example, id=f"{each.id}-{at}") for each in WORDED for at, example in enumerate(each.example)],
)
def test_a_log_with_the_line_shows_the_signature_and_the_same_log_without_does_not(
    signature: Signature, example: str
) -> None:
    lines, family = log(signature, [shown(each) for each in (*signature.context, example)])
    without, _ = log(signature, [shown(each) for each in signature.context])
    assert len(lines) >= 20
    assert signature.id in signs(tuple(lines), family)
    assert signature.id not in signs(tuple(without), family)


@pytest.mark.parametrize("signature", HARMLESS, ids=lambda each: each.id)
def test_a_line_that_means_something_only_sometimes_is_not_blamed_elsewhere(signature: Signature) -> None:
    lines, family = log(signature, [shown(each) for each in signature.example], circumstance=False)
    assert signature.id not in seen(judge_lines(lines, family=family))


def test_a_healthy_log_shows_no_signature() -> None:
    assert seen(judge_lines(with_lines(table(HEALTHY), said()))) == set()


@pytest.mark.parametrize(
    "text",
    [
        "mca_base_component_repository_open: unable to open mca_x: librdmacm.so.1: cannot open shared object file",
        "NCCL INFO dlopen failed on libnccl-env.so: libnccl-env.so: cannot open shared object file: No such file",
        "NCCL INFO TUNER/Plugin: Could not find: libnccl-tuner.so",
        "NCCL INFO NET/FasTrak : Registered 16 regions, failed_over=0",
        "NCCL INFO NET/FasTrak plugin: registering memory region, 0 failed so far",
        "NCCL INFO RAS: connection closed by remote peer 192.0.2.8<28028>",
        "NCCL INFO NET/IB : mlx5_0:1 Got non-fatal async event: port active(9)",
        "NCCL INFO GPU Direct RDMA Disabled for GPU 0 / HCA 0 (distance 8 > 4)",
        "nvidia-imex.service - NVIDIA IMEX service: Active: inactive (dead)",
        "libcuda.so.1: version `GLIBC_2.34' found",
        "unable to connect from cache, downloading",
    ],
)
def test_a_harmless_line_is_no_sign_even_of_a_log_that_was_cut(text: str) -> None:
    output = with_lines(table(HEALTHY, footer=False), [*said(), shown(text)])
    judgement = judge_lines(output)
    assert (judgement.verdict, seen(judgement)) == ("pass", set())


def test_sockets_between_nodes_are_named_where_no_message_says_so() -> None:
    def with_network(network: str) -> set[str]:
        return seen(judge_lines(with_lines(table(HEALTHY), said(network=network, channels=False))))

    assert "socket-fallback" in with_network("Socket")
    assert "socket-fallback" not in with_network("FasTrak")


def test_sockets_are_no_fault_on_one_node_or_on_unknown_hardware() -> None:
    alone = with_lines(table(HEALTHY, ranks=8, nodes=1), said(network="Socket", ranks=8, nodes=1))
    assert seen(judge_lines(alone)) == set()
    assert seen(judge_lines(with_lines(table(HEALTHY), said(network="Socket")), family=None)) == set()


def gb200(*, mnnvl: bool, settings: dict[str, str] | None = None) -> list[str]:
    start = said(network="gIB", ranks=8, nodes=2, nics=4, mnnvl=mnnvl, channels=False, settings=settings)
    return with_lines(table(HEALTHY, collective="all_reduce", ranks=8, device="NVIDIA GB200"), start)


def test_nvlink_between_nodes_that_is_off_is_named() -> None:
    assert "mnnvl-off" in seen(judge_lines(gb200(mnnvl=False), family="gb200-nvl72"))
    assert "mnnvl-off" not in seen(judge_lines(gb200(mnnvl=True), family="gb200-nvl72"))


def test_nvlink_between_nodes_that_the_user_turned_off_is_no_fault() -> None:
    lines = gb200(mnnvl=False, settings={"NCCL_MNNVL_ENABLE": "0"})
    assert "mnnvl-off" not in seen(judge_lines(lines, family="a4x"))


def test_unused_nics_are_counted_where_the_log_has_the_lines_of_all_ranks() -> None:
    few = judge_lines(with_lines(table(HEALTHY), said(nics=2)))
    assert "nics-unused" in seen(few)
    assert "2 of 8 NICs" in next(each for each in few.noted if each.signature.id == "nics-unused").detail
    partial = [each for each in said(nics=2) if "rank 9 " not in each]
    assert "nics-unused" not in seen(judge_lines(with_lines(table(HEALTHY), partial)))


def test_cores_that_receive_and_send_are_named() -> None:
    good = {
        "NCCL_GPUDIRECTTCPX_TX_BINDINGS": "eth1:8-21,112-125;eth2:8-21,112-125",
        "NCCL_GPUDIRECTTCPX_RX_BINDINGS": "eth1:22-35,126-139;eth2:22-35,126-139",
    }
    bad = {**good, "NCCL_GPUDIRECTTCPX_RX_BINDINGS": "eth1:22-35,124-139;eth2:22-35,124-139"}
    for settings, expected in ((good, False), (bad, True)):
        lines = with_lines(table(HEALTHY), said(settings=settings, network="GPUDirectTCPX", nics=4))
        assert ("tcpx-bindings" in seen(judge_lines(lines, family="a3-high"))) is expected


def test_the_pair_of_an_imex_table_names_the_link() -> None:
    head = [r" Nodes From\To  0   1   2", "       0       C   C   C"]
    good = [*head, "       1       C   C   C", "       2       C   C   C"]
    bad = [*head, "       1       C   C   N", "       2       C   !M!   C"]
    output = table(HEALTHY, cut=len(SWEEP), footer=False)
    assert "imex-links" not in seen(judge_lines(with_lines(output, [*said(), *good])))
    judgement = judge_lines(with_lines(output, [*said(), *bad]))
    assert "imex-links" in seen(judgement)
    assert next(each for each in judgement.causes if each.signature.id == "imex-links").detail == "1 to 2 is N"


def test_ranks_that_never_finished_their_start_are_named() -> None:
    start = said()
    late = [each for each in start if not ("rank 5 " in each and "COMPLETE" in each)]
    output = table(HEALTHY, cut=len(SWEEP), footer=False)
    assert "init-incomplete" not in seen(judge_lines(with_lines(output, start)))
    judgement = judge_lines(with_lines(output, late))
    assert "ranks 5 began and did not finish" in judgement.causes[0].detail


def test_wrong_data_is_named_and_comes_before_everything_else() -> None:
    refused = line(3, 8, "misc/socket.cc:541 NCCL WARN socketStartConnect: Connect to 192.0.2.7<4> failed : refused")
    judgement = judge_lines(with_lines(table(HEALTHY, wrong=3), [*said(), refused]))
    assert judgement.causes[0].signature.id == "wrong-data"
    assert "wrong-data" not in seen(judge_lines(with_lines(table(HEALTHY), said())))


def test_a_warning_that_nobody_has_described_is_shown_as_it_is() -> None:
    strange = line(9, 8, "init.cc:77 NCCL WARN The moon is in the way")
    closed = line(0, 8, "misc/socket.cc:58 NCCL WARN socketProgress: Connection closed by remote peer worker-1<4>")
    output = table(HEALTHY, cut=len(SWEEP), footer=False)
    judgement = judge_lines(with_lines(output, [*said(), strange, closed]))
    assert judgement.causes[0].signature.id == "unknown-warning"
    assert [each.signature.id for each in judgement.causes[0].consequences] == ["peer-closed"]
    assert "unknown-warning" not in seen(judge_lines(with_lines(output, [*said(), closed])))


def test_the_page_of_verdicts_is_made_from_what_the_program_knows() -> None:
    page = TARGET.read_text(encoding="utf-8")
    assert render(page) == page
    assert all(f"`{each.id}`" in page for each in signatures())
    with pytest.raises(ValueError, match="has no line"):
        render("another page")
