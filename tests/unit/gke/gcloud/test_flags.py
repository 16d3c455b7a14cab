"""Every flag that gcloud takes alone, against what gcloud 528 was recorded to send for it.

A recorded command is either read as exactly the recorded request or refused; what is refused names a flag of it.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from interlace.gke.bodies.scopes import DEFAULT
from interlace.gke.errors import Refused
from interlace.gke.gcloud.interpreting import CREATES
from interlace.gke.importing import requests

DATA = Path(__file__).parents[3] / "data" / "gke" / "flags-recorded.json"
CASES: list[dict[str, Any]] = json.loads(DATA.read_text())["cases"]


def of(command: str) -> Iterator[dict[str, Any]]:
    words = command.split()
    for case in CASES:
        argv = [word for word in case["argv"][1:] if word not in {"beta", "alpha"} and not word.startswith("-")]
        if argv[: len(words)] == words:
            yield case


@pytest.mark.parametrize("command", sorted(CREATES))
def test_a_flag_means_what_gcloud_sends_or_is_refused(command: str) -> None:
    equal, refused = 0, []
    for case in of(command):
        text = " ".join(shlex.quote(word) for word in case["argv"])
        try:
            found, _ = requests(text, project="example-project")
        except Refused as error:
            refused.append((case["argv"], str(error)))
            continue
        assert [msgspec.to_builtins(each) for each in found] == written_out(case["requests"]), text
        equal += 1
    assert equal > 2 * len(refused)
    assert all(_names_a_word(*each) for each in refused)


def _names_a_word(argv: list[str], error: str) -> bool:
    """Whether the refusal names a flag, a value or a name of the command."""
    return any(part in error for word in argv[3:] for part in word.split("=") if part)


def written_out(value: Any) -> Any:
    """The recorded requests with what the file shortens: default scopes, and the query that all have."""
    if isinstance(value, list):
        return [written_out(each) for each in value]
    if not isinstance(value, dict):
        return value
    more = {"query": {"alt": "json"}} if "method" in value else {}
    return more | {
        key: list(DEFAULT) if (key, each) == ("oauthScopes", "gke-default") else written_out(each)
        for key, each in value.items()
    }
