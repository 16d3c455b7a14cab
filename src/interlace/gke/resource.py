"""A cloud resource as this project means it: where it lives, what makes it, what it waits for.

Invariant: ``body`` is the one canonical REST body of the resource; creating, exporting and comparing all use it.
References between resources are keys, so the order of work follows from the resources alone.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

Kind = Literal["network", "subnetwork", "firewall", "resourcePolicy", "reservation", "cluster", "nodePool"]


class Key(msgspec.Struct, frozen=True, order=True):
    """Identity of a resource inside its project.

    ``place`` is ``global``, a region or a zone; for node pools ``LOCATION/CLUSTER``.
    """

    kind: Kind
    place: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind}/{self.name}"


class Resource(msgspec.Struct, frozen=True, kw_only=True):
    """What should exist.

    ``body``: the resource as its API takes it, without wrappers such as ``{"cluster": ...}``. ``version``: the API
    version that knows every field of it (``v1``, ``beta``, ``v1beta1``). ``after``: resources that must stand first.
    """

    key: Key
    project: str
    body: dict[str, Any]
    version: str = "v1"
    after: tuple[Key, ...] = ()
