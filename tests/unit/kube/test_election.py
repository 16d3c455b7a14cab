"""One leader at a time, in virtual time against real requests that are late, lost or refused."""

from __future__ import annotations

import asyncio
import json
from itertools import chain
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, event, given, settings
from hypothesis import strategies as st

from interlace.kube.client import Client
from interlace.kube.election import Election
from interlace.kube.errors import LeadershipLost
from tests.unit.kube.server import Server, Trouble
from tests.unit.kube.support import LEASES, cluster, now, run_virtual, running, wait_for
from tests.waiting import eventually

pytestmark = pytest.mark.looptime


def candidate(client: Client, identity: str, **times: float) -> Election:
    return Election(client, namespace="default", name="controller", identity=identity, **times)


class Main:
    """Work under a Lease: says whether it runs, and when it began and ended."""

    def __init__(self) -> None:
        self.started = asyncio.Event()
        self.began = self.ended = -1.0

    async def __call__(self) -> None:
        self.began = now()
        self.started.set()
        try:
            await asyncio.Event().wait()
        finally:
            self.ended = now()


def lease(server: Server) -> dict[str, Any]:
    (obj,) = server.list(LEASES)
    spec: dict[str, Any] = obj["spec"]
    return spec


async def outcome(task: asyncio.Task[None]) -> BaseException | None:
    await wait_for(task, within=100)
    return None if task.cancelled() else task.exception()


async def attempt(election: Election, main: Main, lost: list[str]) -> None:
    """Lead once; a lost leadership is noted."""
    try:
        await election.lead(main)
    except LeadershipLost as error:
        lost.append(str(error))


async def test_the_first_candidate_makes_the_lease_and_leads() -> None:
    async with cluster() as (server, client):
        election, main = candidate(client, "a"), Main()
        async with running(election.lead(main)):
            await main.started.wait()
            assert election.leading
            assert election.holder == "a"
            spec = lease(server)
            assert (spec["holderIdentity"], spec["leaseDurationSeconds"], spec["leaseTransitions"]) == ("a", 15, 0)
            assert spec["renewTime"].endswith("Z")
            assert len(spec["renewTime"]) == len("2026-01-01T00:00:00.000000Z")


async def test_a_leader_renews_with_one_request_every_two_seconds() -> None:
    async with cluster() as (server, client):
        main = Main()
        async with running(candidate(client, "a").lead(main)):
            await main.started.wait()
            before = len(server.asked)
            await asyncio.sleep(21)
            assert [asked.method for asked in server.asked[before:]] == ["PATCH"] * 10
            assert lease(server)["leaseTransitions"] == 0


async def test_leaving_gives_the_lease_back_so_that_the_next_leads_at_once() -> None:
    async with cluster() as (server, client):
        first, second = Main(), Main()
        async with running(candidate(client, "a").lead(first), candidate(client, "b").lead(second)) as (task, _):
            await first.started.wait()
            await asyncio.sleep(30)
            task.cancel()
            assert await outcome(task) is None
            assert task.cancelled()
            await second.started.wait()
            assert 0 <= second.began - first.ended < 3
            assert lease(server)["leaseTransitions"] == 1


async def test_a_main_that_ends_ends_the_leadership() -> None:
    async with cluster() as (server, client):

        async def main() -> None:
            await asyncio.sleep(5)

        await candidate(client, "a").lead(main)
        assert lease(server)["holderIdentity"] == ""


async def test_the_error_of_main_comes_out_as_it_is_and_the_lease_is_given_back() -> None:
    async with cluster() as (server, client):

        async def main() -> None:
            raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            await candidate(client, "a").lead(main)
        assert lease(server)["holderIdentity"] == ""


