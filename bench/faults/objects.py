"""Rows with malformed and hostile objects: for all readers, and for a controller that has work to do meanwhile."""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import Iterator
from typing import Any, Final

from bench.faults.hostile import HUGE, SAMPLES, change, read_all
from bench.faults.row import Row
from bench.faults.stage import Stage
from interlace.api.computedomain import ComputeDomain, ComputeDomainClique
from interlace.api.meta import Object
from interlace.api.resource import ResourceClaim, ResourceClaimTemplate
from interlace.kube.errors import ApiError, KubeError
from interlace.kube.untyped import untyped
from interlace.sim.apiserver import ApiServer
from interlace.sim.cluster import NAMESPACE
from interlace.sim.trouble import poison

STORED: Final[tuple[type[Object], ...]] = (ComputeDomain, ComputeDomainClique)
SENT: Final[tuple[type[Object], ...]] = (ComputeDomain, ResourceClaim, ResourceClaimTemplate)


async def all_readers(stage: Stage) -> None:
    """Every reader gets random objects; meanwhile a domain forms, so that the row has an end state."""
    stage.strike()
    found = await asyncio.to_thread(read_all, each=stage.many)
    assert not found, found[0]
    await stage.start("job", count=2)
    await stage.formed("job", count=2)
    stage.notes.append(f"{stage.many} objects a kind: each was read, or refused with one sentence")


def _hostile(kind: type[Object], *, count: int, namespace: str, seed: int) -> Iterator[dict[str, Any]]:
    """Random objects with good metadata: no API server keeps others."""
    chance = random.Random(f"{seed} {kind.resource.kind}")
    for number in range(count):
        body = change({key: value for key, value in SAMPLES[kind].items() if key != "metadata"}, chance)
        uid = f"00000000-0000-4000-8000-{number:012x}"
        labels = SAMPLES[kind]["metadata"]["labels"]
        body["metadata"] = {"name": f"hostile-{number}", "namespace": namespace, "uid": uid, "labels": labels}
        body |= {"apiVersion": kind.resource.api_version, "kind": kind.resource.kind}
        yield body


async def stored(stage: Stage) -> None:
    """Objects that no validation ever saw lie in the store, as after a change of the CRD."""
    plane = stage.cluster.plane
    if not isinstance(plane, ApiServer):
        raise TypeError("this fault needs the embedded API server")
    kept: list[tuple[str, tuple[str, str]]] = []
    stage.strike()
    try:
        for kind in STORED:
            storage = f"{kind.resource.plural}.{kind.resource.group}"
            namespace = NAMESPACE if kind is ComputeDomainClique else stage.namespace
            for body in _hostile(kind, count=stage.many, namespace=namespace, seed=1):
                key = (namespace, body["metadata"]["name"])
                plane.store.put(storage, key, body)
                kept.append((storage, key))
                if not len(kept) % 50:
                    await asyncio.sleep(0)
        await stage.start("job", count=3)
        await stage.formed("job", count=3)
        stage.notes.append(f"{stage.many} objects a kind")
    finally:
        for storage, key in kept:
            with contextlib.suppress(KeyError):  # the controller may have ended it already
                plane.store.delete(storage, key)


async def sent(stage: Stage) -> None:
    """A tenant sends random and huge objects; what the API server takes stays while a domain of another forms."""
    client = stage.cluster.client
    await stage.start("first", count=1)
    await stage.formed("first", count=1)
    first = stage.domain("first")
    assert first is not None
    stage.strike()
    taken = await poison(client, namespace=stage.namespace, victim=first.metadata.uid)
    for kind in SENT:
        for body in _hostile(kind, count=stage.many, namespace=stage.namespace, seed=2):
            body["metadata"].pop("uid")
            with contextlib.suppress(ApiError, KubeError):
                await client.create(untyped(kind.resource), body, namespace=stage.namespace)
                taken += 1
    huge = {"metadata": {"name": "huge", "annotations": {"example.com/note": "x" * (HUGE // 5)}}}
    with contextlib.suppress(ApiError):
        await client.create(untyped(ComputeDomain.resource), huge, namespace=stage.namespace)
    await stage.start("job", count=3)
    await stage.formed("job", count=3)
    stage.end()
    assert len(stage.ready_nodes("first")) == 1
    stage.notes.append(f"{stage.many} objects a kind, {taken} of them all were taken by the API server")


ROWS: Final = (
    Row(
        name="hostile-bytes",
        fault="malformed objects, orders, checkpoints and parameters",
        when="at any time",
        made="random changes of good ones, unknown enum values, unicode, 1 MB fields",
        holds="Each is read or refused by an error of its reader; a domain forms.",
        act=all_readers,
        bed="embedded",
        cheap=True,
        limit=600,
    ),
    Row(
        name="hostile-objects-stored",
        fault="unreadable ComputeDomains and node maps in the store",
        when="before a domain of 3 nodes forms",
        made="random ones of both kinds, put past validation into the embedded store",
        holds="All 3 nodes and Pods are Ready.",
        act=stored,
        bed="embedded",
        cheap=True,
        limit=600,
    ),
    Row(
        name="hostile-objects-sent",
        fault="a tenant sends hostile ComputeDomains, claims and templates",
        when="before a domain of 3 nodes forms",
        made="random ones of each kind, sent to the embedded API server, and some that were thought out",
        holds="All 3 nodes and Pods are Ready, and the domain that the claims name as theirs is as before.",
        act=sent,
        bed="embedded",
        cheap=True,
        limit=600,
    ),
)
