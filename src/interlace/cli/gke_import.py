"""``interlace gke import``: gcloud commands that exist as a cluster file, or as the requests that they send."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from interlace.cli.exits import Code, Exit

if TYPE_CHECKING:
    from interlace.gke.describing import Described
    from interlace.rules.finding import Finding

LONGEST = 1 << 20
"""Bytes of a page."""


@click.command("import")
@click.option("-f", "--file", required=True, metavar="FILE", help="Page with gcloud commands; - is stdin.")
@click.option("--project", default="", metavar="ID", help="Where a command names no project.")
@click.option("--location", default="", metavar="ZONE", help="Zone or region, where a command names none.")
@click.option("--set", "known", multiple=True, metavar="NAME=VALUE", help="Value of a variable or placeholder.")
@click.option("--family", default="", metavar="F", help="yaml: only clusters of this hardware family.")
@click.option(
    "--format",
    "form",
    type=click.Choice(["yaml", "requests"]),
    default="yaml",
    show_default=True,
    help="yaml: cluster files; requests: what gcloud would send.",
)
@click.option("--json", "as_json", is_flag=True, help="Print cluster files and findings as one JSON document instead.")
def import_(
    *, file: str, project: str, location: str, known: tuple[str, ...], family: str, form: str, as_json: bool
) -> None:
    """Read gcloud commands, a script or a page such as Google's, and say what they mean. Nothing is run or sent.

    yaml prints a cluster file for each cluster with GPUs, and what is wrong in the page to stderr; exit code 1 says
    that something is. requests prints the requests that gcloud 528 sends, or refuses the page.
    """
    from interlace.cli.gke_file import refusing

    text = _text(file)
    values = _values(known)
    with refusing():
        if form == "requests":
            _requests(text, project=project, location=location, known=values)
            return
        if not project:
            raise Exit(Code.REFUSED, "no project is known; give --project")
        found, findings = _clusters(text, project=project, location=location, known=values, family=family)
    _print(found, findings, as_json=as_json, file=file)


def _requests(text: str, *, project: str, location: str, known: dict[str, str]) -> None:
    import json

    import msgspec

    from interlace.gke.importing import requests

    found, notes = requests(text, project=project, location=location, known=known)
    document = {"requests": [msgspec.to_builtins(each) for each in found]}
    click.echo(json.dumps(document, indent=2, sort_keys=True))
    for note in notes:
        click.echo(f"interlace: {note.severity}: {note.text} [{note.rule}]. {note.remedy}.", err=True)


def _clusters(
    text: str, *, project: str, location: str, known: dict[str, str], family: str
) -> tuple[list[Described], list[Finding]]:
    from datetime import UTC, datetime

    from interlace.cli.families import known_family
    from interlace.gke.describing import described
    from interlace.gke.importing import reading
    from interlace.rules.finding import ordered

    of = known_family(family).id if family else ""
    page = reading(text, project=project, location=location, known=known)
    found = described(page, project=project, today=datetime.now(UTC).date(), family=of)
    if not found:
        of_family = f" of family {of}" if of else ""
        raise Exit(
            Code.REFUSED,
            "\n".join([f"no cluster with GPUs{of_family} is made here", *(each.text for each in page.findings)]),
        )
    return found, list(ordered([*page.findings, *(each for cluster in found for each in cluster.findings)]))


def _print(found: list[Described], findings: list[Finding], *, as_json: bool, file: str) -> None:
    from interlace.gke.describing import complaints, written
    from interlace.rules.finding import lines

    texts = [written(each, source=file) for each in found]
    told = frozenset(each.rule for each in findings)
    findings += [each for of, text in zip(found, texts, strict=True) for each in complaints(of, text, told=told)]
    if as_json:
        import msgspec

        document = {"clusters": [each.document for each in found], "findings": findings}
        click.echo(msgspec.json.format(msgspec.json.encode(document), indent=2))
    else:
        click.echo("---\n".join(texts), nl=False)
        for line in lines(findings):
            click.echo(line, err=True)
    if any(each.severity == "error" for each in findings):
        raise Exit(Code.BAD)


def _values(known: tuple[str, ...]) -> dict[str, str]:
    values = {}
    for each in known:
        name, equals, value = each.partition("=")
        if not equals or not name.isidentifier():
            raise Exit(Code.REFUSED, f"--set {each} is no NAME=VALUE")
        values[name] = value
    return values


def _text(file: str) -> str:
    import sys
    from pathlib import Path

    try:
        if file == "-":
            data = sys.stdin.buffer.read(LONGEST + 1)
        else:
            with Path(file).open("rb") as stream:
                data = stream.read(LONGEST + 1)
    except OSError as error:
        raise Exit(Code.REFUSED, f"{file} cannot be read: {error.strerror or error}") from None
    if len(data) > LONGEST:
        raise Exit(Code.REFUSED, f"{file} is longer than {LONGEST >> 20} MiB")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise Exit(Code.REFUSED, f"{file}: line {line} is no UTF-8 text") from None
