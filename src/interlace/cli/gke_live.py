"""What ``interlace gke check`` reads of a live project: targets of a cluster file or of options, and Kubernetes' part.

Invariant: nothing is changed; the objects of a cluster are read only where the kubeconfig is known to mean it.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

import msgspec
from rich.markup import escape

from interlace.cli.exits import Code, Exit
from interlace.cli.printing import console_on
from interlace.gke.client import open_client
from interlace.gke.cluster import FabricCluster
from interlace.gke.errors import GkeError
from interlace.gke.failures import Unreachable
from interlace.gke.names import nics
from interlace.gke.observed.bundle import convert
from interlace.gke.observed.gathering import Gathered, NothingRead, Target, observe, unreadable
from interlace.gke.rules.checking import check_observed, check_preflight
from interlace.kube.errors import ConfigError, KubeError
from interlace.rules.finding import Finding, ordered

if TYPE_CHECKING:
    from datetime import datetime

    from interlace.kube.config import Config


LONGEST: Final = 300.0
"""Seconds for reading a project."""


class Kubeconfig(msgspec.Struct, frozen=True, kw_only=True):
    """How to reach the cluster; both empty: by the current context, if that is the cluster."""

    file: str | None = None
    context: str | None = None

    @property
    def chosen(self) -> bool:
        return bool(self.file or self.context)


def targets_of(cluster: FabricCluster) -> tuple[Target, ...]:
    """What to look at for a cluster file: one target for each pool."""
    return tuple(
        Target(
            project=cluster.spec.project,
            location=cluster.spec.location,
            cluster=cluster.name,
            pool=pool.name,
            flavour=cluster.family.id,
            nodes=pool.nodes * max(1, len(cluster.zones_of(pool))),
            networks=tuple(dict.fromkeys(nic.network for nic in nics(cluster))),
            reservations=tuple(each.reservation.value for each in cluster.spec.pools if each.reservation),
            zones=cluster.zones_of(pool),
            network_project=cluster.network_project,
        )
        for pool in cluster.spec.pools
    )


@contextmanager
def reading(what: str) -> Iterator[None]:
    """Say on a terminal what is under way."""
    console = console_on(sys.stderr) if sys.stderr is not None else None
    if console is None or not console.is_terminal:
        yield
        return
    with console.status(escape(what)):
        yield


async def read_live(
    targets: tuple[Target, ...], *, endpoint: str | None, kubeconfig: Kubeconfig
) -> tuple[Gathered, bool]:
    """Everything about the first target, and whether it was simulated.

    Raises Exit where nothing could be read.
    """
    async with open_client(endpoint=endpoint, patience=60.0) as client:
        try:
            async with asyncio.timeout(LONGEST):
                gathered = await observe(client, targets[0])
        except (NothingRead, Unreachable) as error:
            raise Exit(Code.UNKNOWN, str(error)) from None
        except TimeoutError:
            what = f"project {targets[0].project} could not be read within {LONGEST / 60:.0f} min: try again"
            raise Exit(Code.UNKNOWN, what) from None
        simulated = bool(client.simulated)
    if gathered.document.get("cluster") is None or (simulated and not kubeconfig.chosen):
        return gathered, simulated
    objects, findings = await kubernetes_of(gathered.document["cluster"], kubeconfig)
    document = {**gathered.document, "kubernetes": objects}
    return Gathered(document=document, findings=(*gathered.findings, *findings)), simulated


def judge(
    gathered: Gathered, targets: tuple[Target, ...], *, cluster: FabricCluster | None, now: datetime
) -> tuple[Finding, ...]:
    """Findings for each target; of a cluster that is not there yet, about its file (``/spec``) in this project.

    Raises Refused.
    """
    found: list[Finding] = list(gathered.findings)
    there = gathered.document.get("cluster")
    if cluster is not None and there is None:
        return ordered((*found, *check_preflight(cluster, gathered.document, now=now)))
    made = {str(each.get("name")) for each in (there or {}).get("nodePools") or ()}
    missing = tuple(each for each in cluster.spec.pools if each.name not in made) if cluster is not None else ()
    for target in targets:
        some = check_observed(convert(_wanting(gathered, target)), now=now)
        # Of a pool that is still to be made its file tells more than the number of its nodes.
        late = target.pool in {each.name for each in missing}
        found += [each for each in some if not late or not each.rule.startswith("quota.")]
    if cluster is not None and missing:
        spec = msgspec.structs.replace(cluster.spec, pools=missing)
        rest = msgspec.structs.replace(cluster, spec=spec)
        found += [each for each in check_preflight(rest, gathered.document, now=now) if _of_pools(each)]
    return ordered(found)


def _of_pools(finding: Finding) -> bool:
    """Whether a finding about a cluster is one about the pools that it still lacks."""
    return finding.rule.partition(".")[0] in {"pool", "placement", "reservation", "quota"}


def _wanting(gathered: Gathered, target: Target) -> dict[str, Any]:
    want = {**gathered.document["want"], "nodePoolName": target.pool, "nodes": target.nodes}
    return {**gathered.document, "want": {key: value for key, value in want.items() if value}}


async def kubernetes_of(cluster: dict[str, Any], kubeconfig: Kubeconfig) -> tuple[dict[str, Any] | None, list[Finding]]:
    """Objects of a cluster as a bundle has them; None where they were not read, and the finding that says why.

    Raises ConfigError for a kubeconfig or context that was named and is not there.
    """
    from interlace.kube.client import Client
    from interlace.kube.config import load, load_kubeconfig

    path = Path(kubeconfig.file) if kubeconfig.file else None
    try:
        config = load_kubeconfig(path, context=kubeconfig.context) if kubeconfig.chosen else load()
    except ConfigError as error:
        if kubeconfig.chosen:
            raise
        return None, [_left(cluster, f"there is no kubeconfig for it ({error})")]
    if not kubeconfig.chosen and not _means(config, cluster):
        return None, [_left(cluster, f"the current context of the kubeconfig means {config.server}")]
    try:
        async with asyncio.timeout(60), Client(config, user_agent="interlace-cli") as client:
            return await _objects(client), []
    except (KubeError, OSError) as error:
        return None, [unreadable("kubernetes", GkeError(str(error) or "no answer within 60 s"))]


async def _objects(client: Any) -> dict[str, Any]:
    from interlace.cli.manifests_status import NETWORKS, NODES, PARAMETERS
    from interlace.kube.errors import Forbidden, NotFound

    async def listed(kind: type[Any]) -> list[Any] | None:
        try:
            return list((await client.list(kind)).items)
        except NotFound:
            return []
        except Forbidden:
            return None

    async with asyncio.TaskGroup() as group:
        nodes = group.create_task(listed(NODES))
        networks = group.create_task(listed(NETWORKS))
        sets = group.create_task(listed(PARAMETERS))
    return {"nodes": nodes.result(), "networks": networks.result(), "gkeNetworkParamSets": sets.result()}


def _means(config: Config, cluster: dict[str, Any]) -> bool:
    """Whether a kubeconfig's server is the cluster's own."""
    host = urlsplit(config.server).hostname or ""
    control = cluster.get("controlPlaneEndpointsConfig") or {}
    dns = (control.get("dnsEndpointConfig") or {}).get("endpoint")
    private = (cluster.get("privateClusterConfig") or {}).get("privateEndpoint")
    return bool(host) and host in {cluster.get("endpoint"), dns, private}


def _left(cluster: dict[str, Any], why: str) -> Finding:
    name = cluster.get("name", "")
    return Finding(
        rule="state.unreadable",
        severity="warning",
        pointer="/kubernetes",
        text=f"Network objects and nodes of cluster {name} were not read: {why}",
        remedy=f"get one with `gcloud container clusters get-credentials {name} --location "
        f"{cluster.get('location', '')}`, or name it with --context",
    )


def needed(options: Iterable[tuple[str, str | None]]) -> None:
    """Raises Exit naming the options that are missing."""
    missing = [name for name, value in options if not value]
    if missing:
        raise Exit(Code.REFUSED, f"without a cluster file, name {' and '.join(missing)} too")
