"""``python -m interlace.node``: the agent as a process of its own, with as few imports as possible.

It idles on every GPU node within a budget of 45 MB.
"""

from __future__ import annotations

import sys
from collections.abc import Coroutine, Mapping, Sequence
from typing import Any

from interlace.kube.config import load
from interlace.kube.program import run
from interlace.node.agent import serve
from interlace.node.errors import AgentError
from interlace.node.nvml import NvmlFacts
from interlace.node.settings import AgentSettings


def start(argv: Sequence[str], env: Mapping[str, str]) -> Coroutine[Any, Any, None]:
    """The agent with the facts of this node's driver."""
    settings = AgentSettings.parse(argv, env)
    return serve(settings, config=load(settings.kubeconfig, env=env), facts=NvmlFacts(settings.driver_root))


if __name__ == "__main__":
    sys.exit(run(start, sys.argv[1:], failures=(AgentError,)))
