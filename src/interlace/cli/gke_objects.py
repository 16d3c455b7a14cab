"""After the cluster: the Kubernetes objects that its nodes need, applied and awaited.

Invariant: they are those of ``interlace manifests --family`` without the workloads for tests, with the names of the
networks that were made; a simulated cluster has no API server, and then nothing is applied and that is said.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec

from interlace.cli.exits import Code, Exit

if TYPE_CHECKING:
    from interlace.cli.gke_apply import Run
    from interlace.cli.gke_engine import Session
    from interlace.fabric.family import SoftwareTuple
    from interlace.gke.client import Client
    from interlace.kube.config import Config

MANAGER = "interlace-gke"


class Objects(msgspec.Struct, frozen=True, kw_only=True):
    """Which objects, where, and how long they are waited for in seconds. No ``parts`` are all."""

    parts: tuple[str, ...] = ()
    kubeconfig: str | None = None
    context: str | None = None
    timeout: float = 0.0


def check_kubeconfig(kubeconfig: str | None, *, context: str | None) -> None:
    """Read it before anything is made. Raises Exit."""
    from interlace.kube.config import load_kubeconfig
    from interlace.kube.errors import ConfigError

    try:
        load_kubeconfig(Path(kubeconfig) if kubeconfig else None, context=context)
    except ConfigError as error:
        raise Exit(Code.REFUSED, str(error)) from None


async def apply_objects(chosen: Session, run: Run, wanted: Objects) -> Code:
    """Apply and wait; says in ``run`` what came of it. Raises Exit, KubeErrors and GkeErrors."""
    if chosen.simulated and not wanted.kubeconfig and not wanted.context:
        run.objects = "Kubernetes objects: not applied, a simulated cluster has no API server (--kubeconfig names one)"
        return Code.GOOD
    from interlace.kube.client import Client as KubeClient
    from interlace.kube.untyped import Discovery, apply_manifest

    config, version = await _connection(chosen, kubeconfig=wanted.kubeconfig, context=wanted.context)
    objects = _objects(chosen, version, parts=wanted.parts)
    async with KubeClient(config, user_agent="interlace-cli") as client:
        discovery = Discovery(client)
        for each in objects:
            await apply_manifest(client, each, manager=MANAGER, discovery=discovery)
        click.echo(f"interlace: {len(objects)} Kubernetes objects applied; waiting for GPUs and networks", err=True)
        ok, said = await _ready(client, chosen, timeout=wanted.timeout)
    run.objects = f"Kubernetes objects: {len(objects)} applied; {said}"
    if not ok:
        run.code = Code.BAD
    return Code.GOOD


async def _ready(client: Any, chosen: Session, *, timeout: float) -> tuple[bool, str]:
    import asyncio

    from interlace.cli.manifests_status import look
    from interlace.manifests import NAMESPACE

    loop = asyncio.get_running_loop()
    deadline = loop.time() + timeout
    while True:
        found = await look(client, chosen.cluster.family, names={}, system=NAMESPACE)
        if found.ok or loop.time() >= deadline:
            break
        await asyncio.sleep(min(5.0, max(deadline - loop.time(), 0.0)))
    bad = [f"{check.name}: {check.says}" for check in found.checks if check.state != "ok"]
    return found.ok, "all ready" if found.ok else "not ready: " + "; ".join(bad)


def _objects(chosen: Session, version: str, *, parts: tuple[str, ...]) -> list[dict[str, Any]]:
    from interlace.cli.families import choose_software
    from interlace.gke.names import vpcs
    from interlace.manifests.family import PARTS, Plan, family_manifests

    family = chosen.cluster.family
    software: SoftwareTuple = choose_software(family, tuple_id=None, cluster_version=version or None)
    left_out = {"canary", "test"}
    if chosen.cluster.spec.network.mode == "managed":
        left_out.add("networks")  # GKE makes them itself
    chosen_parts = tuple(part for part in PARTS if part not in left_out and (not parts or part in parts))
    plan = Plan(parts=chosen_parts, vpcs=vpcs(chosen.cluster))
    return family_manifests(family, software=software, plan=plan, wire=lambda template: template)


async def _connection(chosen: Session, *, kubeconfig: str | None, context: str | None) -> tuple[Config, str]:
    """How to reach the API server, and the cluster's version. Raises Exit and GkeErrors."""
    from interlace.gke.client import open_client

    async with open_client(endpoint=chosen.endpoint) as client:
        body = await _cluster(chosen, client)
    version = str(body.get("currentMasterVersion") or "")
    if kubeconfig or context:
        from interlace.kube.config import load_kubeconfig

        return load_kubeconfig(Path(kubeconfig) if kubeconfig else None, context=context), version
    return await _own(chosen, body), version


async def _cluster(chosen: Session, client: Client) -> dict[str, Any]:
    from interlace.gke.desired import cluster_key
    from interlace.gke.observing import observe_one

    found = await observe_one(client, chosen.scope, cluster_key(chosen.cluster))
    if found is None:
        raise Exit(Code.FAILED, f"cluster/{chosen.cluster.name}: it is gone; run `{chosen.command('plan')}`")
    return dict(found)


async def _own(chosen: Session, body: dict[str, Any]) -> Config:
    """The cluster's own address and certificate, with the token that Google's APIs take too."""
    import base64

    from interlace.gke.credentials import GoogleCredentials
    from interlace.kube.config import Config

    address = str(body.get("endpoint") or "")
    certificate = str((body.get("masterAuth") or {}).get("clusterCaCertificate") or "")
    if not address or not certificate:
        raise Exit(
            Code.FAILED,
            f"cluster/{chosen.cluster.name}: it has no address for its API server; "
            "name a kubeconfig with --kubeconfig, or leave the objects out with --no-objects",
        )
    headers = await GoogleCredentials().headers()
    token = headers["authorization"].partition(" ")[2]
    return Config(server=f"https://{address}", ca=base64.b64decode(certificate), token=token)
