"""``interlace manifests --webhook``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from interlace.cli.manifests import print_manifests

ROOT = Path(__file__).parents[3]


def test_it_prints_the_committed_file() -> None:
    result = CliRunner().invoke(print_manifests, ["--webhook"])
    assert result.exit_code == 0
    assert result.output == (ROOT / "deploy/webhook.yaml").read_text()


def test_its_options_reach_the_objects() -> None:
    flags = ["--allow-device=/dev/a*", "--allow-device=/dev/b", "--network-map=vpc1=rail1", "--device-guard=warn"]
    result = CliRunner().invoke(
        print_manifests, ["--webhook", "--json", "--replicas=3", "--namespace=team", "--guard-exempt=trusted", *flags]
    )
    assert result.exit_code == 0
    objects = json.loads(result.output)["items"]
    (deployment,) = [obj for obj in objects if obj["kind"] == "Deployment"]
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    assert deployment["metadata"]["namespace"] == "team"
    assert deployment["spec"]["replicas"] == 3
    assert container["args"] == ["--allow-device=/dev/a*,/dev/b", "--network-map=vpc1=rail1"]
    assert {"name": "DEVICE_GUARD", "value": "warn"} in container["env"]
    guard = next(obj for obj in objects if obj["metadata"]["name"] == "interlace-device-guard")
    assert "trusted" in guard["webhooks"][0]["namespaceSelector"]["matchExpressions"][1]["values"]


@pytest.mark.parametrize("flag", ["--allow-device=sda", "--network-map=vpc1"])
def test_what_the_webhook_would_refuse_is_refused_now(flag: str) -> None:
    result = CliRunner().invoke(print_manifests, ["--webhook", flag])
    assert result.exit_code == 2
    assert not list(yaml.safe_load_all(result.stdout))
