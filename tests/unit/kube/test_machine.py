"""Random events, faults and worker interleavings against informer and queue together.

At rest the cache equals the server, indexes too; every touched key was reconciled after its last
change; no key was worked by two at a time. All in virtual time over real sockets.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Literal

from hypothesis import HealthCheck, Phase, event, given, settings
from hypothesis import strategies as st

from interlace.api.core import Pod
from interlace.kube.errors import ServerError
from interlace.kube.informer import Informer
from interlace.kube.queue import WorkQueue, work
from tests.unit.kube.server import Server
from tests.unit.kube.support import PODS, cluster, run_virtual, running

NAMES = st.sampled_from(["a", "b", "c", "d"])
NODES = st.sampled_from(["n", "m"])

CHANGES = st.one_of(
    st.tuples(st.just("put"), NAMES, NODES),
    st.tuples(st.just("deselect"), NAMES, NODES),
    st.tuples(st.just("remove"), NAMES, NODES),
    st.tuples(st.just("replace"), NAMES, NODES),
)
FAULTS = st.sampled_from(
    [
        "end",
        "cut",
        "cut mid-line",
        "freeze",
        "away",
        "back",
        "compact",
        "bookmark",
        "error 410",
        "error 500",
        "refuse 429",
        "refuse 500",
        "refuse 503",
        "expire as status",
        "expire as event",
        "doom: expire",
        "doom: end",
        "doom: none",
    ]
).map(lambda name: (name, "", ""))
TIME = st.sampled_from(["0", "0.05", "1", "20"]).map(lambda seconds: ("pass", seconds, ""))
Step = tuple[str, str, str]


def episode(parts: tuple[list[Step], Step, list[Step], bool, Step]) -> list[Step]:
    """Changes that are seen, a fault, changes in its gap (forgotten by the server or not), time to recover."""
    before, fault, gap, forgotten, time = parts
    return [*before, ("pass", "0.05", ""), fault, *gap, *([("compact", "", "")] if forgotten else []), time]


CHANGE_LISTS = st.lists(CHANGES, max_size=4)
EPISODES = st.tuples(CHANGE_LISTS, FAULTS, CHANGE_LISTS, st.booleans(), TIME).map(episode)
STEPS = st.lists(EPISODES, min_size=1, max_size=6).map(lambda episodes: [step for each in episodes for step in each])


def change(server: Server, what: str, name: str, node: str) -> None:
    labels = {"selected": "no" if what == "deselect" else "yes", "node": node}
    exists = (PODS, "default", name) in server.objects
    if what == "remove" and exists:
        server.remove(PODS, name)
    elif what == "replace" and exists:
        server.replace(PODS, name, labels=labels)
    elif what in ("put", "deselect"):
        server.put(PODS, name, labels=labels)


async def break_something(server: Server, what: str) -> None:
    actions: dict[str, Callable[[], Any]] = {
        "end": server.end_watches,
        "cut": lambda: server.cut(mid_line=False),
        "cut mid-line": lambda: server.cut(mid_line=True),
        "freeze": server.freeze,
        "compact": server.compact,
        "bookmark": server.bookmark,
        "error 410": lambda: server.error(410, "Expired"),
        "error 500": lambda: server.error(500, "InternalError"),
        "refuse 429": lambda: server.refuse(429, times=2, Retry_After="3"),
        "refuse 500": lambda: server.refuse(500, times=3),
        "refuse 503": lambda: server.refuse(503),
    }
    if what == "away":
        await server.away()
    elif what == "back" and not server.is_here:
        await server.back()
    elif what == "back":
        pass
    elif what.startswith("expire as "):
        server.expired = "status" if what.endswith("status") else "event"
    elif what.startswith("doom: "):
        wanted = what.removeprefix("doom: ")
        server.doom = "expire" if wanted == "expire" else "end" if wanted == "end" else ""
    else:
        actions[what]()


@settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    phases=[phase for phase in Phase if phase is not Phase.explain],  # takes minutes to say little
)
@given(
    steps=STEPS,
    mode=st.sampled_from(["yes", "refused", "ignored"]),
    window=st.sampled_from([3, 1000]),
    workers=st.integers(1, 3),
    effort=st.sampled_from([0.0, 0.3]),
    failing=st.integers(0, 3),
)
def test_at_rest_cache_equals_server_and_every_key_was_reconciled(
    steps: list[Step],
    mode: Literal["yes", "refused", "ignored"],
    window: int,
    workers: int,
    effort: float,
    failing: int,
) -> None:
    async def scenario() -> None:
        async with cluster(window=window) as (server, client):
            server.watch_list = mode
            informer = Informer(
                client, Pod, labels="selected=yes", indexes={"node": lambda pod: [pod.metadata.labels["node"]]}
            )
            queue: WorkQueue[str] = WorkQueue(base=0.1, cap=5.0)
            changed: dict[str, Pod | None] = {}
            acted: dict[str, Pod | None] = {}
            replayed: dict[str, Pod] = {}
            broken: list[str] = []
            working: set[str] = set()
            failures = failing

            def on_change(old: Pod | None, new: Pod | None) -> None:
                either = new or old
                if either is None:
                    broken.append("a change of nothing")
                    return
                name = either.metadata.name
                if old is not None and replayed.pop(name, None) != old:
                    broken.append(f"{name}: the old object is not the one told before")
                if old is not None and new is not None and old.metadata.uid != new.metadata.uid:
                    broken.append(f"{name}: another uid told as an update")
                if new is not None:
                    replayed[name] = new
                changed[name] = new
                queue.add(name)

            async def reconcile(name: str) -> None:
                nonlocal failures
                if name in working:
                    broken.append(f"{name}: worked twice at a time")
                working.add(name)
                try:
                    seen = informer.get(name, "default")
                    await asyncio.sleep(effort)
                    if failures:
                        failures -= 1
                        raise ServerError("no", status=500)
                    acted[name] = seen
                finally:
                    working.discard(name)

            informer.on_change(on_change)
            async with running(informer.run(), work(queue, reconcile, workers=workers)):
                for what, first, second in steps:
                    if what == "pass":
                        await asyncio.sleep(float(first))
                    elif second:
                        change(server, what, first, second)
                    else:
                        await break_something(server, what)
                server.doom = ""
                server.refusals.clear()
                await break_something(server, "back")
                # The longest way back: a silent stream for 100 s, then the largest back-off.
                for _ in range(8):
                    await asyncio.sleep(50)
                    server.bookmark()
                await asyncio.sleep(1)

                wanted = {
                    obj["metadata"]["name"]: (obj["metadata"]["uid"], obj["metadata"]["resourceVersion"])
                    for obj in server.list(PODS)
                    if obj["metadata"]["labels"]["selected"] == "yes"
                }
                assert broken == []
                assert informer.problem is None
                assert {
                    p.metadata.name: (p.metadata.uid, p.metadata.resource_version) for p in informer.items()
                } == wanted
                assert {p.metadata.name: p for p in informer.items()} == replayed
                for node in ("n", "m"):
                    on_node = {p.metadata.name for p in informer.items() if p.metadata.labels["node"] == node}
                    assert {p.metadata.name for p in informer.by("node", node)} == on_node
                assert queue.idle
                assert acted == changed
                lists = sum("watch" not in a.query or "sendInitialEvents" in a.query for a in server.asked)
                event(f"lists: {min(5, lists)}")

    run_virtual(scenario)
