"""Bad cluster files: each fault has file, line, column, pointer, value, cause and remedy."""

from __future__ import annotations

import copy
import io
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from interlace.gke.errors import Refused, SpecError, SpecErrors
from interlace.gke.reading import parse, read
from tests.unit.gke.spec.clusters import CALM, document, text

GOOD = """\
apiVersion: interlace.dev/v1alpha1
kind: FabricCluster
metadata:
  name: train
spec:
  project: my-project
  location: us-central1-a
  family: a3-mega
  pools:
  - name: gpu
    nodes: 2
"""


def faults(source: str | bytes) -> tuple[SpecError, ...]:
    """What is wrong with a file."""
    with pytest.raises(SpecErrors) as caught:
        parse(source, file="cluster.yaml")
    return caught.value.errors


def fault(source: str | bytes) -> SpecError:
    """The one thing that is wrong with a file."""
    (only,) = faults(source)
    return only


def changed(before: str, after: str) -> str:
    """The good file with one change."""
    assert GOOD.count(before) == 1
    return GOOD.replace(before, after)


@pytest.mark.parametrize(
    ("source", "place", "pointer", "says"),
    [
        (changed("  project: my", "  projct: my"), (5, 1), "/spec/project", "missing"),
        (changed("  location: us-central1-a\n", ""), (5, 1), "/spec/location", "Zone or region"),
        (changed("us-central1-a", "central"), (7, 13), "/spec/location", "neither a zone nor a region"),
        (changed("a3-mega", "a3-maga"), (8, 11), "/spec/family", "unknown hardware family 'a3-maga'"),
        (changed("a3-mega", "a3-highgpu-1g"), (8, 11), "/spec/family", "needs all 8 GPUs"),
        (changed("a3-mega", "gb200-nvl72"), (8, 11), "/spec/family", "GKE has no machines"),
        (changed("nodes: 2", "nodes: two"), (11, 12), "/spec/pools/0/nodes", "must be a whole number"),
        (changed("nodes: 2", "nodes: -1"), (11, 12), "/spec/pools/0/nodes", "0 to 15000"),
        (changed("nodes: 2", "nodes: true"), (11, 12), "/spec/pools/0/nodes", "true or false"),
        (changed("nodes: 2", "nodes:"), (11, 11), "/spec/pools/0/nodes", "no value"),
        (changed("name: train", "name: Train"), (4, 9), "/metadata/name", "lower-case"),
        (changed("name: train", f"name: {'a' * 41}"), (4, 9), "/metadata/name", "41 characters"),
        (changed("name: train", 'name: "train\\n"'), (4, 9), "/metadata/name", "lower-case"),
        (changed("my-project", "PROJECT_ID"), (6, 12), "/spec/project", "6 to 30"),
        (changed("FabricCluster", "Cluster"), (2, 7), "/kind", "must be FabricCluster"),
        (changed("  pools:", "  version: 1.30\n  pools:"), (9, 12), "/spec/version", "put it in quotes"),
        (changed("  pools:", "  network: {mtu: 9000}\n  pools:"), (9, 18), "/spec/network/mtu", "1300 to 8896"),
        (changed("  pools:", "  network: [1]\n  pools:"), (9, 12), "/spec/network", "must be a mapping"),
        (
            changed("  pools:", "  network:\n    nics: [{}, {}, {}, {}, {}, {}, {}]\n  pools:"),
            (10, 11),
            "/spec/network/nics",
            "a3-mega needs 8 networks, and 7 are listed",
        ),
        (
            changed("  pools:", "  network: {mode: managed}\n  pools:"),
            (9, 19),
            "/spec/network/mode",
            "cannot have networks managed by GKE",
        ),
        (
            changed("  pools:", "  primary: {pods: 192.169.0.0/16}\n  pools:"),
            (9, 19),
            "/spec/primary/pods",
            "this range is public",
        ),
        (
            changed("  pools:", "  primary: {pods: 10.4.0.0/14, services: 10.5.0.0/20}\n  pools:"),
            (9, 19),
            "/spec/primary/pods",
            "overlaps 10.5.0.0/20 of /spec/primary/services",
        ),
        (
            changed("  pools:", "  network: {range: 10.4.0.0/16}\n  primary: {pods: 10.4.0.0/14}\n  pools:"),
            (10, 12),
            "/spec/primary/range",
            "no free range of size /24",
        ),
    ],
)
def test_a_fault_is_named_with_its_place(source: str, place: tuple[int, int], pointer: str, says: str) -> None:
    found = next(each for each in faults(source) if each.pointer == pointer)
    assert (found.file, found.line, found.column) == ("cluster.yaml", *place)
    assert says in str(found)
    assert str(found).startswith(f"cluster.yaml:{place[0]}:{place[1]}: {pointer}")


@pytest.mark.parametrize(
    ("wrong", "near"),
    [
        ("projct", "project"),
        ("nodelocations", "nodeLocations"),
        ("node_locations", "nodeLocations"),
        ("netwrok", "network"),
    ],
)
def test_an_unknown_key_is_named_with_the_nearest_known_one(wrong: str, near: str) -> None:
    found = fault(changed("  pools:", f"  {wrong}: x\n  pools:"))
    assert (found.line, found.column, found.pointer) == (9, 3, f"/spec/{wrong}")
    assert found.remedy == f"did you mean {near!r}?"


