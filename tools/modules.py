"""The list of modules with the first sentence of each: ``python -m tools.modules [--check]``.

Written to docs/modules.md, so that a newcomer finds the file for a change; ``--check`` fails if the
file is not what the docstrings say now.
"""

from __future__ import annotations

import ast
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
TARGET = ROOT / "docs" / "modules.md"
FOLDERS = ("src/interlace", "testbed", "tools", "bench")
HEAD = """# Modules

Made from the docstrings by `python -m tools.modules`; `make check` compares. How the folders fit together:
[architecture.md](architecture.md).
"""


def first_sentence(path: Path) -> str:
    """Of the module's docstring, on one line."""
    text = ast.get_docstring(ast.parse(path.read_text())) or ""
    return " ".join(text.split("\n\n")[0].split())


def render() -> str:
    """The whole page."""
    parts = [HEAD]
    for folder in FOLDERS:
        packages: dict[Path, list[Path]] = {}
        for path in sorted((ROOT / folder).rglob("*.py")):
            if not path.name.endswith("_pb2.py"):
                packages.setdefault(path.parent, []).append(path)
        for package, paths in packages.items():
            head = first_sentence(package / "__init__.py") if (package / "__init__.py").exists() else ""
            parts.append(f"\n## {package.relative_to(ROOT)}\n\n{head}\n")
            rows = [path for path in paths if path.name != "__init__.py"]
            if rows:
                parts.append("\n| module | what it is |\n| --- | --- |\n")
            for path in rows:
                link = f"../{path.relative_to(ROOT)}"
                parts.append(f"| [{path.name}]({link}) | {first_sentence(path).replace('|', chr(92) + '|')} |\n")
    return "".join(parts)


def main() -> int:
    """Entry point."""
    page = render()
    if "--check" in sys.argv[1:]:
        if not TARGET.exists() or TARGET.read_text() != page:
            print("docs/modules.md is not up to date; run: python -m tools.modules", file=sys.stderr)
            return 1
        return 0
    TARGET.write_text(page)
    return 0


if __name__ == "__main__":
    sys.exit(main())
