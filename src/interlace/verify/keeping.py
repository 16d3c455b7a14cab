"""A baseline that is kept in a ConfigMap: the newest runs that passed, for the next run to be held against.

Invariant: only runs that passed are added, so that a fabric that slowly gets worse does not become its own measure:
the oldest runs stay, and of the newer ones the latest.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar, Final

import msgspec

from interlace.api.meta import ObjectMeta, Resource, Struct
from interlace.kube.client import Client
from interlace.kube.errors import NotFound
from interlace.verify.baseline import decode
from interlace.verify.run import Run, document

KEY: Final = "runs.json"
_OLDEST: Final = 5
_NEWEST: Final = 15
"""Runs that are kept from the beginning, and from the end."""


class KeptError(ValueError):
    """The ConfigMap holds something else; the message says what to do."""


class BaselineMap(Struct, frozen=True):
    """``v1.ConfigMap``."""

    resource: ClassVar[Resource] = Resource("", "v1", "configmaps", "ConfigMap", True)
    metadata: ObjectMeta = ObjectMeta()
    data: dict[str, str] = {}


async def kept_runs(client: Client, name: str, *, namespace: str) -> list[Run]:
    """The runs that are kept; none if there is no such ConfigMap yet. Raises KeptError, and the errors of ``kube``."""
    try:
        found = await client.get(BaselineMap, name, namespace=namespace)
    except NotFound:
        return []
    text = found.data.get(KEY)
    runs = decode(text.encode(), source=f"configmap/{name}") if text else ()
    if runs is None or (found.data and text is None):
        raise KeptError(
            f"ConfigMap {namespace}/{name} is no baseline: {KEY} is no document of runs; name another --baseline-map"
        )
    return list(runs)


async def keep_run(client: Client, name: str, runs: Iterable[Run], *, namespace: str) -> None:
    """Add runs that passed. Raises KeptError, and the errors of ``kube``."""
    kept = thinned([*await kept_runs(client, name, namespace=namespace), *runs])
    text = msgspec.json.encode({"runs": [document(each) for each in kept]}).decode()
    body = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": namespace},
        "data": {KEY: text},
    }
    await client.apply(BaselineMap, body, name=name, namespace=namespace, manager="interlace-verify")


def thinned(runs: list[Run]) -> list[Run]:
    """The oldest ones and the newest ones."""
    return runs if len(runs) <= _OLDEST + _NEWEST else [*runs[:_OLDEST], *runs[-_NEWEST:]]
