"""``python -m interlace.pods``: the webhook as a process of its own."""

from __future__ import annotations

import sys
from collections.abc import Coroutine, Mapping, Sequence
from typing import Any

from interlace.kube.config import load
from interlace.kube.program import run
from interlace.pods.settings import WebhookSettings
from interlace.pods.webhook import serve


def start(argv: Sequence[str], env: Mapping[str, str]) -> Coroutine[Any, Any, None]:
    """The webhook of the cluster that this Pod is in, or that the kubeconfig names."""
    settings = WebhookSettings.parse(argv, env)
    return serve(settings, config=load(settings.kubeconfig, env=env))


if __name__ == "__main__":
    sys.exit(run(start, sys.argv[1:]))
