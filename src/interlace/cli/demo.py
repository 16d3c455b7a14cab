"""``interlace demo``: the whole story on simulated nodes, watched live, with its cost at the end.

On a terminal the trays are drawn while they change; elsewhere each step is a line. What is
simulated is said at the start, in the picture and in the JSON.
"""

from __future__ import annotations

import asyncio
import importlib.util
import resource
import shlex
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from interlace.cli.exits import Code, Exit
from interlace.cli.running import explain, run

if TYPE_CHECKING:
    from interlace.cli.stage import Show
    from interlace.sim.cluster import Cluster
    from interlace.sim.demo.result import Result
    from interlace.sim.demo.workload import Workload

SIMULATED = {
    "embedded": ["API server", "scheduler", "controllers", "kubelets", "GPUs", "nvidia-imex"],
    "real": ["kubelets", "GPUs", "nvidia-imex"],
}


_ACTS = ("Form", "Heal", "Shrink", "Grow", "Delete", "Prove")
_PAUSE = 1.5
"""Seconds between acts on a terminal."""


@click.command()
@click.option(
    "--nodes",
    default=18,
    show_default=True,
    type=click.IntRange(2, 200),
    metavar="COUNT",
    help="GPU nodes, 18 to a rack, 2 to 200.",
)
@click.option(
    "--server",
    default="embedded",
    show_default=True,
    type=click.Choice(["embedded", "real"]),
    help="Control plane: embedded (simulated), or real etcd, kube-apiserver, scheduler and controller-manager.",
)
@click.option("--keep", is_flag=True, help="Leave the cluster up until Ctrl-C and say how to point kubectl at it.")
@click.option(
    "--speed",
    default=1.0,
    show_default=True,
    type=click.FloatRange(0.1, 100),
    metavar="FACTOR",
    help="Shorter (above 1) or longer pauses between the acts; only a terminal has them.",
)
@click.option(
    "--manifests",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Folder with one ComputeDomain and one Deployment instead of the example.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document; progress goes to stderr.")
def demo(
    *, nodes: int, server: Literal["embedded", "real"], keep: bool, speed: float, manifests: Path | None, as_json: bool
) -> None:
    """Watch a job's IMEX domain form, lose a node, heal, shrink, grow and go, on simulated nodes.

    Nothing outside this process and its children is touched, and nothing is left behind. Exit 0 if all went
    well, 1 if the end state is wrong or something was left behind, 4 if the cluster did not come up.
    """
    _require(server)
    from interlace.cli.bill import bill
    from interlace.cli.printing import echo
    from interlace.cli.stage import Show
    from interlace.sim.demo.result import Result, encode
    from interlace.sim.demo.workload import load_workload

    try:
        workload = load_workload(manifests or example(), replicas=nodes)
    except ValueError as error:
        raise Exit(Code.REFUSED, str(error)) from None
    result = Result(server=server, nodes=nodes, simulated=SIMULATED[server])
    show = Show(
        stream=sys.stderr if as_json else sys.stdout,
        pause=_PAUSE / speed,
        acts=_ACTS[:-2] if keep else _ACTS,
        simulated=result.simulated,
    )

    def answer() -> None:
        show.freeze()
        if as_json:
            click.echo(encode(result))
        else:
            echo(bill(result))

    async def main() -> Code:
        with show:
            async with asyncio.TaskGroup() as group:
                painter = group.create_task(show.paint())
                code = await _play(workload, result, show=show, keep=keep, answer=answer)
                painter.cancel()
        if code is not Code.GOOD or not keep:
            answer()
        return code

    _allow_files()
    run(main(), on_signal=show.interrupted)


def example() -> Path:
    """Folder of the example manifests: in a checkout, or inside the installed package."""
    for folder in (
        Path(__file__).parents[3] / "examples" / "gb200-nvl72",
        Path(__file__).parents[1] / "examples" / "gb200-nvl72",
    ):
        if folder.is_dir():
            return folder
    raise Exit(Code.REFUSED, "the example manifests are not installed; name a folder with --manifests")


def _require(server: str) -> None:
    """Refuse at once what would fail for want of a part. Raises Exit."""
    parts = ["cryptography"] + (["cel_expr_python"] if server == "embedded" else [])
    missing = [name for name in parts if importlib.util.find_spec(name) is None]
    if missing:
        raise Exit(
            Code.REFUSED,
            f"the simulation needs {', '.join(missing)}, which is not installed; pip install 'interlace[sim]' gets it",
        )
    if server == "real":
        if importlib.util.find_spec("testbed") is None:
            raise Exit(
                Code.REFUSED,
                "--server real needs the programs of a real control plane, which a checkout of Interlace builds; "
                "run `python -m testbed get` there",
            )
        from testbed import build
        from testbed.errors import BedError
        from testbed.programs import cache_root

        try:
            asyncio.run(build.built(cache_root()))
        except BedError as error:
            raise Exit(Code.REFUSED, str(error)) from None


def _allow_files() -> None:
    """Every simulated node holds sockets and files of its own; the usual soft limit is too low for many."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


async def _play(workload: Workload, result: Result, *, show: Show, keep: bool, answer: Callable[[], None]) -> Code:
    """Everything that happens while there is a cluster; what goes wrong stands in the result."""
    from interlace.kube.log import configure
    from interlace.sim.cluster import ClusterSettings, run_cluster
    from interlace.sim.demo.scenario import Scenario, play
    from interlace.sim.observing import NotReachedError

    configure("error", json=False)  # components say what matters in events and conditions
    started = time.monotonic()
    show.tell(f"simulated: {', '.join(result.simulated)}; the rest is what runs in a cluster")
    for note in workload.notes:
        show.tell(note)
    settings = ClusterSettings(
        server="real" if result.server == "real" else "embedded",
        nodes=result.nodes,
        node_grace=max(4.0, result.nodes / 6),  # one computer renews the Leases of all nodes
    )
    try:
        async with run_cluster(settings, tell=show.tell, show=show.watch) as cluster:
            result.server_version = cluster.plane.version
            seconds = time.monotonic() - started
            show.tell(f"{result.nodes} nodes are up after {seconds:.1f} s, Kubernetes {cluster.plane.version}")
            scenario = Scenario(cluster, workload, stage=show, result=result)
            show.follow(scenario)
            await play(scenario, keep=keep)
            if result.good:
                show.done()
            if keep and not result.problems:
                answer()
                await _stay(cluster, workload.name, show=show)
    except Exception as error:
        end = explain(error, failures=(NotReachedError, *_failures(result.server)))
        if not isinstance(end, Exit):
            raise
        if end.code is not Code.GOOD:
            result.problems.append(end.message)
            return Code.FAILED
    show.tell(f"done after {time.monotonic() - started:.1f} s")
    return Code.GOOD if result.good else Code.BAD


def _failures(server: str) -> tuple[type[Exception], ...]:
    if server == "embedded":
        return ()
    from testbed.errors import BedError

    return (BedError,)


async def _stay(cluster: Cluster, domain: str, *, show: Show) -> None:
    """Say how to reach the cluster and wait for Ctrl-C, which is then the normal end."""
    show.tell("the cluster stays up until Ctrl-C; in another terminal:")
    show.hint(
        f"export KUBECONFIG={shlex.quote(str(cluster.plane.kubeconfig))}",
        f"interlace domains explain {domain}",
        "kubectl get computedomains,pods,nodes -A",
    )
    try:
        await asyncio.Event().wait()
    except asyncio.CancelledError:
        raise Exit(Code.GOOD) from None
