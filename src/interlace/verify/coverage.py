"""What a measurement did not test: fabrics, rails, directions, sizes, data.

A pass says nothing about these, so the verdict names them. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from interlace.verify.assertions import Scene
from interlace.verify.bandwidth import Assessment
from interlace.verify.curve import LARGE, main_curve, reaches
from interlace.verify.run import Run

_ONE_WAY = {
    "broadcast": "the way back to the root (broadcast only leaves it)",
    "scatter": "the way back to the root (scatter only leaves it)",
    "reduce": "the way from the root to the others (reduce only comes to it)",
    "gather": "the way from the root to the others (gather only comes to it)",
}


def untested(scene: Scene, assessments: Sequence[Assessment]) -> tuple[str, ...]:
    """Each thing that no run of ``assessments`` tested, as a clause, the widest first."""
    if not scene.measured:
        return ("the fabric: no measurement was made",)
    return tuple(dict.fromkeys((*_fabrics(scene), *_rails(scene), *_measurements(scene, assessments))))


def _fabrics(scene: Scene) -> Iterator[str]:
    family, nodes = scene.family, scene.nodes
    if nodes is None:
        yield "whether data left a node: the number of nodes is not known"
    elif nodes < 2:
        yield "the network between nodes: all ranks ran on one node"
    elif family is not None and family.node.mnnvl:
        over_nics = bool(scene.transport.carriers) or scene.transport.mnnvl is False
        yield "NVLink between nodes: the NICs carried the data" if over_nics else "the NICs: data stayed on NVLink"
    elif family is not None:
        yield "NVLink inside the nodes: it is faster than the NICs, which hide it"
    if nodes is not None and nodes > 2:
        yield "paths between nodes that are no neighbours in the ring"
    if scene.ran is None:
        yield "which transport carried the data: the log has no lines of NCCL_DEBUG=INFO about it"
    if (nodes or 0) > 1 and family is not None and family.node.mnnvl and _no_multicast(scene):
        yield "NVLink multicast: it was off"


def _no_multicast(scene: Scene) -> bool:
    return scene.transport.multicast == 0 or scene.transport.settings.get("NCCL_NVLS_ENABLE") == "0"


def _rails(scene: Scene) -> Iterator[str]:
    family, nodes, ranks = scene.family, scene.nodes, scene.ranks
    if family is None or nodes is None or nodes < 2 or not ranks:
        return
    gpus, nics = family.node.gpus, family.node.nics
    used = -(-ranks // nodes)
    if used < gpus:
        yield f"{gpus - used} of the {gpus} GPUs of each node, and the NICs beside them"
    devices = scene.transport.net_devices
    if devices and len(devices) < nics:
        left = [str(number) for number in range(nics) if number not in devices]
        yield f"rails {', '.join(left)}: no channel line names their NICs"


def _measurements(scene: Scene, assessments: Sequence[Assessment]) -> Iterator[str]:
    runs = [run for run in scene.runs if run.rows]
    if all(run.collective in _ONE_WAY for run in runs):
        yield from (_ONE_WAY[run.collective] for run in runs if run.collective is not None)
    if not any(reaches(_largest(run), LARGE) for run in runs):
        yield "bandwidth: no size is 256 MiB or more"
    for run in runs:
        if run.checked is False:
            yield f"the data of {run.collective or 'a run'}: results were not compared"
        if run.avg_busbw_printed is None and run.out_of_bounds is None:
            yield f"whether {run.collective or 'a run'} ended well: its log has no footer"
        if run.partial_rows:
            cut = "1 row" if run.partial_rows == 1 else f"{run.partial_rows} rows"
            yield f"{cut} of {run.collective or 'a run'}: the log is cut there"
    for each in assessments:
        if not each.judged:
            yield f"{each.name}, which was not judged: {each.cause}"


def _largest(run: Run) -> int:
    points = main_curve(run).points
    return points[-1].size if points else 0
