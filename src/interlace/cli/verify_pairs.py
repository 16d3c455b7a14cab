"""``interlace verify pairs``: many pairs of nodes measured, and the bad nodes and links among them named."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec

from interlace.cli.exits import Code, Exit
from interlace.cli.verify_launching import Setup, config_of, explain_findings, named_nodes, setup_of, test_options

if TYPE_CHECKING:
    from interlace.fabric.bands import Band
    from interlace.kube.client import Client
    from interlace.verify.candidates import Survey
    from interlace.verify.journal import Journal
    from interlace.verify.measurement import Reading
    from interlace.verify.pairing import Level
    from interlace.verify.schedule import Plan, Task
    from interlace.verify.sweep import Sweep
    from interlace.verify.tournament import Budget, Played, Standings

_RACK = "topology.kubernetes.io/rack"
_GKE_RACK = "cloud.google.com/gce-topology-subblock"


@click.command("pairs")
@test_options
@click.option("--nodes", "nodes_text", metavar="A,B,…", help="Names of the nodes; else all free ones of the family.")
@click.option("--count", type=click.IntRange(min=2, max=10_000), help="So many free nodes.")
@click.option("--quick", type=click.IntRange(min=1, max=64), metavar="K", help="K random matchings, no tournament.")
@click.option("--per-rail", is_flag=True, help="Each GPU with its own NIC by itself: finds bad NICs and cables.")
@click.option("--flat", is_flag=True, help="Every pair, also where nodes are in several NVLink cliques.")
@click.option("--collective", metavar="NAME", help="all_gather, all_reduce …; else the one that the band is for.")
@click.option("--size", "size_text", metavar="SIZE", help="The one size that is measured; else 1G, or the band's.")
@click.option("--at-once", type=click.IntRange(min=1), help="Most pairs at a time; else as many as there are.")
@click.option("--budget", type=click.FloatRange(min=0, min_open=True), metavar="H", help="Most GPU-hours, all in all.")
@click.option("--seed", type=int, default=0, show_default=True, help="Of the random matchings.")
@click.option("--journal", type=click.Path(dir_okay=False), help="File that keeps what was measured.")
@click.option("--resume", is_flag=True, help="Go on with the journal; no pair is measured twice.")
@click.option("--dry-run", is_flag=True, help="Say what would be measured, how long, and with how many GPUs.")
def pairs(**options: Any) -> None:
    """Measure pairs of nodes, many at once, and name the bad nodes and the bad links.

    What looks bad is measured again before it is named. The journal survives interruption; continue with --resume.

    Exit 0 if nothing stands out and pairs are as fast as they should be, 1 if something is bad, 2 if it was refused, 3
    if that cannot be told.
    """
    from interlace.cli.running import run as run_async
    from interlace.verify.launch import LeftBehindError

    names = named_nodes(options["nodes_text"])
    if names and options["count"]:
        raise click.UsageError("give either --nodes or --count")
    if len(names) == 1:
        raise Exit(Code.REFUSED, "--nodes: one node is no pair; name at least two")
    setup = setup_of(options, namespace="default")
    run_async(_main(options, setup, names=names), failures=(LeftBehindError,))


async def _main(options: dict[str, Any], setup: Setup, *, names: tuple[str, ...]) -> Code:
    from interlace.kube.client import Client
    from interlace.verify.candidates import choose, survey
    from interlace.verify.journal import open_journal

    config = config_of(options)
    setup = msgspec.structs.replace(setup, namespace=options["namespace"] or config.namespace or "default")
    async with Client(config, user_agent="interlace-cli") as client:
        found = await survey(client)
        choice = choose(found, family=setup.family, named=names, count=options["count"])
        if choice.refused:
            raise Exit(Code.REFUSED, "; ".join((*choice.refused, *choice.passed_over)))
        if len(choice.nodes) < 2:
            seen = found.unknown or "; ".join(choice.passed_over) or f"no two nodes are of {setup.family.id}"
            raise Exit(Code.REFUSED, f"there are no two free nodes: {seen}; name nodes with --nodes")
        for each in (*choice.passed_over, *([found.unknown] if found.unknown else [])):
            click.echo(f"interlace: {each}", err=True)
        plan = _plan(options, setup, found, nodes=choice.nodes)
        measured = _sweep(options, setup, plan)
        budget = _budget(options, setup, measured)
        _announce(options, setup, plan, measured, budget)
        if options["dry_run"]:
            return Code.GOOD
        journal_file = Path(options["journal"] or f"interlace-pairs-{setup.family.id}.jsonl")
        what = f"{setup.family.id} {measured.collective} {measured.most} {setup.software.id}"
        with open_journal(journal_file, plan=plan, resume=options["resume"], measured=what) as journal:
            played = await _play(options, client, setup, measured, plan, budget=budget, journal=journal)
            return _show(options, setup, found, plan, measured, journal.readings, played=played, budget=budget)


def _plan(options: dict[str, Any], setup: Setup, found: Survey, *, nodes: tuple[str, ...]) -> Plan:
    from interlace.verify.bandwidth import assumed_noise
    from interlace.verify.candidates import cliques
    from interlace.verify.schedule import Plan

    levels = {} if options["flat"] or not setup.family.node.mnnvl else cliques(found, nodes)
    return Plan(
        nodes=tuple(sorted(nodes)),
        cliques=levels if len(set(levels.values())) > 1 else {},
        quick=options["quick"] or 0,
        rails=setup.family.node.gpus if options["per_rail"] else 0,
        seed=options["seed"],
        noise=assumed_noise(setup.family),
    )


def _sweep(options: dict[str, Any], setup: Setup, plan: Plan) -> Sweep:
    from interlace.fabric import bands
    from interlace.verify.sweep import SweepError, scope_of, sweep

    scope = scope_of(setup.family, nodes=2)
    rows = [each for each in bands.table().bands if each.family == setup.family.id and each.scope == scope]
    largest = max([1 << 30, *(each.from_bytes for each in rows)])
    text = options["size_text"] or str(largest)
    try:
        found = sweep(collective=options["collective"], least=text, most=text, family=setup.family, scope=scope)
    except SweepError as error:
        raise Exit(Code.REFUSED, str(error).replace("--min", "--size")) from None
    if plan.rails and found.collective not in {"all_gather", "all_reduce", "reduce_scatter", "sendrecv"}:
        raise Exit(Code.REFUSED, f"--per-rail: {found.collective} over two GPUs does not load both directions")
    return found


def _budget(options: dict[str, Any], setup: Setup, measured: Sweep) -> Budget:
    from interlace.verify.sweep import scope_of
    from interlace.verify.tournament import Budget

    return Budget(
        gpus=2 * setup.family.node.gpus,
        seconds=measured.seconds(setup.family, nodes=2, scope=scope_of(setup.family, nodes=2)),
        gpu_hours=options["budget"],
    )


def _announce(options: dict[str, Any], setup: Setup, plan: Plan, measured: Sweep, budget: Budget) -> None:
    from interlace.verify.curve import size_name
    from interlace.verify.schedule import rounds
    from interlace.verify.sweep import duration

    found = rounds(plan)
    matches = sum(map(len, found))
    room = min(options["at_once"] or matches, max(map(len, found), default=1))
    seconds = max(len(found), -(-matches // max(1, room))) * budget.seconds
    hours = matches * budget.seconds * budget.gpus / 3600
    limit = f", at most {budget.gpu_hours:g}" if budget.gpu_hours is not None else ""
    click.echo(
        f"interlace: {matches} measurements of {measured.collective} at {size_name(measured.most)} among"
        f" {len(plan.nodes)} nodes of {setup.family.id}, up to {room} at once: {room * budget.gpus} GPUs for"
        f" {duration(seconds)} ({hours:.1f} GPU-hours{limit}), and some more for what looks bad",
        err=True,
    )


async def _play(
    options: dict[str, Any],
    client: Client,
    setup: Setup,
    measured: Sweep,
    plan: Plan,
    *,
    budget: Budget,
    journal: Journal,
) -> Played:
    from interlace.verify.launch import Limits, launch
    from interlace.verify.reading import reading_of
    from interlace.verify.tournament import play

    async def measure(task: Task) -> Reading:
        objects = setup.objects(measured, nodes=2, hosts=task.match.nodes, rail=task.match.rail)
        launched = await launch(client, objects, limits=Limits(peek=3600.0))
        return reading_of(task, launched, family=setup.family)

    with _progress() as tell:
        return await play(
            plan,
            readings=journal.readings,
            measure=measure,
            keep=journal.add,
            budget=budget,
            at_once=options["at_once"] or len(plan.nodes) // 2,
            tell=tell,
        )


@contextmanager
def _progress() -> Iterator[Callable[[Standings], None]]:
    """A bar on a terminal, a line a measurement elsewhere; on stderr."""
    import sys

    from interlace.cli.printing import console_on

    console = console_on(sys.stderr)

    def line(reading: Reading) -> str:
        got = f"{reading.busbw:.4g} GB/s" if reading.busbw is not None else reading.outcome
        rail = "" if reading.match.rail is None else f" rail {reading.match.rail}"
        note = f" ({reading.note})" if reading.note else ""
        return f"{reading.match.a} - {reading.match.b}{rail}: {got}{note}"

    if not console.is_terminal:

        def told(standings: Standings) -> None:
            if standings.latest is not None:
                click.echo(f"interlace: {line(standings.latest)}", err=True)

        yield told
        return
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bar

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Bar(*columns, console=console, transient=True) as bar:
        task = bar.add_task("pairs", total=None)

        def drawn(standings: Standings) -> None:
            total = standings.done + standings.left + len(standings.running)
            text = line(standings.latest) if standings.latest is not None else "pairs"
            bar.update(task, completed=standings.done, total=total, description=text[:70])

        yield drawn


def _show(
    options: dict[str, Any],
    setup: Setup,
    found: Survey,
    plan: Plan,
    measured: Sweep,
    readings: list[Reading],
    *,
    played: Played,
    budget: Budget,
) -> Code:
    """Judge and print."""
    from interlace.verify.attribution import attribute
    from interlace.verify.standing import document, stand
    from interlace.verify.sweep import band_of, scope_of

    known: dict[Level, Band] = {}
    levels: tuple[Level, ...] = ("inside", "between")
    for level in levels if not plan.rails else ():
        scope = scope_of(setup.family, nodes=2, one_clique=level == "inside")
        band = band_of(setup.family, scope=scope, measured=measured)
        if band is not None and (level == "inside" or plan.cliques):
            known[level] = band
    expected: dict[Level, float] = {level: band.pass_share * band.bound_gb_s for level, band in known.items()}
    attribution = attribute(readings, cliques=plan.cliques, expected=expected, noise=plan.noise)
    standing = stand(attribution, played, readings, bands=known)
    labels = {node.metadata.name: node.metadata.labels for node in found.nodes or ()}
    simulated = any(labels.get(node, {}).get("interlace.dev/simulated") == "true" for node in plan.nodes)
    racks = {node: labels.get(node, {}).get(_RACK) or labels.get(node, {}).get(_GKE_RACK, "") for node in plan.nodes}
    for task, why in played.not_measured:
        click.echo(f"interlace: {task.match.a} - {task.match.b} was not measured: {why}", err=True)
    if options["as_json"]:
        answer = document(
            standing,
            attribution,
            plan,
            readings,
            bands=known,
            racks=racks,
            simulated=simulated,
            gpu_hours=budget.spent(readings),
        )
        click.echo(msgspec.json.format(msgspec.json.encode(answer), indent=2))
    else:
        if simulated:
            click.echo("simulated: no hardware was measured")
        click.echo(f"{standing.verdict}: {standing.cause}.")
        for line in explain_findings(attribution):
            click.echo(f"  - {line}")
        if standing.remedy:
            click.echo(f"\n{standing.remedy}")
        click.echo(f"\n{len(readings)} measurements, {budget.spent(readings):.2f} GPU-hours")
    return {"pass": Code.GOOD, "cannot tell": Code.UNKNOWN}.get(standing.verdict, Code.BAD)
