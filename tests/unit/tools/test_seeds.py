"""Manifests out of a page that has lost its line breaks."""

from __future__ import annotations

import pytest

from tools.seeds import restore

SHAPE = "kind: A\nspec:\n  size: 2\n"


def test_line_breaks_come_back_and_comments_between_are_skipped() -> None:
    assert restore("before kind:Aspec:# how largesize:2after", SHAPE) == SHAPE


def test_a_value_that_differs_is_named() -> None:
    with pytest.raises(ValueError, match="size:2"):
        restore("kind:Aspec:size:3", SHAPE)


def test_a_page_without_the_manifest_says_so() -> None:
    with pytest.raises(ValueError, match="holds no manifest"):
        restore("nothing here", SHAPE)
