"""``python -m interlace.domains``: the controller as a process of its own."""

from __future__ import annotations

import sys
from collections.abc import Coroutine, Mapping, Sequence
from typing import Any

from interlace.domains.controller import serve
from interlace.domains.settings import ControllerSettings
from interlace.kube.config import load
from interlace.kube.program import run


def start(argv: Sequence[str], env: Mapping[str, str]) -> Coroutine[Any, Any, None]:
    """The controller of the cluster that this Pod is in, or that the kubeconfig names."""
    settings = ControllerSettings.parse(argv, env)
    return serve(settings, config=load(settings.kubeconfig, env=env))


if __name__ == "__main__":
    sys.exit(run(start, sys.argv[1:]))
