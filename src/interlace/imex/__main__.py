"""``python -m interlace.imex``: imex-host as a process of its own, with as few imports as possible.

It idles on every fabric node within a budget of 30 MB, so TLS, which asyncio would import, stays out.
Log lines of nvidia-imex are among its own, under a logger of their own.
"""

from __future__ import annotations

import sys
from collections.abc import Coroutine, Mapping, Sequence
from typing import Any

# asyncio works without it, and nothing here speaks TLS: 4 MB.
sys.modules.setdefault("ssl", None)  # type: ignore[arg-type]

from interlace.imex.host import HostError, HostSettings, serve  # noqa: E402
from interlace.kube.program import run  # noqa: E402


def start(argv: Sequence[str], env: Mapping[str, str]) -> Coroutine[Any, Any, None]:
    """The host of this node."""
    return serve(HostSettings.parse(argv, env))


if __name__ == "__main__":
    sys.exit(run(start, sys.argv[1:], failures=(HostError,)))
