"""Pods and texts of any shape: the answer is an injection or a sentence, never a crash."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from interlace.fabric.family import families, find
from interlace.pods.bundle import inject_text, text_of
from interlace.pods.errors import InjectError
from interlace.pods.inject import inject
from interlace.pods.workloads import Options
from tests.unit.pods.pods import MACHINE, container, pod
from tools.examples import ROOT

Path = tuple[str | int, ...]
ODD: list[Any] = [
    None, 1, 1.5, True, "", [], {}, "x", [1], {"a": 1}, [None], [[]], {"name": None}, [{"name": "x"}], [{}], "8",
    [{"name": 1}], [{"key": "a", "operator": "In"}], [{"matchExpressions": [{}]}],
]  # fmt: skip
TEXT = (ROOT / "a3-high" / "bare" / "job.yaml").read_text(encoding="utf-8")
MARKS = [*"{}[]:,-#&*!|>'\"%@`\t\n \\?~\r\x00", "---\n", "\n  ", "- ", "<<: ", "*a", "&a ", "é", "\u2028"]


def places(value: Any, path: Path = ()) -> Iterator[Path]:
    """All paths of a value but its own."""
    for key, each in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        yield (*path, key)
        yield from places(each, (*path, key))


@given(st.sampled_from([family.id for family in families()]), st.booleans(), st.data())
@settings(max_examples=80, deadline=None)
def test_a_pod_of_any_shape_is_injected_or_refused(name: str, injected: bool, data: st.DataObject) -> None:
    family = find(name)
    selector = {MACHINE: family.machines[0]} if family.machines else {}
    before = pod(container(gpus=family.node.gpus), labels={"interlace.dev/channel": "c"}, nodeSelector=selector)
    odd = copy.deepcopy(inject(before, family=family).pod if injected else before)
    for path in data.draw(st.lists(st.sampled_from(list(places(odd))), min_size=1, max_size=3)):
        value = odd
        try:
            for key in path[:-1]:
                value = value[key]  # type: ignore[index]
            value[path[-1]] = copy.deepcopy(data.draw(st.sampled_from(ODD)))  # type: ignore[index]
        except (KeyError, IndexError, TypeError):
            continue  # an earlier change took this place away
    try:
        done = inject(odd, family=family)
    except InjectError:
        return
    assert inject(done.pod, family=family).pod == done.pod


@given(st.lists(st.tuples(st.integers(0, len(TEXT)), st.integers(0, 8), st.sampled_from(["", *MARKS])), max_size=3))
@settings(max_examples=40, deadline=None)
def test_a_text_of_any_shape_is_injected_or_refused(changes: list[tuple[int, int, str]]) -> None:
    text = TEXT
    for at, gone, new in changes:
        text = text[:at] + new + text[at + gone :]
    outcomes = inject_text(text, options=Options())
    assert all((outcome.refusal is None) == (outcome.result != "refused") for outcome in outcomes)
    made = text_of(outcomes)
    assert text_of(inject_text(made, options=Options())) == made
