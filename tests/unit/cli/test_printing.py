from __future__ import annotations

import io
from datetime import UTC, datetime

import pytest
from rich.text import Text

from interlace.cli.printing import age, columns, console_on, echo

NOW = datetime(2026, 1, 10, tzinfo=UTC)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("stamp", "shown"),
    [
        (None, "-"),
        ("2026-01-10T00:00:00Z", "0s"),
        ("2026-01-10T00:00:09Z", "0s"),
        ("2026-01-09T23:58:01Z", "119s"),
        ("2026-01-09T23:58:00Z", "2m"),
        ("2026-01-09T22:00:00.123456Z", "119m"),
        ("2026-01-09T22:00:00Z", "2h"),
        ("2026-01-01T00:00:00Z", "9d"),
    ],
)
def test_ages_are_written_as_kubectl_writes_them(stamp: str | None, shown: str) -> None:
    assert age(stamp, now=NOW) == shown


@pytest.mark.parametrize("force", ["FORCE_COLOR", "TTY_COMPATIBLE"])
def test_a_file_gets_whole_plain_lines_whatever_the_environment_says(
    monkeypatch: pytest.MonkeyPatch, force: str
) -> None:
    monkeypatch.setenv(force, "1")
    monkeypatch.setenv("COLUMNS", "20")
    file = io.StringIO()
    grid = columns("NAME", "MESSAGE")
    grid.add_row(Text("a", "red"), "word " * 30)
    echo(grid, stream=file)
    assert file.getvalue() == "NAME  MESSAGE\na     " + " ".join(["word"] * 30) + "\n"


def test_no_color_leaves_the_terminal_without_colour(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("NO_COLOR", "1")
    screen = Terminal()
    echo(Text("warm", "red"), stream=screen)
    assert "\x1b[31m" not in screen.getvalue()
    monkeypatch.delenv("NO_COLOR")
    screen = Terminal()
    echo(Text("warm", "red"), stream=screen)
    assert "\x1b[31m" in screen.getvalue()


def test_a_dumb_terminal_is_no_place_for_a_picture(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "dumb")
    assert not console_on(Terminal()).is_terminal
    monkeypatch.setenv("TERM", "xterm")
    assert console_on(Terminal()).is_terminal