async def test_a_dead_leader_is_followed_after_the_lease_has_run_out_by_the_watchers_own_clock() -> None:
    async with cluster() as (server, client):
        # The written times are nonsense on purpose: only what we observe counts.
        spec = {"holderIdentity": "dead", "leaseDurationSeconds": 15, "renewTime": "2099-01-01T00:00:00.000000Z"}
        server.put(LEASES, "controller", spec=spec)
        main = Main()
        async with running(candidate(client, "a").lead(main)):
            await main.started.wait()
        assert 15 <= main.began < 15 + 2.5
        assert [asked.method for asked in server.asked].count("PATCH") == 2, "taken once, given back once"


async def test_a_leader_that_is_cut_off_stops_before_its_deadline_and_another_leads_later() -> None:
    lost: list[str] = []
    async with (
        Server() as server,
        Client(server.config, user_agent="a") as one,
        Client(server.config, user_agent="b") as two,
    ):
        first, second = Main(), Main()
        async with running(attempt(candidate(one, "a"), first, lost), candidate(two, "b").lead(second)):
            await first.started.wait()
            await asyncio.sleep(20)
            cut = now()
            server.trouble["a"] = Trouble(there=10_000)
            await second.started.wait()
            assert cut < first.ended <= cut + 10
            assert second.began > first.ended
            assert second.began <= cut + 15 + 2.5
    assert lost == ["lease default/controller: not renewed in 10 s: no answer"]


async def test_a_short_trouble_does_not_cost_the_lease() -> None:
    async with cluster() as (server, client):
        main = Main()
        async with running(candidate(client, "a").lead(main)):
            await main.started.wait()
            server.refuse(500, times=3)
            await asyncio.sleep(60)
            server.trouble["test"] = Trouble(there=4)
            await asyncio.sleep(60)
            del server.trouble["test"]
            assert main.ended == -1


async def test_one_silent_request_does_not_cost_the_lease() -> None:
    async with cluster() as (server, client):
        main = Main()
        async with running(candidate(client, "a").lead(main)):
            await main.started.wait()
            server.trouble["test"] = Trouble(there=10_000)
            await asyncio.sleep(2.5)  # one request is on its way and will stay so
            del server.trouble["test"]
            await asyncio.sleep(60)
            assert main.ended == -1


async def test_a_renewal_whose_answer_was_lost_is_recognised_as_our_own() -> None:
    async with cluster() as (server, client):
        main = Main()
        async with running(candidate(client, "a").lead(main)):
            await main.started.wait()
            server.lose_answers = 2
            await asyncio.sleep(60)
            assert server.lose_answers == 0
            assert main.ended == -1
            assert lease(server)["holderIdentity"] == "a"


async def test_a_leader_whose_lease_was_taken_stops_at_its_next_renewal() -> None:
    lost: list[str] = []
    async with cluster() as (server, client):
        main = Main()
        async with running(attempt(candidate(client, "a"), main, lost)):
            await main.started.wait()
            server.put(LEASES, "controller", spec={"holderIdentity": "thief", "leaseDurationSeconds": 15})
            taken = now()
            await eventually(lambda: lost, within=10)
            assert main.ended - taken <= 2.1
    assert lost == ["lease default/controller: thief holds it"]
    assert lease(server)["holderIdentity"] == "thief", "what is not ours is not given back"


async def test_a_deleted_lease_is_made_anew_by_its_leader() -> None:
    async with cluster() as (server, client):
        main = Main()
        async with running(candidate(client, "a").lead(main)):
            await main.started.wait()
            server.remove(LEASES, "controller")
            await asyncio.sleep(10)
            assert main.ended == -1
            assert lease(server)["holderIdentity"] == "a"


async def test_two_candidates_that_start_together_have_one_winner() -> None:
    async with cluster() as (server, client):
        server.delay = 0.1
        mains = [Main() for _ in range(5)]
        async with running(*(candidate(client, f"c{index}").lead(main) for index, main in enumerate(mains))):
            await asyncio.sleep(60)
            assert sum(main.began >= 0 for main in mains) == 1


