"""A stand-in for Go: it records its calls and writes the program it was asked for."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

FAKE_GO = """#!/bin/sh
if [ "$1" = version ]; then echo "go version {version} linux/amd64"; exit; fi
while [ $# -gt 1 ]; do [ "$1" = -o ] && out=$2; shift; done
echo "$1 in $PWD" >> {calls}
{behave}
printf '#!/bin/sh\\nexec sleep 60\\n' > "$out"; chmod +x "$out"
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class FakeGo:
    """Put on PATH by ``install``."""

    folder: Path

    @property
    def calls(self) -> list[str]:
        """One line a build."""
        record = self.folder / "calls"
        return record.read_text().splitlines() if record.exists() else []

    def install(self, *, version: str = "go1.26.8", behave: str = "") -> None:
        """``behave`` is shell text that runs before the program is written."""
        script = self.folder / "bin" / "go"
        script.parent.mkdir(exist_ok=True)
        script.write_text(FAKE_GO.format(version=version, calls=self.folder / "calls", behave=behave))
        script.chmod(0o755)


@pytest.fixture
def fake_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeGo:
    folder = tmp_path / "fake-go"
    folder.mkdir()
    fake = FakeGo(folder=folder)
    fake.install()
    monkeypatch.setenv("PATH", f"{folder / 'bin'}:/usr/bin:/bin")
    return fake
