"""``pods/log``: where there is no log to be had. Every test runs on both servers."""

from __future__ import annotations

from tests.contract.space import Space


async def _made(space: Space, name: str, *containers: str, node: str | None = None) -> str:
    spec = {"containers": [{"name": each, "image": "localhost/pause:1"} for each in containers]}
    gated = {"schedulingGates": [{"name": "interlace.dev/wait"}]} if node is None else {"nodeName": node}
    reply = await space.wire("POST", space.path("pods"), {"metadata": {"name": name}, "spec": spec | gated})
    assert reply.code == 201, reply
    return f"{space.path('pods')}/{name}/log"


async def test_the_log_of_no_pod_is_not_found(space: Space) -> None:
    reply = await space.wire("GET", f"{space.path('pods')}/nobody/log")
    assert (reply.code, reply.reason, reply.message) == (404, "NotFound", 'pods "nobody" not found')


async def test_a_pod_without_a_node_has_no_log(space: Space) -> None:
    reply = await space.wire("GET", await _made(space, "early", "one"))
    assert (reply.code, reply.reason) == (204, "")


async def test_one_container_is_chosen_and_of_several_one_must_be_named(space: Space) -> None:
    path = await _made(space, "two", "one", "other")
    reply = await space.wire("GET", path)
    assert reply.code == 400
    assert reply.message == "a container name must be specified for pod two, choose one of: [one other]"
    reply = await space.wire("GET", f"{path}?container=moon")
    assert (reply.code, reply.message) == (400, "container moon is not valid for pod two")


async def test_logs_are_only_read(space: Space) -> None:
    reply = await space.wire("DELETE", await _made(space, "kept", "one"))
    assert reply.code == 405
