"""``interlace verify report``: one page, or a file for another program, about a measurement."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from interlace.cli.exits import Code, Exit
from interlace.cli.verify_logs import JOB, Logs, job_options, read_files, read_logs

if TYPE_CHECKING:
    from interlace.fabric.family import Family
    from interlace.verify.report.content import Report
    from interlace.verify.report.matrix import Matrix


@click.command()
@click.argument("logs", nargs=-1, metavar="LOG...|-|job/NAME")
@click.option("-o", "--output", metavar="FILE", help="The page, one HTML file that needs no network; - is stdout.")
@click.option("--pairs", metavar="FILE", help="Bandwidths of pairs of nodes (docs/reports.md), for map and topology.")
@click.option("--junit", metavar="FILE", help="JUnit XML for a CI system; - is stdout.")
@click.option("--markdown", metavar="FILE", help="Markdown for an issue or a chat; - is stdout.")
@click.option("--prometheus", metavar="FILE", help="Text format of Prometheus; - is stdout.")
@click.option("--csv", metavar="FILE", help="Every row and pair as CSV; - is stdout.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON for programs on stdout (docs/reports.md).")
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
@job_options
def report(
    *,
    logs: tuple[str, ...],
    output: str | None,
    pairs: str | None,
    junit: str | None,
    markdown: str | None,
    prometheus: str | None,
    csv: str | None,
    as_json: bool,
    family: str | None,
    nodes: int | None,
    baselines: tuple[str, ...],
    namespace: str | None,
    context: str | None,
    kubeconfig: str | None,
) -> None:
    """Write a report of logs of nccl-tests, judged as `verify judge` does, and of pairs of nodes.

    All LOGs together are one test; - is stdin; job/NAME reads the logs of a Job's Pods. The page shows the verdict,
    curves with band and bound, the map of pairs, and racks and cliques. The same input gives the same bytes. Exit 0
    if it passes, 1 if it is degraded or fails, 3 if that cannot be told.
    """
    wanted = [
        (target, form)
        for target, form in (
            (output, "html"),
            (junit, "junit"),
            (markdown, "markdown"),
            (prometheus, "prometheus"),
            (csv, "csv"),
            ("-" if as_json else None, "json"),
        )
        if target is not None
    ]
    _check(wanted, inputs=[*logs, *baselines, *([pairs] if pairs is not None else [])])

    def read() -> Logs:
        return read_logs(logs, namespace=namespace, context=context, kubeconfig=kubeconfig)

    made = _make(read if logs else None, pairs=pairs, family=family, nodes=nodes, baselines=baselines)
    texts = [(target, _write(form, made)) for target, form in wanted]
    for target, text in texts:
        if target == "-":
            sys.stdout.buffer.write(text)
            sys.stdout.buffer.flush()
        else:
            _replace(Path(target), text)
    if not any(target == "-" for target, _ in wanted):
        from interlace.verify.report.text import clean

        click.echo(f"{made.verdict}: {clean(made.cause)}.")
    code = {"pass": Code.GOOD, "degraded": Code.BAD, "fail": Code.BAD, "cannot tell": Code.UNKNOWN}[made.verdict]
    if code is not Code.GOOD:
        raise Exit(code)


def _check(wanted: list[tuple[str, str]], *, inputs: list[str]) -> None:
    """Refuse what would write nothing, twice to one place, or over what is read."""
    if not inputs:
        raise Exit(Code.REFUSED, "there is nothing to report: give logs, or --pairs FILE")
    if not wanted:
        raise Exit(
            Code.REFUSED, "nothing was asked for: give -o FILE, --json, --junit, --markdown, --prometheus or --csv"
        )
    targets = [target if target == "-" else os.path.realpath(target) for target, _ in wanted]
    twice = next((target for target in targets if targets.count(target) > 1), None)
    if twice is not None:
        where = "stdout" if twice == "-" else twice
        raise Exit(Code.REFUSED, f"{where} can take only one form of the report; give the others a file each")
    read = {os.path.realpath(name) for name in inputs if name != "-" and not name.startswith(JOB)}
    over = next((target for target in targets if target in read), None)
    if over is not None:
        raise Exit(Code.REFUSED, f"{over} is read and would be written over; give another file for the report")
    if inputs.count("-") > 1:
        raise Exit(Code.REFUSED, "stdin can be read only once; give a file for the others")


def _make(
    read: Callable[[], Logs] | None,
    *,
    pairs: str | None,
    family: str | None,
    nodes: int | None,
    baselines: tuple[str, ...],
) -> Report:
    """``read`` the logs, if there are any, and judge them; what is cheaper to refuse is looked at first."""
    from interlace.verify.judgement import judge
    from interlace.verify.report.content import Report

    known = _family(family)
    matrix = _matrix(pairs) if pairs is not None else None
    baseline = read_files(baselines).runs if baselines else None
    if baseline is not None and not any(run.rows for run in baseline):
        raise Exit(Code.REFUSED, f"{', '.join(baselines)}: no run of nccl-tests was read, so it is no baseline")
    judgement = None
    if read is not None:
        found = read()
        judgement = judge(found.runs, found.events, family=known, nodes=nodes, baseline=baseline)
    return Report(judgement=judgement, matrix=matrix, baseline=tuple(baseline or ()))


def _family(name: str | None) -> Family | None:
    from interlace.fabric.family import FamilyError, find

    try:
        return find(name) if name is not None else None
    except FamilyError as error:
        raise Exit(Code.REFUSED, f"--family: {error}") from None


def _matrix(name: str) -> Matrix:
    from interlace.verify.report.matrix import MatrixError, decode

    try:
        return decode(sys.stdin.buffer.read() if name == "-" else Path(name).read_bytes())
    except MatrixError as error:
        raise Exit(Code.REFUSED, f"--pairs {name}: {error}; docs/reports.md describes the document") from None
    except (OSError, ValueError) as error:
        cause = (error.strerror if isinstance(error, OSError) else None) or str(error)
        raise Exit(Code.REFUSED, f"--pairs {name}: {cause}; give a file that can be read") from None


def _write(form: str, made: Report) -> bytes:
    """The report in that form. Raises Exit where figures cannot be drawn."""
    return _forms()[form](made).encode()


def _forms() -> dict[str, Callable[[Report], str]]:
    import msgspec

    from interlace.verify.report.junit import junit
    from interlace.verify.report.markdown import markdown
    from interlace.verify.report.page import page
    from interlace.verify.report.plotting import PlottingError
    from interlace.verify.report.prometheus import exposition
    from interlace.verify.report.table import csv_text, document

    def drawn(made: Report) -> str:
        try:
            return page(made)
        except PlottingError as error:
            raise Exit(Code.REFUSED, str(error)) from None

    def json(made: Report) -> str:
        return msgspec.json.format(msgspec.json.encode(document(made)), indent=2).decode() + "\n"

    return {
        "html": drawn,
        "junit": junit,
        "markdown": markdown,
        "prometheus": exposition,
        "csv": csv_text,
        "json": json,
    }


def _replace(target: Path, text: bytes) -> None:
    """Write by rename, so that nobody reads half a report and a failure leaves the old one; a device is written to."""
    try:
        path = target.resolve()
        if path.exists() and not path.is_file():
            path.write_bytes(text)
            return
        with _beside(path) as new:
            new.write_bytes(text)
            new.replace(path)
    except (OSError, ValueError) as error:
        cause = (error.strerror if isinstance(error, OSError) else None) or str(error)
        raise Exit(Code.FAILED, f"{target}: {cause}; give a file in a folder that can be written") from None


@contextmanager
def _beside(path: Path) -> Iterator[Path]:
    """A new file in the same folder, with the rights that a new file has; removed if it is still there."""
    number, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name[:80]}.")
    try:
        mask = os.umask(0)
        os.umask(mask)
        os.fchmod(number, 0o666 & ~mask)
        os.close(number)
        yield Path(name)
    finally:
        Path(name).unlink(missing_ok=True)