async def test_a_waiting_candidate_can_be_cancelled() -> None:
    async with cluster() as (server, client):
        server.put(LEASES, "controller", spec={"holderIdentity": "other", "leaseDurationSeconds": 10_000})
        async with running(candidate(client, "a").lead(Main())) as (task,):
            await asyncio.sleep(20)
            task.cancel()
            assert await outcome(task) is None
        assert lease(server)["holderIdentity"] == "other"


async def test_other_fields_of_the_lease_survive() -> None:
    async with cluster() as (server, client):
        server.put(LEASES, "controller", spec={"holderIdentity": "", "strategy": "OldestEmulationVersion"})
        main = Main()
        async with running(candidate(client, "a").lead(main)):
            await main.started.wait()
            assert lease(server)["strategy"] == "OldestEmulationVersion"
            sent = json.loads(next(asked.body for asked in server.asked if asked.method == "PATCH"))
            assert "resourceVersion" in sent["metadata"]


@pytest.mark.parametrize(
    "times", [{"duration": 10}, {"renew_deadline": 15}, {"retry": 10}, {"retry": 0}, {"duration": 15.5}]
)
async def test_times_that_cannot_work_are_refused(times: dict[str, float]) -> None:
    async with cluster() as (_, client):
        with pytest.raises(ValueError, match=r"duration|seconds"):
            candidate(client, "a", **times)


TROUBLES = st.sampled_from(
    [None, Trouble(there=1), Trouble(there=6), Trouble(back=7), Trouble(there=25), Trouble(there=1e6)]
)
ACTIONS = st.one_of(
    st.tuples(st.just("trouble"), st.integers(0, 1), TROUBLES),
    st.tuples(st.just("trouble"), st.just(0), TROUBLES),
    st.tuples(st.just("restart"), st.integers(0, 1), st.none()),
    st.tuples(st.just("refuse"), st.integers(1, 9), st.none()),
    st.tuples(st.just("lose"), st.integers(1, 4), st.none()),
)
PAUSES = st.tuples(st.just("pass"), st.sampled_from([1, 5, 12, 40]), st.none())
STEPS = st.lists(st.tuples(ACTIONS, PAUSES), min_size=3, max_size=10)


@settings(
    max_examples=50,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    phases=[phase for phase in Phase if phase is not Phase.explain],
)
@given(STEPS)
def test_two_candidates_never_lead_at_once_and_one_leads_in_the_end(
    steps: list[tuple[tuple[str, int, Trouble | None], ...]],
) -> None:
    leading: set[int] = set()
    both: list[float] = []
    terms: list[int] = []

    async def be(index: int, election: Election) -> None:
        async def main() -> None:
            leading.add(index)
            terms.append(index)
            if len(leading) > 1:
                both.append(now())
            try:
                await asyncio.Event().wait()
            finally:
                leading.discard(index)

        while True:
            try:
                await election.lead(main)
            except LeadershipLost:
                continue

    async def scenario() -> None:
        async with (
            Server() as server,
            Client(server.config, user_agent="0") as one,
            Client(server.config, user_agent="1") as two,
            asyncio.TaskGroup() as group,
        ):

            def start(index: int) -> asyncio.Task[None]:
                return group.create_task(be(index, candidate((one, two)[index], f"c{index}")))

            tasks = [start(0), start(1)]
            for what, number, trouble in chain.from_iterable(steps):
                if what == "trouble" and trouble is not None:
                    server.trouble[str(number)] = trouble
                elif what == "trouble":
                    server.trouble.pop(str(number), None)
                elif what == "restart":
                    tasks[number].cancel()
                    await wait_for(tasks[number])
                    tasks[number] = start(number)
                elif what == "refuse":
                    server.refuse(500, times=number)
                elif what == "lose":
                    server.lose_answers = number
                else:
                    await asyncio.sleep(number)
            server.trouble.clear()
            server.refusals.clear()
            server.lose_answers = 0
            await asyncio.sleep(60)
            assert both == []
            assert len(leading) == 1
            event(f"terms: {min(len(terms), 6)}")
            for task in tasks:
                task.cancel()

    run_virtual(scenario)
