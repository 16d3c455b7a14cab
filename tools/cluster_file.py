"""The cluster file of ``interlace gke``: ``python -m tools.cluster_file [--check]``.

Written to docs/cluster-file.md and docs/fabriccluster.schema.json from the structs that read the file, so that page
and schema cannot say something else than the reader; ``--check`` fails if a file is not what the structs say.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

from interlace.gke.schema import keys, schema

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "cluster-file.md"
SCHEMA = ROOT / "docs" / "fabriccluster.schema.json"
HEAD = """# The cluster file

All keys of a `FabricCluster`, which the verbs of `interlace gke` take with `-f`. Made from the structs that read the
file by `python -m tools.cluster_file`; `make check` compares. [gke.md](gke.md) shows how the file is used,
`interlace gke init` writes a commented start, and [fabriccluster.schema.json](fabriccluster.schema.json) is the JSON
Schema for editors.

`[]` marks a list. Keys without a mark may be left out. An unknown key is refused and the nearest known one named.

| key | value | default | meaning |
| --- | --- | --- | --- |
"""


def rows() -> Iterator[str]:
    """A row a key."""
    for key in keys():
        needed = " **(needed)**" if key.needed else ""
        about = key.about.replace("|", "\\|")
        yield f"| `{key.path}`{needed} | {key.kind} | {key.default} | {about} |\n"


def render() -> dict[Path, str]:
    """Both files."""
    return {PAGE: HEAD + "".join(rows()), SCHEMA: json.dumps(schema(), indent=2) + "\n"}


def main() -> int:
    """Entry point."""
    stale = [path for path, text in render().items() if not path.exists() or path.read_text() != text]
    if "--check" in sys.argv[1:]:
        for path in stale:
            print(f"docs/{path.name} is not up to date; run: python -m tools.cluster_file", file=sys.stderr)
        return 1 if stale else 0
    for path, text in render().items():
        path.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
