"""``interlace verify parse``: logs of nccl-tests as one documented JSON document or as tables.

Invariant: runs are printed while the rest of the logs is still being read, so the size of a log does not matter.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from typing import TYPE_CHECKING, BinaryIO

import click

from interlace.cli.exits import Code, Exit
from interlace.cli.verify_logs import stdin

if TYPE_CHECKING:
    from interlace.verify.run import Half, Run


@click.command()
@click.argument("files", nargs=-1, required=True, metavar="FILE...|-")
@click.option(
    "--format",
    "form",
    type=click.Choice(["json", "table"]),
    default="table",
    show_default=True,
    help="One JSON document, or tables for people.",
)
def parse(*, files: tuple[str, ...], form: str) -> None:
    """Read logs of nccl-tests or rccl-tests: text of any version, -J files, gzip; - is stdin.

    Prefixes of launchers, lines of NCCL between and inside rows, several tables in one log and cut pastes are
    understood; what is not output of these tests is left alone. Of a recorded environment nothing is kept.
    Exit 0 if a run was read, 3 if none was.
    """
    with ExitStack() as stack:
        logs = [(name, _open(name, stack)) for name in files]
        runs = (run for name, file in logs for run in _read(name, file))
        number = _as_json(runs) if form == "json" else _as_tables(runs)
    if not number:
        message = f"{', '.join(files)}: no table of nccl-tests was found"
        raise Exit(Code.UNKNOWN, message)


def _open(name: str, stack: ExitStack) -> BinaryIO:
    if name == "-":
        return stdin()
    try:
        file = stack.enter_context(open(name, "rb"))  # noqa: PTH123, SIM115  the stack closes it
        file.peek(1)
    except (OSError, ValueError) as error:
        cause = (error.strerror if isinstance(error, OSError) else None) or str(error)
        raise Exit(Code.REFUSED, f"{name}: {cause}; give logs that can be read, or - for stdin") from None
    return file


def _read(name: str, file: BinaryIO) -> Iterator[Run]:
    from interlace.verify.reader import BLOCK, read

    try:
        yield from read(iter(lambda: file.read(BLOCK), b""), source=name)
    except OSError as error:
        raise Exit(Code.FAILED, f"{name}: {error.strerror or error}") from None


def _as_json(runs: Iterator[Run]) -> int:
    import msgspec

    from interlace.verify.run import document

    out, number = sys.stdout, 0
    if out is None:  # closed by the caller, who wants the exit code alone
        return sum(1 for _ in runs)
    out.write('{"runs":[')
    for number, run in enumerate(runs, 1):
        out.write("," * (number > 1) + msgspec.json.encode(document(run)).decode())
    out.write("]}\n")
    out.flush()
    return number


def _as_tables(runs: Iterator[Run]) -> int:
    number = 0
    for number, run in enumerate(runs, 1):
        if number > 1:
            click.echo()
        _show(run)
    return number


def _show(run: Run) -> None:
    from interlace.cli.printing import columns, echo

    said = {"name": "", "args": " (from the command line)", "inferred": " (inferred)", None: ""}
    ranks = f"{run.ranks} ranks (from {run.ranks_from})" if run.ranks else "ranks unknown"
    title = [f"{run.collective or 'unknown collective'}{said[run.collective_from]}", ranks]
    title += [f"{run.nodes} nodes"] if run.nodes else []
    title += [f"transport {run.transport}"] if run.transport else []
    click.echo(f"{run.source}:{run.line}: {', '.join(title)}")
    table = columns("SIZE", "COUNT", "TYPE", "REDOP", "ROOT", *("TIME", "ALGBW", "BUSBW", "WRONG") * 2)
    for row in run.rows:
        root = "-" if row.root is None else str(row.root)
        cells = [str(row.size), str(row.count), row.type, row.redop or "-", root]
        table.add_row(*cells, *_cells(row.oop), *_cells(row.ip))
    echo(table)
    printed = "not printed" if run.avg_busbw_printed is None else f"{run.avg_busbw_printed:g}"
    mean = "unknown" if run.avg_busbw_mean is None else f"{run.avg_busbw_mean:.6g}"
    wrong = "not counted" if run.wrong_total is None else str(run.wrong_total)
    checks = "not known" if run.out_of_bounds is None else str(run.out_of_bounds)
    click.echo(f"average busbw {mean} GB/s (printed: {printed}); wrong elements {wrong}; failed checks {checks}")
    for warning in run.warnings:
        click.echo(f"warning: {warning}")


def _cells(half: Half | None) -> tuple[str, ...]:
    if half is None:
        return ("-",) * 4
    numbers = zip((half.time_us, half.algbw, half.busbw), half.units, strict=True)
    return (*(_number(*one) for one in numbers), "-" if half.wrong is None else str(half.wrong))


def _number(value: float, unit: float) -> str:
    """With the places that were printed."""
    return f"{value:.{max(0, -round(math.log10(unit)))}f}" if 0 < unit < math.inf else f"{value:g}"
