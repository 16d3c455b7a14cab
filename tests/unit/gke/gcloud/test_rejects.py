"""Commands with wrong input: refused like gcloud refuses them, and where gcloud notices nothing, all the same."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from interlace.cli.main import main

DATA = Path(__file__).parents[3] / "data" / "gke" / "rejects.json"
CASES: list[dict[str, Any]] = json.loads(DATA.read_text())["cases"]

UNNOTICED = {
    "mtu-out-of-range-accepted-by-parser": "network.mtu-range",
    "subnet-no-range": "subnet.range",
    "subnet-bad-cidr-accepted-by-parser": "gcloud.placeholder",
    "firewall-source-and-egress": "firewall.egress-source",
    "pool-autoscaling-without-max": "pool.autoscaling",
    "pool-min-above-max": "pool.autoscaling",
    "pool-bad-metadata-label": "pool.labels",
    "pool-bad-num-nodes": "pool.size",
}
"""Cases that gcloud sends without a word, and the rule that names what is wrong."""


def imported(argv: list[str]) -> tuple[int, str, str]:
    text = " ".join(shlex.quote(word) for word in argv)
    options = ["--project", "example-project", "--format", "requests"]
    result = CliRunner().invoke(main, ["gke", "import", "-f", "-", *options], input=text)
    return result.exit_code, result.stdout, result.stderr


@pytest.mark.parametrize("case", [each for each in CASES if each["exit_code"]], ids=lambda each: str(each["case"]))
def test_what_gcloud_refuses_is_refused_before_anything_is_printed(case: dict[str, Any]) -> None:
    code, out, err = imported(case["argv"])
    assert (code, out) == (2, "")
    assert "line 1: " in err
    unknown = [word.partition("=")[0] for word in case["argv"] if word.startswith("--") and word in case["error"]]
    assert all(flag in err for flag in unknown), err


def test_each_case_that_gcloud_does_not_notice_has_a_rule() -> None:
    assert {each["case"] for each in CASES if each["exit_code"] == 0} == UNNOTICED.keys()


@pytest.mark.parametrize("case", [each for each in CASES if not each["exit_code"]], ids=lambda each: str(each["case"]))
def test_what_gcloud_does_not_notice_is_refused_with_a_rule(case: dict[str, Any]) -> None:
    code, out, err = imported(case["argv"])
    assert (code, out) == (2, "")
    assert f"[{UNNOTICED[case['case']]}]" in err
