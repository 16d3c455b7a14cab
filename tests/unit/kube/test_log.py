from __future__ import annotations

import io
import json
import logging
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlace.kube.log import configure, get_logger


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    root, ours = logging.getLogger(), logging.getLogger("interlace")
    before = root.handlers, root.level, ours.level
    yield
    root.handlers = before[0]
    root.setLevel(before[1])
    ours.setLevel(before[2])


def lines(capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    out, err = capsys.readouterr()
    assert not out
    return [json.loads(line) for line in err.splitlines()]


def test_an_event_is_one_json_line_with_its_fields(capsys: pytest.CaptureFixture[str]) -> None:
    configure("info", json=True)
    get_logger("interlace.node.plugin").info("claim done", claim="a/b", devices=2, path=Path("/x"))
    (line,) = lines(capsys)
    assert line.pop("timestamp").endswith("Z")
    assert line == {
        "level": "info",
        "logger": "interlace.node.plugin",
        "event": "claim done",
        "claim": "a/b",
        "devices": 2,
        "path": "/x",
    }


def test_bound_fields_come_with_every_event_and_yield_to_its_own(capsys: pytest.CaptureFixture[str]) -> None:
    configure("info", json=True)
    log = get_logger("interlace.x")
    bound = log.bind(queue="q", key="k")
    bound.warning("one")
    bound.warning("two", key="other")
    log.warning("three")
    assert [(line.get("queue"), line.get("key")) for line in lines(capsys)] == [
        ("q", "k"),
        ("q", "other"),
        (None, None),
    ]


def test_a_field_does_not_hide_what_every_line_has(capsys: pytest.CaptureFixture[str]) -> None:
    configure("info", json=True)
    get_logger("interlace.x").info("one", event="two", level="none", logger="l", name="n", message="m", args=1)
    (line,) = lines(capsys)
    assert (line["event"], line["level"], line["logger"]) == ("one", "info", "interlace.x")
    assert (line["name"], line["message"], line["args"]) == ("n", "m", 1)


def test_an_exception_brings_its_traceback_on_the_same_line(capsys: pytest.CaptureFixture[str]) -> None:
    configure("info", json=True)
    log = get_logger("interlace.x")
    try:
        raise RuntimeError("why")
    except RuntimeError as error:
        log.exception("handled")
        kept = error
    log.error("later", exc_info=kept)
    first, second = lines(capsys)
    assert "RuntimeError: why" in first["exception"]
    assert "RuntimeError: why" in second["exception"]


def test_libraries_write_in_the_same_format_from_warning_on(capsys: pytest.CaptureFixture[str]) -> None:
    configure("info", json=True)
    logging.getLogger("aiohttp.client").info("chatter")
    logging.getLogger("aiohttp.client").warning("%d left", 3)
    assert [(line["logger"], line["event"]) for line in lines(capsys)] == [("aiohttp.client", "3 left")]


@pytest.mark.parametrize(
    ("level", "ours", "theirs"),
    [
        ("debug", ["debug", "info", "warning", "error"], ["debug", "info", "warning", "error"]),
        ("info", ["info", "warning", "error"], ["warning", "error"]),
        ("error", ["error"], ["error"]),
    ],
)
def test_the_level_holds_for_our_loggers_whatever_their_name(
    capsys: pytest.CaptureFixture[str], level: str, ours: list[str], theirs: list[str]
) -> None:
    configure(level, json=True)
    log, library = get_logger("simulated-kubelet"), logging.getLogger("grpclib")
    for name in ("debug", "info", "warning", "error"):
        getattr(log, name)("ours")
        getattr(library, name)("theirs")
    written = lines(capsys)
    assert [line["level"] for line in written if line["event"] == "ours"] == ours
    assert [line["level"] for line in written if line["event"] == "theirs"] == theirs


def test_an_unknown_level_is_refused_with_the_known_ones() -> None:
    with pytest.raises(ValueError, match="'loud' is not one of debug, info, warning, error"):
        configure("loud", json=True)


def test_text_quotes_values_that_are_not_one_word(capsys: pytest.CaptureFixture[str]) -> None:
    configure("info", json=False)
    get_logger("interlace.x").info("done", claim="a/b", cause="no such file\n", empty="", count=3)
    assert (
        capsys.readouterr().err.rstrip("\n").endswith(r"info    done claim=a/b cause='no such file\n' empty='' count=3")
    )


@pytest.mark.parametrize("quiet", [False, True])
def test_text_has_colours_on_a_terminal_unless_it_shall_not(monkeypatch: pytest.MonkeyPatch, *, quiet: bool) -> None:
    made = Terminal()
    monkeypatch.setattr(sys, "stderr", made)
    monkeypatch.setenv("NO_COLOR", "1" if quiet else "")
    configure("info", json=False)
    get_logger("interlace.x").warning("careful")
    assert ("\x1b[33mwarning\x1b[0m" in made.getvalue()) is not quiet


@given(
    event=st.text(), fields=st.dictionaries(st.text(), st.one_of(st.text(), st.integers(-9, 9), st.none(), st.binary()))
)
def test_whatever_is_logged_stays_one_line_that_json_reads(event: str, fields: dict[str, Any]) -> None:
    made = io.StringIO()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "stderr", made)
        configure("info", json=True)
        get_logger("interlace.x").bind(**fields).info(event)
    assert json.loads(made.getvalue())["event"] == event
    assert made.getvalue().count("\n") == 1
