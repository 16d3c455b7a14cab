"""Metrics, read back with the reference implementation of Prometheus' text format."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families

from interlace.kube.meters import Family, Registry, Sample, counter, gauge, histogram, render

TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\r\x85\u2028\u2029\x0b\x0c\x1c\x1d\x1e"))
NUMBERS = st.one_of(st.floats(allow_nan=False), st.integers(-(2**53), 2**53).map(float))


def read(text: str) -> dict[str, dict[tuple[str, tuple[tuple[str, str], ...]], float]]:
    """Samples by name of their family and kind."""
    return {
        f"{family.name} {family.type}": {
            (sample.name, tuple(sample.labels.items())): sample.value for sample in family.samples
        }
        for family in text_string_to_metric_families(text)
    }


def test_a_counter_counts_for_each_label_and_ends_in_total() -> None:
    registry = Registry()
    calls = counter("calls", "Calls.", ["what"], registry=registry)
    calls.labels("a").inc()
    calls.labels("a").inc(2)
    calls.labels("b")
    assert read(registry.render()) == {
        "calls counter": {("calls_total", (("what", "a"),)): 3, ("calls_total", (("what", "b"),)): 0}
    }
    assert registry.value("calls_total", what="a") == 3
    assert registry.value("calls_total", what="c") is None


def test_a_gauge_goes_up_and_down() -> None:
    registry = Registry()
    depth = gauge("depth", "Depth.", registry=registry).labels()
    depth.set(5)
    depth.inc()
    depth.dec()
    depth.dec()
    assert read(registry.render()) == {"depth gauge": {("depth", ()): 4}}


def test_a_bucket_counts_what_is_at_most_its_bound() -> None:
    registry = Registry()
    took = histogram("took_seconds", "Took.", ["op"], buckets=(1, 0.5), registry=registry)
    for seconds in (0.1, 0.5, 0.6, 7):
        took.labels("x").observe(seconds)
    name, op = "took_seconds", ("op", "x")
    assert read(registry.render()) == {
        "took_seconds histogram": {
            (f"{name}_bucket", (op, ("le", "0.5"))): 2,
            (f"{name}_bucket", (op, ("le", "1.0"))): 3,
            (f"{name}_bucket", (op, ("le", "+Inf"))): 4,
            (f"{name}_count", (op,)): 4,
            (f"{name}_sum", (op,)): pytest.approx(8.2),
        }
    }


def test_a_name_is_given_once() -> None:
    registry = Registry()
    counter("calls", "Calls.", registry=registry)
    with pytest.raises(ValueError, match="calls_total is registered already"):
        counter("calls", "Other.", registry=registry)


def test_a_forgotten_label_is_refused() -> None:
    calls = counter("calls", "Calls.", ["what", "code"], registry=Registry())
    with pytest.raises(ValueError, match="labels what, code, not 1"):
        calls.labels("a")


def test_what_is_counted_from_a_cache_is_counted_at_each_scrape() -> None:
    cache = ["a"]
    registry = Registry()
    registry.add("cached", lambda: Family("cached", "gauge", "Cached.", [Sample("cached", {}, len(cache))]))
    assert registry.value("cached") == 1
    cache.append("b")
    assert registry.value("cached") == 2


@given(st.dictionaries(TEXT, NUMBERS))
def test_prometheus_reads_whatever_a_label_and_a_value_are(values: dict[str, float]) -> None:
    registry = Registry()
    metric = gauge("m", 'A "quoted" line,\nand \\another.', ["why"], registry=registry)
    for why, value in values.items():
        metric.labels(why).set(value)
    assert read(registry.render()) == {"m gauge": {("m", (("why", why),)): value for why, value in values.items()}}


def test_no_number_is_written_as_prometheus_names_it() -> None:
    text = render([Family("m", "gauge", "M.", [Sample("m", {}, math.nan)])])
    assert text.endswith("m NaN\n")
