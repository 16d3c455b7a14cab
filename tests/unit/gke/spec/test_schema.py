"""Page and JSON Schema of the cluster file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from interlace.gke.reading import parse
from interlace.gke.schema import keys, schema
from tests.unit.gke.spec.test_reading import FULL
from tools import cluster_file as tool


def test_the_written_files_are_up_to_date(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.argv", ["cluster_file", "--check"])
    assert tool.main() == 0


def test_a_file_that_is_out_of_date_is_named_and_written_anew(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr(tool, "PAGE", tmp_path / "cluster-file.md")
    monkeypatch.setattr(tool, "SCHEMA", tmp_path / "schema.json")
    monkeypatch.setattr("sys.argv", ["cluster_file", "--check"])
    assert tool.main() == 1
    assert "docs/cluster-file.md is not up to date" in capsys.readouterr().err
    monkeypatch.setattr("sys.argv", ["cluster_file"])
    assert tool.main() == 0
    monkeypatch.setattr("sys.argv", ["cluster_file", "--check"])
    assert tool.main() == 0


def test_every_key_says_what_it_means() -> None:
    found = list(keys())
    assert [key.path for key in found if not key.about] == []
    assert len({key.path for key in found}) == len(found)
    needed = {key.path for key in found if key.needed and key.path.count(".") < 2}
    assert needed >= {"apiVersion", "kind", "metadata.name", "spec.project", "spec.location", "spec.family"}


def test_the_schema_has_the_keys_that_the_reader_takes_and_no_others() -> None:
    assert parse(msgspec.json.encode(FULL)).cluster.name == "train"
    assert list(_unknown(FULL, schema())) == []
    wrong = json.loads(json.dumps(FULL))
    wrong["spec"]["netwrok"] = {}
    assert list(_unknown(wrong, schema())) == ["netwrok"]


def _unknown(value: Any, node: dict[str, Any], defs: dict[str, Any] | None = None) -> list[str]:
    """Members that the schema does not know; it forbids them wherever it lists members."""
    defs = defs or node["$defs"]
    if "$ref" in node:
        node = defs[node["$ref"].rpartition("/")[2]]
    if "anyOf" in node:
        node = next(each for each in node["anyOf"] if each.get("type") != "null")
        return _unknown(value, node, defs)
    if isinstance(value, list):
        return [each for item in value for each in _unknown(item, node["items"], defs)]
    if not isinstance(value, dict) or "properties" not in node:
        return []
    assert node["additionalProperties"] is False
    found = [key for key in value if key not in node["properties"]]
    for key, each in value.items():
        if key in node["properties"]:
            found += _unknown(each, node["properties"][key], defs)
    return found
