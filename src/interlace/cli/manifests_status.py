"""``interlace manifests status``: reading a live cluster, with a line that says how far it is.

What is good and what is not is decided in ``interlace.manifests.status``.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click
import msgspec

from interlace.api.meta import Resource
from interlace.cli.exits import Code, Exit
from interlace.cli.printing import columns, console_on, echo
from interlace.fabric.family import Family, families
from interlace.kube.client import Client
from interlace.kube.config import load, load_kubeconfig
from interlace.kube.errors import Forbidden, NotFound
from interlace.kube.untyped import untyped
from interlace.manifests.installer import NAMESPACE as INSTALLER_NAMESPACE
from interlace.manifests.networks import GROUP
from interlace.manifests.status import INJECTOR, OURS, Check, Seen, checks, selector

NODES = untyped(Resource("", "v1", "nodes", "Node", False))
PODS = untyped(Resource("", "v1", "pods", "Pod", True))
NETWORKS = untyped(Resource(GROUP, "v1", "networks", "Network", False))
PARAMETERS = untyped(Resource(GROUP, "v1", "gkenetworkparamsets", "GKENetworkParamSet", False))

_AGAIN = 2.0
"""Seconds between two looks at the cluster while waiting."""


class Found(msgspec.Struct, frozen=True, kw_only=True):
    """What was found out about one family: one document of ``--json``."""

    family: str
    ok: bool
    checks: tuple[Check, ...]


async def run_status(
    *,
    family: Family | None,
    names: Mapping[str, str],
    system: str,
    timeout: float,
    context: str | None,
    kubeconfig: str | None,
    as_json: bool,
) -> Code:
    """Check ``family``, or all families that the cluster has nodes of, until all is good or the time is over."""
    path = Path(kubeconfig) if kubeconfig else None
    config = load_kubeconfig(path, context=context) if kubeconfig or context else load()
    deadline = time.monotonic() + timeout
    async with Client(config, user_agent="interlace-cli") as client:
        chosen = [family] if family else await _present(client)
        with _progress() as show:
            while True:
                found = [await look(client, each, names=names, system=system) for each in chosen]
                show("; ".join(_line(each) for each in found))
                if all(each.ok for each in found) or time.monotonic() + _AGAIN > deadline:
                    break
                await asyncio.sleep(_AGAIN)
    _print(found, as_json=as_json)
    states = {check.state for each in found for check in each.checks}
    return Code.BAD if "bad" in states else Code.UNKNOWN if "unknown" in states else Code.GOOD


async def _present(client: Client) -> list[Family]:
    """The families that the cluster has nodes of. Raises Exit if there are none, or nodes may not be read."""
    present = []
    for family in families():
        nodes = await _list(client, NODES, labels=selector(family))
        if nodes is None:
            raise Exit(Code.UNKNOWN, "you may not list nodes; ask for list on nodes, or name the family with --family")
        if nodes:
            present.append(family)
    # Nodes of a rack outside GKE have the label that A4X nodes have too.
    if any(family.node.gke and family.node.mnnvl for family in present):
        present = [family for family in present if family.node.gke]
    if not present:
        machines = ", ".join(machine for family in families() if family.node.gke for machine in family.machines)
        raise Exit(Code.UNKNOWN, f"no node is of a known machine type ({machines}); name a family with --family")
    return present


async def look(client: Client, family: Family, *, names: Mapping[str, str], system: str) -> Found:
    """What the cluster has of a family, at one glance."""
    installer = {"name": family.installer.name} if family.installer else None
    async with asyncio.TaskGroup() as group:
        nodes = group.create_task(_list(client, NODES, labels=selector(family)))
        installers = group.create_task(_pods(client, INSTALLER_NAMESPACE, installer))
        injectors = group.create_task(_pods(client, INSTALLER_NAMESPACE, INJECTOR))
        components = group.create_task(_pods(client, system, OURS))
        networks = group.create_task(_list(client, NETWORKS))
        parameters = group.create_task(_list(client, PARAMETERS))
    seen = Seen(
        nodes=nodes.result(),
        installers=installers.result(),
        injectors=injectors.result(),
        components=components.result(),
        networks=networks.result(),
        parameters=parameters.result(),
    )
    found = checks(family, seen, names=names)
    return Found(family=family.id, ok=all(check.state == "ok" for check in found), checks=found)


async def _pods(client: Client, namespace: str, labels: Mapping[str, str] | None) -> list[dict[str, Any]] | None:
    if labels is None:
        return []
    chosen = ",".join(f"{key}={value}" for key, value in labels.items())
    return await _list(client, PODS, namespace=namespace, labels=chosen)


async def _list(
    client: Client, kind: type[Any], *, namespace: str | None = None, labels: str = ""
) -> list[dict[str, Any]] | None:
    """None for what may not be read; nothing where the cluster does not have the kind."""
    try:
        return list((await client.list(kind, namespace=namespace, labels=labels)).items)
    except NotFound:
        return []
    except Forbidden:
        return None


@contextmanager
def _progress() -> Iterator[Any]:
    """A line that changes on a terminal; in a file one line for each change."""
    console = console_on(sys.stderr)
    if console.is_terminal:
        with console.status("reading the cluster") as live:
            yield live.update
        return
    last: list[str] = []

    def show(line: str) -> None:
        if last != [line]:
            click.echo(f"interlace: {line}", err=True)
        last[:] = [line]

    yield show


def _line(found: Found) -> str:
    parts = [f"{check.name} {check.have}/{check.want}" for check in found.checks]
    return f"{found.family}: {', '.join(parts)}"


def _print(found: list[Found], *, as_json: bool) -> None:
    if as_json:
        click.echo(msgspec.json.encode({"families": found}).decode())
        return
    for each in found:
        table = columns("", "CHECK", "HAVE", "WHAT")
        for check in each.checks:
            remedy = f"; {check.remedy}" if check.remedy and check.state != "ok" else ""
            table.add_row(check.state, check.name, f"{check.have}/{check.want}", f"{check.says}{remedy}")
        click.echo(f"{each.family}: {'all is there' if each.ok else 'not ready'}")
        echo(table)
