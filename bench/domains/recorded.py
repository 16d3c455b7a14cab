"""Result files as they are stored: those of this bench, and those of the harness that it grew out of.

The known driver was measured with the older harness; its files are in ``results/upstream``. They are read
into the same form. Invariant: what an old file does not have stays empty, it is never guessed.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec

from bench.domains.record import Load, Memory, PodTimes, Process, Requests, Run, Seconds

_COMPONENTS = {"kcm": "controller-manager", "hollow-kubelet": "kubelet"}


class ResultError(ValueError):
    """A result file that cannot be read; the message names it."""


def read(path: Path) -> Run:
    """The run in ``path``. Raises ResultError."""
    try:
        raw = msgspec.json.decode(path.read_bytes())
        if not isinstance(raw, dict) or "driver" not in raw:
            raise ResultError(f"{path} is no result of a run: it has no field driver")
        return _convert(raw) if "ok" in raw else msgspec.convert(raw, Run)
    except (OSError, msgspec.DecodeError, msgspec.ValidationError, KeyError) as error:
        raise ResultError(f"{path} cannot be read as the result of a run: {error}") from None


def read_all(folders: Iterable[Path]) -> list[Run]:
    """All runs in ``folders``, warm-ups left out, by driver, tag, size and number."""
    runs = [read(path) for folder in folders for path in sorted(folder.glob("*-n*-r*.json"))]
    measured = [run for run in runs if run.run > 0]
    return sorted(measured, key=lambda run: (run.driver, run.tag, run.nodes, run.run))


def _convert(raw: dict[str, Any]) -> Run:
    seconds = raw["seconds"]
    pods = [_pod(entry) for entry in raw["pods"]]
    return Run(
        driver=raw["driver"],
        tag=raw["tag"],
        nodes=raw["nodes"],
        cliques=raw["cliques"],
        run=raw["run"],
        problems=[] if raw["ok"] else ["not all channels were prepared in time"],
        left_behind=raw["leftovers"],
        seconds=Seconds(
            all_bound=max((pod.bound for pod in pods if pod.bound is not None), default=0.0),
            all_prepared=seconds["all_prepared"],
            all_ready=seconds["all_ready"],
            domain_ready=seconds["domain_ready"],
            domain_gone=seconds["teardown_domain_gone"],
            nothing_left=seconds["teardown_nothing_left"],
        ),
        pods=pods,
        requests={
            phase: {_COMPONENTS.get(name, name): _requests(counts) for name, counts in table.items()}
            for phase, table in raw["requests"].items()
        },
        requests_detail={
            phase: {_COMPONENTS.get(name, name): counts for name, counts in table.items()}
            for phase, table in raw["requests_detail"].items()
        },
        watch_bytes={
            phase: {_kind(name): entry["bytes"] for name, entry in table.items()}
            for phase, table in raw["watch_bytes"].items()
        },
        processes={
            phase: {
                name: Process(n=p["n"], cpu_s=p["cpu_s"], peak_rss_mib=p["peak_rss_mib"]) for name, p in table.items()
            }
            for phase, table in raw["processes"].items()
        },
        memory={name: Memory(pss=largest, pss_sum=total) for name, (largest, total) in raw.get("pss_mib", {}).items()},
        load={
            phase: Load(
                mean=entry.get("mean", 0.0),
                over90=entry.get("over90", 0.0),
                stalled=entry.get("stalled", 0.0),
                own=entry.get("own", 0.0),
            )
            for phase, entry in raw["cpu"].items()
        },
    )


def _pod(entry: dict[str, Any]) -> PodTimes:
    return PodTimes(
        pod=entry["pod"],
        node=entry["node"],
        calls=entry["calls"],
        bound=entry.get("bound"),
        called=entry.get("call"),
        daemon_ready=entry.get("daemon_ready"),
        prepared=entry.get("prepared"),
        ready=entry.get("ready"),
    )


def _requests(counts: dict[str, int]) -> Requests:
    return Requests(
        writes=counts.get("writes", 0),
        conflicts=counts.get("conflicts", 0),
        refused=counts.get("exists", 0) + counts.get("other errors", 0),
        get=counts.get("get", 0),
        list=counts.get("list", 0),
        watch=counts.get("watch", 0),
        lease=counts.get("lease", 0),
    )


def _kind(name: str) -> str:
    """``group/plural`` as ``plural.group``."""
    group, _, plural = name.rpartition("/")
    return f"{plural}.{group}" if group else plural
