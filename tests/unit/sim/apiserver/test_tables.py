"""What kubectl prints: ages and the paths of printer columns."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from interlace.sim.apiserver.kinds import Kinds
from interlace.sim.apiserver.tables import age, duration, json_path, table


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (-10, "<invalid>"),
        (0, "0s"),
        (119, "119s"),
        (120, "2m"),
        (150, "2m30s"),
        (599, "9m59s"),
        (660, "11m"),
        (10800, "3h"),
        (11100, "3h5m"),
        (28800, "8h"),
        (172800, "2d"),
        (176400, "2d1h"),
        (691200, "8d"),
        (63072000, "2y"),
        (63504000, "2y5d"),
    ],
)
def test_durations_are_written_as_kubectl_writes_them(seconds: float, shown: str) -> None:
    assert duration(seconds) == shown


def test_an_age_is_counted_from_the_timestamp() -> None:
    then = datetime.now(UTC) - timedelta(minutes=5, seconds=1)
    assert age(then.strftime("%Y-%m-%dT%H:%M:%SZ")).startswith("5m")
    assert age(None) == "<unknown>"
    assert age("yesterday") == "<invalid>"


@pytest.mark.parametrize(
    ("path", "found"),
    [
        (".spec.name", ["n"]),
        (".spec.list[*].v", [1, 2]),
        (".spec.list[1].v", [2]),
        ('.spec.list[?(@.k=="b")].v', [2]),
        (".spec.none", []),
        (".metadata.labels.a\\.b/c", ["x"]),
    ],
)
def test_printer_columns_read_simple_paths(path: str, found: list[Any]) -> None:
    obj = {
        "spec": {"name": "n", "list": [{"k": "a", "v": 1}, {"k": "b", "v": 2}]},
        "metadata": {"labels": {"a.b/c": "x"}},
    }
    assert json_path(obj, path) == found


def test_every_kind_has_a_row_as_wide_as_its_columns() -> None:
    for kind in Kinds():
        shown = table([{"metadata": {"name": "x"}, "spec": {}, "status": {}}], kind)
        assert len(shown["rows"][0]["cells"]) == len(shown["columnDefinitions"]), kind.plural
