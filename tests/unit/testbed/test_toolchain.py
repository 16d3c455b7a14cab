"""Which Go builds the programs."""

from pathlib import Path

import pytest

from testbed import toolchain
from testbed.errors import BedError
from tests.unit.testbed.conftest import FakeGo


def place_wheel(cache: Path) -> Path:
    go = toolchain.wheel_folder(cache) / "go" / "bin" / "go"
    go.parent.mkdir(parents=True)
    go.write_text("#!/bin/sh\necho go version go1.26.6 linux/amd64\n")
    go.chmod(0o755)
    return go


async def test_a_new_enough_go_on_path_is_used(fake_go: FakeGo, tmp_path: Path) -> None:
    place_wheel(tmp_path)
    found = await toolchain.find(tmp_path)
    assert found == toolchain.Toolchain(go=fake_go.folder / "bin" / "go", version="go1.26.8 linux/amd64")


async def test_an_older_go_on_path_gives_way_to_the_wheel(fake_go: FakeGo, tmp_path: Path) -> None:
    fake_go.install(version="go1.25.9")
    assert await toolchain.find(tmp_path) is None
    go = place_wheel(tmp_path)
    assert await toolchain.find(tmp_path) == toolchain.Toolchain(go=go, version="go1.26.6 linux/amd64")


async def test_a_go_that_does_not_start_is_named(fake_go: FakeGo, tmp_path: Path) -> None:
    (fake_go.folder / "bin" / "go").write_text("#!/bin/sh\necho broken >&2; exit 3\n")
    with pytest.raises(BedError, match=r"/bin/go version` failed: broken"):
        await toolchain.find(tmp_path)


@pytest.mark.parametrize(
    ("text", "release"),
    [("go version go1.26.8 linux/amd64\n", (1, 26)), ("go version go1.27rc1 linux/arm64", (1, 27))],
)
def test_releases_are_read_from_what_go_says(text: str, release: tuple[int, int]) -> None:
    assert toolchain.parse_version(text)[1] == release


def test_a_go_without_a_release_is_refused() -> None:
    with pytest.raises(BedError, match="names no release"):
        toolchain.parse_version("go version devel +abc linux/amd64")


def test_the_wheel_is_pinned_to_a_release_that_is_new_enough() -> None:
    major, minor, _ = toolchain.wheel_version().split(".")
    assert (int(major), int(minor)) >= toolchain.MINIMUM
