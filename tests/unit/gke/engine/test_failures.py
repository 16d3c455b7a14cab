"""What goes wrong at Google, as the engine reports it: what failed and why, what waits for it, and what next."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import NamedTuple

import pytest

from interlace.gke.errors import GkeError
from interlace.sim.gke.faults import Fault, Kind
from tests.unit.gke.engine.sky import SMALL, Sky, apply_on, plan_on

pytestmark = pytest.mark.looptime


class Row(NamedTuple):
    """A fault, what it does to whom, and words of the reason, its cause and its remedy."""

    fault: Fault
    state: str
    task: str
    words: tuple[str, ...]
    blocked: int = 0
    """How many wait in vain."""
    heals: bool = True
    """Whether the same command finishes it once the fault is gone."""
    left: bool = False
    """Whether what failed exists all the same."""


NETWORK = r"POST .*/global/networks$"
POOL = r"POST .*/nodePools$"
CLUSTER = r"POST .*/clusters$"

ROWS = {
    "quota of networks at the end": Row(
        Fault(kind=Kind.QUOTA_AT_COMPLETION, match=NETWORK, after=1),
        "failed",
        "create network/high-net-1",
        ("NETWORKS", "each GPU NIC needs one", "raised"),
        blocked=3,
    ),
    "quota at once": Row(
        Fault(kind=Kind.QUOTA, match=POOL), "failed", "create nodePool/gpu-pool", ("quota", "raised"), blocked=0
    ),
    "no permission": Row(
        Fault(kind=Kind.PERMISSION_DENIED, match=CLUSTER),
        "failed",
        "create cluster/high",
        ("permission", "Grant"),
        blocked=1,
    ),
    "API not enabled": Row(
        Fault(kind=Kind.API_DISABLED, match=CLUSTER),
        "failed",
        "create cluster/high",
        ("SERVICE_DISABLED", "not enabled", "gcloud services enable"),
        blocked=1,
    ),
    "policy of the organization": Row(
        Fault(kind=Kind.ORG_POLICY, match=NETWORK, after=1),
        "failed",
        "create network/high-net-1",
        ("policy of the organization", "exception"),
        blocked=3,
    ),
    "policy stops the nodes": Row(
        Fault(kind=Kind.CONDITION_NOT_MET, match=POOL),
        "failed",
        "create nodePool/gpu-pool",
        ("policy of the organization",),
        heals=False,
        left=True,
    ),
    "stockout": Row(
        Fault(kind=Kind.STOCKOUT, match=POOL),
        "failed",
        "create nodePool/gpu-pool",
        ("GCE_STOCKOUT", "no free machines", "GKE keeps trying", "another zone"),
        heals=False,
        left=True,
    ),
    "stockout of some": Row(
        Fault(kind=Kind.PARTIAL_STOCKOUT, match=POOL),
        "failed",
        "create nodePool/gpu-pool",
        ("GCE_STOCKOUT", "no free machines"),
        heals=False,
        left=True,
    ),
    "GPU quota at the end": Row(
        Fault(kind=Kind.QUOTA_AT_COMPLETION, match=POOL),
        "failed",
        "create nodePool/gpu-pool",
        ("GPU", "raised"),
        heals=False,
        left=True,
    ),
    "an error without statusMessage": Row(
        Fault(kind=Kind.ERROR_ONLY, match=POOL),
        "failed",
        "create nodePool/gpu-pool",
        ("GPU", "raised"),
        heals=False,
        left=True,
    ),
    "still in use": Row(
        Fault(kind=Kind.IN_USE, match=r"POST .*/subnetworks$", after=1),
        "failed",
        "create subnetwork/high-sub-1",
        ("still uses it",),
        blocked=1,
    ),
    "operation that never ends": Row(
        Fault(kind=Kind.STUCK, match=NETWORK, after=1),
        "unknown",
        "create network/high-net-1",
        ("has not ended within 10 min", "goes on at Google", "wait on"),
        blocked=3,
        heals=False,
    ),
    "answers that stay away": Row(
        Fault(kind=Kind.DROPPED_BEFORE, match=CLUSTER, times=None),
        "unknown",
        "create cluster/high",
        ("no usable answer", "looks first"),
        blocked=1,
    ),
    "a service in trouble": Row(
        Fault(kind=Kind.NOT_JSON, match=CLUSTER, times=None),
        "unknown",
        "create cluster/high",
        ("no usable answer",),
        blocked=1,
    ),
    "rate limit without end": Row(
        Fault(kind=Kind.RATE_LIMIT, match=CLUSTER, times=None),
        "failed",
        "create cluster/high",
        ("429", "Too many requests", "--parallel"),
        blocked=1,
    ),
}


@pytest.mark.parametrize("name", ROWS)
async def test_a_fault_is_told_with_cause_and_remedy_and_holds_up_only_what_needs_it(tmp_path: Path, name: str) -> None:
    row = ROWS[name]
    sky = Sky(text=SMALL, seconds=0.3)
    sky.world.faults.active.append(row.fault)
    run = await apply_on(sky, tmp_path, patience=20, parallel=1)  # so that it is known which request is the second
    states = run.states()
    bad = {task: state for task, state in states.items() if state != "done"}
    assert states[row.task] == row.state
    assert list(bad.values()).count("blocked") == row.blocked
    assert len(bad) == row.blocked + 1
    ending = next(ending for task, ending in run.endings.items() if str(task) == row.task)
    assert isinstance(ending.reason, GkeError)
    for word in row.words:
        assert word in str(ending.reason)
    for each in run.endings.values():
        if each.state == "blocked":
            assert str(each.because) == row.task

    names = {path.rpartition("/")[2] for path in sky.paths()}
    for task, ending in run.endings.items():
        left = ending.state == "done" or (str(task) == row.task and row.left)
        assert (task.key.name in names) is left, f"what remains of {task}"

    sky.world.faults.active.clear()
    again = await apply_on(sky, tmp_path)
    if row.heals:
        assert set(again.states().values()) == {"done"}
        assert (await plan_on(sky, tmp_path)).empty


@pytest.mark.parametrize(
    "fault",
    [
        Fault(kind=Kind.RATE_LIMIT, match=NETWORK, times=3, retry_after=4),
        Fault(kind=Kind.UNAVAILABLE, match=NETWORK, times=3),
        Fault(kind=Kind.UNAVAILABLE, match=CLUSTER),
        Fault(kind=Kind.UNAVAILABLE, match=r"GET ", times=5),
        Fault(kind=Kind.UNAVAILABLE, match=r"/wait$", times=5),
        Fault(kind=Kind.NOT_JSON, match=r"GET ", times=5),
        Fault(kind=Kind.DROPPED_BEFORE, match=POOL),
        Fault(kind=Kind.DROPPED_BEFORE, match=NETWORK, times=2),
        Fault(kind=Kind.HAS_OPERATION, match=POOL, times=2),
        Fault(kind=Kind.TOO_MANY_OPERATIONS, match=POOL, times=2),
        Fault(kind=Kind.UNAUTHENTICATED, match=NETWORK),
    ],
    ids=lambda fault: f"{fault.kind} {fault.match}",
)
async def test_what_passes_is_waited_out(tmp_path: Path, fault: Fault) -> None:
    sky = Sky(text=SMALL, seconds=0.3)
    sky.world.faults.active.append(fault)
    run = await apply_on(sky, tmp_path)
    assert {str(ending.reason) for ending in run.endings.values() if ending.reason} == set()
    assert fault.struck == fault.times


@pytest.mark.parametrize("match", [NETWORK, CLUSTER, POOL, r"POST .*/firewalls$"])
async def test_an_answer_that_is_lost_after_the_change_repeats_nothing(tmp_path: Path, match: str) -> None:
    sky = Sky(text=SMALL, seconds=0.3)
    sky.world.faults.active.append(Fault(kind=Kind.DROPPED_AFTER, match=match))
    run = await apply_on(sky, tmp_path)
    assert {str(ending.reason) for ending in run.endings.values() if ending.reason} == set()
    assert sky.twice() == []


async def test_the_server_says_how_long_to_wait(tmp_path: Path) -> None:
    sky = Sky(text=SMALL, seconds=0.0)
    sky.world.faults.active.append(Fault(kind=Kind.RATE_LIMIT, match=CLUSTER, times=1, retry_after=17))
    began = asyncio.get_running_loop().time()
    await apply_on(sky, tmp_path)
    assert asyncio.get_running_loop().time() - began >= 17
