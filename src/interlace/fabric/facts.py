"""Each value of a family file with its source and date, for those who want to check it.

Invariant: nothing is shown that does not stand in the file; a value without a source is a fault of the file.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import msgspec

from interlace.fabric.family import FamilyError, document

_NAMES: Final = ("id", "name", "minor", "machine", "volume", "key")
"""Fields that name an entry of a list, in the order of preference."""
_TEXT: Final = frozenset({"id", "title", "machines", "sources"})
"""What the file says about itself: it names the family and is no fact about hardware."""


class Fact(msgspec.Struct, frozen=True, kw_only=True):
    """One value. ``path`` names where it is: ``tuples[tcpxo-1.0.15].driver_from``."""

    path: str
    value: str | int | float | bool
    source: str
    """Key in the file's ``[sources]``."""
    title: str
    date: str

    @property
    def names_itself(self) -> bool:
        """Whether the path says the value already, as in ``networks[vpc1].name``."""
        return any(self.path.endswith(f"[{self.value}].{name}") for name in _NAMES)


def facts(id: str) -> tuple[Fact, ...]:
    """All facts of a family, in the order of its file. Raises FamilyError for a value without a known source."""
    raw = document(id)
    sources = raw["sources"]
    found = []
    for key, value in raw.items():
        if key in _TEXT:
            continue
        for path, leaf, source in _leaves(value, path=key, source=""):
            if source not in sources:
                raise FamilyError(f"family {id}: {path} has no source that [sources] knows ({source or 'none'})")
            at = sources[source]
            found.append(Fact(path=path, value=leaf, source=source, title=at["title"], date=at["date"]))
    return tuple(found)


def _leaves(value: Any, *, path: str, source: str) -> Iterator[tuple[str, Any, str]]:
    if isinstance(value, dict):
        source = value.get("source", source)
        single = value.get("source_of", {})
        for key, each in value.items():
            if key not in {"source", "source_of"}:
                yield from _leaves(each, path=f"{path}.{key}", source=single.get(key, source))
    elif isinstance(value, list):
        for index, each in enumerate(value):
            yield from _leaves(each, path=f"{path}[{_name(each, index)}]", source=source)
    else:
        yield path, value, source


def _name(entry: Any, index: int) -> str:
    if isinstance(entry, dict):
        return next((str(entry[name]) for name in _NAMES if name in entry), str(index))
    return str(index)
