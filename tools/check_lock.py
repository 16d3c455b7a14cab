"""The locks, pyproject.toml and docs/dependencies.md agree with each other. Asks nobody: works offline.

Each requirement of the project is pinned in ``requirements/dev.txt`` at a version inside its range, every
pin has hashes, no lock holds a URL, and each direct dependency has a row that says what it is for.
"""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

LOCKS = ("requirements/dev.txt", "testbed/mods/toolchain.txt")
ROWS = "docs/dependencies.md"


def pins(lock: str) -> dict[str, list[tuple[Version, int]]]:
    """Name -> (version, number of hashes) of each pin; one name has several where markers divide them."""
    found: dict[str, list[tuple[Version, int]]] = {}
    entry = re.compile(r"^([A-Za-z0-9][\w.-]*)==([^\s;\\]+)[^\n]*((?:\n[ \t]+--hash=\S+[^\n]*)*)", re.MULTILINE)
    for name, version, hashes in entry.findall(lock):
        found.setdefault(canonicalize_name(name), []).append((Version(version), hashes.count("--hash=")))
    return found


def requirements(project: Mapping[str, Any]) -> dict[str, list[Requirement]]:
    """Where it is asked for -> requirements, of everything that the lock covers."""
    table = project["project"]
    asked = {"dependencies": table.get("dependencies", [])}
    asked |= {f"optional-dependencies.{name}": extra for name, extra in table.get("optional-dependencies", {}).items()}
    asked |= {f"dependency-groups.{name}": group for name, group in project.get("dependency-groups", {}).items()}
    asked["build-system.requires"] = project["build-system"]["requires"]
    return {where: [Requirement(text) for text in texts if isinstance(text, str)] for where, texts in asked.items()}


def lock_problems(name: str, lock: str) -> Iterator[str]:
    """What is wrong with a lock by itself."""
    for number, line in enumerate(lock.splitlines(), 1):
        if "://" in line or line.lstrip().startswith(("-i ", "--index-url", "--extra-index-url", "--find-links")):
            yield f"{name}:{number}: names a place to download from; run `make lock`"
    for package, versions in pins(lock).items():
        for version, hashes in versions:
            if not hashes:
                yield f"{name}: {package}=={version} has no hash; run `make lock`"


def step_problems(name: str, lock: str, project: Mapping[str, Any]) -> Iterator[str]:
    """Requirements that the lock does not meet."""
    pinned = pins(lock)
    for where, asked in requirements(project).items():
        for requirement in asked:
            versions = pinned.get(canonicalize_name(requirement.name))
            if versions is None:
                yield f"{name}: {requirement.name} of {where} is not pinned; run `make lock`"
                continue
            for version, _ in versions:
                if not requirement.specifier.contains(version, prereleases=True):
                    yield f"{name}: pins {requirement.name}=={version}, {where} asks for {requirement}; run `make lock`"


def row_problems(page: str, project: Mapping[str, Any]) -> Iterator[str]:
    """Direct dependencies without a row in the table of reasons, and rows without a dependency."""
    rows = {canonicalize_name(name) for name in re.findall(r"^\| *`?([A-Za-z0-9][\w.-]*)`? *\|", page, re.MULTILINE)}
    rows -= {"package"}
    direct = {canonicalize_name(each.name) for asked in requirements(project).values() for each in asked}
    yield from _rows(direct - rows, "is a dependency without a row; say what it is for and what it weighs")
    yield from _rows(rows - direct, "has a row and is no dependency; remove the row")


def _rows(names: Iterable[str], complaint: str) -> Iterator[str]:
    return (f"{ROWS}: {name} {complaint}" for name in sorted(names))


def main(root: Path) -> int:
    """Exit code: 0 if all is well, 1 with one line a finding."""
    project = tomllib.loads((root / "pyproject.toml").read_text())
    locks = {name: (root / name).read_text() for name in LOCKS}
    found = [problem for name, lock in locks.items() for problem in lock_problems(name, lock)]
    found += step_problems(LOCKS[0], locks[LOCKS[0]], project)
    found += row_problems((root / ROWS).read_text(), project)
    for problem in found:
        print(problem, file=sys.stderr)
    print(f"lock: {sum(len(pins(lock)) for lock in locks.values())} packages, {len(found)} problems")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(Path(__file__).resolve().parents[1]))
