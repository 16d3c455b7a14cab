"""Clocks that jump."""

from __future__ import annotations

from typing import Final

from bench.faults.kills import kill_controller
from bench.faults.row import Row
from bench.faults.shifted import OFFSET_FILE
from bench.faults.stage import Stage, eventually

FORWARD: Final = 3600.0
BACK: Final = -7200.0


def _set(stage: Stage, offset: float) -> None:
    for node in stage.cluster.fleet.nodes.values():
        (node.tray.root / OFFSET_FILE).write_text(str(offset))


async def jumps(stage: Stage) -> None:
    """The clocks of all machines jump an hour ahead, then two hours back, while a domain grows."""
    await stage.start("job", count=2)
    before = {pod.metadata.uid for pod in await stage.formed("job", count=2)}
    leader = await stage.leader()
    process = stage.cluster.fleet.programs.processes[leader]
    stage.strike()
    try:
        _set(stage, FORWARD)
        await stage.scale("job", count=3)
        await stage.formed("job", count=3)
        _set(stage, BACK)
        await stage.scale("job", count=4)
        await stage.formed("job", count=4)
        stage.end()
        assert before <= stage.uids("job"), "a Pod that ran was replaced"
        assert await stage.leader() == leader, "the Lease was lost"
        assert stage.cluster.fleet.programs.processes[leader] == process, "the leader was started again"
        await stage.remove("job")
        await stage.gone()
    finally:
        _set(stage, 0.0)


async def leader_from_the_future(stage: Stage) -> None:
    """The leader's clock is an hour ahead when it is killed: its Lease is renewed in the future."""
    await stage.start("job", count=2)
    await stage.formed("job", count=2)
    _set(stage, FORWARD)
    try:
        before = await stage.lease()

        async def old() -> list[str]:
            now = await stage.lease()
            return [] if now.spec.renew_time != before.spec.renew_time else ["the Lease is not renewed yet"]

        await eventually(old, within=stage.limit)
        _set(stage, 0.0)
        stage.strike()
        await kill_controller(stage, "")
        await stage.scale("job", count=3)
        await stage.formed("job", count=3)
        stage.end()
        after = await stage.lease()
        assert after.spec.holder_identity != before.spec.holder_identity, "nobody took over"
    finally:
        _set(stage, 0.0)


ROWS: Final = (
    Row(
        name="clock-jumps",
        fault="the clocks of all machines jump an hour ahead and two hours back",
        when="while a domain grows from 2 to 3 and to 4 nodes",
        made="the time that our components read is moved; the monotonic clock is not",
        holds="All 4 nodes and Pods are Ready, the first 2 Pods the same; the leader is the same process.",
        act=jumps,
        cheap=True,
    ),
    Row(
        name="leader-from-the-future",
        fault="the leader is killed after its clock was an hour ahead",
        when="while a domain grows from 2 to 3 nodes",
        made="the time that our components read is moved; SIGKILL",
        holds="The other controller leads after the Lease's duration; all 3 nodes are Ready.",
        act=leader_from_the_future,
    ),
)
