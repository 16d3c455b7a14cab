"""How plans, runs and results are shown."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from interlace.cli import gke_plan_view as view
from interlace.cli import gke_result_view as result
from interlace.cli.exits import Code
from interlace.gke.errors import GkeError
from interlace.gke.operations import Operation
from interlace.gke.ownership import Owner, is_ours, marked, other_owner
from interlace.gke.picture import Picture, Scope
from interlace.gke.plan import Plan, Task, in_the_way, make_plan, tasks
from interlace.gke.prices import price
from interlace.gke.progress import Progress
from interlace.gke.resource import Key, Kind, Resource
from interlace.gke.scheduling import Ending

OWNER = Owner(project="example-project", location="us-central1-a", cluster="mega")
SCOPE = Scope(
    project="example-project",
    network_project="example-project",
    region="us-central1",
    location="us-central1-a",
    cluster="mega",
)
NETWORK = Key("network", "global", "net")
SUBNET = Key("subnetwork", "us-central1", "sub")
CLUSTER = Key("cluster", "us-central1-a", "mega")
POOL = Key("nodePool", "us-central1-a/mega", "gpu")


def resource(key: Key, body: dict[str, Any], *after: Key) -> Resource:
    return Resource(key=key, project="example-project", body={"name": key.name, **body}, after=after)


WANTED = (
    resource(NETWORK, {"mtu": 8244}),
    resource(SUBNET, {"network": "net", "ipCidrRange": "10.0.0.0/24"}, NETWORK),
    resource(POOL, {"initialNodeCount": 2}, SUBNET),
)


def seen(*resources: Resource, **changes: dict[str, Any]) -> Picture:
    bodies = {each.key: {**marked(each, OWNER).body, **changes.get(each.key.name, {})} for each in resources}
    return Picture(scope=SCOPE, bodies=bodies)


def lines(plan: Plan) -> list[str]:
    return list(view.tree(plan, price=None, simulated=False))


def test_a_replacement_is_shown_with_its_reason_and_what_it_takes_along() -> None:
    plan = make_plan(WANTED, seen(*WANTED, sub={"ipCidrRange": "10.9.0.0/24"}), OWNER)
    text = lines(plan)
    assert text[1:5] == [
        "├─ ± subnetwork/sub  REPLACE (delete, then create)",
        "│       cannot be changed: ipCidrRange: 10.9.0.0/24 → 10.0.0.0/24 (a subnet cannot shrink or move)",
        "└─ ± nodePool/gpu  REPLACE (delete, then create): it refers to subnetwork/sub, which is replaced",
        "2 to replace, 1 as they are meant.",
    ]


def test_work_of_a_replacement_goes_down_and_up_again() -> None:
    plan = make_plan(WANTED, seen(*WANTED, sub={"ipCidrRange": "10.9.0.0/24"}), OWNER)
    assert tasks(plan, region="us-central1", replace=False, prune=False) == {}
    work = tasks(plan, region="us-central1", replace=True, prune=False)
    assert work == {
        Task("delete", SUBNET): {Task("delete", POOL)},
        Task("create", SUBNET): {Task("delete", SUBNET)},
        Task("delete", POOL): set(),
        Task("create", POOL): {Task("delete", POOL), Task("create", SUBNET)},
    }


def test_markdown_cannot_be_broken_by_names() -> None:
    plan = make_plan(WANTED, seen(*WANTED, net={"description": "by | hand <b>"}), OWNER)
    table = [line for line in view.markdown(plan, price=price({}), simulated=False) if line.startswith("| `")]
    assert table == ["| `!` | `network/net` | not ours | it was not made here; `interlace gke adopt` takes it over |"]
    bad = make_plan(WANTED, seen(*WANTED, sub={"ipCidrRange": "a|b<i>"}), OWNER)
    (row, _) = [line for line in view.markdown(bad, price=price({}), simulated=False) if line.startswith("| `±")]
    assert "a\\|b&lt;i>" in row


def test_the_document_says_what_the_text_says() -> None:
    plan = make_plan(WANTED, seen(WANTED[0], net={"mtu": 1460}), OWNER)
    found = msgspec.json.decode(msgspec.json.encode(view.document(plan, price=price({}), simulated=True)))
    assert found["summary"]["create"] == 2
    assert found["summary"]["update"] == 1
    assert found["simulated"] is True
    (step,) = [each for each in found["steps"] if each["action"] == "update"]
    assert step["differences"] == [{"path": "mtu", "have": 1460, "want": 8244, "how": "patch", "why": ""}]


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        ("network", {}),
        ("firewall", {"description": "of mine"}),
        ("cluster", {"nodePools": [{"name": "a"}]}),
        ("nodePool", {}),
    ],
)
def test_a_mark_is_found_again_and_names_one_cluster(kind: Kind, body: dict[str, Any]) -> None:
    key = Key(kind, "x/mega" if kind == "nodePool" else "x", "n")
    found = marked(resource(key, body), OWNER).body
    assert is_ours(kind, found, OWNER)
    assert not is_ours(kind, body, OWNER)
    for field in ("cluster",) if kind in {"cluster", "nodePool"} else ("project", "location", "cluster"):
        other = msgspec.structs.replace(OWNER, **{field: "other"})
        assert not is_ours(kind, found, other)
    if kind in {"network", "firewall"}:
        assert other_owner(kind, found) == str(OWNER)
        assert body.get("description", "") in found["description"]


def test_progress_tells_what_google_says_and_what_is_left() -> None:
    now = 0.0
    work = {Task("create", NETWORK): set[Task](), Task("create", POOL): {Task("create", NETWORK)}}
    progress = Progress(work, clock=lambda: now)
    assert progress.seconds_left() == 390
    progress.began(Task("create", NETWORK))
    now = 15.0
    assert progress.running()[0].share == pytest.approx(0.5)
    assert progress.seconds_left() == pytest.approx(375)
    progress.ended(Ending(key=Task("create", NETWORK), state="done"))
    progress.began(Task("create", POOL))
    progress.told(POOL, Operation(service="container", scope="locations/z", name="operation-1", progress=0.25))
    assert progress.running()[0].share == 0.25
    assert progress.seconds_left() == pytest.approx(270)
    now = 1e6
    assert progress.seconds_left() == pytest.approx(270)
    progress.ended(Ending(key=Task("create", POOL), state="done"))
    assert (progress.done, progress.total, progress.seconds_left()) == (2, 2, 0)


def test_a_result_counts_every_state_and_gives_each_reason_once() -> None:
    error = GkeError("no room", remedy="make some")
    endings = {
        Task("create", NETWORK): Ending(key=Task("create", NETWORK), state="failed", reason=error),
        Task("create", SUBNET): Ending(key=Task("create", SUBNET), state="blocked", because=Task("create", NETWORK)),
        Task("create", POOL): Ending(key=Task("create", POOL), state="unknown", reason=error),
    }
    found = result.results(endings)
    assert result.summary(found) == {"done": 0, "failed": 1, "blocked": 1, "unknown": 1}
    assert list(result.reasons(found)) == ["network/net, nodePool/gpu: no room. Make some."]
    assert result.code_of(found, ill=False) is Code.FAILED
    assert result.code_of((), ill=True) is Code.BAD
    assert result.code_of((), ill=False) is Code.GOOD


def test_what_is_lost_for_good_is_said_before_it_goes() -> None:
    cluster = resource(CLUSTER, {"networkConfig": {"datapathProvider": "ADVANCED_DATAPATH"}})
    other = {"networkConfig": {"datapathProvider": "LEGACY_DATAPATH"}}
    plan = make_plan((*WANTED, cluster), seen(*WANTED, cluster, mega=other, gpu={"maxPodsConstraint": None}), OWNER)
    assert "--replace deletes cluster/mega with all Kubernetes objects, Pods and nodes in it, for good." in lines(plan)
    plan = make_plan((), seen(WANTED[2]), OWNER)
    told = "--prune deletes nodePool/gpu: the Pods on its nodes end, and what is on the nodes' disks is lost."
    assert told in lines(plan)
    assert f"**Data loss:** {told}" in view.markdown(plan, price=price({}), simulated=False)
    assert list(view.losses(make_plan(WANTED, seen(*WANTED), OWNER))) == []


def test_what_goes_waits_for_what_uses_it_now_whatever_the_file_says() -> None:
    nic = {"additionalNodeNetworkConfigs": [{"network": "net", "subnetwork": "sub"}]}
    picture = seen(*WANTED, gpu={"networkConfig": nic})
    alone = resource(POOL, {"initialNodeCount": 2})
    plan = make_plan((alone,), picture, OWNER)
    assert {str(step.key): step.action for step in plan.steps}["nodePool/gpu"] == "replace"
    work = tasks(plan, region="us-central1", replace=True, prune=True)
    assert Task("delete", POOL) in work[Task("delete", SUBNET)]
    assert Task("delete", POOL) in work[Task("delete", NETWORK)]


def test_what_others_put_into_what_is_replaced_is_in_the_way() -> None:
    cluster = resource(CLUSTER, {})
    theirs, rule, gke = Key("nodePool", POOL.place, "theirs"), Key("firewall", "global", "f"), "gke-mega-f"
    picture = seen(*WANTED, cluster)
    bodies = {
        **picture.bodies,
        theirs: {"name": "theirs"},
        rule: {"name": "f", "network": "https://x/compute/v1/projects/p/global/networks/net"},
        Key("firewall", "global", gke): {"name": gke, "network": "global/networks/net"},
    }
    picture = msgspec.structs.replace(picture, bodies=bodies)
    plan = make_plan((), picture, OWNER)
    work = tasks(plan, region="us-central1", replace=True, prune=True)
    assert in_the_way(picture, plan, work) == {CLUSTER: (theirs,), NETWORK: (rule,)}
    assert in_the_way(picture, plan, work, adopted={theirs, rule}) == {}
    assert in_the_way(picture, plan, ()) == {}
