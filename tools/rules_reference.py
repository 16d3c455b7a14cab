"""The reference of rules about GKE clusters: ``python -m tools.rules_reference [--check]``.

Written to docs/gke-rules.md from the rules themselves, so that the page cannot name another cause or remedy than a
finding does; ``--check`` fails if the file is not what the rules say.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from interlace.gke.rules.checking import ABOUT, RULES
from interlace.gke.rules.subject import Subject
from interlace.rules.rule import Rule
from tools.families_reference import rows

ROOT = Path(__file__).parents[1]
TARGET = ROOT / "docs" / "gke-rules.md"
HEAD = """# Rules about GKE clusters

Made from `src/interlace/gke/rules` by `python -m tools.rules_reference`; `make check` compares.

`interlace gke check` judges a live project by all of these rules, `interlace gke check --observed FILE` a bundle of
observed state, `interlace gke validate`, `plan`, `apply` and `export` a cluster file by those that a file can break,
`interlace gke import` what gcloud commands would make. A finding names the rule, how bad it is, where it is (a JSON
pointer into the bundle or the file; it may name a member that is absent), what is wrong, and what to do:

```sh
interlace gke check -f cluster.yaml                       # what is in the way of the cluster, or wrong with it
interlace gke check --project P --location L              # a cluster that is not yours
interlace gke check --observed state.json --json          # [{"rule","severity","pointer","text","remedy"}]
interlace gke check -f cluster.yaml --save state.json     # keep what was read, to judge or show it elsewhere
```

The exit code is 0 without errors, 1 with errors, 2 for bad input, 3 if nothing could be read. A rule may be milder or
more severe in one place than its row says, where the finding says why. What a rule needs and what was not read is
named in an info finding (`state.not-observed`); a part that may not be read, or whose API is off, in a warning
(`state.unreadable`); nothing passes in silence.

Severity `error`: it will fail or does not work. `warning`: it is slower, or fails later. `info`: good to know.
What quotas and reservations hold is judged for the nodes that are still to come and for the cluster as a whole; a
specific reservation holds its own GPUs, CPUs and local SSDs.

## The form of a bundle

One JSON object: `format` (`observed-state/1`), `project`, `location`, `want` (`flavour`: a family, a machine type or a
transport; `nodes`; `clusterName`; `nodePoolName`), `cluster` (container v1 or v1beta1, with `nodePools`), `networks`,
`subnetworks`, `firewalls`, `resourcePolicies`, `reservations`, `projectInfo` and `regionInfo` (compute v1, with
`quotas`), `quotaInfos` (Cloud Quotas), `kubernetes` (`networks`, `gkeNetworkParamSets`, `nodes`), and as further parts
`services` (Service Usage), `permissions` (`asked`, and `permissions` of the answer of testIamPermissions) and
`machineTypes` (compute v1). A part that is null or absent was not read, or does not exist. Objects are as their APIs
return them: absent booleans are false, references may be names, partial paths or URLs, and unknown fields are ignored.
"""


def page() -> str:
    """The whole page."""
    parts = [HEAD]
    for area, title in ABOUT.items():
        found = [rule for rule in RULES if rule.id.partition(".")[0] == area]
        if found:
            parts.append(f"\n## {title}\n\n{table(found)}")
    return "".join(parts)


def table(rules: list[Rule[Subject]]) -> str:
    """Rules of one area."""
    return rows(("rule", "severity", "cause", "remedy"), cells(rules))


def cells(rules: list[Rule[Subject]]) -> Iterator[tuple[str, str, str, str]]:
    """A row each, with what the finding would say as sentences."""
    for rule in rules:
        yield f"`{rule.id}`", rule.severity, sentence(rule.cause), sentence(rule.remedy)


def sentence(text: str) -> str:
    """With a capital and a full stop."""
    return f"{text[:1].upper()}{text[1:]}."


def main() -> int:
    """Write the page, or compare it."""
    text = page()
    if "--check" in sys.argv[1:]:
        if not TARGET.is_file() or TARGET.read_text(encoding="utf-8") != text:
            print("docs/gke-rules.md is not what the rules say: run python -m tools.rules_reference")
            return 1
        return 0
    TARGET.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