def test_a_key_that_is_like_no_other_is_named_with_all_that_are_known() -> None:
    found = fault(changed("    nodes: 2", "    nodes: 2\n    gpuSharing: {}"))
    assert found.pointer == "/spec/pools/0/gpuSharing"
    assert "hostMaintenance" in found.cause


def test_all_faults_come_at_once_in_the_order_of_the_file() -> None:
    source = changed("name: train", "name: Train").replace("nodes: 2", "nodes: x").replace("a3-mega", "1")
    assert [each.pointer for each in faults(source)] == ["/metadata/name", "/spec/family", "/spec/pools/0/nodes"]
    lines = [(each.line, each.column) for each in faults(source)]
    assert lines == sorted(lines)


@pytest.mark.parametrize(
    ("source", "line", "says"),
    [
        ("", 1, "empty"),
        ("# nothing\n", 1, "empty"),
        ("a: [1\nb: 2\n", 2, "no YAML"),
        ("a: 1\na: 2\n", 2, "second time"),
        ("[1]: 2\n", 1, "a key must be text"),
        ("a: !!python/object:os.system x\n", 1, "not taken"),
        ("a: &x {b: 1}\nc: {<<: *x}\n", 2, "merge keys"),
        ("a: 1\n---\nb: 2\n", 2, "a second document begins here"),
        ("a: &x [*x]\n", 1, "nested too deep"),
        ("a: " + "[" * 40 + "]" * 40 + "\n", 1, "nested too deep"),
        ("kind: \x07\n", 1, "no YAML"),
        ("just text\n", 1, "must be a mapping"),
        (b"kind: \xff\n", 1, "UTF-8"),
    ],
)
def test_what_is_no_such_document_is_refused_with_its_line(source: str | bytes, line: int, says: str) -> None:
    found = faults(source)[0]
    assert found.line == line
    assert says in str(found)


def test_values_that_repeat_without_end_are_refused() -> None:
    bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n" + "".join(
        f"a{level}: &a{level} [{', '.join([f'*a{level - 1}'] * 9)}]\n" for level in range(1, 9)
    )
    assert "repeated too often" in fault(bomb).what


def test_a_file_that_is_too_long_is_refused() -> None:
    assert "too long" in fault("# " + "x" * (1 << 20)).what


def test_a_file_that_is_not_there_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(Refused, match=r"nowhere\.yaml cannot be read\. No such file"):
        read(tmp_path / "nowhere.yaml")


def test_a_folder_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(Refused, match="cannot be read"):
        read(tmp_path)


def test_a_dash_is_stdin(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(GOOD.encode())))
    assert read("-").cluster.name == "train"


def test_a_byte_order_mark_and_line_ends_of_windows_do_no_harm() -> None:
    assert parse(b"\xef\xbb\xbf" + GOOD.replace("\n", "\r\n").encode()).cluster.name == "train"


def test_a_document_tells_where_a_pointer_leads() -> None:
    found = parse(GOOD, file="cluster.yaml")
    assert (found.place("/spec/pools/0/nodes").line, found.place("/spec/pools/0/nodes").column) == (11, 12)
    assert found.place("/spec/network/mtu").line == 5
    error = found.error("too old", pointer="/spec/version")
    assert (error.file, error.line) == ("cluster.yaml", 5)


def _outcome(source: str) -> tuple[SpecError, ...]:
    """What is wrong with a file; nothing if it is taken."""
    try:
        parse(source, file="x")
    except SpecErrors as errors:
        return errors.errors
    return ()


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 70000) | st.floats(allow_nan=False) | st.text(max_size=12),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=8,
)


def _paths(value: Any, at: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    found = [at]
    if isinstance(value, dict):
        for key, each in value.items():
            found += _paths(each, (*at, key))
    elif isinstance(value, list):
        for index, each in enumerate(value):
            found += _paths(each, (*at, index))
    return found


FULL = document(
    nodeLocations=["us-central1-a"],
    version="1.32.11-gke.1174000",
    upgrades={"channel": "regular", "hold": {"start": "2026-12-01T00:00:00Z"}},
    network={"mode": "multinet", "mtu": 8244, "range": "192.168.0.0/16", "avoid": ["10.0.0.0/9"], "nics": [{}] * 8},
    primary={"range": "172.16.0.0/24", "pods": "10.128.0.0/14"},
    controlPlane={"privateNodes": True, "authorizedNetworks": ["203.0.113.0/24"]},
    pools=[
        {
            "name": "gpu",
            "nodes": 2,
            "reservation": {"name": "mine", "block": "b1"},
            "placement": {},
            "labels": {"team": "ml"},
            "taints": [{"key": "dedicated", "value": "gpu"}],
            "autoscaling": {"min": 0, "max": 4},
        }
    ],
)


@given(where=st.sampled_from(_paths(FULL)[1:]), value=VALUES)
@settings(CALM, max_examples=150)
def test_any_value_anywhere_is_taken_or_refused_with_a_place(where: tuple[Any, ...], value: Any) -> None:
    broken = copy.deepcopy(FULL)
    inner: Any = broken
    for step in where[:-1]:
        inner = inner[step]
    inner[where[-1]] = value
    for each in _outcome(text(broken)):
        assert (each.file, each.line > 0, each.column > 0) == ("x", True, True)


@given(source=st.text(max_size=200) | st.binary(max_size=200))
@settings(CALM, max_examples=100)
def test_no_text_at_all_ends_in_anything_but_a_refusal(source: str | bytes) -> None:
    with pytest.raises(SpecErrors):
        parse(source)
