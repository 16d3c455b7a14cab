"""A simulated cloud over HTTP whose every answer was judged by the time it ends."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from interlace.sim.gke import GkeServer, serve_gke
from interlace.sim.gke.errors import STATUS
from tests.unit.sim.gke.judge import judge

ERROR_KEYS = {
    "compute": ({"code", "message", "errors"}, {"status", "details"}),
    "container": ({"code", "message", "errors", "status"}, {"details"}),
}
"""Keys that an error of a service has, and may have."""


@asynccontextmanager
async def served(**options: Any) -> AsyncIterator[GkeServer]:
    """``serve_gke``, and at the end a look at every answer that it gave."""
    async with serve_gke(**options) as fake:
        yield fake
        wrong = [text for entry in fake.log for text in complaints(entry)]
        assert wrong == []


def complaints(entry: Any) -> list[str]:
    """What is wrong with one answer: the schema of a good one, the keys of a refusal."""
    answer = entry.answer
    if answer is None or answer.text is not None or not answer.method:
        return []
    if answer.status == 200:
        path = entry.request.path.split("/")
        version = path[2] if path[1] == "compute" else path[1]
        return [f"{entry.line}{each}" for each in judge(answer.service, version, answer.method, answer.body)]
    error = answer.body["error"]
    needed, allowed = ERROR_KEYS.get(answer.service, ({"code", "message", "status"}, {"details"}))
    keys = set(error)
    good = needed <= keys <= needed | allowed and error["code"] == answer.status and answer.status in STATUS
    return [] if good else [f"{entry.line}: {error}"]
