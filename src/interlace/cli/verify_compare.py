"""``interlace verify compare``: two measurements, size by size, with what is noise and what is not."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from interlace.cli.exits import Code, Exit
from interlace.cli.verify_logs import job_options, read_logs

if TYPE_CHECKING:
    from interlace.verify.comparison import Change


@click.command()
@click.argument("before", metavar="A|-|job/NAME")
@click.argument("after", metavar="B|-|job/NAME")
@click.option(
    "--noise",
    type=click.FloatRange(min=0, max=1),
    default=0.10,
    show_default=True,
    help="Relative noise of one measurement where neither side repeats a size three times.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON for programs instead (docs/verdicts.md).")
@job_options
def compare(
    *,
    before: str,
    after: str,
    noise: float,
    as_json: bool,
    namespace: str | None,
    context: str | None,
    kubeconfig: str | None,
) -> None:
    """Compare measurement B with measurement A, size by size.

    Only the same collective, ranks, placement and size are compared; a change counts if it exceeds three times the
    noise. Exit 0 if B is as fast or faster, 1 if it is slower somewhere, 3 if nothing can be compared.
    """
    from interlace.verify.comparison import compare as compare_runs
    from interlace.verify.comparison import outcome

    if before == after == "-":
        raise Exit(Code.REFUSED, "A and B cannot both be stdin; give a file for one of them")
    old, new = (
        read_logs([name], namespace=namespace, context=context, kubeconfig=kubeconfig).runs for name in (before, after)
    )
    for name, runs in ((before, old), (after, new)):
        if not any(run.rows for run in runs):
            raise Exit(Code.UNKNOWN, f"{name}: no run of nccl-tests was read")
    changes = compare_runs(old, new, assumed=noise)
    _show(changes, as_json=as_json)
    if not changes:
        raise Exit(Code.UNKNOWN, "cannot tell: A and B have no collective, number of ranks and size in common")
    if outcome(changes) in ("slower", "mixed"):
        raise Exit(Code.BAD)


def _show(changes: tuple[Change, ...], *, as_json: bool) -> None:
    from interlace.verify.comparison import describe, outcome
    from interlace.verify.statement import comparison_document

    if as_json:
        import msgspec

        click.echo(msgspec.json.format(msgspec.json.encode(comparison_document(changes)), indent=2))
        return
    from interlace.cli.printing import columns, echo
    from interlace.verify.curve import size_name

    told = [change for change in changes if change.meaning != "same"]
    largest = max(told or changes, key=lambda each: abs(each.change), default=None)
    click.echo(f"{outcome(changes)}: {describe(largest)}" if largest is not None else "cannot tell: nothing in common")
    if not changes:
        return
    click.echo()
    table = columns("COLLECTIVE", "RANKS", "SIZE", "PLACE", "A GB/S", "B GB/S", "CHANGE", "NOISE", "P", "MEANING")
    for each in changes:
        table.add_row(
            each.collective,
            str(each.ranks),
            size_name(each.size),
            each.place,
            f"{each.before:.2f}",
            f"{each.after:.2f}",
            f"{each.change:+.1%}",
            f"{each.noise:.1%}{'' if each.noise_measured else ' assumed'}",
            "-" if each.p is None else f"{each.p:.3f}",
            each.meaning,
        )
    echo(table)
