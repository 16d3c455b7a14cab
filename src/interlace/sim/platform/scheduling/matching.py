"""CEL selectors on devices, each evaluated once for each version of a slice."""

from __future__ import annotations

from typing import Any

from interlace.sim.apiserver.cel import CelError, Selector
from interlace.sim.platform.scheduling.devices import Candidate, SelectorError

_LIMIT = 200_000
"""Remembered answers; beyond it all are forgotten, which costs time and nothing else."""


class CelMatcher:
    """A ``Matcher`` with a memory."""

    def __init__(self) -> None:
        self._selectors: dict[str, Selector] = {}
        self._answers: dict[tuple[str, str, str], bool] = {}

    def __call__(self, expression: str, candidate: Candidate) -> bool:
        key = (expression, candidate.source, candidate.device.name)
        answer = self._answers.get(key)
        if answer is None:
            if len(self._answers) >= _LIMIT:
                self._answers.clear()
            answer = self._answers[key] = self._evaluate(expression, candidate)
        return answer

    def _evaluate(self, expression: str, candidate: Candidate) -> bool:
        device: dict[str, Any] = {
            "attributes": candidate.device.attributes,
            "capacity": candidate.device.capacity,
        }
        try:
            selector = self._selectors.get(expression)
            if selector is None:
                selector = self._selectors[expression] = Selector(expression)
            return selector.matches(device, driver=candidate.driver)
        except CelError as error:
            where = "/".join(candidate.id)
            raise SelectorError(f"device {where}: CEL runtime error: {error}") from error
