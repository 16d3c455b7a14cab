"""The examples are what the code makes, and say what their page says about them."""

from __future__ import annotations

import ast
import re
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from interlace.fabric.family import IDS, find
from interlace.pods.bundle import inject_text, text_of
from interlace.pods.kinds import PATHS, group_and_kind, places
from interlace.pods.workloads import Options
from tools.examples import BARE, ROOT, files


def pods(text: str) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """Object and Pod template of everything in a file."""
    for each in yaml.safe_load_all(text):
        for path in PATHS.get(group_and_kind(each), ()):
            for _, template in places(each, path):
                yield each, template


@pytest.mark.parametrize("family", IDS)
def test_the_files_are_what_injection_makes_now(family: str) -> None:
    for name, text in files(find(family)).items():
        assert (ROOT / family / name).read_text(encoding="utf-8") == text


@pytest.mark.parametrize("family", IDS)
def test_what_is_injected_does_not_change_again(family: str) -> None:
    for name in BARE:
        text = (ROOT / family / "injected" / name).read_text(encoding="utf-8")
        assert text_of(inject_text(text, options=Options(compute_domain=True))) == text


@pytest.mark.parametrize("family", IDS)
@pytest.mark.parametrize("name", BARE)
def test_everything_but_the_data_meets_on_the_pod_network(family: str, name: str) -> None:
    text = (ROOT / family / "injected" / name).read_text(encoding="utf-8")
    assert "CUDA_VISIBLE_DEVICES" not in text
    for owner, template in pods(text):
        (main,) = template["spec"]["containers"]
        env = {each["name"]: each["value"] for each in main.get("env", [])}
        if main["name"] == "launcher":
            assert main["command"].count("eth0") == 2
            continue
        assert env["NCCL_SOCKET_IFNAME"] == "eth0"
        if main["name"] == "main":
            assert env["GLOO_SOCKET_IFNAME"] == "eth0"
            assert env["MASTER_ADDR"].startswith(f"{owner['metadata']['name']}-")
            assert env["MASTER_ADDR"].endswith(f"0.{template['spec'].get('subdomain', owner['metadata']['name'])}")
        amount = main["resources"]["limits"]["nvidia.com/gpu"]
        assert amount == find(family).node.gpus
        program = main["args"][0]
        assert f"--nproc-per-node={amount}" in program or owner["spec"]["slotsPerWorker"] == amount


@pytest.mark.parametrize("name", BARE)
def test_the_scripts_are_shell_and_python(name: str) -> None:
    for _, template in pods((ROOT / "a3-mega" / "bare" / name).read_text(encoding="utf-8")):
        for script in template["spec"]["containers"][0].get("args", []):
            assert subprocess.run(["bash", "-n"], input=script, text=True, check=False).returncode == 0
            inner = re.search(r"<<'END'\n(.*?)\nEND\n", script, re.DOTALL)
            if inner:
                assert ast.parse(inner[1]).body
