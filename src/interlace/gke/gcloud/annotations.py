"""Annotations of Pods that stand in a page beside its commands: which of them are no JSON.

Invariant: only the block behind ``networking.gke.io/interfaces`` is read; the rest of a page is text.
"""

from __future__ import annotations

import json
import re
from typing import Final

from interlace.gke.gcloud.faults import finding
from interlace.rules.finding import Finding

_BEGINS: Final = re.compile(r"(?P<indent>[ \t]*)(?:-[ \t]*)?networking\.gke\.io/interfaces:[ \t]*[|>][-+]?[ \t]*$")


def broken_annotations(text: str) -> list[Finding]:
    """A finding for each annotation whose value no JSON parser takes."""
    lines = text.splitlines()
    found = []
    for number, line in enumerate(lines, start=1):
        match = _BEGINS.match(line)
        if match is None:
            continue
        depth = len(match["indent"])
        block: list[str] = []
        for following in lines[number:]:
            if following.strip() and len(following) - len(following.lstrip()) <= depth:
                break
            block.append(following)
            if following.strip() == "]":
                break
        try:
            json.loads("\n".join(block))
        except (ValueError, RecursionError) as error:
            found.append(
                finding(
                    "annotation", number, f"the annotation networking.gke.io/interfaces is no JSON ({error})",
                    "Take the comma before the bracket out, or mend what the parser names",
                )
            )  # fmt: skip
    return found
