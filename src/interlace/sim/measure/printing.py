"""What nccl-tests and NCCL would have printed about a simulated measurement: real text, labelled as simulated.

Invariant: every log begins with a line that says that it is simulated, and names the program's version so.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from interlace.fabric.family import Family
from interlace.sim.measure.bandwidth import Answer, Question, Row, carried

LABEL: Final = "# simulated: no hardware was measured; from the bandwidth model of interlace"
_REDUCING: Final = frozenset({"all_reduce", "reduce_scatter", "reduce", "sendrecv"})
_ROOTED: Final = frozenset({"broadcast", "reduce"})
_DIVIDING: Final = frozenset({"all_gather", "reduce_scatter", "alltoall"})
_FLOAT: Final = 4
_COMM: Final = "comm 0x51a0 rank {rank} nRanks {ranks} nNodes {nodes} localRanks {each} localRank {local} MNNVL {mnnvl}"


def log(family: Family, question: Question, answer: Answer) -> str:
    """The first Pod's log, as stdout and stderr together."""
    return "".join(f"{line}\n" for line in (LABEL, *_lines(family, question, answer)))


def _lines(family: Family, question: Question, answer: Answer) -> Iterator[str]:
    if answer.broken:
        yield f"{answer.broken} does not answer on port {family.test.port if family.test else 22}"
        return
    yield "# nccl-tests version 2.19.6-simulated nccl-headers=22809 nccl-library=22809"
    yield f"# Collective test starting: {question.collective}_perf"
    yield (
        f"# nThread 1 nGpus 1 minBytes {question.least} maxBytes {question.most} step: 2(factor) warmup iters: 5"
        " iters: 20 agg iters: 1 validation: 1 graph: 0 unalign: 0"
    )
    yield "#"
    yield "# Using devices"
    each = answer.ranks // len(question.nodes)
    product = family.node.product.replace("-", " ")
    for rank in range(answer.ranks):
        node, device = question.nodes[rank // each], _device(question, rank % each)
        bus = f"[0000:{device + 1:02x}:00]"
        yield f"#  Rank {rank:2d} Group  0 Pid {1000 + rank:6d} on {node:>10} device {device:2d} {bus} {product}"
    yield from _nccl(question, answer, each=each)
    yield "#"
    yield f"#{'out-of-place':>68}{'in-place':>34}"
    yield (
        "#       size         count      type   redop    root     time   algbw   busbw  #wrong     time   algbw"
        "   busbw  #wrong"
    )
    yield f"#        (B)    (elements){'(us)  (GB/s)  (GB/s)':>51}{'(us)  (GB/s)  (GB/s)':>33}"
    found: list[float] = []
    for row in answer.rows:
        text, values = _row(question, answer, row)
        found += values
        yield text
    checks = 2 * len(answer.rows) * answer.ranks
    yield f"# Out of bounds values : {checks} FAILED" if answer.wrong else "# Out of bounds values : 0 OK"
    yield f"# Avg bus bandwidth    : {sum(found) / len(found) if found else 0:g} "
    yield "#"
    yield f"# Collective test concluded: {question.collective}_perf"


def _device(question: Question, local: int) -> int:
    return local if question.rail is None else question.rail


def _nccl(question: Question, answer: Answer, *, each: int) -> Iterator[str]:
    """INFO lines: the network, the communicator, the channels of rank 0, the end of the start."""
    nodes, ranks = question.nodes, answer.ranks
    for rank in range(ranks):
        host, local = nodes[rank // each], rank % each
        head = f"{host}:{1000 + rank}:{2000 + rank} [{_device(question, local)}] NCCL INFO "
        if rank == 0:
            yield f"{head}NCCL version 2.28.9+cuda13.0"
        if answer.network == "Socket":
            yield f"{head}NET/Plugin: Could not find: libnccl-net.so"
        yield f"{head}Using network {answer.network or 'Socket'}"
        yield head + _COMM.format(
            rank=rank, ranks=ranks, nodes=len(nodes), each=each, local=local, mnnvl=int(not answer.network)
        )
        peer = (rank + each) % ranks
        for channel, nic in enumerate(answer.nics):
            if not answer.network:
                via = "P2P/MNNVL"
            else:
                via = f"NET/{answer.network}/{nic}" + ("" if answer.network == "Socket" else "/GDRDMA")
            here, there = _device(question, local), _device(question, peer % each)
            yield f"{head}Channel {channel:02d}/0 : {rank}[{here}] -> {peer}[{there}] [send] via {via}"
        yield f"{head}comm 0x51a0 rank {rank} nranks {ranks} cudaDev {_device(question, local)} - Init COMPLETE"


def _row(question: Question, answer: Answer, row: Row) -> tuple[str, list[float]]:
    ranks, collective = answer.ranks, question.collective
    parts = ranks if collective in _DIVIDING else 1
    # Whole elements a rank, as nccl-tests rounds them.
    count = row.size // _FLOAT // parts // _FLOAT * _FLOAT
    size = count * _FLOAT * parts
    redop, root = "sum" if collective in _REDUCING else "none", 0 if collective in _ROOTED else -1
    cells = f"{size:>12} {count:>13} {'float':>9} {redop:>7} {root:>7}"
    values = []
    for place, time in enumerate(row.times):
        algbw = size / time / 1e3
        busbw = algbw * carried(collective, ranks)
        values.append(busbw)
        unchecked = place == 1 and collective in {"alltoall", "sendrecv"}
        wrong = "N/A" if unchecked else str(answer.wrong)
        cells += f"  {_fitted(time, 7):>7} {_fitted(algbw, 6):>7} {_fitted(busbw, 6):>7} {wrong:>7}"
    return cells, values


def _fitted(value: float, width: int) -> str:
    for places in (2, 1, 0):
        text = f"{value:.{places}f}"
        if len(text) <= width:
            return text
    return f"{value:.1e}"
