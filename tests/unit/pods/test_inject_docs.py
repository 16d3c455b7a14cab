"""The page on injection names tests that exist."""

from __future__ import annotations

import re
from pathlib import Path

TESTS = Path(__file__).parents[2]
PAGE = TESTS.parent / "docs" / "wire.md"
ROW = re.compile(r"^\| (S\d+) \|.*\| ?([^|]*?) ?\|$", re.MULTILINE)


def test_every_fault_is_placed_and_every_test_exists() -> None:
    rows = dict(ROW.findall(PAGE.read_text(encoding="utf-8")))
    assert list(rows) == [f"S{number}" for number in range(1, 29)]
    sources = "".join(path.read_text(encoding="utf-8") for path in sorted(TESTS.rglob("test_*.py")))
    for fault, tests in rows.items():
        for name in re.findall(r"`(test_\w+)`", tests):
            assert f"def {name}(" in sources, (fault, name)
    elsewhere = {fault for fault, tests in rows.items() if not tests.strip()}
    assert elsewhere == {"S10", "S11", "S12", "S15", "S16"}
