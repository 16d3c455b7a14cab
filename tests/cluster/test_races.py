"""Domains that want the same nodes at the same time, on the real scheduler: never two on one node, none stuck."""

from __future__ import annotations

import pytest

from bench.scale import shaken
from bench.scale.ground import run_ground
from bench.scale.jobs import LIMIT
from bench.scale.page import races_table

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.timeout(300)]

CHURN = 15.0
"""Seconds; `python -m bench.scale races` takes 60."""
SEED = 36


@pytest.mark.parametrize("nodes", [36, 20])
async def test_two_domains_started_together_and_shaken_never_meet(nodes: int) -> None:
    async with run_ground("real", nodes=nodes) as cluster:
        # raises where a Pod that fits is not Ready in the end
        found = await shaken.race(cluster, server="real", number=1, seconds=CHURN, seed=SEED, tell=_tell)
    _tell("\n" + races_table([found]))
    for slow in found.slow:
        _tell(f"{slow.pod} waited {slow.seconds} s with room: {'; '.join(slow.story)}")
    assert found.breaches == []
    assert found.allocations >= 20
    assert found.prepared >= 20
    assert found.waited.longest < LIMIT


def _tell(line: str) -> None:
    print(line)  # noqa: T201
