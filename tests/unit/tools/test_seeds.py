"""Manifests and values out of pages."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools.seeds import compare, pod_spec, restore, values

SHAPE = "kind: A\nspec:\n  size: 2\n"


def test_line_breaks_come_back_and_comments_between_are_skipped() -> None:
    assert restore("before kind:Aspec:# how largesize:2after", SHAPE) == SHAPE


def test_a_value_that_differs_is_named() -> None:
    with pytest.raises(ValueError, match="size:2"):
        restore("kind:Aspec:size:3", SHAPE)


def test_a_page_without_the_manifest_says_so() -> None:
    with pytest.raises(ValueError, match="holds no manifest"):
        restore("nothing here", SHAPE)


PAGE = """\
before

apiVersion: v1
kind: Pod
metadata:
  name: a3plus-workloads
  annotations:
    devices: |+
      - path: /dev/a
    networking.gke.io/interfaces: |
      [
        {"interfaceName":"eth0","network":"default"}
      ]
...
  containers:
    - name: one
      args:
        - |
          set -ex
      securityContext:
      command: ["a"]

behind
"""
VALUES = ["v1", "Pod", "a3plus-workloads", "/dev/a", "eth0=default", "one", "set -ex", "", '["a"]']


def test_the_values_of_a_printed_manifest_are_found_in_their_order() -> None:
    assert values(pod_spec(PAGE, "a3plus-workloads")) == VALUES


def test_a_row_that_the_page_does_not_have_is_named(tmp_path: Path) -> None:
    rows = [f"field {number}\t{value}" for number, value in enumerate(VALUES)]
    (tmp_path / "gpudirect-tcpxo.tsv").write_text("# a remark\n" + "\n".join([*rows[:-2], "field 7\tx", rows[-1]]))
    with pytest.raises(ValueError, match=r"gpudirect-tcpxo\.tsv: field 7 is 'x', and the page has ''"):
        compare(PAGE, tmp_path)
    (tmp_path / "gpudirect-tcpxo.tsv").write_text("\n".join(rows[:-1]))
    with pytest.raises(ValueError, match="has 8 rows, and the page 9 values"):
        compare(PAGE, tmp_path)
