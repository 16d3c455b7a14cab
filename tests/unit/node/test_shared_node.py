"""A node with several claims: of one domain, of domains that share an IMEX domain, of one that waits for its peers."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from interlace.api.computedomain import (
    CLIQUE_LABEL,
    DOMAIN_LABEL,
    DRIVER,
    SHARED,
    ComputeDomainChannel,
    ComputeDomainClique,
    ComputeDomainDaemonInfo,
    PeerCount,
)
from interlace.api.meta import ObjectMeta
from interlace.api.resource import ResourcePool, ResourceSlice, ResourceSliceSpec
from interlace.imex.order import SENTINEL, Order, State
from interlace.node.cdi import spec_path
from interlace.node.demand import demand
from interlace.node.errors import Reason, Refusal
from interlace.node.fabric import Fabric
from interlace.node.gate import Closed, Open, View, gate
from interlace.node.membership import Membership, memberships
from interlace.node.offer import CLOSING, FREE, SLOTS, Offer, devices
from interlace.node.offering import Offering
from interlace.node.orders import order, wanted_imex
from interlace.node.peers import verdict
from tests.unit.node.parts import CLIQUE, DOMAIN, NODE, OTHER, Bench, a_claim, a_membership, ref

pytestmark = pytest.mark.looptime
MAP = f"{SHARED}.{CLIQUE}"


def _clique(*, opened: bool = False, barrier: PeerCount | None = None) -> ComputeDomainClique:
    """This node and another one: DOMAIN is on this alone, OTHER on both."""
    rows = [
        ComputeDomainDaemonInfo(
            node_name=node, ip_address=address, clique_id=CLIQUE, index=index, shared=opened and node == NODE
        )
        for node, address, index in ((NODE, "10.0.0.1", 4), ("other", "10.0.0.2", 2))
    ]
    channels = [
        ComputeDomainChannel(domain=DOMAIN, name="d", namespace="team", channel=5, indexes=[4], wait_for_peers=barrier),
        ComputeDomainChannel(domain=OTHER, name="o", namespace="team", channel=9, indexes=[2, 4]),
    ]
    return ComputeDomainClique(
        metadata=ObjectMeta(name=MAP, labels={CLIQUE_LABEL: CLIQUE}), daemons=rows, channels=channels
    )


def _found(**more: Any) -> dict[str, Membership]:
    return {found.domain: found for found in memberships(_clique(**more), node=NODE)}


def _join(bench: Bench, **more: Any) -> None:
    bench.state.memberships.update(_found(**more))
    bench.state.poke()


async def idle() -> None:
    await asyncio.sleep(0.01)


def _channels(bench: Bench, uid: str) -> list[str]:
    spec = json.loads(spec_path(bench.settings.cdi_root, uid).read_bytes())
    return [node["path"].rpartition("/")[2] for node in spec["devices"][0]["containerEdits"]["deviceNodes"]]


def test_a_shared_map_serves_each_of_its_domains_with_its_nodes_and_channel() -> None:
    found = _found()
    mine, other = found[DOMAIN], found[OTHER]
    assert (mine.imex_domain, mine.holder, mine.channel) == (MAP, SHARED, 5)
    assert [row.node for row in mine.rows] == [NODE]
    assert [row.node for row in mine.neighbours] == ["other"]
    assert mine.own is not None
    assert (mine.own.index, other.own and other.own.index) == (4, 4)
    absent = memberships(_clique(), node="other")
    assert [found.own is not None for found in absent] == [False, True]


def test_a_map_of_one_domain_is_read_as_before_and_one_that_names_nobody_not_at_all() -> None:
    plain = ComputeDomainClique(metadata=ObjectMeta(name="x", labels={DOMAIN_LABEL: DOMAIN}))
    (found,) = memberships(plain, node=NODE)
    assert (found.imex_domain, found.holder, found.own) == (DOMAIN, DOMAIN, None)
    assert memberships(ComputeDomainClique(metadata=ObjectMeta(name="x")), node=NODE) == ()


def test_the_order_of_a_shared_map_holds_the_nodes_of_all() -> None:
    found = _found()
    assert wanted_imex(found, prepared=[], waiting=[OTHER], running="") == MAP
    made = order(found.values(), imex=MAP, slots=6)
    assert made is not None
    assert (made.domain, made.index) == (MAP, 4)
    assert [address != SENTINEL for address in made.addresses] == [False, False, True, False, True, False]


async def test_two_domains_on_a_node_get_a_channel_each_and_one_imex(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.api.add(a_claim(1), a_claim(2, domain=OTHER, device="channel-3"))
    _join(bench)
    await idle()
    first = await bench.preparer.prepare(ref(1))
    second = await bench.preparer.prepare(ref(2))
    assert (first.holder, second.holder) == (SHARED, SHARED)
    assert _channels(bench, "uid-1") == ["channel5"]
    assert _channels(bench, "uid-2") == ["channel9"]
    assert [wanted.domain for wanted in bench.link.wanted if isinstance(wanted, Order)] == [MAP]
    await bench.preparer.unprepare(ref(1))
    await idle()
    assert _channels(bench, "uid-2") == ["channel9"]
    assert bench.link.state == State(domain=MAP, index=4, phase="Ready")


async def test_two_pods_of_one_domain_get_the_same_channel(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.api.add(a_claim(1), a_claim(2, device="channel-1"))
    bench.join()
    await idle()
    await bench.preparer.prepare(ref(1))
    await bench.preparer.prepare(ref(2))
    assert _channels(bench, "uid-1") == _channels(bench, "uid-2") == ["channel0"]
    await bench.preparer.unprepare(ref(1))
    await idle()
    assert bench.specs() == [spec_path(tmp_path, "uid-2").name]


async def test_all_channels_are_refused_in_a_shared_map(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.api.add(a_claim(1, allocationMode="All"))
    _join(bench)
    with pytest.raises(Refusal, match="channels of other domains") as caught:
        await bench.preparer.prepare(ref(1))
    assert (caught.value.reason, caught.value.permanent) == (Reason.BAD_CONFIG, True)


async def test_a_channel_that_the_driver_does_not_have_is_refused(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    (tmp_path / "proc" / "params").write_text("ImexChannelCount: 4\n")
    bench.api.add(a_claim(1))
    _join(bench)
    with pytest.raises(Refusal, match="NVreg_ImexChannelCount"):
        await bench.preparer.prepare(ref(1))
    assert bench.specs() == []


@pytest.mark.parametrize(("mine", "theirs"), [("alone", "shared"), ("shared", "alone")])
async def test_a_domain_of_its_own_and_one_that_shares_do_not_meet(tmp_path: Path, mine: str, theirs: str) -> None:
    bench = Bench(tmp_path, prepare_timeout=1)
    bench.api.add(
        a_claim(1, domain=DOMAIN if mine == "shared" else "own"),
        a_claim(2, domain="own" if mine == "shared" else DOMAIN),
    )
    _join(bench)
    bench.join("own", index=1)
    await idle()
    assert theirs != mine
    await bench.preparer.prepare(ref(1))
    with pytest.raises(Refusal, match="still holds a channel") as caught:
        await bench.preparer.prepare(ref(2))
    assert caught.value.reason is Reason.OTHER_DOMAIN


def test_a_neighbours_broken_connection_is_no_news_of_the_domain() -> None:
    found = _found()
    host = State(domain=MAP, index=4, phase="Ready", peers="Disconnected", disconnected=[2])
    mine = verdict(host, found[DOMAIN], said=None, tell=True)
    other = verdict(host, found[OTHER], said=None, tell=True)
    assert mine is not None
    assert mine.good
    assert other is not None
    assert not other.good
    assert "other" in other.message


# ---- the barrier


def _gate(host: State, *, barrier: PeerCount, waited: float = 0.0, outdated: bool = False) -> Open | Closed:
    member = msgspec.structs.replace(a_membership(others=2), barrier=barrier)
    view = View(
        node=NODE,
        fabric=Fabric(clique=CLIQUE),
        synced=True,
        memberships={DOMAIN: member},
        prepared=[],
        host=host,
        peers_outdated=outdated,
    )
    return gate(demand(ref(), a_claim(), node=NODE), view, waited=waited)


def _host(peers: str, *away: int) -> State:
    return State(domain=DOMAIN, index=0, phase="Ready", peers=peers, disconnected=[*away])  # type: ignore[arg-type]


def test_the_barrier_opens_when_all_nodes_are_there_and_connected() -> None:
    whole = PeerCount(nodes=3, timeout_seconds=60, present=3)
    assert _gate(_host("Connected"), barrier=whole) == Open(index=0)
    assert _gate(_host("Connected"), barrier=PeerCount(timeout_seconds=60)) == Open(index=0)


@pytest.mark.parametrize(
    ("host", "present", "outdated", "says"),
    [
        (_host("Connected"), 2, False, "1 of 3 nodes have not joined"),
        (_host("Unknown"), 3, False, "no connection to other-1, other-2"),
        (_host("Connected"), 3, True, "no connection to other-1, other-2"),
        (_host("Disconnected", 2), 3, False, "no connection to other-2"),
    ],
)
def test_the_barrier_names_who_is_missing(host: State, present: int, outdated: bool, says: str) -> None:
    found = _gate(host, barrier=PeerCount(nodes=3, timeout_seconds=60, present=present), outdated=outdated)
    assert isinstance(found, Closed)
    assert (found.reason, found.permanent, found.until) == (Reason.WAITING_FOR_PEERS, False, 60)
    assert says in found.message


def test_the_barrier_gives_up_after_its_time_and_says_without_whom() -> None:
    late = _gate(_host("Disconnected", 1), barrier=PeerCount(nodes=3, timeout_seconds=60, present=3), waited=60)
    assert late == Open(index=0, late="no connection to other-1")


async def test_a_pod_starts_after_the_time_for_its_peers_although_nothing_happens(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loop = asyncio.get_running_loop()
    began = loop.time()
    monkeypatch.setattr("interlace.node.prepare.age", lambda _: loop.time() - began)
    bench = Bench(tmp_path)
    bench.api.add(a_claim())
    member = msgspec.structs.replace(a_membership(), barrier=PeerCount(nodes=2, timeout_seconds=90, present=1))
    bench.state.memberships[DOMAIN] = member
    bench.state.poke()
    await idle()
    async with asyncio.TaskGroup() as group:
        writer = group.create_task(bench.reporter.run())
        with pytest.raises(Refusal, match="1 of 2 nodes have not joined") as caught:
            await bench.preparer.prepare(ref())
        assert caught.value.reason is Reason.WAITING_FOR_PEERS
        await idle()
        assert bench.api.conditions() == {"Ready": ("False", "WaitingForPeers")}
        await asyncio.sleep(60)
        assert bench.api.conditions() == {"Ready": ("False", "WaitingForKubelet")}
        await bench.preparer.prepare(ref())
        await idle()
        assert bench.api.conditions() == {"Ready": ("True", "StartedWithoutPeers")}
        writer.cancel()
    assert [reason for _, reason, _ in bench.events.seen] == ["WaitingForPeers", "StartedWithoutPeers"]


# ---- offering


class _Shelf:
    """A slice that is published at once, or when it is told to."""

    def __init__(self, own: ResourceSlice | None = None) -> None:
        self.seen = asyncio.Event()
        self.seen.set()
        self.own = own
        self.published = True
        self.offers: list[Offer] = []

    def offer(self, offer: Offer) -> None:
        if self.offers[-1:] != [offer]:
            self.offers.append(offer)


OPEN, CLOSED = Offer(holder=DOMAIN, slots=SLOTS), Offer(holder=DOMAIN)


async def test_a_node_opens_for_a_second_pod_and_closes_in_two_steps(tmp_path: Path) -> None:
    bench, shelf = Bench(tmp_path), _Shelf()
    bench.api.add(a_claim())
    async with asyncio.TaskGroup() as group:
        running = group.create_task(Offering(state=bench.state, shelf=shelf).run())
        await idle()
        bench.join()
        await idle()
        await bench.preparer.prepare(ref())
        await idle()
        assert shelf.offers == [FREE]
        member = a_membership()
        assert member.own is not None
        own = msgspec.structs.replace(member.own, shared=True)
        bench.state.memberships[DOMAIN] = msgspec.structs.replace(member, own=own)
        bench.state.poke()
        await idle()
        assert shelf.offers == [FREE, OPEN]
        await bench.preparer.unprepare(ref())
        await idle()
        assert shelf.offers == [FREE, OPEN]
        shelf.published = False
        bench.leave()
        await asyncio.sleep(2 * CLOSING)
        assert shelf.offers == [FREE, OPEN, CLOSED], "the time runs from when the slice is published"
        shelf.published = True
        bench.state.poke()
        await asyncio.sleep(CLOSING - 0.1)
        assert shelf.offers == [FREE, OPEN, CLOSED]
        await asyncio.sleep(0.2)
        assert shelf.offers == [FREE, OPEN, CLOSED, FREE]
        running.cancel()


@pytest.mark.parametrize("left", [OPEN, CLOSED])
async def test_an_agent_that_starts_goes_on_from_the_slice_that_is_there(tmp_path: Path, left: Offer) -> None:
    pool = ResourcePool(name=NODE, generation=1, resource_slice_count=1)
    spec = ResourceSliceSpec(driver=DRIVER, pool=pool, devices=devices(Fabric(clique=CLIQUE), offer=left))
    published = ResourceSlice(spec=spec)
    bench, shelf = Bench(tmp_path), _Shelf(published)
    bench.state.synced = False
    async with asyncio.TaskGroup() as group:
        running = group.create_task(Offering(state=bench.state, shelf=shelf).run())
        await asyncio.sleep(2 * CLOSING)
        assert shelf.offers == [left], "who uses the node is not known yet"
        bench.state.synced = True
        bench.state.poke()
        await asyncio.sleep(CLOSING + 0.1)
        assert shelf.offers[-2:] == [CLOSED, FREE]
        running.cancel()


async def test_an_agent_that_starts_without_a_slice_waits_for_the_rows(tmp_path: Path) -> None:
    bench, shelf = Bench(tmp_path), _Shelf()
    bench.state.synced = False
    async with asyncio.TaskGroup() as group:
        running = group.create_task(Offering(state=bench.state, shelf=shelf).run())
        await idle()
        assert shelf.offers == []
        bench.state.synced = True
        bench.join()
        await idle()
        assert shelf.offers == [CLOSED]
        running.cancel()
