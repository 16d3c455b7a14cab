"""``interlace demo``: the whole story on simulated nodes, watched live, with its cost at the end.

On a terminal the trays are drawn while they change; elsewhere each step is a line. What is
simulated is said at the start, in the picture and in the JSON.
"""

from __future__ import annotations

import asyncio
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click
import msgspec

from interlace.cli.exits import Code, Exit
from interlace.cli.running import run

if TYPE_CHECKING:
    from interlace.cli.stage import Show
    from interlace.sim.cluster import Cluster
    from interlace.sim.demo.result import Result
    from interlace.sim.demo.scenario import Workload

SIMULATED = {
    "embedded": ["API server", "scheduler", "controllers", "kubelets", "GPUs", "nvidia-imex"],
    "real": ["kubelets", "GPUs", "nvidia-imex"],
}


@click.command()
@click.option("--nodes", default=18, show_default=True, type=click.IntRange(2, 200), help="GPU nodes, 18 to a rack.")
@click.option(
    "--server",
    default="embedded",
    show_default=True,
    type=click.Choice(["embedded", "real"]),
    help="The control plane: embedded (simulated), or real etcd, kube-apiserver, scheduler and controller-manager.",
)
@click.option("--keep", is_flag=True, help="Leave the cluster up at the end and say how to point kubectl at it.")
@click.option(
    "--speed", default=1.0, show_default=True, type=click.FloatRange(0.1, 100), help="Of the pauses between acts."
)
@click.option(
    "--manifests",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Folder with one ComputeDomain and one Deployment instead of the example.",
)
@click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout; progress goes to stderr.")
def demo(
    *, nodes: int, server: Literal["embedded", "real"], keep: bool, speed: float, manifests: Path | None, as_json: bool
) -> None:
    """Watch a ComputeDomain and a Deployment become one IMEX domain, lose a node, heal, shrink and go."""
    from interlace.cli.stage import Show
    from interlace.sim.demo.scenario import load_workload

    try:
        workload = load_workload(manifests or example(), replicas=nodes)
    except ValueError as error:
        raise click.UsageError(str(error)) from None
    show = Show(stream=sys.stderr if as_json else sys.stdout, pause=1.5 / speed)
    run(_demo(nodes, server, workload, show=show, keep=keep, as_json=as_json))


def example() -> Path:
    """Folder of the example manifests: in a checkout, or inside the installed package."""
    for folder in (
        Path(__file__).parents[3] / "examples" / "gb200-nvl72",
        Path(__file__).parents[1] / "examples" / "gb200-nvl72",
    ):
        if folder.is_dir():
            return folder
    raise Exit(Code.REFUSED, "the example manifests are not installed; name a folder with --manifests")


async def _demo(
    nodes: int,
    server: Literal["embedded", "real"],
    workload: Workload,
    *,
    show: Show,
    keep: bool,
    as_json: bool,
) -> Code:
    from interlace.kube.log import configure
    from interlace.sim.cluster import ClusterSettings, run_cluster
    from interlace.sim.demo.result import Result
    from interlace.sim.demo.scenario import Scenario, play
    from interlace.sim.observing import NotReachedError

    configure("error", json=False)  # components say what matters in events and conditions
    result = Result(server=server, nodes=nodes, simulated=SIMULATED[server])
    with show:
        show.tell(f"simulated: {', '.join(result.simulated)}; the rest is what runs in a cluster")
        started = time.monotonic()
        try:
            async with run_cluster(ClusterSettings(server=server, nodes=nodes), tell=show.tell) as cluster:
                result.server_version = cluster.plane.version
                show.tell(
                    f"{nodes} nodes are up after {time.monotonic() - started:.1f} s, Kubernetes {cluster.plane.version}"
                )
                scenario = Scenario(cluster, workload, stage=show, result=result)
                show.draw(scenario)
                await play(scenario, keep=keep)
                if keep and not result.problems:
                    await _stay(cluster, result, show=show, as_json=as_json)
        except* NotReachedError as group:
            # the cluster itself did not come up
            result.problems += [str(error) for error in group.exceptions]
        show.tell(f"done after {time.monotonic() - started:.1f} s")
    if as_json:
        sys.stdout.write(msgspec.json.encode(result).decode() + "\n")
    else:
        show.summary(result)
    return Code.GOOD if result.good else Code.BAD


async def _stay(cluster: Cluster, result: Result, *, show: Show, as_json: bool) -> None:
    """Print how to reach the cluster and wait for Ctrl-C, which is then the normal end."""
    if as_json:
        sys.stdout.write(msgspec.json.encode(result).decode() + "\n")
        sys.stdout.flush()
    show.tell(f"the cluster stays up; in another terminal: export KUBECONFIG={cluster.plane.kubeconfig}")
    show.tell("then: kubectl get computedomains,pods,nodes -A   (Ctrl-C ends it)")
    try:
        await asyncio.Event().wait()
    except asyncio.CancelledError:
        show.tell("taking the cluster down")
        raise Exit(Code.GOOD) from None
