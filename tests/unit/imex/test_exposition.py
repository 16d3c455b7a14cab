from __future__ import annotations

from prometheus_client.parser import text_string_to_metric_families

from interlace.imex.exposition import render


def test_labels_are_escaped_so_that_prometheus_reads_them() -> None:
    text = render([("m", "gauge", "M.", {"why": 'a "b"\n\\c'}, 2.5), ("m", "gauge", "M.", {"why": "d"}, 1)])
    (family,) = text_string_to_metric_families(text)
    assert [(sample.labels["why"], sample.value) for sample in family.samples] == [('a "b"\n\\c', 2.5), ("d", 1.0)]
    assert text.count("# TYPE") == 1
