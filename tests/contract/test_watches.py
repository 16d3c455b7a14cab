"""Lists and watches: snapshots, pages, versions, selectors, bookmarks. Every test runs on both servers."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.contract.space import Space, pod
from tests.contract.wire import MERGE, Json

PARTIAL = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
PARTIALS = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
TABLE = "application/json;as=Table;g=meta.k8s.io;v=v1"
INITIAL_END = "k8s.io/initial-events-end"


def names(body: Json) -> list[str]:
    """Names of the items of a list."""
    return [item["metadata"]["name"] for item in body["items"]]


def told(event: Json) -> tuple[str, str]:
    """Type and name of an event."""
    return event["type"], event["object"]["metadata"]["name"]


async def test_a_list_has_the_version_to_watch_from(space: Space) -> None:
    await space.config_map("before")
    path = space.path("configmaps")
    version = (await space.wire("GET", path)).version
    await space.config_map("after")
    async with space.wire.watch(path, resourceVersion=version) as events:
        assert told(await events.next()) == ("ADDED", "after")
        await space.wire("PATCH", path + "/before", {"data": {"k": "v"}}, media=MERGE)
        assert told(await events.next()) == ("MODIFIED", "before")
        await space.wire("DELETE", path + "/before")
        gone = await events.next()
        assert told(gone) == ("DELETED", "before")
        assert gone["object"]["data"] == {"k": "v"}
        assert int(gone["object"]["metadata"]["resourceVersion"]) > int(version)


async def test_a_watch_without_a_version_begins_with_what_is_there(space: Space) -> None:
    for name in ("b", "a"):
        await space.config_map(name)
    async with space.wire.watch(space.path("configmaps")) as events:
        seen = [told(event) for event in await events.until(lambda e: told(e)[1] == "b")]
    assert [item for item in seen if item[1] in ("a", "b")] == [("ADDED", "a"), ("ADDED", "b")]


async def test_a_watch_tells_every_change_of_an_object_in_order(space: Space) -> None:
    path = space.path("configmaps")
    version = (await space.wire("GET", path)).version
    async with space.wire.watch(path, resourceVersion=version) as events:
        await space.config_map("counter")
        for number in range(10):
            await space.wire("PATCH", path + "/counter", {"data": {"n": str(number)}}, media=MERGE)
        seen = await events.until(lambda e: e["object"].get("data", {}).get("n") == "9")
    assert [event["object"].get("data", {}).get("n") for event in seen] == [None, *map(str, range(10))]
    versions = [int(event["object"]["metadata"]["resourceVersion"]) for event in seen]
    assert versions == sorted(set(versions))


async def test_many_watchers_see_the_same(space: Space) -> None:
    path = space.path("configmaps")
    version = (await space.wire("GET", path)).version

    async def follow() -> list[tuple[str, str]]:
        async with space.wire.watch(path, resourceVersion=version) as events:
            return [told(event) for event in await events.until(lambda e: e["type"] == "DELETED")]

    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(follow()) for _ in range(12)]
        await space.config_map("x")
        await space.wire("DELETE", path + "/x")
    assert {tuple(task.result()) for task in tasks} == {(("ADDED", "x"), ("DELETED", "x"))}


async def test_leaving_a_selector_is_a_deletion_and_entering_it_an_addition(space: Space) -> None:
    path = space.path("configmaps")
    version = (await space.wire("GET", path)).version
    async with space.wire.watch(path, resourceVersion=version, labelSelector="team=red") as events:
        await space.config_map("one", metadata={"labels": {"team": "red"}}, data={"k": "v"})
        assert told(await events.next()) == ("ADDED", "one")
        await space.wire("PATCH", path + "/one", {"metadata": {"labels": {"team": "blue"}}}, media=MERGE)
        left = await events.next()
        assert told(left) == ("DELETED", "one")
        assert left["object"]["metadata"]["labels"] == {"team": "red"}, "the state before it left"
        await space.wire("PATCH", path + "/one", {"metadata": {"labels": {"team": "red"}}}, media=MERGE)
        assert told(await events.next()) == ("ADDED", "one")


@pytest.mark.parametrize(
    ("selector", "found"),
    [
        ("team=red", ["a"]),
        ("team==red", ["a"]),
        ("team!=red", ["b", "c"]),
        ("team in (red,blue)", ["a", "b"]),
        ("team notin (red)", ["b", "c"]),
        ("team", ["a", "b"]),
        ("!team", ["c"]),
        ("team=blue,size=2", ["b"]),
        ("size>1", ["b"]),
    ],
)
async def test_label_selectors_select(space: Space, selector: str, found: list[str]) -> None:
    for name, labels in (("a", {"team": "red"}), ("b", {"team": "blue", "size": "2"}), ("c", {"size": "1"})):
        await space.config_map(name, metadata={"labels": labels})
    listed = await space.wire("GET", space.path("configmaps"), labelSelector=selector)
    assert [name for name in names(listed.body) if name in "abc"] == found


async def test_field_selectors_select_by_what_the_kind_offers(space: Space) -> None:
    path = space.path("pods")
    for name, node in (("a", "n1"), ("b", "n2")):
        body = pod(name)
        body["spec"]["nodeName"] = f"{space.name}-{node}"
        assert (await space.wire("POST", path, body)).code == 201
    chosen = await space.wire("GET", "/api/v1/pods", fieldSelector=f"spec.nodeName={space.name}-n2")
    assert names(chosen.body) == ["b"]
    others = await space.wire("GET", path, fieldSelector="metadata.name!=a,status.phase=Pending")
    assert names(others.body) == ["b"]
    refused = await space.wire("GET", path, fieldSelector="spec.hostname=x")
    assert (refused.code, refused.message) == (400, "field label not supported: spec.hostname")
    refused = await space.wire("GET", space.path("configmaps"), fieldSelector="data.k=v")
    assert refused.code == 400
    assert '"data.k" is not a known field selector' in refused.message


async def test_slices_are_selected_by_node_and_driver(space: Space) -> None:
    path = "/apis/resource.k8s.io/v1/resourceslices"
    for node in ("n1", "n2"):
        name = f"{space.name}-{node}"
        pool = {"name": name, "generation": 1, "resourceSliceCount": 1}
        spec = {"driver": "one.example.com", "nodeName": name, "pool": pool, "devices": [{"name": "channel-0"}]}
        assert (await space.wire("POST", path, {"metadata": {"name": name}, "spec": spec})).code == 201
    fields = f"spec.nodeName={space.name}-n1,spec.driver=one.example.com"
    assert names((await space.wire("GET", path, fieldSelector=fields)).body) == [f"{space.name}-n1"]


async def test_pages_show_one_moment(space: Space) -> None:
    path = space.path("secrets")
    for number in range(5):
        await space.wire("POST", path, {"metadata": {"name": f"s{number}"}})
    first = await space.wire("GET", path, limit="2")
    assert names(first.body) == ["s0", "s1"]
    assert first.body["metadata"]["remainingItemCount"] == 3
    await space.wire("DELETE", path + "/s3")
    await space.wire("POST", path, {"metadata": {"name": "s2b"}})
    token = first.body["metadata"]["continue"]
    second = await space.wire("GET", path, limit="2", continue_=token)
    assert names(second.body) == ["s2", "s3"], "as things were when the first page was made"
    assert second.version == first.version
    third = await space.wire("GET", path, limit="2", continue_=second.body["metadata"]["continue"])
    assert names(third.body) == ["s4"]
    assert not third.body["metadata"].get("continue")


async def test_a_bad_continue_token_or_version_is_a_bad_request(space: Space) -> None:
    path = space.path("configmaps")
    for query in ({"continue_": "nonsense"}, {"resourceVersion": "abc"}):
        assert (await space.wire("GET", path, **query)).code == 400
    with_labels = await space.wire("GET", path, labelSelector="a=b=c")
    assert (with_labels.code, with_labels.reason) == (400, "BadRequest")


async def test_a_version_from_the_future_times_out(space: Space) -> None:
    reply = await space.wire("GET", space.path("configmaps"), resourceVersion="999999999")
    assert (reply.code, reply.reason) == (504, "Timeout")
    assert reply.body["details"]["causes"][0]["reason"] == "ResourceVersionTooLarge"


async def test_an_exact_version_shows_the_past(space: Space) -> None:
    path = space.path("configmaps")
    await space.config_map("early")
    version = (await space.wire("GET", path)).version
    await space.config_map("late")
    past = await space.wire("GET", path, resourceVersion=version, resourceVersionMatch="Exact")
    assert "late" not in names(past.body)
    assert past.version == version
    present = await space.wire("GET", path, resourceVersion=version, resourceVersionMatch="NotOlderThan")
    assert "late" in names(present.body)


@pytest.mark.parametrize(
    "query",
    [
        {"resourceVersionMatch": "Exact"},
        {"resourceVersionMatch": "Sometimes", "resourceVersion": "1"},
        {"resourceVersionMatch": "Exact", "resourceVersion": "0"},
        {"sendInitialEvents": "true"},
        {"watch": "true", "sendInitialEvents": "true"},
        {"watch": "true", "resourceVersionMatch": "NotOlderThan"},
    ],
)
async def test_options_that_contradict_each_other_are_invalid(space: Space, query: dict[str, str]) -> None:
    reply = await space.wire("GET", space.path("configmaps"), **query)
    assert (reply.code, reply.reason) == (422, "Invalid")
    assert reply.body["details"]["kind"] == "ListOptions"


async def test_a_watch_list_ends_its_beginning_with_an_annotated_bookmark(space: Space) -> None:
    await space.config_map("there")
    options = {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan", "allowWatchBookmarks": "true"}
    path = space.path("configmaps")
    async with space.wire.watch(path, resourceVersion="", **options) as events:
        seen = await events.until(lambda e: e["type"] == "BOOKMARK")
        assert ("ADDED", "there") in [told(event) for event in seen[:-1]]
        meta = seen[-1]["object"]["metadata"]
        assert meta["annotations"] == {INITIAL_END: "true"}
        assert int(meta["resourceVersion"]) >= max(int(e["object"]["metadata"]["resourceVersion"]) for e in seen[:-1])
        await space.config_map("new")
        assert told(await events.next()) == ("ADDED", "new")


async def test_a_watch_ends_when_its_time_is_up(space: Space) -> None:
    async with space.wire.watch(space.path("configmaps"), resourceVersion="0", timeoutSeconds="1") as events:
        await events.ended()


async def test_metadata_alone_can_be_listed_and_watched(space: Space) -> None:
    path = space.path("configmaps")
    await space.config_map("one", data={"big": "x" * 100})
    listed = await space.wire("GET", path, accept=PARTIALS, fieldSelector="metadata.name=one")
    assert listed.body["kind"] == "PartialObjectMetadataList"
    assert set(listed.body["items"][0]) <= {"metadata", "kind", "apiVersion"}
    got = await space.wire("GET", path + "/one", accept=PARTIAL)
    assert (got.body["kind"], got.body["apiVersion"]) == ("PartialObjectMetadata", "meta.k8s.io/v1")
    assert "data" not in got.body
    async with space.wire.watch(path, accept=PARTIAL, resourceVersion=listed.version) as events:
        await space.config_map("two", data={"k": "v"})
        event = await events.next()
        assert told(event) == ("ADDED", "two")
        assert (event["object"]["kind"], "data" in event["object"]) == ("PartialObjectMetadata", False)


async def test_tables_have_the_columns_that_kubectl_prints(space: Space) -> None:
    await space.wire("POST", space.path("pods"), pod("p"))
    shown = (await space.wire("GET", space.path("pods"), accept=TABLE)).body
    columns = [column["name"] for column in shown["columnDefinitions"]]
    assert columns[:5] == ["Name", "Ready", "Status", "Restarts", "Age"]
    assert shown["rows"][0]["cells"][:3] == ["p", "0/1", "Pending"]
    assert shown["rows"][0]["object"]["kind"] == "PartialObjectMetadata"


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/api/v1/nodes", ["Name", "Status", "Roles", "Age", "Version"]),
        ("/apis/apps/v1/deployments", ["Name", "Ready", "Up-to-date", "Available", "Age"]),
        ("/apis/apps/v1/daemonsets", ["Name", "Desired", "Current", "Ready", "Up-to-date", "Available"]),
        ("/apis/resource.k8s.io/v1/resourceclaims", ["Name", "State", "Age"]),
        ("/apis/resource.k8s.io/v1/resourceslices", ["Name", "Node", "Driver", "Pool", "Age"]),
        ("/apis/coordination.k8s.io/v1/leases", ["Name", "Holder", "Age"]),
        ("/api/v1/events", ["Last Seen", "Type", "Reason", "Object"]),
    ],
)
async def test_the_first_columns_are_those_of_the_real_server(space: Space, path: str, expected: list[Any]) -> None:
    shown = (await space.wire("GET", path, accept=TABLE)).body
    wide = [column["name"] for column in shown["columnDefinitions"] if column["priority"] == 0]
    assert wide[: len(expected)] == expected
