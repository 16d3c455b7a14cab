"""The agent's link against a real unix socket served by the test."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from interlace.imex.control import HostLink
from interlace.imex.order import Message, Order, Refusal, Release, State, decode, encode
from tests.unit.imex.support import DOMAIN, make_order, short_folder, until

ORDER = make_order(0, {0: "10.0.0.1"})


class Host:
    """A host that records what it hears and says what the test wants."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.heard: list[Message] = []
        self.writers: list[asyncio.StreamWriter] = []
        self.server: asyncio.Server | None = None

    async def start(self) -> None:
        self.path.unlink(missing_ok=True)
        self.server = await asyncio.start_unix_server(self.talk, str(self.path))

    async def talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.writers.append(writer)
        writer.write(encode(State()))
        with contextlib.suppress(ConnectionError):
            while line := await reader.readline():
                self.heard.append(decode(line))
        writer.close()

    def say(self, data: bytes) -> None:
        self.writers[-1].write(data)

    async def stop(self) -> None:
        assert self.server is not None
        self.server.close()
        for writer in self.writers:
            writer.close()
        self.writers.clear()


@contextlib.asynccontextmanager
async def linked(path: Path) -> AsyncIterator[tuple[HostLink, list[State | None]]]:
    link, states = HostLink(path), list[State | None]()
    link.on_state(states.append)
    async with asyncio.TaskGroup() as group:
        task = group.create_task(link.run())
        try:
            yield link, states
        finally:
            task.cancel()


@pytest.fixture
async def host() -> AsyncIterator[Host]:
    with short_folder() as folder:
        made = Host(folder / "host.sock")
        await made.start()
        yield made
        await made.stop()


async def test_the_order_is_sent_once_and_again_after_each_reconnection(host: Host) -> None:
    async with linked(host.path) as (link, states):
        link.order(ORDER)
        await until(lambda: host.heard == [ORDER], what="first order")
        link.order(ORDER)
        await host.stop()
        await until(lambda: link.state is None, what="the loss is noticed")
        await host.start()
        await until(lambda: host.heard == [ORDER, ORDER], what="the order again")
        assert states == [State(), None, State()]


async def test_only_the_last_wish_is_sent_to_a_host_that_comes_late() -> None:
    with short_folder() as folder:
        host = Host(folder / "host.sock")
        async with linked(host.path) as (link, states):
            link.order(ORDER)
            link.order(make_order(0, {0: "10.0.0.1"}, domain="other"))
            link.release(DOMAIN)
            assert link.state is None
            await host.start()
            await until(lambda: host.heard == [Release(domain=DOMAIN)], what="the release alone")
            await until(lambda: link.state == State(), what="the state")
            assert states == [State()]
        await host.stop()


async def test_a_link_that_wants_nothing_says_nothing(host: Host) -> None:
    async with linked(host.path) as (link, _):
        await until(lambda: link.state is not None, what="connected")
        host.say(encode(State(domain=DOMAIN, index=3, phase="Ready")))
        await until(lambda: link.state is not None and link.state.index == 3, what="the state")
        assert host.heard == []


async def test_states_come_in_order_and_equal_ones_once(host: Host) -> None:
    async with linked(host.path) as (link, states):
        await until(lambda: link.state is not None, what="connected")
        starting, ready = (State(domain=DOMAIN, index=0, phase=phase) for phase in ("Starting", "Ready"))
        host.say(encode(starting) + encode(starting) + encode(ready))
        await until(lambda: link.state == ready, what="ready")
        assert states == [State(), starting, ready]


async def test_a_refusal_is_kept_until_something_else_is_sent(host: Host) -> None:
    async with linked(host.path) as (link, _):
        link.order(ORDER)
        await until(lambda: host.heard == [ORDER], what="order")
        host.say(encode(Refusal(message="this program speaks 1")))
        await until(lambda: link.refusal is not None, what="refusal")
        link.release(DOMAIN)
        await until(lambda: Release(domain=DOMAIN) in host.heard and link.refusal is None, what="gone")


async def test_rubbish_from_the_host_is_skipped(host: Host) -> None:
    async with linked(host.path) as (link, _):
        await until(lambda: link.state is not None, what="connected")
        host.say(b"\xff\n[]\n" + encode(Order(domain="x", index=0, names=[], addresses=[])) + encode(State(restarts=1)))
        await until(lambda: link.state == State(restarts=1), what="the state behind the rubbish")


@pytest.mark.looptime
async def test_the_pauses_between_attempts_grow_to_two_seconds_and_no_further() -> None:
    link = HostLink(Path("/no/such/folder/host.sock"))
    loop = asyncio.get_running_loop()
    times: list[float] = []
    original = asyncio.open_unix_connection

    async def attempt(*args: object, **kwargs: object) -> object:
        times.append(loop.time())
        return await original(*args, **kwargs)  # type: ignore[arg-type]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(asyncio, "open_unix_connection", attempt)
        async with asyncio.TaskGroup() as group:
            task = group.create_task(link.run())
            await asyncio.sleep(60)
            task.cancel()
    pauses = [after - before for before, after in itertools.pairwise(times)]
    assert pauses[0] <= 0.05
    assert max(pauses) <= 2.0
    assert all(pause >= 0.99 for pause in pauses[8:])


async def test_a_refusal_wakes_whoever_waits_for_the_host(host: Host) -> None:
    async with linked(host.path) as (link, _):
        refusals: list[Refusal | None] = []
        await until(lambda: link.state is not None, what="connected")
        link.on_state(lambda _: refusals.append(link.refusal))
        refusal = Refusal(message="this program speaks 1")
        host.say(encode(refusal))
        await until(lambda: refusals == [refusal], what="a call with the refusal to be seen")
