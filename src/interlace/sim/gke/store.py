"""What exists: one table of documents by relative resource name, and what is being made or taken away.

Invariant: a name belongs to one thing at a time; it is free again only when the deletion has ended.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

Json = dict[str, Any]
KINDS: Final = ("networks", "subnetworks", "firewalls", "resourcePolicies", "reservations", "clusters", "nodePools")


@dataclass(slots=True)
class Store:
    """Documents by relative name (``projects/P/global/networks/N``); tests may read and change it."""

    objects: dict[str, Json] = field(default_factory=dict)
    creating: dict[str, Json] = field(default_factory=dict)
    """What an operation is about to make, by name."""
    leaving: set[str] = field(default_factory=set)
    """Names that an operation is about to free."""
    foreign: set[str] = field(default_factory=set)
    """Names that stood before any request."""
    _ids: int = 8_400_000_000_000_000_000

    def next_id(self) -> str:
        self._ids += 1
        return str(self._ids)

    def get(self, path: str) -> Json | None:
        return self.objects.get(path)

    def usable(self, path: str) -> Json | None:
        """The document, unless it is being deleted: what something new may refer to."""
        return None if path in self.leaving else self.objects.get(path)

    def put(self, path: str, document: Json) -> None:
        self.creating.pop(path, None)
        self.objects[path] = document

    def remove(self, path: str) -> None:
        """Also what lies below ``path``."""
        self.leaving.discard(path)
        for each in [key for key in self.objects if key == path or key.startswith(f"{path}/")]:
            del self.objects[each]
            self.leaving.discard(each)

    def under(self, parent: str, collection: str) -> list[tuple[str, Json]]:
        """Members of ``parent/collection``, by name. ``-`` as a segment of ``parent`` stands for any."""
        wanted = re.compile(re.escape(f"{parent}/{collection}/").replace(r"/\-/", "/[^/]+/") + "[^/]+")
        return sorted((path, document) for path, document in self.objects.items() if wanted.fullmatch(path))

    def of(self, project: str, collection: str) -> Iterator[tuple[str, Json]]:
        """Members of a collection of a project, wherever they are."""
        head = f"projects/{project}/"
        for path, document in sorted(self.objects.items()):
            if path.startswith(head) and path.split("/")[-2] == collection:
                yield path, document

    def names(self, collection: str) -> list[str]:
        """Names of everything in a collection such as ``networks``, in all projects; foreign things too."""
        return sorted(path.rpartition("/")[2] for path in self.objects if path.split("/")[-2] == collection)

    def made(self) -> list[str]:
        """Relative names of all that requests have made."""
        return sorted(set(self.objects) - self.foreign)


def relative(reference: str, *, project: str, collection: str, place: str = "global") -> str:
    """The relative name that ``reference`` means: a URL, ``projects/…``, ``regions/…``, ``global/…`` or a bare name.

    ``place`` such as ``regions/us-central1`` is where a bare name lives.
    """
    _, found, tail = reference.partition("/projects/")
    if found:
        return f"projects/{tail}"
    if reference.startswith("projects/"):
        return reference
    if reference.startswith(("global/", "regions/", "zones/")):
        return f"projects/{project}/{reference}"
    return f"projects/{project}/{place}/{collection}/{reference}"


def fingerprint(value: Any) -> str:
    """Of compute: changes with the content; eight bytes in base64."""
    return base64.b64encode(_digest(value)[:8]).decode()


def etag(value: Any) -> str:
    """Of container: changes with the content; the form of a UUID."""
    text = _digest(value).hex()
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:32]}"


def short_hash(text: str) -> str:
    """Eight hexadecimal digits as GKE puts them into names that it makes."""
    return hashlib.sha256(text.encode()).hexdigest()[:8]


def _digest(value: Any) -> bytes:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).digest()
