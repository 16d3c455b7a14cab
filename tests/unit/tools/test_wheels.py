"""What the image installs is there in compiled form for both architectures; asks nobody."""

from __future__ import annotations

import pytest
from packaging.version import Version

from tools.wheels import (
    ARCHITECTURES,
    DOCKERFILE,
    LOCK,
    TABLE,
    Pin,
    Wheel,
    image_python,
    pins,
    problems,
    read,
    render,
)

LOCKED = """\
aiohttp==3.14.5 \\
    --hash=sha256:aa \\
    --hash=sha256:bb
click==8.2.1
    --hash=sha256:cc
old-thing==1.0 ; python_full_version < '3.12' \\
    --hash=sha256:dd
"""
PYTHON = (3, 13)


def wheels(**changed: str) -> dict[str, dict[str, Wheel]]:
    """A table that is right, with other files for the packages named."""
    files = {
        architecture: {
            "aiohttp": Wheel(file=f"aiohttp-3.14.5-cp313-cp313-manylinux_2_28_{architecture}.whl", sha256="aa"),
            "click": Wheel(file="click-8.2.1-py3-none-any.whl", sha256="cc"),
        }
        for architecture in ARCHITECTURES
    }
    for name, file in changed.items():
        files["aarch64"][name] = Wheel(file=file, sha256=files["aarch64"][name].sha256)
    return files


def test_every_locked_package_has_a_wheel_for_the_image_on_both_architectures() -> None:
    table = read(TABLE.read_text())
    assert set(table) == {"x86_64", "aarch64"}
    assert list(problems(pins(LOCK.read_text()), table, python=image_python(DOCKERFILE.read_text()))) == []
    # What runs on nodes is among them.
    assert {"aiohttp", "grpclib", "msgspec", "protobuf", "pyyaml", "cryptography"} <= set(table["aarch64"])


def test_a_lock_is_read_with_its_markers_and_hashes() -> None:
    assert pins(LOCKED) == [
        Pin(name="aiohttp", version=Version("3.14.5"), marker="", hashes=frozenset({"aa", "bb"})),
        Pin(name="click", version=Version("8.2.1"), marker="", hashes=frozenset({"cc"})),
        Pin(name="old-thing", version=Version("1.0"), marker="python_full_version < '3.12'", hashes=frozenset({"dd"})),
    ]
    lines = [line for line in LOCK.read_text().splitlines() if line[:1].isalnum()]
    assert len(pins(LOCK.read_text())) == len(lines)


def test_what_is_right_is_not_complained_about_and_survives_the_file() -> None:
    assert list(problems(pins(LOCKED), wheels(), python=PYTHON)) == []
    assert read(render(wheels())) == wheels()


@pytest.mark.parametrize(
    ("name", "file", "words"),
    [
        ("aiohttp", "aiohttp-3.14.5-cp313-cp313-manylinux_2_28_x86_64.whl", "does not fit Python 3.13"),
        ("aiohttp", "aiohttp-3.14.5-cp311-cp311-manylinux_2_28_aarch64.whl", "does not fit Python 3.13"),
        ("aiohttp", "aiohttp-3.14.5-cp313-cp313-manylinux_2_39_aarch64.whl", "does not fit Python 3.13"),
        ("aiohttp", "aiohttp-3.14.5-cp313-cp313-musllinux_1_2_aarch64.whl", "does not fit Python 3.13"),
        ("aiohttp", "aiohttp-3.14.4-cp313-cp313-manylinux_2_28_aarch64.whl", "is not aiohttp 3.14.5"),
        ("click", "clock-8.2.1-py3-none-any.whl", "is not click 8.2.1"),
    ],
)
def test_a_file_that_the_image_cannot_use_is_named(name: str, file: str, words: str) -> None:
    (problem,) = problems(pins(LOCKED), wheels(**{name: file}), python=PYTHON)
    assert problem.startswith(f"aarch64: {file} ")
    assert words in problem


def test_missing_packages_others_and_other_hashes_are_named() -> None:
    table = wheels()
    table["aarch64"]["extra"] = table["aarch64"].pop("click")
    table["x86_64"]["click"] = Wheel(file="click-8.2.1-py3-none-any.whl", sha256="ee")
    assert list(problems(pins(LOCKED), table, python=PYTHON)) == [
        "x86_64: click-8.2.1-py3-none-any.whl has another hash than the lock",
        "aarch64: extra is not in the lock",
        "aarch64: click 8.2.1 has no wheel",
    ]


def test_an_image_of_another_kind_is_refused() -> None:
    assert image_python("ARG PYTHON=docker.io/library/python:3.14-slim-bookworm\n") == (3, 14)
    with pytest.raises(ValueError, match="names no image of Debian bookworm"):
        image_python("ARG PYTHON=docker.io/library/python:3.14-alpine\n")
