"""Whether a GKE version is new enough for a family.

Rule: a version is compared with the least one of its own minor. A minor newer than all in the table is accepted, and
said to be so; one that is older, or missing between others, is refused. Invariant: no version is accepted that the
table speaks against.
"""

from __future__ import annotations

import msgspec

from interlace.fabric.family import Family
from interlace.fabric.version import GkeVersion, gke_version, minor_version


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """``ok`` and the sentence that says why; ``known`` is False where the table says nothing about this minor."""

    ok: bool
    known: bool
    why: str
    remedy: str = ""
    """What to do if it is not ok."""


def judge(family: Family, version: GkeVersion) -> Verdict:
    """Whether ``family`` works on ``version``."""
    if not family.node.gke:
        return Verdict(
            ok=False, known=True, why=f"{family.id} is not offered on GKE", remedy="leave the GKE version out"
        )
    rows = {minor_version(row.minor): row for row in family.versions}
    row = rows.get(version.of)
    if row is not None:
        if not row.version or version >= gke_version(row.version):
            least = row.version or f"any patch of {row.minor}"
            better = bool(row.recommended) and version < gke_version(row.recommended)
            advice = f"; {row.recommended} or newer is recommended" if better else ""
            return Verdict(ok=True, known=True, why=f"{version} is enough for {family.id} ({least}){advice}")
        return Verdict(
            ok=False,
            known=True,
            why=f"{family.id} needs {row.version} or newer on GKE {row.minor}, and this is {version}",
            remedy="upgrade the control plane and the node pool",
        )
    if version.of > max(rows):
        newest = max(rows)
        return Verdict(
            ok=True, known=False, why=f"{version} is newer than the table of {family.id}, which ends at {newest}"
        )
    return Verdict(
        ok=False,
        known=version.of < min(rows),
        why=f"{family.id} is not supported on GKE {version.of}; its first minor is {min(rows)}",
        remedy="upgrade the control plane and the node pool",
    )
