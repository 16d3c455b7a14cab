"""Who of two agents works: one at a time, and the next one as soon as the other is done."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from interlace.node.cdi import PreparedClaim
from interlace.node.demand import ClaimRef
from interlace.node.errors import RivalDriver, StateError
from interlace.node.plugin import QUIET, Calls
from interlace.node.tenure import Tenure

REF = ClaimRef(namespace="team", name="worker", uid="uid-1")
DONE = PreparedClaim(claim=REF, domain="d", clique="c", index=0, devices=(), injected=True, completed=True)


def pair(home: Path) -> tuple[Tenure, Tenure]:
    return Tenure(home, instance="00000001"), Tenure(home, instance="00000002")


async def test_the_lock_says_who_holds_it_and_is_free_afterwards(tmp_path: Path) -> None:
    first, second = pair(tmp_path / "home")
    assert first.take()
    async with first.held() as asked:
        assert not second.take()
        assert not asked.is_set()
        assert (tmp_path / "home/agent.lock").read_text() == f"{os.getpid()} 00000001\n"
    assert second.take()
    async with second.held():
        pass
    assert [path.name for path in (tmp_path / "home").iterdir()] == ["agent.lock"]


@pytest.mark.parametrize("instance", ["", "00000001"])
async def test_an_agent_with_the_same_sockets_is_a_rival(tmp_path: Path, instance: str) -> None:
    first, second = Tenure(tmp_path, instance=instance), Tenure(tmp_path, instance=instance)
    assert first.take()
    async with first.held():
        with pytest.raises(RivalDriver, match=rf"agent\.lock is locked .* \(process {os.getpid()} in its own count\)"):
            second.take()


async def test_who_asks_gets_the_lock_when_the_other_is_done(tmp_path: Path) -> None:
    first, second = pair(tmp_path)
    order: list[str] = []

    async def succeed() -> None:
        await second.wait(ask=True)
        order.append("taken")
        async with second.held():
            order.append("held")

    assert first.take()
    async with asyncio.timeout(20), asyncio.TaskGroup() as group, first.held() as asked:
        group.create_task(succeed())
        await asked.wait()
        order.append("asked")
    assert order == ["asked", "taken", "held"]


async def test_who_does_not_ask_waits_until_the_other_ends_by_itself(tmp_path: Path) -> None:
    first, second = pair(tmp_path)
    assert first.take()
    async with asyncio.timeout(20), asyncio.TaskGroup() as group:
        async with first.held() as asked:
            waiting = group.create_task(second.wait(ask=False))
            third = group.create_task(Tenure(tmp_path, instance="00000003").wait(ask=True))
            # What comes after it on the same socket is known to have been read by then.
            await asked.wait()
            third.cancel()
            assert not waiting.done()
        await waiting
    async with second.held():
        pass


async def test_a_holder_whose_socket_is_gone_is_waited_for_all_the_same(tmp_path: Path) -> None:
    first, second = pair(tmp_path)
    assert first.take()
    async with asyncio.timeout(20), asyncio.TaskGroup() as group:
        async with first.held():
            (tmp_path / "agent.sock").unlink()
            waiting = group.create_task(second.wait(ask=True))
            await asyncio.sleep(0)
        await waiting
    async with second.held():
        pass


async def test_a_folder_that_cannot_be_used_is_said(tmp_path: Path) -> None:
    (tmp_path / "agent.lock").mkdir()
    with pytest.raises(StateError, match=r"agent\.lock cannot be opened"):
        Tenure(tmp_path, instance="").take()


class Claims:
    """Prepare takes as long as the test wants."""

    def __init__(self) -> None:
        self.called: list[str] = []
        self.go = asyncio.Event()

    async def prepare(self, ref: ClaimRef) -> PreparedClaim:
        self.called.append("prepare")
        await self.go.wait()
        return DONE

    async def unprepare(self, ref: ClaimRef) -> None:
        self.called.append("unprepare")


@pytest.mark.looptime
async def test_calls_wait_until_the_agent_works_and_then_go_through() -> None:
    claims = Claims()
    claims.go.set()
    calls = Calls(claims, limit=40)
    async with asyncio.TaskGroup() as group:
        prepared = group.create_task(calls.prepare(REF))
        unprepared = group.create_task(calls.unprepare(REF))
        await asyncio.sleep(39)
        assert claims.called == []
        calls.begun.set()
        assert await prepared is DONE
        await unprepared
    assert sorted(claims.called) == ["prepare", "unprepare"]


@pytest.mark.looptime
async def test_a_call_that_waits_too_long_is_told_why() -> None:
    with pytest.raises(StateError, match="has not handed over within 40 s"):
        await Calls(Claims(), limit=40).prepare(REF)


@pytest.mark.looptime
async def test_an_agent_ends_only_after_the_calls_in_progress_and_a_moment_of_quiet() -> None:
    loop, claims = asyncio.get_running_loop(), Claims()
    calls = Calls(claims, limit=40)
    calls.begun.set()
    async with asyncio.TaskGroup() as group:
        group.create_task(calls.prepare(REF))
        await asyncio.sleep(0)
        loop.call_later(30, claims.go.set)
        late = group.create_task(_later(30 + QUIET / 2, calls))
        await calls.ended()
        assert loop.time() == pytest.approx(30 + QUIET * 3 / 2)
        await late


async def _later(at: float, calls: Calls) -> None:
    await asyncio.sleep(at)
    await calls.unprepare(REF)
