"""``python -m interlace.pods``: the webhook as a process of its own.

Invariant: what it needs beyond Interlace itself is looked for first, so that a missing part is one sentence.
"""

from __future__ import annotations

import sys
from collections.abc import Coroutine, Mapping, Sequence
from importlib.util import find_spec
from typing import Any

from interlace.kube.config import load
from interlace.kube.program import run


def start(argv: Sequence[str], env: Mapping[str, str]) -> Coroutine[Any, Any, None]:
    """The webhook of the cluster that this Pod is in, or that the kubeconfig names. Raises ValueError."""
    if find_spec("cryptography") is None:
        raise ValueError(
            "the webhook makes its own certificate with cryptography, which is not installed; "
            "pip install 'interlace[webhook]' gets it"
        )
    from interlace.pods.settings import WebhookSettings  # noqa: PLC0415  needs it
    from interlace.pods.webhook import serve  # noqa: PLC0415

    settings = WebhookSettings.parse(argv, env)
    return serve(settings, config=load(settings.kubeconfig, env=env))


if __name__ == "__main__":
    sys.exit(run(start, sys.argv[1:]))
