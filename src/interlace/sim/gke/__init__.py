"""A simulation of the Google APIs that a GKE cluster for GPUDirect needs, in this process and over HTTP.

Nothing leaves this machine. What it answers is simulated, and says so in a header of every answer.
"""

from __future__ import annotations

from interlace.sim.gke.faults import Fault, Kind
from interlace.sim.gke.server import GkeServer, serve_gke
from interlace.sim.gke.world import LIFELIKE, Durations

__all__ = ["LIFELIKE", "Durations", "Fault", "GkeServer", "Kind", "serve_gke"]
