"""``interlace gke check``: what is wrong with a cluster, or in the way of one, without owning it.

What is judged is in ``interlace.gke.rules``; what is read, in ``interlace.gke.observed``. Nothing is changed.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from interlace.cli.exits import Code, Exit
from interlace.cli.gke_file import FILE, read_file, refusing

if TYPE_CHECKING:
    from collections.abc import Iterable

    from interlace.rules.finding import Finding

_STYLES = {"error": "bold red", "warning": "yellow", "info": "cyan"}


@click.command("check")
@click.option(
    "--observed", metavar="FILE", help="Judge a bundle (observed-state/1) instead of a live project; - is stdin."
)
@click.option("-f", "--file", metavar="FILE", help=f"Cluster file; - is stdin. Default: {FILE} if it is there.")
@click.option("--project", metavar="P", help="Instead of a cluster file: project of the cluster.")
@click.option("--location", metavar="L", help="Its zone or region.")
@click.option("--cluster", "name", metavar="NAME", help="Its name; without: the only one there.")
@click.option("--family", metavar="FAMILY", help="Hardware family or machine type; without: that of its node pools.")
@click.option("--nodes", type=click.IntRange(min=1), help="Nodes with GPUs that are wanted.")
@click.option("--context", help="Context of the kubeconfig for nodes and Network objects.")
@click.option("--kubeconfig", type=click.Path(dir_okay=False), help="Instead of $KUBECONFIG.")
@click.option("--endpoint", metavar="URL", help="Ask a simulation (`interlace sim gke`) instead of Google.")
@click.option("--save", metavar="FILE", help="Write what was read as a bundle, for --observed.")
@click.option("--json", "as_json", is_flag=True, help="Print a list of findings for programs instead.")
def check(*, observed: str | None, as_json: bool, save: str | None, **live: Any) -> None:
    """Check a cluster, or what is in the way of making one: quotas, capacity, rights, networks, nodes.

    Nothing is changed. Exit code 0: no errors; 1: errors; 2: bad input; 3: nothing could be read.
    """
    if observed is not None:
        given = [name for name, value in live.items() if value is not None] + (["save"] if save else [])
        if given:
            raise Exit(Code.REFUSED, f"--observed says it all: leave --{' and --'.join(given)} out")
        _show(*_of_bundle(observed), as_json=as_json)
        return
    from interlace.cli.running import run
    from interlace.gke.errors import GkeError

    run(_live(as_json=as_json, save=save, **live), failures=(GkeError,))


def _of_bundle(file: str) -> tuple[tuple[Finding, ...], str]:
    from datetime import UTC, datetime

    from interlace.gke.observed.bundle import BundleError, read
    from interlace.gke.rules.checking import check_observed

    name = "stdin" if file == "-" else file
    try:
        data = sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
    except OSError as error:
        raise Exit(Code.REFUSED, f"{file}: {error.strerror or error}") from None
    with refusing():
        try:
            state = read(data)
        except BundleError as error:
            what = f"{name}: {error.what}"
            raise BundleError(what, where=error.pointer, cause=error.cause, remedy=error.remedy) from None
    if state.empty:
        raise Exit(Code.UNKNOWN, f"{name}: nothing was read of the project, so nothing can be told")
    cluster = state.want.cluster_name or (state.cluster.name if state.cluster else "")
    what = f"cluster {cluster} in " if cluster else ""
    return check_observed(state, now=datetime.now(UTC)), f"{what}project {state.project or '?'}, as {name} has it"


async def _live(
    *,
    file: str | None,
    project: str | None,
    location: str | None,
    name: str | None,
    family: str | None,
    nodes: int | None,
    context: str | None,
    kubeconfig: str | None,
    endpoint: str | None,
    save: str | None,
    as_json: bool,
) -> Code:
    from datetime import UTC, datetime

    import msgspec

    from interlace.cli.gke_live import Kubeconfig, judge, needed, read_live, reading, targets_of
    from interlace.gke.observed.bundle import wanted_family
    from interlace.gke.observed.gathering import Target
    from interlace.gke.observed.state import Want

    cluster = None
    options = {"project": project, "location": location, "cluster": name, "family": family, "nodes": nodes}
    given = [f"--{option}" for option, value in options.items() if value is not None]
    if given and file is None:
        needed((("--project", project), ("--location", location)))
        with refusing():
            wanted_family(Want(flavour=family or ""))
        targets: tuple[Target, ...] = (
            Target(
                project=project or "",
                location=location or "",
                cluster=name or "",
                flavour=family or "",
                nodes=nodes or 0,
            ),
        )
    else:
        if given:
            raise Exit(Code.REFUSED, f"the cluster file says it all: leave {' and '.join(given)} out")
        cluster = read_file(file or FILE).cluster
        targets = targets_of(cluster)
    with reading(f"reading project {targets[0].project}"):
        gathered, simulated = await read_live(
            targets, endpoint=endpoint, kubeconfig=Kubeconfig(file=kubeconfig, context=context)
        )
    if save:
        Path(save).write_bytes(msgspec.json.format(msgspec.json.encode(gathered.document), indent=1) + b"\n")
    with refusing():
        findings = judge(gathered, targets, cluster=cluster, now=datetime.now(UTC))
    where = targets[0]
    title = f"{gathered.subject} at {where.location} in project {where.project}{' (simulated)' if simulated else ''}"
    if simulated and as_json:
        click.echo("interlace: all of this is simulated", err=True)
    _show(findings, title, as_json=as_json)
    return Code.GOOD


def _show(findings: Iterable[Finding], title: str, *, as_json: bool) -> None:
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
    from rich.padding import Padding
    from rich.text import Text

    from interlace.cli.printing import echo
    from interlace.rules.finding import lines
    from interlace.rules.words import plain

    echo(Text(plain(title)))
    for line in lines(findings):
        text = Text(line.lstrip())
        severity = line.partition(" ")[0]
        if severity in _STYLES:
            text.stylize(_STYLES[severity], 0, len(severity))
        echo(Padding(text, (0, 0, 0, len(line) - len(line.lstrip()))))
