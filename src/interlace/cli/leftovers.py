"""``interlace domains leftovers``: what the known driver left in the cluster, shown and, if asked, removed.

What is a leftover, and what is still in use, is decided in ``domains.takeover``. Nothing is removed that was not
shown, and each removal names the uid that was shown: an object that was made anew meanwhile stays.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Final

import click
import msgspec

from interlace.api.computedomain import DOMAIN_LABEL, DRIVER, ComputeDomain, ComputeDomainClique
from interlace.api.core import Node
from interlace.api.meta import Object, Resource
from interlace.api.resource import ResourceClaim, ResourceClaimTemplate, ResourceSlice
from interlace.cli.exits import Code, Exit
from interlace.cli.printing import columns, echo
from interlace.domains.takeover import (
    OUT_OF_REACH,
    Component,
    Inventory,
    Leftover,
    What,
    components,
    leftovers,
    without_finalizer,
)
from interlace.kube.client import Client
from interlace.kube.errors import ApiError, Conflict, Forbidden, Invalid, NotFound
from interlace.kube.untyped import untyped

DAEMON_SETS: Final = untyped(Resource("apps", "v1", "daemonsets", "DaemonSet", True))
DEPLOYMENTS: Final = untyped(Resource("apps", "v1", "deployments", "Deployment", True))
_KINDS: Final[dict[What, type[Object]]] = {
    What.DAEMON_SET: DAEMON_SETS,
    What.TEMPLATE: ResourceClaimTemplate,
    What.CLIQUE: ComputeDomainClique,
    What.SLICE: ResourceSlice,
}


class Document(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What ``--json`` prints."""

    driver_installed: list[Component]
    leftovers: list[Leftover]
    """What was found."""
    removed: list[Leftover]
    failed: list[str]
    """One sentence for each removal that did not work."""
    out_of_reach: str = OUT_OF_REACH


class Answer:
    """What one call of the verb finds and does; each step shows its part, ``end`` the rest."""

    def __init__(self, *, as_json: bool) -> None:
        self._as_json = as_json
        self._installed: list[Component] = []
        self._found: list[Leftover] = []
        self._removed: list[Leftover] = []
        self._failed: list[str] = []

    async def find(self, client: Client) -> Code:
        """Read and show. Raises Exit with UNKNOWN where something may not be read."""
        inventory = await read(client)
        self._installed, self._found = components(inventory.workloads), leftovers(inventory)
        if not self._as_json:
            _show(self._found)
        return Code.GOOD

    @property
    def free(self) -> list[Leftover]:
        """What may be removed."""
        return [item for item in self._found if not item.in_use]

    async def remove(self, client: Client) -> Code:
        """Remove what is free to go."""
        for item in self.free:
            try:
                await take_away(client, item)
            except ApiError as error:
                self._failed.append(f"{path_of(item)} was not removed: {error.message}.")
            else:
                self._removed.append(item)
                if not self._as_json:
                    click.echo(f"removed {path_of(item)}")
        return Code.GOOD

    def end(self) -> Code:
        """GOOD if nothing is left, BAD if something is, FAILED if a removal did not work."""
        if self._as_json:
            document = Document(
                driver_installed=self._installed, leftovers=self._found, removed=self._removed, failed=self._failed
            )
            click.echo(msgspec.json.encode(document).decode())
        for sentence in self._failed if not self._as_json else ():
            click.echo(f"interlace: {sentence}", err=True)
        if self._failed:
            return Code.FAILED
        return Code.GOOD if len(self._removed) == len(self._found) else Code.BAD


def may_ask(*, as_json: bool) -> bool:
    """Whether somebody sits there who can be asked."""
    return not as_json and all(stream.isatty() for stream in (sys.stdin, sys.stdout, sys.stderr))


async def read(client: Client) -> Inventory:
    """What can matter in the cluster. Raises Exit with UNKNOWN where something may not be read."""

    async def listed(kind: type[Any], *, labels: str = "", fields: str = "", metadata_only: bool = False) -> list[Any]:
        try:
            return (await client.list(kind, labels=labels, fields=fields, metadata_only=metadata_only)).items
        except Forbidden as error:
            raise Exit(
                Code.UNKNOWN,
                f"you may not list {kind.resource.plural} in all namespaces ({error.message}); ask a cluster "
                "administrator to run this",
            ) from None
        except NotFound:
            return []  # not a kind of this cluster, so there is nothing left of it

    async with asyncio.TaskGroup() as group:
        domains = group.create_task(listed(ComputeDomain, metadata_only=True))
        daemon_sets = group.create_task(listed(DAEMON_SETS))
        deployments = group.create_task(listed(DEPLOYMENTS))
        templates = group.create_task(listed(ResourceClaimTemplate, labels=DOMAIN_LABEL))
        claims = group.create_task(listed(ResourceClaim))
        cliques = group.create_task(listed(ComputeDomainClique, labels=DOMAIN_LABEL))
        nodes = group.create_task(listed(Node, labels=DOMAIN_LABEL, metadata_only=True))
        slices = group.create_task(listed(ResourceSlice, fields=f"spec.driver={DRIVER}"))
    return Inventory(
        domains=domains.result(),
        # Items of a list do not say what they are.
        workloads=[{**item, "kind": "DaemonSet"} for item in daemon_sets.result()]
        + [{**item, "kind": "Deployment"} for item in deployments.result()],
        templates=templates.result(),
        claims=claims.result(),
        cliques=cliques.result(),
        nodes=nodes.result(),
        slices=slices.result(),
    )


async def take_away(client: Client, item: Leftover) -> None:
    """Remove it if it is still what was shown; that it is gone, or another one now, is well too."""
    if item.what is What.NODE_LABEL:
        path = "/metadata/labels/" + DOMAIN_LABEL.replace("~", "~0").replace("/", "~1")
        patch: Sequence[dict[str, Any]] = [
            {"op": "test", "path": path, "value": item.domain},
            {"op": "remove", "path": path},
        ]
        with suppress(NotFound, Invalid):
            await client.json_patch(Node, item.name, patch)
        return
    kind, namespace = _KINDS[item.what], item.namespace or None
    with suppress(NotFound, Conflict):
        await client.delete(kind, item.name, namespace=namespace, uid=item.uid, propagation="Background")
        rest = without_finalizer(item.finalizers)
        if rest != item.finalizers:
            body = {"metadata": {"uid": item.uid, "finalizers": rest}}
            await client.merge_patch(kind, item.name, body, namespace=namespace)


def path_of(item: Leftover) -> str:
    """How it is named to people."""
    where = f"{item.namespace}/{item.name}" if item.namespace else item.name
    return f"label {DOMAIN_LABEL} of node {item.name}" if item.what is What.NODE_LABEL else f"{item.what} {where}"


def _show(found: Sequence[Leftover]) -> None:
    if not found:
        click.echo("nothing of another ComputeDomain driver is left in the cluster's objects")
    else:
        table = columns("WHAT", "NAMESPACE", "NAME", "STATE")
        for item in found:
            table.add_row(item.what.value, item.namespace, item.name, item.in_use or "free to go")
        echo(table)
    click.echo(f"interlace: {OUT_OF_REACH}", err=True)
