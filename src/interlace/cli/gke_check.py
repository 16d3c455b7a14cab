"""``interlace gke check``: what is wrong with a cluster, or in the way of one, without owning it.

What is judged is in ``interlace.gke.rules``; what is read, in ``interlace.gke.observed``. Nothing is changed.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from interlace.cli.exits import Code, Exit
from interlace.cli.gke_file import FILE, refusing

if TYPE_CHECKING:
    from collections.abc import Iterable

    from interlace.rules.finding import Finding

_STYLES = {"error": "bold red", "warning": "yellow", "info": "cyan"}


@click.command("check")
@click.option(
    "--observed", metavar="FILE", help="Judge a bundle (observed-state/1) instead of a live project; - is stdin."
)
@click.option("-f", "--file", metavar="FILE", help=f"Cluster file; - is stdin. Default: {FILE} if it is there.")
@click.option("--endpoint", metavar="URL", help="Ask a simulation (`interlace sim gke`) instead of Google.")
@click.option("--json", "as_json", is_flag=True, help="Print a list of findings for programs instead.")
def check(*, observed: str | None, file: str | None, endpoint: str | None, as_json: bool) -> None:
    """Check a cluster, or what is in the way of making one: quotas, capacity, rights, networks, nodes.

    Exit code 0: no errors; 1: errors; 2: bad input; 3: nothing could be read.
    """
    if observed is not None:
        if file is not None or endpoint is not None:
            raise Exit(Code.REFUSED, "--observed takes neither --file nor --endpoint: the bundle says it all")
        findings, title = _of_bundle(observed)
        _show(findings, title=title, as_json=as_json)
        return
    raise Exit(Code.REFUSED, "give --observed")


def _of_bundle(file: str) -> tuple[tuple[Finding, ...], str]:
    from datetime import UTC, datetime

    from interlace.gke.observed.bundle import BundleError, read
    from interlace.gke.rules.checking import check_observed

    try:
        data = sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
    except OSError as error:
        raise Exit(Code.REFUSED, f"{file}: {error.strerror or error}") from None
    name = "stdin" if file == "-" else file
    with refusing():
        try:
            state = read(data)
        except BundleError as error:
            raise BundleError(
                f"{name}: {error.what}", where=error.pointer, cause=error.cause, remedy=error.remedy
            ) from None
    cluster = state.want.cluster_name or (state.cluster.name if state.cluster else "")
    what = f"cluster {cluster} in " if cluster else ""
    return check_observed(state, now=datetime.now(UTC)), f"{what}project {state.project or '?'}, as {name} has it"


def _show(findings: Iterable[Finding], *, title: str, as_json: bool) -> None:
    """Print, and end with BAD where there are errors. Raises Exit."""
    import msgspec

    from interlace.rules.finding import worst

    found = tuple(findings)
    if as_json:
        click.echo(msgspec.json.format(msgspec.json.encode(found), indent=2))
    else:
        _print(found, title=title)
    if worst(found) == "error":
        raise Exit(Code.BAD)


def _print(findings: tuple[Finding, ...], *, title: str) -> None:
    from rich.text import Text

    from interlace.cli.printing import echo
    from interlace.rules.finding import lines

    echo(Text(title))
    for line in lines(findings):
        text = Text(line)
        severity = line.partition(" ")[0]
        if severity in _STYLES:
            text.stylize(_STYLES[severity], 0, len(severity))
        echo(text)
