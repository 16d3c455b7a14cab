"""``interlace verify``: the group of verbs that read, judge, compare and make measurements with nccl-tests."""

from __future__ import annotations

from typing import ClassVar

import click

from interlace.cli.main import Verbs


class Steps(Verbs):
    """Verbs of ``verify``, each imported when it is called."""

    table: ClassVar[dict[str, tuple[str, str]]] = {
        "parse": ("interlace.cli.verify_parse:parse", "Read logs of nccl-tests, however they were wrapped or cut."),
        "judge": (
            "interlace.cli.verify_judge:judge",
            "Say whether the fabric is as fast as it should be, and why not.",
        ),
        "run": ("interlace.cli.verify_run:run", "Measure nodes of the current cluster and judge the result."),
        "pairs": ("interlace.cli.verify_pairs:pairs", "Measure many pairs of nodes and name bad nodes and links."),
        "compare": ("interlace.cli.verify_compare:compare", "Compare two measurements size by size."),
        "report": ("interlace.cli.verify_report:report", "Write one page about a measurement, or a file for CI."),
    }


@click.group(cls=Steps)
def verify() -> None:
    """Prove that a fabric is as fast as it should be, from measurements with nccl-tests."""
