"""An API server in this process, for demo, tests and scale. What it answers is simulated, and is tested to be what
the real server answers.
"""

from __future__ import annotations

from interlace.sim.apiserver.server import ApiServer

__all__ = ["ApiServer"]
