"""Logs as collectors give them back: entries of Cloud Logging, Docker's json-file, and everything newest first."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from interlace.fabric.family import find
from interlace.verify.envelope import unwrapped
from interlace.verify.events import LogEvent
from interlace.verify.judgement import judge
from interlace.verify.reader import read, read_text
from interlace.verify.run import Run, document
from tests.unit.verify.scenes import HEALTHY, said, table, with_lines

LINES = with_lines(table(HEALTHY), said())


def entry(line: str, *, number: int) -> dict[str, Any]:
    """As Cloud Logging has a line of a container."""
    return {
        "insertId": f"{number:x}",
        "labels": {"compute.googleapis.com/resource_name": "gke-a3-0", "k8s-pod/job-name": "nccl"},
        "logName": "projects/p/logs/stdout",
        "resource": {"labels": {"container_name": "test", "pod_name": "nccl-0"}, "type": "k8s_container"},
        "severity": "INFO",
        "textPayload": line,
        "timestamp": f"2026-11-30T08:46:49.{number:09d}Z",
    }


def entries(lines: Sequence[str]) -> str:
    """``gcloud logging read --format=json``."""
    return json.dumps([entry(line, number=number) for number, line in enumerate(lines)], indent=2) + "\n"


def one_a_line(lines: Sequence[str]) -> str:
    return "".join(json.dumps(entry(line, number=number)) + "\n" for number, line in enumerate(lines))


def docker(lines: Sequence[str]) -> str:
    return "".join(json.dumps({"log": line + "\n", "stream": "stdout", "time": "x"}) + "\n" for line in lines)


FORMS = {"a list of entries": entries, "an entry a line": one_a_line, "json-file": docker}


def heard(text: str) -> tuple[list[Run], list[LogEvent]]:
    events: list[LogEvent] = []
    return read_text(text, events=events.append), events


@pytest.mark.parametrize("name", FORMS)
def test_a_log_in_envelopes_is_judged_like_the_log(name: str) -> None:
    (bare,), told = heard("\n".join(LINES) + "\n")
    (run,), events = heard(FORMS[name](LINES))
    assert document(run) == document(bare)
    assert [each.text for each in events if each.level] == [each.text for each in told if each.level]
    judged, own = judge([run], events, family=find("a3-mega")), judge([bare], told, family=find("a3-mega"))
    assert (judged.verdict, judged.cause) == (own.verdict, own.cause) == ("pass", own.cause)


@pytest.mark.parametrize("name", FORMS)
@pytest.mark.parametrize("size", [1, 61, 1000])
def test_envelopes_may_be_cut_anywhere(name: str, size: int) -> None:
    text = FORMS[name](LINES).encode()
    (run,) = read([text[at : at + size] for at in range(0, len(text), size)])
    assert document(run) == document(read_text("\n".join(LINES) + "\n")[0])


@pytest.mark.parametrize("form", [*FORMS.values(), lambda lines: "\n".join(lines) + "\n"])
def test_a_log_that_comes_newest_first_is_said_to(form: Callable[[Sequence[str]], str]) -> None:
    runs, events = heard(form(LINES[::-1]))
    assert any("newest first" in warning for run in runs for warning in run.warnings)
    judgement = judge(runs, events, family=find("a3-mega"))
    assert judgement.verdict == "cannot tell"
    assert judgement.cause.endswith("the lines of the log come newest first")
    assert "--order=asc" in judgement.remedy


@settings(max_examples=200, deadline=None)
@given(st.lists(st.text(st.characters(blacklist_characters="\n"), max_size=30), max_size=8))
def test_what_is_in_no_envelope_stays_and_no_line_is_lost(lines: list[str]) -> None:
    text = "\n".join(lines).encode("utf-8", "surrogatepass")
    assert unwrapped(text) == text or b'"textPayload"' in text or b'{"log":' in text
    wrapped_too = text + b'\n{"textPayload": "x"}'
    assert unwrapped(wrapped_too).count(b"\n") == wrapped_too.count(b"\n")
    assert unwrapped(wrapped_too).endswith(b"\nx")
