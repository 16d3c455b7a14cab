"""Hollow Pods of a test with nccl-tests answer from the bandwidth model, as if the test had run on them (simulated).

Invariant: a test answers once all its Pods run, with the log of its first Pod; the others say nothing and end after it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

from interlace.sim.kubelet.podobject import BoundPod
from interlace.sim.measure.bandwidth import Model, Question
from interlace.sim.measure.printing import log

JOB: Final = "batch.kubernetes.io/job-name"
INDEX: Final = "batch.kubernetes.io/job-completion-index"
_RUN: Final = "run.sh"
_UNITS: Final = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


class _Test(msgspec.Struct, kw_only=True):
    """Pods of one Job, as they come."""

    nodes: dict[int, str]
    complete: asyncio.Event
    done: asyncio.Event
    code: int = 0


class Answering:
    """Runs the Pods of tests, for all nodes of a simulated cluster."""

    def __init__(self, model: Model, *, pace: float = 0.0) -> None:
        self.model = model
        """May be replaced while tests run."""
        self.pace = pace
        """Seconds between two lines of the log."""
        self.asked: list[Question] = []
        """May be cleared: attempts are counted in it."""
        self._tests: dict[str, _Test] = {}

    def takes(self, pod: BoundPod) -> bool:
        """Whether the pod is one of a test."""
        return INDEX in pod.metadata.annotations and any(
            any(str(word).endswith(_RUN) for word in container.get("command", ())) and "COLLECTIVE" in _env(container)
            for container in pod.spec.containers
        )

    async def run(self, pod: BoundPod, *, write: Callable[[str], None]) -> int:
        """Wait for the others, then answer (the first Pod) or wait for the answer (the others)."""
        env = next(_env(each) for each in pod.spec.containers if "COLLECTIVE" in _env(each))
        owner = next((each.uid for each in pod.metadata.owner_references), pod.metadata.uid)
        test = self._tests.setdefault(owner, _Test(nodes={}, complete=asyncio.Event(), done=asyncio.Event()))
        index, wanted = int(pod.metadata.annotations[INDEX]), int(env["NODES"])
        test.nodes[index] = pod.spec.node_name
        if len(test.nodes) == wanted:
            test.complete.set()
        try:
            await test.complete.wait()
            if index:
                await test.done.wait()
                return 0
            test.code = await self._answer(tuple(node for _, node in sorted(test.nodes.items())), env, write)
            return test.code
        finally:
            if not index:
                test.done.set()
                self._tests.pop(owner, None)

    async def _answer(self, nodes: tuple[str, ...], env: Mapping[str, str], write: Callable[[str], None]) -> int:
        rail = int(env["RAIL"]) if env.get("RAIL") else None
        question = Question(
            nodes=nodes,
            collective=env["COLLECTIVE"],
            least=_bytes(env["DATA_MIN"]),
            most=_bytes(env["DATA_MAX"]),
            rail=rail,
            attempt=sum((each.nodes, each.rail) == (nodes, rail) for each in self.asked),
        )
        self.asked.append(question)
        answer = self.model.answer(question)
        for line in log(self.model.family, question, answer).splitlines():
            write(line)
            if self.pace:
                await asyncio.sleep(self.pace)
        return 1 if answer.broken else 7 if answer.wrong else 0


def _env(container: Mapping[str, Any]) -> dict[str, str]:
    return {entry["name"]: entry.get("value", "") for entry in container.get("env", ())}


def _bytes(text: str) -> int:
    return int(text[:-1]) * _UNITS[text[-1]] if text[-1:] in _UNITS else int(text)
