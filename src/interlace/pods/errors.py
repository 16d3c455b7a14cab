"""Why a Pod is refused: one error for whatever can be wrong with it.

Invariant: each says where (a path from the root of the object), what stands there, why that cannot stay, and
what to write instead; so a person who sees nothing but the sentence can act.
"""

from __future__ import annotations

import json
from typing import Any, Final

_SHOWN: Final = 80
_ELSEWHERE: Final = ("--", "kind: ", "the ")
"""How a path begins that is none inside the object."""


class InjectError(ValueError):
    """The Pod cannot get the fabric as it is written. ``path`` is relative to what was handed in."""

    def __init__(self, path: str, value: Any, cause: str, remedy: str) -> None:
        self.path = path
        self.value = value
        self.cause = cause
        self.remedy = remedy
        super().__init__(f"{path}: {self.shown}: {cause}; {remedy}")

    @property
    def shown(self) -> str:
        """The value as a sentence can hold it."""
        return shown(self.value)

    def below(self, prefix: str) -> InjectError:
        """The same error, its path counted from further up; that of an option or of another object stays."""
        if self.path.startswith(_ELSEWHERE):
            return self
        return InjectError(join(prefix, self.path), self.value, self.cause, self.remedy)


def shown(value: Any) -> str:
    """A value as a sentence can hold it: on one line, and not long."""
    text = value if isinstance(value, str) else "nothing" if value is None else json.dumps(value, ensure_ascii=False)
    text = " ".join(text.split()) or "empty"
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"


def join(prefix: str, path: str) -> str:
    """Two paths as one: ``spec.template`` and ``spec.volumes[0]``."""
    if not prefix or not path:
        return prefix or path
    return f"{prefix}{path}" if path.startswith("[") else f"{prefix}.{path}"
