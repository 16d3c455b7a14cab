"""The flags in docs/gke-import.md: ``python -m tools.gke_import_reference [--check]``.

The page is written by hand up to a mark; behind it stand the flags of each creating command that are taken and those
that are refused, each with the reason, as the importer itself knows them.
"""

from __future__ import annotations

import sys
from pathlib import Path

from interlace.gke.gcloud.call import read_call, why_refused
from interlace.gke.gcloud.faults import Faults
from interlace.gke.gcloud.interpreting import CREATES
from interlace.gke.gcloud.settings import Settings
from interlace.gke.gcloud.table import table

PAGE = Path(__file__).parents[1] / "docs" / "gke-import.md"
MARK = "<!-- Written by python -m tools.gke_import_reference; change nothing below. -->\n"

LEAST = {
    "compute firewall-rules create": "n --action=ALLOW --rules=tcp",
    "compute networks create": "n",
    "compute networks subnets create": "n --network=n --region=r1 --range=10.0.0.0/24",
    "compute reservations create": "n --zone=r1-a --vm-count=1 --machine-type=m",
    "compute resource-policies create group-placement": "n --region=r1",
    "compute resource-policies create workload-policy": "n --region=r1 --type=HIGH_THROUGHPUT",
    "container clusters create": "n --location=r1-a --enable-ip-alias",
    "container node-pools create": "n --cluster=c --location=r1-a",
}
"""The shortest line of each command."""


def taken(command: str) -> frozenset[str]:
    """Flags of a command that the importer understands."""
    call = read_call([*command.split(), *LEAST[command].split()], line=1)
    CREATES[command](call, Settings(project="p"), Faults(call))
    return call.understood


def flags() -> str:
    """The part of the page behind the mark."""
    lines: list[str] = []
    for command in sorted(CREATES):
        every = table().commands[command].flags
        known = taken(command)
        refused: dict[str, list[str]] = {}
        for flag in sorted(every.keys() - known):
            refused.setdefault(why_refused(flag), []).append(flag)
        lines += ["", f"### gcloud {command}", "", f"Taken, {len(known)} of {len(every)}:", ""]
        lines += ["", _list(sorted(known))]
        if refused:
            lines += ["", "| refused | because |", "| --- | --- |"]
            lines += [f"| {_list(names)} | {why} |" for why, names in refused.items()]
    return "\n".join(lines).replace("\n\n\n", "\n\n") + "\n"


def _list(names: list[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def main(arguments: list[str]) -> int:
    """Write the page, or say whether it is as it should be."""
    text = PAGE.read_text(encoding="utf-8")
    wanted = text.partition(MARK)[0] + MARK + flags()
    if "--check" not in arguments:
        PAGE.write_text(wanted, encoding="utf-8")
    elif wanted != text:
        print(f"{PAGE}: not as the importer is; run python -m tools.gke_import_reference", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
