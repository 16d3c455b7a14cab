"""The check of links in the documentation."""

from pathlib import Path

import pytest

from tools.check_docs import anchors, links, problems, slug


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "there.md").write_text("# One idea\n\n## One idea\n\n## `interlace demo`, *fast*\n")
    return tmp_path


def check(root: Path, text: str) -> list[str]:
    page = root / "README.md"
    page.write_text(text)
    return list(problems(page, root))


@pytest.mark.parametrize(
    "text",
    [
        "[a](docs/there.md)", "[a](docs/there.md#one-idea-1)", "[a](docs/there.md#interlace-demo-fast)", "[a](docs)",
        "[a](https://example.com/x)", "[a](mailto:a@example.com)", '![a](docs/there.md "title")',
        "# Here\n[a](#here)", "`[a](nowhere.md)`", "```\n[a](nowhere.md)\n```", "[a]: docs/there.md",
    ],
)  # fmt: skip
def test_links_that_lead_somewhere_pass(root: Path, text: str) -> None:
    assert check(root, text) == []


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("[a](docs/gone.md)", "leads to nothing"),
        ("![a](gone.svg)", "leads to nothing"),
        ('<img src="gone.svg">', "leads to nothing"),
        ("[a]: gone.md", "leads to nothing"),
        ("[a](docs/there.md#two)", "names no heading of docs/there.md"),
        ("[a](#gone)", "names no heading of README.md"),
        ("[a](/docs/there.md)", "is absolute"),
        ("[a](../outside.md)", "leads out of the repository"),
        ("see /home/somebody/notes", "is a path of one machine"),
    ],
)
def test_each_broken_link_is_one_sentence(root: Path, text: str, complaint: str) -> None:
    found = check(root, text)
    assert len(found) == 1
    assert found[0].startswith("README.md: ")
    assert complaint in found[0]


def test_a_link_behind_a_code_block_is_still_seen(root: Path) -> None:
    assert list(links("```sh\n[a](b)\n```\n\n[c](d)\n\n```\nx\n```\n")) == ["d"]


def test_anchors_follow_githubs_rules() -> None:
    assert slug("What `imex-host` does: *all* of it") == "what-imex-host-does-all-of-it"
    assert slug("[Linked](x.md) heading") == "linked-heading"
    assert anchors("# A\n# A\n```\n# not\n```\n<a id='own'></a>") == {"a", "a-1", "own"}
