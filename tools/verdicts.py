"""The page of verdicts: ``python -m tools.verdicts [--check]``.

Keeps the written part of docs/verdicts.md and makes the tables of bands and signatures behind it from the data, so
that the page names what the program knows; ``--check`` fails if it does not.
"""

from __future__ import annotations

import sys
from itertools import groupby
from pathlib import Path
from typing import Final

from interlace.fabric.bands import table
from interlace.verify.curve import size_name
from interlace.verify.signatures import Signature, signatures

TARGET: Final = Path(__file__).parents[1] / "docs" / "verdicts.md"
MARK: Final = "<!-- Made from the data by `python -m tools.verdicts`; do not edit below. -->\n"
_STAGES: Final = {
    "scheduling": "Before the Pods run",
    "image": "Before the program runs",
    "launch": "While ranks are launched",
    "program": "Before NCCL starts",
    "nccl": "NCCL and the fabric",
}


def render(page: str) -> str:
    """The page with its made part new. Raises ValueError if the mark is missing."""
    if MARK not in page:
        raise ValueError(f"{TARGET.name} has no line {MARK.strip()!r}")
    return page[: page.index(MARK)] + MARK + _bands() + _signatures()


def _bands() -> str:
    rows = [
        f"| {each.family} | {'between nodes' if each.scope == 'nodes' else 'NVLink domain'}"
        f" | {', '.join(each.collectives)} | {each.bound_gb_s:g} | {each.pass_share:.0%} | {each.degraded_share:.0%}"
        f" | {size_name(each.from_bytes)} | {each.why} |\n"
        for each in table().bands
    ]
    floors = [
        f"| {each.family} | {size_name(each.bytes)} | {each.most_ms:g} ms | {each.why} |\n" for each in table().floors
    ]
    return "".join(
        [
            "\n## Bands\n\n",
            "| family | path | collectives | bound, GB/s | pass from | degraded from | at | why |\n",
            "| --- | --- | --- | --- | --- | --- | --- | --- |\n",
            *rows,
            "\nThe most that a small size may take between two nodes, or in a rack:\n\n",
            "| family | size | at most | why |\n| --- | --- | --- | --- |\n",
            *floors,
        ]
    )


def _signatures() -> str:
    known = signatures()
    parts = [f"\n## Signatures\n\n{len(known)} are known.\n"]
    for stage, items in groupby(
        sorted(known, key=lambda each: list(_STAGES).index(each.stage)), lambda each: each.stage
    ):
        parts.append(f"\n### {_STAGES[stage]}\n\n| signature | log | effect | looks like | cause | remedy |\n")
        parts.append("| --- | --- | --- | --- | --- | --- |\n")
        parts += [_row(each) for each in items]
    return "".join(parts)


def _row(signature: Signature) -> str:
    cells = (
        f"`{signature.id}`",
        signature.log,
        signature.effect,
        "facts" if signature.derived else f"`{signature.words[0].strip('` ')}`",
        signature.cause,
        signature.remedy,
    )
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |\n"


def main() -> int:
    """Entry point."""
    page = TARGET.read_text(encoding="utf-8")
    made = render(page)
    if "--check" in sys.argv[1:]:
        if made != page:
            print("docs/verdicts.md is not up to date; run: python -m tools.verdicts", file=sys.stderr)
            return 1
        return 0
    TARGET.write_text(made, encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
