"""The check that pyproject.toml, the lock and the table of reasons agree."""

from typing import Any

from tools.check_lock import lock_problems, pins, row_problems, step_problems

LOCK = """\
aiohttp==3.14.5 \\
    --hash=sha256:00 \\
    --hash=sha256:11
colorama==0.4.6 ; sys_platform == 'win32' \\
    --hash=sha256:22
hatchling==1.33.0 \\
    --hash=sha256:33
Typing_Extensions==4.16.0 \\
    --hash=sha256:44
"""


def project(*dependencies: str, extra: str = "typing-extensions>=4") -> dict[str, Any]:
    return {
        "project": {"dependencies": list(dependencies), "optional-dependencies": {"sim": [extra]}},
        "dependency-groups": {"dev": [{"include-group": "other"}, "hatchling"]},
        "build-system": {"requires": ["hatchling"]},
    }


def test_pins_carry_versions_and_hashes_under_normal_names() -> None:
    assert {name: [(str(version), hashes) for version, hashes in found] for name, found in pins(LOCK).items()} == {
        "aiohttp": [("3.14.5", 2)],
        "colorama": [("0.4.6", 1)],
        "hatchling": [("1.33.0", 1)],
        "typing-extensions": [("4.16.0", 1)],
    }


def test_a_lock_in_step_has_no_problems() -> None:
    assert list(lock_problems("dev.txt", LOCK)) == []
    assert list(step_problems("dev.txt", LOCK, project("aiohttp>=3.14,<4"))) == []


def test_a_place_to_download_from_is_refused() -> None:
    for line in ("--index-url foo", "-i foo", "x @ https://example.com/x.whl"):
        assert list(lock_problems("dev.txt", LOCK + line)) == [
            "dev.txt:10: names a place to download from; run `make lock`"
        ]


def test_a_pin_without_a_hash_is_named() -> None:
    assert list(lock_problems("dev.txt", LOCK + "bare==1.0\n")) == ["dev.txt: bare==1.0 has no hash; run `make lock`"]


def test_a_requirement_that_is_not_pinned_is_named() -> None:
    assert list(step_problems("dev.txt", LOCK, project("rich>=14"))) == [
        "dev.txt: rich of dependencies is not pinned; run `make lock`"
    ]


def test_a_pin_outside_its_range_is_named() -> None:
    assert list(step_problems("dev.txt", LOCK, project(extra="typing-extensions>=5"))) == [
        (
            "dev.txt: pins typing-extensions==4.16.0, optional-dependencies.sim asks for typing-extensions>=5; "
            "run `make lock`"
        )
    ]


def test_every_dependency_has_a_row_and_every_row_a_dependency() -> None:
    page = "| package | MB |\n| --- | --: |\n| `typing_extensions` | 1 |\n| hatchling | 1 |\n| gone | 1 |\n"
    assert list(row_problems(page, project("aiohttp"))) == [
        "docs/dependencies.md: aiohttp is a dependency without a row; say what it is for and what it weighs",
        "docs/dependencies.md: gone has a row and is no dependency; remove the row",
    ]
