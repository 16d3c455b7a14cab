"""Connections and credentials: watches that lose their history, break or fall silent, refusals, tokens."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

from bench.faults.kills import kill_agent
from bench.faults.row import Row
from bench.faults.stage import Stage
from interlace.api.core import Pod
from interlace.api.meta import Resource
from interlace.kube.errors import NotFound
from interlace.kube.untyped import untyped
from interlace.sim.apiserver import ApiServer, errors
from interlace.sim.apiserver.faults import Faults
from interlace.sim.cluster import NAMESPACE
from interlace.sim.kubelet.token import TokenRequest

ACCOUNTS: Final = untyped(Resource("", "v1", "serviceaccounts", "ServiceAccount", True))
REFUSED: Final = ("resourceclaims", "computedomaincliques", "computedomains", "resourceslices", "events")
DROPS: Final = 3


def faults(stage: Stage) -> Faults:
    """The switches of the embedded API server. Raises TypeError on a real one."""
    plane = stage.cluster.plane
    if not isinstance(plane, ApiServer):
        raise TypeError("this fault needs the embedded API server")
    return plane.faults


async def _while_forming(stage: Stage) -> None:
    await stage.start("job", count=3)
    await stage.until("a Pod on a node", lambda: any(pod.spec.node_name for pod in stage.pods()))
    stage.strike()


async def history_lost(stage: Stage) -> None:
    """Every watch gets 410, and no version before this moment is known any more; twice."""
    await stage.start("job", count=2)
    await stage.formed("job", count=2)
    stage.strike()
    for count in (3, 4):
        faults(stage).expire_watches()
        faults(stage).expire_history()
        await stage.scale("job", count=count)
        await stage.formed("job", count=count)


async def watches_dropped(stage: Stage) -> None:
    """All watches break in the middle of a line while a domain forms, and again when it is bound."""
    await _while_forming(stage)
    for _ in range(DROPS):
        faults(stage).drop_watches()
        await asyncio.sleep(0)
    await stage.formed("job", count=3)


async def _refused(stage: Stage, refuse: Callable[[str], None]) -> None:
    await stage.start("job", count=1)
    await stage.formed("job", count=1)
    stage.strike()
    for resource in REFUSED:
        refuse(resource)
    try:
        await stage.scale("job", count=4)
        await stage.formed("job", count=4)
    finally:
        faults(stage).forgive()


async def throttled(stage: Stage) -> None:
    """The next 6 requests for each kind of ours are answered 429 with Retry-After: 1, whoever asks."""
    await _refused(stage, lambda resource: faults(stage).throttle(6, retry_after=1, resource=resource))


async def server_errors(stage: Stage) -> None:
    """The next 6 requests for each kind of ours are answered 500."""
    await _refused(
        stage,
        lambda resource: faults(stage).refuse(
            6, lambda: errors.internal("etcdserver: request timed out"), resource=resource
        ),
    )


async def half_open(stage: Stage) -> None:
    """All connections of our components stay open and carry nothing more; new ones work."""
    await stage.start("job", count=2)
    await stage.formed("job", count=2)
    stage.strike()
    frozen = stage.wire.freeze()
    assert frozen, "no connection was open"
    await stage.scale("job", count=3)
    await stage.formed("job", count=3)


async def cut_off(stage: Stage) -> None:
    """Our components alone lose the API server: connections are reset and refused for a while."""
    await _while_forming(stage)
    stage.wire.refuse(on=True)
    try:
        stage.wire.cut()
        await asyncio.sleep(stage.outage / 2)  # the fault itself
    finally:
        stage.wire.refuse(on=False)
    stage.mend()
    await stage.formed("job", count=3)


def _token(stage: Stage, pod: Pod) -> Path:
    node = stage.cluster.fleet.nodes[pod.spec.node_name]
    return node.tray.root / "var/lib/kubelet/pods" / pod.metadata.uid / "serviceaccount/token"


async def _renew(stage: Stage, pod: Pod, *, account: str) -> None:
    """As kubelet: a token bound to the Pod, put in place of the old one in one step."""
    bound = {"apiVersion": "v1", "kind": "Pod", "name": pod.metadata.name, "uid": pod.metadata.uid}
    body: dict[str, Any] = {
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenRequest",
        "spec": {"expirationSeconds": 3607, "boundObjectRef": bound},
    }
    made = await stage.cluster.client.create(TokenRequest, body, namespace=NAMESPACE, name=account, subresource="token")
    path = _token(stage, pod)
    new = path.with_name("token.new")
    new.write_text(made.status.token)
    new.replace(path)


@contextlib.contextmanager
def _bad_token(path: Path) -> Iterator[None]:
    good = path.read_bytes()
    path.write_text("not.a.token")
    try:
        yield
    finally:
        path.write_bytes(good)


async def tokens_invalid(stage: Stage) -> None:
    """Agents and controllers get new ServiceAccounts: each token is refused until kubelet brings another."""
    cluster = stage.cluster
    await stage.start("job", count=2)
    before = {pod.metadata.uid for pod in await stage.formed("job", count=2)}
    ours = [pod for kind in ("agent", "controller") for pod in cluster.our_pods(kind)]
    stage.strike()
    for account in ("interlace-agent", "interlace-controller"):
        found = await cluster.client.get(ACCOUNTS, account, namespace=NAMESPACE)
        with contextlib.suppress(NotFound):
            await cluster.client.delete(ACCOUNTS, account, namespace=NAMESPACE)
        labels = found["metadata"].get("labels", {})
        await cluster.apply(
            {
                "apiVersion": "v1",
                "kind": "ServiceAccount",
                "metadata": {"name": account, "namespace": NAMESPACE, "labels": labels},
            }
        )
    await stage.scale("job", count=3)
    await asyncio.sleep(stage.outage / 2)  # the fault itself
    for pod in ours:
        account = f"interlace-{pod.metadata.labels['app.kubernetes.io/component']}"
        await _renew(stage, pod, account=account)
    stage.mend()
    await stage.formed("job", count=3)
    stage.end()
    assert before <= stage.uids("job"), "a Pod that ran was replaced"


async def token_late(stage: Stage) -> None:
    """An agent starts with a token that is no longer taken; the next one comes later."""
    node = stage.cluster.gpu_nodes[0]
    agent = stage.component("agent", node=node)
    with _bad_token(_token(stage, agent)):
        stage.strike()
        await kill_agent(stage, node)
        await stage.start("job", count=1, nodes=[node])
        await stage.until("a Pod on the node", lambda: any(pod.spec.node_name for pod in stage.pods()))
        await asyncio.sleep(stage.outage / 4)  # the fault itself
    stage.mend()
    await stage.formed("job", count=1)


ROWS: Final = (
    Row(
        name="watch-history-lost",
        fault="the history of all watches is lost (410 Gone)",
        when="while a domain grows from 2 to 3 and to 4 nodes",
        made="the embedded API server ends its watches with 410 and forgets older versions",
        holds="All 4 nodes and Pods are Ready.",
        act=history_lost,
        bed="embedded",
        cheap=True,
    ),
    Row(
        name="watches-dropped",
        fault="all watches break in the middle of a line",
        when="while a domain of 3 nodes forms",
        made="the embedded API server resets them",
        holds="All 3 nodes and Pods are Ready.",
        act=watches_dropped,
        bed="embedded",
        cheap=True,
    ),
    Row(
        name="too-many-requests",
        fault="the API server answers 429 with Retry-After",
        when="while a domain grows from 1 to 4 nodes",
        made="the next 6 requests for each of 5 kinds, whoever asks, 1 s each",
        holds="All 4 nodes and Pods are Ready.",
        act=throttled,
        bed="embedded",
    ),
    Row(
        name="server-errors",
        fault="the API server answers 500",
        when="while a domain grows from 1 to 4 nodes",
        made="the next 6 requests for each of 5 kinds, whoever asks",
        holds="All 4 nodes and Pods are Ready.",
        act=server_errors,
        bed="embedded",
    ),
    Row(
        name="connections-cut",
        fault="our components lose the API server",
        when="while a domain of 3 nodes forms",
        made="a relay between them resets all connections and refuses new ones for the time in brackets",
        holds="All 3 nodes and Pods are Ready.",
        act=cut_off,
        cheap=True,
    ),
    Row(
        name="connections-half-open",
        fault="all connections of our components fall silent",
        when="before a domain of 2 nodes grows to 3",
        made="a relay keeps them open and carries nothing; new connections work",
        holds="All 3 nodes and Pods are Ready.",
        act=half_open,
        limit=300,
    ),
    Row(
        name="tokens-invalid",
        fault="the tokens of agents and controllers are refused",
        when="while a domain grows from 2 to 3 nodes",
        made="their ServiceAccounts are deleted and made anew; new tokens come after the time in brackets",
        holds="All 3 nodes and Pods are Ready, the first 2 Pods the same.",
        act=tokens_invalid,
        cheap=True,
    ),
    Row(
        name="token-late",
        fault="the token of an agent is refused at its start",
        when="while a domain forms on its node",
        made="SIGKILL, and a token file that holds none, for the time in brackets",
        holds="The node and its Pod are Ready.",
        act=token_late,
    ),
)
