"""The page about rules says what the rules say."""

from __future__ import annotations

import pytest

from interlace.gke.rules.checking import ABOUT, RULES
from tools import rules_reference as tool


def test_the_committed_page_is_up_to_date(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.argv", ["rules_reference", "--check"])
    assert tool.main() == 0


def test_a_page_that_differs_is_told(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(tool, "HEAD", "# Other\n")
    monkeypatch.setattr("sys.argv", ["rules_reference", "--check"])
    assert tool.main() == 1
    assert "run python -m tools.rules_reference" in capsys.readouterr().out


def test_every_rule_is_on_the_page_once_with_cause_and_remedy() -> None:
    text = tool.page()
    assert {rule.id.partition(".")[0] for rule in RULES} == set(ABOUT)
    for rule in RULES:
        assert text.count(f"| `{rule.id}` |") == 1
        assert tool.sentence(rule.cause).replace("|", "\\|") in text
        assert tool.sentence(rule.remedy).replace("|", "\\|") in text
