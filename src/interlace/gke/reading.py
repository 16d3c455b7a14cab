"""Reads a cluster file: text in, a FabricCluster out, or all that is wrong with it, each with file, line and column.

Invariant: a FabricCluster that comes from here has a known family and a plan of addresses; nothing was sent anywhere.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec import inspect

from interlace.gke.checking import check
from interlace.gke.cluster import FabricCluster
from interlace.gke.errors import Refused, SpecError, SpecErrors
from interlace.gke.positions import LONGEST, Located, Place, locate
from interlace.gke.shape import judge

STDIN: Final = "-"


class Document(msgspec.Struct, frozen=True, kw_only=True):
    """A cluster and where each part of it stands in its file."""

    file: str
    cluster: FabricCluster
    located: Located

    def place(self, pointer: str) -> Place:
        """Line and column of a pointer; what is not there is at the nearest thing around it."""
        return self.located.place(pointer)

    def error(self, what: str, *, pointer: str, value: str = "", cause: str = "", remedy: str = "") -> SpecError:
        """Something wrong in this file, with its place."""
        bare = SpecError(what, pointer=pointer, value=value, cause=cause, remedy=remedy)
        return _placed(bare, self.located, self.file)


def read(path: str | os.PathLike[str]) -> Document:
    """Read a file, ``-`` is stdin. Raises Refused and SpecErrors."""
    name = os.fspath(path)
    try:
        if name == STDIN:
            data, name = sys.stdin.buffer.read(LONGEST + 1), "<stdin>"
        else:
            with Path(name).open("rb") as stream:
                data = stream.read(LONGEST + 1)
    except OSError as error:
        raise Refused(
            f"{name} cannot be read",
            cause=error.strerror or str(error),
            remedy="name a file that interlace gke init wrote",
        ) from None
    return parse(data, file=name)


def read_cluster(path: str | os.PathLike[str]) -> FabricCluster:
    """The cluster of a file. Raises Refused and SpecErrors."""
    return read(path).cluster


def parse(data: bytes | str, *, file: str = "cluster.yaml") -> Document:
    """Read the text of a cluster file; ``file`` is its name in errors. Raises SpecErrors."""
    try:
        text = data if isinstance(data, str) else data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1 if isinstance(data, bytes) else 1
        bad = SpecError("this is no UTF-8 text", file=file, line=line, column=1, remedy="save the file as UTF-8")
        raise SpecErrors((bad,)) from None
    try:
        located = locate(text)
    except SpecError as error:
        raise SpecErrors((_moved(error, file=file, line=error.line, column=error.column),)) from None
    _raise(judge(located.value, _shape()), located, file)
    cluster = msgspec.convert(_without_nothing(located.value), FabricCluster)
    _raise(check(cluster), located, file)
    return Document(file=file, cluster=cluster, located=located)


@cache
def _shape() -> inspect.Type:
    return inspect.type_info(FabricCluster)


def _raise(errors: Iterable[SpecError], located: Located, file: str) -> None:
    """Raise what was found, in the order of the file."""
    found = [_placed(each, located, file) for each in errors]
    if found:
        raise SpecErrors(tuple(sorted(found, key=lambda each: (each.line, each.column))))


def _placed(error: SpecError, located: Located, file: str) -> SpecError:
    place = located.place(error.pointer, key="there is no key" in error.what)
    return _moved(error, file=file, line=place.line, column=place.column)


def _moved(error: SpecError, *, file: str, line: int, column: int) -> SpecError:
    return SpecError(
        error.what,
        file=file,
        line=line,
        column=column,
        pointer=error.pointer,
        value=error.value,
        cause=error.cause,
        remedy=error.remedy,
    )


def _without_nothing(value: Any) -> Any:
    """Without members that have no value: they mean the same as members that are not there."""
    if isinstance(value, dict):
        return {key: _without_nothing(each) for key, each in value.items() if each is not None}
    if isinstance(value, list):
        return [_without_nothing(each) for each in value]
    return value
