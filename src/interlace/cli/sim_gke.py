"""``interlace sim gke``: a Google Cloud to try the verbs of ``interlace gke`` on, in this process.

Invariant: bad options are refused before anything is served; the loopback interface is served unless told otherwise.
"""

from __future__ import annotations

import asyncio
import re
import sys
from typing import TYPE_CHECKING

import click

from interlace.cli.exits import Code, Exit
from interlace.cli.running import run

if TYPE_CHECKING:
    from interlace.sim.gke import Durations, Fault, GkeServer
    from interlace.sim.gke.server import Entry

_RESERVATION = re.compile(r"(?P<zone>[a-z0-9-]+)/(?P<name>[a-z0-9-]+)=(?P<machine>[a-z0-9-]+):(?P<count>\d+)")


@click.command()
@click.option("--project", default="example-project", show_default=True, metavar="ID", help="The project that exists.")
@click.option("--host-project", multiple=True, metavar="ID", help="Another one, such as the host of a shared VPC.")
@click.option("--port", default=8480, show_default=True, type=click.IntRange(0, 65535), help="0 takes a free one.")
@click.option("--bind", default="127.0.0.1", show_default=True, metavar="ADDRESS", help="Address to listen on.")
@click.option(
    "--seconds",
    type=click.FloatRange(0, 86400),
    metavar="SECONDS",
    help="How long each operation takes; else 1, or as in life with --lifelike.",
)
@click.option("--lifelike", is_flag=True, help="Let operations take as long as people report: 3 minutes for a cluster.")
@click.option("--fault", "faults", multiple=True, metavar="FAULT", help="What goes wrong; see --faults.")
@click.option("--faults", "list_faults", is_flag=True, help="List the faults that there are, and end.")
@click.option("--quota", "quotas", multiple=True, metavar="METRIC=LIMIT", help="Another limit, such as NETWORKS=5.")
@click.option(
    "--reservation",
    "reservations",
    multiple=True,
    metavar="ZONE/NAME=TYPE:COUNT",
    help="A reservation that stands, such as us-central1-a/mine=a3-megagpu-8g:2.",
)
@click.option("--deny", multiple=True, metavar="PERMISSION", help="One that you lack: compute.networks.create.")
@click.option("--no-default-network", is_flag=True, help="A project without the network named default.")
@click.option("--verbose", "-v", is_flag=True, help="Write each request to stderr.")
@click.option("--json", "as_json", is_flag=True, help="Print where it is served as one JSON document.")
def gke(
    *,
    project: str,
    host_project: tuple[str, ...],
    port: int,
    bind: str,
    seconds: float | None,
    lifelike: bool,
    faults: tuple[str, ...],
    list_faults: bool,
    quotas: tuple[str, ...],
    reservations: tuple[str, ...],
    deny: tuple[str, ...],
    no_default_network: bool,
    verbose: bool,
    as_json: bool,
) -> None:
    """Serve a simulation of compute, container, serviceusage, cloudquotas and cloudresourcemanager until Ctrl-C.

    Nothing of it is Google Cloud: it copies recorded answers and public facts, and every answer has the header
    x-interlace-simulated. Point `interlace gke` at it with --endpoint. A fault is
    KIND[@REGEX][,times=N][,after=N][,retry-after=SECONDS]; the expression is searched in "METHOD /path", times=0 is for
    ever. Everything is forgotten at the end.
    """
    from interlace.sim.gke import LIFELIKE, Durations, Fault

    if list_faults:
        _list_faults()
        return
    if lifelike and seconds is not None:
        raise Exit(Code.REFUSED, "--seconds and --lifelike exclude each other.")
    try:
        active = [Fault.parse(text) for text in faults]
        limits = dict(_quota(text) for text in quotas)
        kept = [_reservation(text) for text in reservations]
    except ValueError as error:
        raise Exit(Code.REFUSED, f"{error}.".replace("..", ".")) from None
    durations = LIFELIKE if lifelike else Durations.every(1.0 if seconds is None else seconds)

    async def main() -> Code:
        return await _serve(
            projects=(project, *host_project),
            bind=bind,
            port=port,
            durations=durations,
            faults=active,
            quotas=limits,
            reservations=kept,
            denied=deny,
            default_network=not no_default_network,
            verbose=verbose,
            as_json=as_json,
        )

    run(main())


async def _serve(
    *,
    projects: tuple[str, ...],
    bind: str,
    port: int,
    durations: Durations,
    faults: list[Fault],
    quotas: dict[str, float],
    reservations: list[tuple[str, str, str, int]],
    denied: tuple[str, ...],
    default_network: bool,
    verbose: bool,
    as_json: bool,
) -> Code:
    """Serve until cancelled."""
    from interlace.sim.gke import serve_gke

    async with serve_gke(
        project=projects[0],
        more_projects=projects[1:],
        latency=durations,
        faults=faults,
        default_network=default_network,
        host=bind,
        port=port,
    ) as server:
        _set_quotas(server, quotas)
        server.world.denied.update(denied)
        for zone, name, machine, count in reservations:
            body = {
                "name": name,
                "specificReservationRequired": True,
                "specificReservation": {"count": str(count), "instanceProperties": {"machineType": machine}},
            }
            server.preset(f"/compute/v1/projects/{projects[0]}/zones/{zone}/reservations", body)
        if verbose:
            server.after = _tell
        _announce(server, projects[0], as_json=as_json)
        await asyncio.Event().wait()
    return Code.GOOD


def _announce(server: GkeServer, project: str, *, as_json: bool) -> None:
    if as_json:
        import json

        print(json.dumps({"url": server.url, "project": project, "simulated": True}))
    else:
        print(f"Simulated Google APIs for project {project} at {server.url}; nothing of this is Google Cloud.")
        print(f"interlace gke plan -f cluster.yaml --endpoint {server.url}")
    sys.stdout.flush()


async def _tell(entry: Entry) -> None:
    print(f"{entry.line} {entry.status}", file=sys.stderr)


def _list_faults() -> None:
    from interlace.sim.gke.faults import MEANINGS

    width = max(len(kind) for kind in MEANINGS)
    for kind, meaning in MEANINGS.items():
        print(f"{kind:<{width}}  {meaning}")


def _quota(text: str) -> tuple[str, float]:
    metric, _, limit = text.partition("=")
    if not re.fullmatch(r"\d+", limit):
        raise ValueError(f"--quota {text!r} is not METRIC=LIMIT")
    return metric, float(limit)


def _set_quotas(server: GkeServer, quotas: dict[str, float]) -> None:
    """Raises ValueError for a metric that is not simulated."""
    catalog = server.world.catalog
    for metric, limit in quotas.items():
        if metric == "GPUS_PER_GPU_FAMILY":
            catalog.gpu_family_quota = int(limit)
        elif metric == "CPUS_PER_VM_FAMILY":
            catalog.vm_family_quota = int(limit)
        elif metric in catalog.global_quotas:
            catalog.global_quotas[metric] = limit
        elif metric in catalog.region_quotas:
            catalog.region_quotas[metric] = limit
        else:
            known = sorted(
                {"CPUS_PER_VM_FAMILY", "GPUS_PER_GPU_FAMILY", *catalog.global_quotas, *catalog.region_quotas}
            )
            raise ValueError(f"--quota {metric}: there is no such quota here; known are {', '.join(known)}")


def _reservation(text: str) -> tuple[str, str, str, int]:
    found = _RESERVATION.fullmatch(text)
    if found is None:
        raise ValueError(f"--reservation {text!r} is not ZONE/NAME=TYPE:COUNT")
    return found["zone"], found["name"], found["machine"], int(found["count"])
