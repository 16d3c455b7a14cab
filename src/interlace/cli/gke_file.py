"""The cluster file as an option of ``interlace gke`` verbs, and how bad input ends them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from interlace.cli.exits import Code, Exit

if TYPE_CHECKING:
    from interlace.gke.reading import Document

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
    """Read the cluster file. Raises Exit with all that is wrong in it."""
    from interlace.gke.reading import read

    with refusing():
        return read(file)
