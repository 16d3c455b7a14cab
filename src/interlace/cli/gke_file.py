"""The cluster file as an option of ``interlace gke`` verbs, and how bad input ends them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from interlace.cli.exits import Code, Exit

if TYPE_CHECKING:
    from interlace.gke.reading import Document
    from interlace.rules.finding import Finding

_F = TypeVar("_F", bound=Callable[..., Any])

FILE: Final = "cluster.yaml"


def file_option(function: _F) -> _F:
    """``-f FILE`` as ``file``."""
    return click.option(
        "-f", "--file", default=FILE, show_default=True, metavar="FILE", help="Cluster file; - is stdin."
    )(function)


@contextmanager
def refusing() -> Iterator[None]:
    """Bad input inside ends the verb with REFUSED. Raises Exit."""
    from interlace.gke.errors import Refused

    try:
        yield
    except Refused as error:
        raise Exit(Code.REFUSED, str(error)) from None


def read_file(file: str) -> Document:
    """Read the cluster file. Raises Exit with all that is wrong in its form."""
    from interlace.gke.reading import read

    with refusing():
        return read(file)


def judged_file(file: str) -> Document:
    """Read the cluster file for a verb that makes something of it: what breaks a rule is refused too.

    Warnings go to stderr. Raises Exit.
    """
    document = read_file(file)
    findings = findings_in(document)
    broken = [each for each in findings if each.severity == "error"]
    if broken:
        raise Exit(Code.REFUSED, "\n".join(sentence(each, document) for each in broken))
    for each in findings:
        if each.severity == "warning":
            click.echo(f"interlace: warning: {sentence(each, document)}", err=True)
    return document


def findings_in(document: Document) -> tuple[Finding, ...]:
    """What the rules say about the file, worst first. Raises Exit."""
    from interlace.gke.rules.checking import check_cluster

    with refusing():
        return check_cluster(document.cluster)


def sentence(finding: Finding, document: Document) -> str:
    """A finding as an error of the file: place, pointer, what is wrong, what to do, and the rule."""
    remedy = f"{finding.remedy[:1].upper()}{finding.remedy[1:]}" if finding.remedy else ""
    return str(document.error(finding.text, pointer=finding.pointer, cause="", remedy=f"{remedy} [{finding.rule}]"))
