"""The slice belongs to its Node as the agent's token names it, and only while that Node lasts."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlace.kube.config import Config
from interlace.node.ownership import TRIAL, Ownership, owner_in


def token(private: Any) -> str:
    parts = ({"alg": "ES256"}, {"sub": "system:serviceaccount:interlace:agent", "kubernetes.io": private})
    head, claims = (base64.urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=").decode() for part in parts)
    return f"{head}.{claims}.c2lnbmF0dXJl"


def bound(uid: str, *, name: str = "tray-1") -> str:
    return token({"namespace": "interlace", "node": {"name": name, "uid": uid}, "pod": {"name": "p", "uid": "u"}})


def ownership(folder: Path, uid: str = "one") -> Ownership:
    (folder / "token").write_text(bound(uid))
    return Ownership(Config(server="https://127.0.0.1:1", token_file=folder / "token"), node="tray-1")


def uid_of(owner: Ownership) -> str | None:
    found = owner.reference()
    return None if found is None else found.uid


def lose_soon(owner: Ownership, *, now: float) -> None:
    owner.write(owner.reference(), now=now)
    owner.lose(now=now + 1)


def test_a_token_of_a_pod_names_the_node_that_it_runs_on() -> None:
    found = owner_in(bound("0a1b"), node="tray-1")
    assert found is not None
    assert (found.api_version, found.kind, found.name, found.uid) == ("v1", "Node", "tray-1", "0a1b")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "static-token",
        "a.b",
        "a.%%%.c",
        bound("x", name="another"),
        bound(""),
        token({"namespace": "interlace"}),
        token({"node": ["tray-1"]}),
        token(7),
    ],
)
def test_a_token_that_does_not_name_the_node_gives_no_owner(text: str) -> None:
    assert owner_in(text, node="tray-1") is None


@given(st.text())
def test_no_token_makes_the_reading_of_the_owner_fail(text: str) -> None:
    assert owner_in(text, node="tray-1") is None
    assert owner_in(f"a.{text}.c", node="tray-1") is None


def test_one_deletion_keeps_the_owner(tmp_path: Path) -> None:
    owner = ownership(tmp_path)
    lose_soon(owner, now=0)
    assert uid_of(owner) == "one"


def test_an_owner_whose_slice_goes_twice_at_once_is_gone(tmp_path: Path) -> None:
    owner = ownership(tmp_path)
    lose_soon(owner, now=0)
    lose_soon(owner, now=10)
    assert uid_of(owner) is None


def test_a_later_token_with_another_uid_gives_the_new_owner(tmp_path: Path) -> None:
    owner = ownership(tmp_path)
    lose_soon(owner, now=0)
    lose_soon(owner, now=10)
    (tmp_path / "token").write_text(bound("two"))
    assert uid_of(owner) == "two"


def test_deletions_of_slices_that_stood_for_long_say_nothing_about_the_owner(tmp_path: Path) -> None:
    owner = ownership(tmp_path)
    for start in (0.0, 1000.0, 2000.0):
        owner.write(owner.reference(), now=start)
        owner.lose(now=start + TRIAL + 1)
    assert uid_of(owner) == "one"


def test_a_token_file_that_cannot_be_read_gives_no_owner(tmp_path: Path) -> None:
    owner = ownership(tmp_path)
    (tmp_path / "token").unlink()
    assert uid_of(owner) is None
