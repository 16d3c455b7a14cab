"""What the Network objects of a family are called in a cluster, as users write it: ``vpc1=rail1,vpc2=rail2``.

Invariant: the command, the webhook and the manifests read such a map here, so that they accept the same ones.
"""

from __future__ import annotations

import re
from typing import Final

from interlace.fabric.family import Family, families

_OBJECT: Final = re.compile(r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?\Z")


class NetworkMapError(ValueError):
    """A map that no cluster can have; the sentence says which part of it."""


def network_map(text: str, *, family: Family | None = None) -> dict[str, str]:
    """Name of a network in the family's data to its name in the cluster. ``family`` None: networks of any family.

    Raises NetworkMapError for an unknown network, a bad name, and a name that is given twice.
    """
    found: dict[str, str] = {}
    chosen = (family,) if family else families()
    known = list(dict.fromkeys(network.name for each in chosen for network in each.networks))
    for entry in text.split(",") if text.strip() else ():
        name, equals, other = (part.strip() for part in entry.partition("="))
        if not equals:
            raise NetworkMapError(f"{entry!r} is not NAME=OTHER, as in vpc1=rail1")
        if name not in known:
            unknown = f"{family.id} has no network" if family else "no family has a network"
            raise NetworkMapError(f"{unknown} {name!r}; there are {', '.join(known) or 'none'}")
        if other == "default":
            raise NetworkMapError("'default' is the Pod network and no rail; write another name")
        if not _OBJECT.match(other):
            raise NetworkMapError(f"{other!r} cannot be the name of a Network object")
        if name in found:
            raise NetworkMapError(f"{name} is given twice")
        found[name] = other
    final = [found.get(name, name) for name in known]
    if twice := [name for name in final if final.count(name) > 1]:
        raise NetworkMapError(f"two networks have the name {twice[0]}; give each its own")
    return found
