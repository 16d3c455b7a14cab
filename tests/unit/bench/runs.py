"""Runs as a bench would have measured them."""

from __future__ import annotations

from typing import Any

from bench.domains.record import Load, Machine, Memory, PodTimes, Process, Requests, Run, Seconds


def make_run(**fields: Any) -> Run:
    """A good run of ours over 18 nodes within every budget; ``fields`` replace its parts."""
    used = {
        name: Process(n=1, cpu_s=0.2, peak_rss_mib=40.0)
        for name in ("controller", "agent", "imex-host", "kube-apiserver")
    }
    chosen: dict[str, Any] = {
        "driver": "interlace",
        "nodes": 18,
        "cliques": 1,
        "run": 1,
        "date": "2026-11-30T12:00:00Z",
        "server_version": "v1.36.3",
        "settings": {"imex_start": 0.05, "volume_wait": 0.0, "platform_rate": None, "steady": 10.0, "together": True},
        "machine": Machine(
            cores=2, cpu="a CPU", memory_gib=23.5, kernel="6.1", python="3.11.7", nice=0, load_before=0.4
        ),
        "seconds": Seconds(
            all_bound=0.5, all_prepared=0.9, all_ready=1.2, domain_ready=1.6, domain_gone=0.3, nothing_left=0.9
        ),
        "pods": [
            PodTimes(pod="p", node="tray-00", calls=1, bound=0.3, called=0.31, prepared=0.6, running=0.8, ready=0.9)
        ],
        "steps": {"formation: controller: create computedomaincliques, first": 0.4},
        "requests": {
            "formation": {"agent": Requests(writes=18, get=18), "controller": Requests(writes=8)},
            "teardown": {"controller": Requests(writes=4)},
        },
        "requests_detail": {"formation": {"agent": {"patch resourceclaims/status": 18, "get resourceclaims": 18}}},
        "watch_bytes": {"formation": {"computedomaincliques.resource.nvidia.com": 90_000}},
        "processes": {"formation": used, "steady": used, "teardown": used},
        "memory": {"agent": Memory(rss=44.0, pss=30.0, pss_sum=540.0)},
        "load": {phase: Load(mean=0.5, own=0.5) for phase in ("formation", "steady", "teardown")},
    }
    return Run(**(chosen | fields))
