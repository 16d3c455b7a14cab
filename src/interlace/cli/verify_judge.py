"""``interlace verify judge``: one verdict for a measurement, with the cause and the evidence."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from interlace.cli.exits import Code, Exit
from interlace.cli.verify_logs import job_options, read_files, read_logs

if TYPE_CHECKING:
    from interlace.fabric.family import Family
    from interlace.verify.judgement import Judgement

_STYLE = {"pass": "green", "degraded": "yellow", "fail": "red", "cannot tell": "magenta"}


@click.command()
@click.argument("logs", nargs=-1, required=True, metavar="FILE...|-|job/NAME")
@click.option(
    "--family", help="Hardware: an id of `interlace families` or a machine type; without it there is no band."
)
@click.option("--nodes", type=click.IntRange(min=1), help="Nodes that took part, where the log does not tell.")
@click.option(
    "--baseline",
    "baselines",
    multiple=True,
    metavar="FILE",
    help="Earlier runs of this site that replace the bands: logs, or what `verify parse` printed. May be repeated.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON for programs instead (docs/verdicts.md).")
@job_options
def judge(
    *,
    logs: tuple[str, ...],
    family: str | None,
    nodes: int | None,
    baselines: tuple[str, ...],
    as_json: bool,
    namespace: str | None,
    context: str | None,
    kubeconfig: str | None,
) -> None:
    """Judge logs of nccl-tests: pass, degraded, fail or cannot tell, the cause, and the evidence.

    All FILEs together are one test, for instance the logs of its Pods; job/NAME reads the logs of a Job's Pods on
    the current cluster. Exit 0 if it passes, 1 if it is degraded or fails, 3 if that cannot be told.
    """
    from interlace.verify.judgement import judge as judge_runs

    known = _family(family)
    baseline = None
    if baselines:
        baseline = read_files(baselines).runs
        if not any(run.rows for run in baseline):
            raise Exit(Code.REFUSED, f"{', '.join(baselines)}: no run of nccl-tests was read, so it is no baseline")
    found = read_logs(logs, namespace=namespace, context=context, kubeconfig=kubeconfig)
    _show(judge_runs(found.runs, found.events, family=known, nodes=nodes, baseline=baseline), as_json=as_json)


def _family(name: str | None) -> Family | None:
    """Raises Exit for a family that nobody knows."""
    from interlace.fabric.family import FamilyError, find

    try:
        return find(name) if name is not None else None
    except FamilyError as error:
        raise Exit(Code.REFUSED, f"--family: {error}") from None


def _show(judgement: Judgement, *, as_json: bool) -> None:
    """Print it, and end with its exit code."""
    from interlace.verify.statement import document, lines

    if as_json:
        import msgspec

        click.echo(msgspec.json.format(msgspec.json.encode(document(judgement)), indent=2))
    else:
        from rich.text import Text

        from interlace.cli.printing import echo

        first, *rest = lines(judgement)
        verdict = judgement.verdict
        echo(Text(verdict, style=f"bold {_STYLE[verdict]}") + Text(first.removeprefix(verdict)))
        echo(Text("\n".join(rest)))
    if verdict_code(judgement) is not Code.GOOD:
        raise Exit(verdict_code(judgement))


def verdict_code(judgement: Judgement) -> Code:
    """0 pass, 1 degraded or fail, 3 cannot tell."""
    return {"pass": Code.GOOD, "degraded": Code.BAD, "fail": Code.BAD, "cannot tell": Code.UNKNOWN}[judgement.verdict]
