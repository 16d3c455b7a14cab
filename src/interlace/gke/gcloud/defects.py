"""What is odd in a page as a whole: commands that are right alone and wrong together, or by what they leave out.

Rules about the resources themselves are in ``gke/rules``. Invariant: pure; each finding names the line of a command.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, Final

from interlace.gke.gcloud.faults import finding, placeholder
from interlace.gke.gcloud.interpreting import Invocation, Step
from interlace.rules.finding import Finding

_OPTIONS: Final = frozenset({"--scopes", "--placement-policy", "--reservation", "--host-maintenance-interval"})
"""What one pool with GPUs of a page has, the others are expected to have."""

_REGIONAL: Final = re.compile(r"[a-z]+(?:-[a-z]+)+\d+\Z")


def defects(original: Sequence[Invocation], steps: Sequence[Step]) -> list[Finding]:
    """``original``: commands as they stand in the page; ``steps``: what they mean once its holes are filled in."""
    return [*_counts(steps), *_uneven(original, steps), *_one_range(original), *_spellings(original)]


def _counts(steps: Sequence[Step]) -> Iterator[Finding]:
    """Numbers of nodes that nobody wrote."""
    for step in steps:
        if step.call is None or step.resource is None or step.call.has("--num-nodes"):
            continue
        place = step.resource.key.place.partition("/")[0]
        zones = " in each of its zones" if _REGIONAL.match(place) else ""
        if step.resource.key.kind == "cluster":
            yield finding(
                "default-pool", step.line,
                f"the cluster gets a pool of 3 nodes{zones} without GPUs, which no flag asks for",
                "Say --num-nodes for the pool that a cluster is born with", severity="warning",
            )  # fmt: skip
        elif step.resource.key.kind == "nodePool" and _gpus(step):
            yield finding(
                "node-count", step.line,
                f"--num-nodes is missing: gcloud asks for 3 nodes{zones}, {3 * _gpus(step)} GPUs",
                "Write --num-nodes",
            )  # fmt: skip


def _uneven(original: Sequence[Invocation], steps: Sequence[Step]) -> Iterator[Finding]:
    """Pools with GPUs of one page of which some have an option and others have not."""
    lines = {step.line for step in steps if _gpus(step)}
    pools = [
        (each.line, {word.lstrip("[").partition("=")[0] for word in each.words} & _OPTIONS)
        for each in original
        if each.line in lines
    ]
    options = frozenset().union(*(said for _, said in pools))
    for line, said in pools:
        if said != options:
            yield finding(
                "uneven-pools", line,
                f"the pool has no {', '.join(sorted(options - said))}, which another pool of the page has",
                "Give both the same, or say why they differ", severity="warning",
            )  # fmt: skip


def _gpus(step: Step) -> int:
    """GPUs of a node of a pool."""
    if step.resource is None or step.resource.key.kind != "nodePool":
        return 0
    found: list[dict[str, Any]] = step.resource.body.get("config", {}).get("accelerators", [])
    return sum(int(each.get("acceleratorCount", "0")) for each in found)


def _one_range(original: Sequence[Invocation]) -> Iterator[Finding]:
    """A loop that gives all its subnets one range."""
    ranges: dict[tuple[int, str], set[str]] = {}
    for each in original:
        if "subnets" in each.words and "create" in each.words:
            for word in each.words:
                if word.startswith("--range="):
                    ranges.setdefault((each.line, word), set()).add(" ".join(each.words))
    for (line, word), commands in ranges.items():
        if len(commands) > 1:
            yield finding(
                "one-range", line, f"the loop gives {len(commands)} subnets the same {word}",
                "Use the variable of the loop in it, 192.168.$N.0/24",
            )  # fmt: skip


def _spellings(original: Sequence[Invocation]) -> Iterator[Finding]:
    """One thing under several names: networks that are made as A-net-1 and used as B-net-1."""
    made: dict[str, tuple[str, int]] = {}
    for each in original:
        if "networks" in each.words and "create" in each.words and "subnets" not in each.words:
            for word in each.words:
                if not word.startswith("-") and re.search(r"-\d+\Z", word):
                    made.setdefault(_tail(word), (word, each.line))
    told: set[tuple[str, str]] = set()
    for each in original:
        for name in re.findall(r"(?:^|[,=\s])network=([^,\s]+)", " ".join(each.words)):
            known = made.get(_tail(name))
            pair = (placeholder(name), placeholder(known[0]) if known else "")
            if known and known[0] != name and all(pair) and pair not in told:
                told.add(pair)
                yield finding(
                    "spelling", each.line,
                    f"{name} is made in line {known[1]} as {known[0]}: {pair[0]} and {pair[1]} are one thing",
                    "Write one word for it everywhere",
                )  # fmt: skip


def _tail(name: str) -> str:
    """The name behind the word to be replaced."""
    word = placeholder(name)
    return name.partition(word)[2] if word else name
