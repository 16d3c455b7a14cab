"""Manifests and values out of pages."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools.seeds import compare, missing, pod_spec, printed_settings, restore, values

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


SETTINGS = """
Usa la configuración de NCCL necesaria
"A=1",
"B=\\"x\\""
GPUDirect-TCPX
"A=2"
Agrega GPUDirect a tus manifiestos
"""


def test_lists_of_settings_keep_their_quote_marks() -> None:
    assert printed_settings(SETTINGS) == [[("A", "1"), ("B", '\\"x\\"')], [("A", "2")]]
    with pytest.raises(ValueError, match="no lists of settings"):
        printed_settings("nothing")


def test_a_measurement_that_a_page_holds_lacks_nothing() -> None:
    page = "text\n  1048576   16384  float\n  2097152 32768 float\n# Avg bus bandwidth    : 22.449\n"
    assert missing("# note\n1048576\t16384\tfloat\n2097152\t32768\tfloat\naverage\t22.449\n", page) is None


def test_the_first_line_that_a_page_has_otherwise_is_named() -> None:
    page = "1048576 16384 float\n2097152 32769 float\n# Avg bus bandwidth : 22.4\n"
    assert missing("1048576\t16384\tfloat\n2097152\t32768\tfloat\n", page) == "2097152 32768 float"
    assert missing("2097152\t32769\tfloat\n1048576\t16384\tfloat\n", page) == "1048576 16384 float"
    assert missing("average\t22.5\n", page) == "average 22.5"
