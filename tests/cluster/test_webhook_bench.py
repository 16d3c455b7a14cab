"""The measurement of the webhook: what it counts, whatever the machine takes for it."""

from __future__ import annotations

from bench.webhook import BUDGET, measure, percentile, render
from interlace.api import webhook as names


async def test_each_pod_that_asks_is_counted_once_a_path_and_others_cost_nothing() -> None:
    found = await measure(10)
    assert (len(found.asking), len(found.plain)) == (10, 10)
    assert {path: len(values) for path, values in found.handler.items()} == {
        names.INJECT_PATH: 10,
        names.CHECK_PATH: 10,
        names.DEVICES_PATH: 10,
    }
    assert found.cpu.keys() == found.handler.keys()
    assert render(found).count(f"| {BUDGET:.0f} |") == 3


def test_a_percentile_is_a_value_that_was_measured() -> None:
    values = [float(value) for value in range(1, 1001)]
    assert percentile(values, 0.99) == 990
    assert percentile(values, 0.5) == 500
    assert percentile([3.0], 0.99) == 3
