"""``interlace verify run``: one measurement on the current cluster, from making it to its verdict."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from interlace.cli.exits import Code, Exit
from interlace.cli.verify_launching import Setup, config_of, named_nodes, setup_of, test_options

if TYPE_CHECKING:
    from interlace.kube.client import Client
    from interlace.verify.candidates import Choice
    from interlace.verify.launch import Launched, Progress
    from interlace.verify.run import Run
    from interlace.verify.sweep import Sweep


@click.command("run")
@test_options
@click.option("--nodes", "nodes_text", metavar="A,B,…", help="Names of the nodes.")
@click.option("--count", type=click.IntRange(min=2, max=10_000), help="So many free nodes instead.")
@click.option("--collective", metavar="NAME", help="all_gather, all_reduce …; else the one that the band is for.")
@click.option("--min", "least", default="1M", show_default=True, metavar="SIZE", help="Smallest size.")
@click.option("--max", "most", default="8G", show_default=True, metavar="SIZE", help="Largest size; doubled up to it.")
@click.option(
    "--baseline-map", metavar="NAME", help="ConfigMap that keeps the runs that passed; they replace the band."
)
@click.option("--dry-run", is_flag=True, help="Print the manifests and do nothing.")
@click.option("--schedule", metavar="CRON", help="Print a CronJob that does this at these times and keeps a baseline.")
@click.option("--logs", "show_logs", is_flag=True, help="Also print the log of the first Pod to stderr as it comes.")
def run(**options: Any) -> None:
    """Measure nodes with nccl-tests and judge the result; nothing is left in the cluster.

    Says first how long it takes and how many GPUs it holds. Nodes that are cordoned or in use are refused. Needs the
    rights of an ordinary user of the namespace; who may also read nodes and Pods gets better answers.

    Exit 0 if it passes, 1 if it is degraded or fails, 2 if it was refused, 3 if that cannot be told.
    """
    from interlace.cli.running import run as run_async
    from interlace.verify.launch import LeftBehindError

    names = named_nodes(options["nodes_text"])
    if bool(names) == bool(options["count"]):
        raise click.UsageError("give either --nodes or --count")
    if names and len(names) < 2:
        raise Exit(Code.REFUSED, "--nodes: one node does not use the fabric between nodes; name at least two")
    setup = setup_of(options, namespace=options["namespace"] or "default")
    wanted = len(names) or options["count"]
    measured = _sweep(options, setup, nodes=wanted)
    if options["schedule"]:
        _print_schedule(options, setup, names=names, measured=measured)
        return
    if options["dry_run"]:
        _print_manifests(setup, measured, nodes=wanted, hosts=names)
        return
    run_async(_main(options, setup, measured, names=names), failures=(LeftBehindError,))


def _sweep(options: dict[str, Any], setup: Setup, *, nodes: int) -> Sweep:
    from interlace.verify.sweep import SweepError, scope_of, sweep

    scope = scope_of(setup.family, nodes=nodes)
    try:
        return sweep(
            collective=options["collective"],
            least=options["least"],
            most=options["most"],
            family=setup.family,
            scope=scope,
        )
    except SweepError as error:
        raise Exit(Code.REFUSED, str(error)) from None


def _print_manifests(setup: Setup, measured: Sweep, *, nodes: int, hosts: tuple[str, ...]) -> None:
    from interlace.manifests import render

    objects = setup.objects(measured, nodes=nodes, hosts=hosts, rail=None)
    click.echo(render(objects, by=f"interlace verify run --dry-run --family {setup.family.id}"), nl=False)


def _print_schedule(options: dict[str, Any], setup: Setup, *, names: tuple[str, ...], measured: Sweep) -> None:
    from interlace.manifests import render
    from interlace.manifests.watching import watching

    flags = [f"--family={setup.family.id}", f"--collective={measured.collective}"]
    flags += [f"--min={options['least']}", f"--max={options['most']}"]
    flags += [f"--nodes={','.join(names)}"] if names else [f"--count={options['count']}"]
    flags += [f"--tuple={options['tuple_id']}"] if options["tuple_id"] else []
    flags += [f"--network-map={options['network_map']}"] if options["network_map"] else []
    try:
        objects = watching(
            flags,
            namespace=setup.namespace,
            schedule=options["schedule"],
            baseline=options["baseline_map"] or f"nccl-baseline-{setup.family.id}",
        )
    except ValueError as error:
        raise Exit(Code.REFUSED, f"--schedule: {error}") from None
    click.echo(render(objects, by=f"interlace verify run --schedule --family {setup.family.id}"), nl=False)


async def _main(options: dict[str, Any], setup: Setup, measured: Sweep, *, names: tuple[str, ...]) -> Code:
    import msgspec

    from interlace.kube.client import Client
    from interlace.verify.candidates import choose, survey
    from interlace.verify.keeping import keep_run, kept_runs

    config = config_of(options)
    setup = msgspec.structs.replace(setup, namespace=options["namespace"] or config.namespace or "default")
    async with Client(config, user_agent="interlace-cli") as client:
        found = await survey(client)
        choice = choose(found, family=setup.family, named=names, count=options["count"])
        if choice.refused:
            raise Exit(Code.REFUSED, "; ".join((*choice.refused, *choice.passed_over)))
        if found.unknown:
            click.echo(f"interlace: {found.unknown}", err=True)
        nodes = len(choice.nodes) or options["count"]
        _announce(setup, measured, choice, nodes=nodes)
        baseline: list[Run] = []
        if options["baseline_map"]:
            baseline = await kept_runs(client, options["baseline_map"], namespace=setup.namespace)
        launched = await _launch(client, setup, measured, choice, nodes=nodes, show_logs=options["show_logs"])
        if not launched.logs.pods:
            raise Exit(Code.FAILED, f"the test has no Pods: {launched.why}; see the quota of {setup.namespace}")
        if launched.end == "not placed":
            raise Exit(Code.REFUSED, f"{launched.why}; free these nodes, or take others")
        code = _show(setup, measured, launched, choice, nodes=nodes, baseline=baseline, as_json=options["as_json"])
        if options["baseline_map"] and code is Code.GOOD:
            await keep_run(client, options["baseline_map"], launched.logs.runs, namespace=setup.namespace)
    return code


def _announce(setup: Setup, measured: Sweep, choice: Choice, *, nodes: int) -> None:
    """What it will take, before anything is done."""
    from interlace.verify.curve import size_name
    from interlace.verify.sweep import duration, scope_of

    family = setup.family
    takes = duration(measured.seconds(family, nodes=nodes, scope=scope_of(family, nodes=nodes)))
    where = ", ".join(choice.nodes) or "nodes that the scheduler chooses"
    click.echo(
        f"interlace: {measured.collective} from {size_name(measured.least)} to {size_name(measured.most)} over {nodes}"
        f" nodes of {family.id} ({where}): {nodes * family.node.gpus} GPUs for {takes}",
        err=True,
    )


async def _launch(
    client: Client, setup: Setup, measured: Sweep, choice: Choice, *, nodes: int, show_logs: bool
) -> Launched:
    from interlace.verify.launch import Limits, launch

    objects = setup.objects(measured, nodes=nodes, hosts=choice.nodes, rail=None)
    with _progress(measured, show_logs=show_logs) as tell:
        return await launch(client, objects, limits=Limits(), tell=tell)


@contextmanager
def _progress(measured: Sweep, *, show_logs: bool) -> Iterator[Callable[[Progress], None]]:
    """A bar on a terminal, lines elsewhere; on stderr."""
    import sys

    from interlace.cli.printing import console_on

    console = console_on(sys.stderr)
    sizes = {str(size) for size in measured.sizes}
    seen: set[str] = set()

    def rows(progress: Progress) -> int:
        seen.update(word for line in progress.lines for word in line.split()[:1] if word in sizes)
        return len(seen)

    def log(progress: Progress) -> None:
        for line in progress.lines if show_logs else ():
            click.echo(line, err=True)

    if not console.is_terminal:

        def told(progress: Progress) -> None:
            log(progress)
            if progress.phase in {"waiting", "starting"}:
                click.echo(f"interlace: {progress.text or 'all Pods have a node'}", err=True)

        yield told
        return
    from rich.progress import BarColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bar

    with Bar(
        TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn(), console=console, transient=True
    ) as bar:
        task = bar.add_task("starting", total=len(sizes))

        def drawn(progress: Progress) -> None:
            log(progress)
            text = progress.text if progress.phase == "waiting" else progress.phase
            bar.update(task, completed=rows(progress), description=text[:60])

        yield drawn


def _show(
    setup: Setup,
    measured: Sweep,
    launched: Launched,
    choice: Choice,
    *,
    nodes: int,
    baseline: list[Run],
    as_json: bool,
) -> Code:
    """Judge and print."""
    from interlace.cli.verify_judge import verdict_code
    from interlace.verify.judgement import judge
    from interlace.verify.run import document as run_document
    from interlace.verify.statement import document, lines

    for each in launched.logs.missing:
        click.echo(f"interlace: {each}", err=True)
    if launched.why:
        click.echo(f"interlace: {launched.why}", err=True)
    runs = launched.logs.runs
    judgement = judge(runs, launched.logs.events, family=setup.family, nodes=nodes, baseline=baseline or None)
    simulated = any("simulated" in (each.program or "") for each in runs)
    hosts = sorted(set(launched.hosts.values())) or list(choice.nodes)
    if as_json:
        import msgspec

        answer = document(judgement) | {
            "simulated": simulated,
            "measured": {
                "collective": measured.collective,
                "nodes": hosts,
                "gpus": nodes * setup.family.node.gpus,
                "seconds": round(launched.seconds, 3),
                "end": launched.end,
                "runs": [run_document(each) for each in runs],
            },
        }
        click.echo(msgspec.json.format(msgspec.json.encode(answer), indent=2))
    else:
        if simulated:
            click.echo("simulated: no hardware was measured")
        click.echo("\n".join(lines(judgement)))
    return verdict_code(judgement)
