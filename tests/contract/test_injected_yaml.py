"""YAML as injection writes and reads it, against the YAML reader of the real API server, which is Go's."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from interlace.fabric.family import IDS
from interlace.pods.documents import split
from interlace.pods.yamlnode import YamlError, parse
from interlace.pods.yamltext import block, flow
from interlace.sim.plane import Plane
from tests.contract.wire import Json, Reply, admin

EXAMPLES = Path(__file__).parents[2] / "examples"
MAPS = "/api/v1/namespaces/default/configmaps"
JOBS = "/apis/batch/v1/namespaces/default/jobs"
YAML = "application/yaml"

ODD = [
    "",
    " ",
    "a",
    "y",
    "no",
    "On",
    "null",
    "~",
    "1",
    "-1",
    "0x1F",
    "0o17",
    "017",
    "1e3",
    "1.",
    ".5",
    "1_000",
    "1:30",
    "+1",
    "2026-11-30",
    ".inf",
    "-.inf",
    ".nan",
    "=",
    "<<",
    "- a",
    "-a",
    "--flag",
    "a: b",
    "a:b",
    "a #b",
    "#a",
    "&a",
    "*a",
    "!a",
    "|",
    ">",
    "%a",
    "@a",
    "`a`",
    "'a'",
    '"a"',
    "\\",
    "{a}",
    "[a]",
    "a,b",
    "a\tb",
    "\ta",
    " a",
    "a ",
    "a\n",
    "a\nb",
    "a\nb\n",
    "a\n\nb\n",
    "a\n\n",
    "\na",
    " a\nb",
    "a\n b\n",
    "a \nb",
    "a\r\nb",
    "é",
    "😀",
    "\u2028",
    "\u0085",
    "\ufeff",
    "\x7f",
    "\x01",
    "$(A)",
    "128Gi",
    "/dev/nvidia0",
    "eth1:8-21,112-125;eth2:8-21",
    "x" * 500,
    "a" * 80 + " b" * 80,
]
"""Strings that one YAML reader or another takes for something else."""


async def create(plane: Plane, path: str, text: str) -> Reply:
    async with admin(plane) as wire:
        return await wire("POST", path, text.encode(), media=YAML, fieldValidation="Strict", dryRun="All")


def config_map(data: dict[str, str]) -> Json:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "one"}, "data": data}


@pytest.mark.parametrize("dash", [0, 2])
async def test_strings_of_any_kind_arrive_as_they_were(real_plane: Plane, dash: int) -> None:
    data = {f"k{number}": value for number, value in enumerate(ODD)}
    text = "\n".join([*block(config_map(data), column=0, dash=dash), ""])
    reply = await create(real_plane, MAPS, text)
    assert reply.code == 201, reply.message
    assert reply.body["data"] == data
    reply = await create(real_plane, MAPS, f"{flow(config_map(data))}\n")
    assert reply.body["data"] == data


@pytest.mark.parametrize("family", IDS)
async def test_injected_examples_mean_the_same_to_the_server(real_plane: Plane, family: str) -> None:
    text = (EXAMPLES / family / "injected" / "job.yaml").read_text(encoding="utf-8")
    (job,) = [document.text for document in split(text) if "kind: Job" in document.text]
    reply = await create(real_plane, JOBS, job)
    assert reply.code == 201, reply.message
    root = parse(job)
    assert root is not None
    assert contains(reply.body["spec"]["template"], root.value()["spec"]["template"])


def contains(whole: Any, part: Any) -> bool:
    """Whether the server kept all of it; it adds defaults."""
    if isinstance(part, dict):
        return all(key in whole and contains(whole[key], value) for key, value in part.items())
    if isinstance(part, list):
        return len(whole) == len(part) and all(contains(one, other) for one, other in zip(whole, part, strict=True))
    return bool(whole == part or str(whole) == str(part))


@pytest.mark.parametrize(
    "plain", ["y", "no", "On", "TRUE", "~", "0660", "1_000", "0x1F", "1.5", "1e3", "+1", ".5", "08"]
)
async def test_what_is_no_string_here_is_none_to_the_server(real_plane: Plane, plain: str) -> None:
    text = "\n".join([*block(config_map({"k": "@"}), column=0, dash=0), ""]).replace('"@"', plain)
    root = parse(text)
    assert root is not None
    assert not isinstance(root.value()["data"]["k"], str)
    reply = await create(real_plane, MAPS, text)
    assert reply.code == 400 or reply.body["data"] == {"k": ""}, reply.body


@pytest.mark.parametrize("plain", ["1:30", "2026-11-30", "v1", "a=b", "<5", "0b2", "1.2.3", "0o9x", "-", "yes1"])
async def test_what_is_a_string_here_is_one_to_the_server(real_plane: Plane, plain: str) -> None:
    text = "\n".join([*block(config_map({"k": "@"}), column=0, dash=0), ""]).replace('"@"', plain)
    try:
        root = parse(text)
    except YamlError:
        root = None
    reply = await create(real_plane, MAPS, text)
    if root is None:
        assert reply.code == 400
    else:
        assert reply.body["data"] == root.value()["data"] == {"k": plain}


@pytest.mark.parametrize("text", ["a: 1\na: 2\n", "a: [\n", "a: b: c\n", "a: *b\n"])
async def test_what_is_refused_here_is_refused_by_the_server(real_plane: Plane, text: str) -> None:
    with pytest.raises(YamlError):
        parse(text)
    head = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: one}\ndata:\n"
    reply = await create(real_plane, MAPS, head + "".join(f"  {line}\n" for line in text.splitlines()))
    assert reply.code == 400, reply.body
