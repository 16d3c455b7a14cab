"""Whether the importer finds what is wrong in a published recipe: ``python -m tools.gke_page PAGE``.

A recipe for GPUDirect on GKE is known to have eleven defects. Each must be found in the page, with its line.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path

from interlace.gke.importing import reading
from interlace.rules.finding import Finding

DEFECTS = {
    "gcloud.stray-flag": "a lost backslash turns --no-enable-autoupgrade into a command",
    "gcloud.trailing-backslash": "a backslash at the end of a block swallows the next line",
    "gcloud.bracket": "optional flags stand in square brackets",
    "gcloud.spelling": "the same networks have several spellings",
    "gcloud.node-count": "a pool with GPUs has no --num-nodes",
    "gcloud.uneven-pools": "one pool lacks scopes, placement, reservation and maintenance interval, the other has them",
    "cluster.default-network": "the cluster names no network",
    "cluster.channel-unset": "auto-upgrade is off and no release channel is named",
    "gcloud.one-range": "a loop gives all subnets one range",
    "gcloud.default-pool": "a pool of three nodes without GPUs is made unasked",
    "gcloud.annotation": "a Pod annotation is no JSON",
}
"""Rule that finds a defect, and the defect."""


def missing(findings: Iterable[Finding]) -> list[str]:
    """Rules of defects that no finding is about."""
    found = {each.rule for each in findings}
    return [rule for rule in DEFECTS if rule not in found]


def main(arguments: list[str]) -> int:
    """Print where each defect was found."""
    if len(arguments) != 1:
        print(__doc__, file=sys.stderr)
        return 2
    text = Path(arguments[0]).read_text(encoding="utf-8")
    findings = reading(text, project="my-project", location="us-central1-a").findings
    for rule, defect in DEFECTS.items():
        places = [each.pointer.rpartition("/")[2] for each in findings if each.rule == rule]
        print(f"{rule}: {defect}: {'line ' + ', '.join(places) if places else 'not found'}")
    return 1 if missing(findings) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
