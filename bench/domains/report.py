"""The page of what was measured: ours beside the budgets and beside the known driver's recorded figures.

Pure: runs in, Markdown out. Cells are the median of the runs with the smallest and the largest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from bench.domains.budgets import BUDGETS, CLIQUES
from bench.domains.record import Requests, Run
from bench.domains.usage import total_cpu
from bench.domains.world import PLATFORM
from bench.figures import NONE, Figure, ratio, table, verdict

OURS, KNOWN = "interlace", "upstream"
COMPONENTS: Mapping[str, tuple[str, ...]] = {
    OURS: ("controller", "agent", "imex-host"),
    KNOWN: ("controller", "plugin", "daemon"),
}
"""Who of a driver asks the API server."""
LABELS = {OURS: "Interlace", KNOWN: "known driver"}
_KINDS = ("mutating", "conflicts", "get", "list", "watch", "total")
_WATCHED = {
    "cliques": CLIQUES,
    "domains": "computedomains.resource.nvidia.com",
    "claims": "resourceclaims.resource.k8s.io",
    "pods": "pods",
    "nodes": "nodes",
    "slices": "resourceslices.resource.k8s.io",
}
_ENDS = ("all_bound", "all_prepared", "all_ready", "domain_ready", "domain_gone", "nothing_left")
_STAGES = ("bound", "called", "daemon_ready", "prepared", "ready")

Sizes = Mapping[int, Sequence[Run]]


def select(runs: Iterable[Run], *, driver: str, tag: str = "") -> dict[int, list[Run]]:
    """Runs of one series by number of nodes, in order."""
    found: dict[int, list[Run]] = {}
    for run in runs:
        if run.driver == driver and run.tag == tag:
            found.setdefault(run.nodes, []).append(run)
    return dict(sorted(found.items()))


def tags(runs: Iterable[Run], *, driver: str) -> list[str]:
    """Side series of a driver."""
    return sorted({run.tag for run in runs if run.driver == driver and run.tag})


def budgets(sizes: Sizes) -> str:
    """Every budget that is set for one of the sizes, with what was measured."""
    rows = []
    for nodes, runs in sizes.items():
        for budget in BUDGETS:
            limits = Figure.of(budget.limit(run) for run in runs)
            if not limits:
                continue
            limit = limits.median
            figure = Figure.of(budget.measure(run, COMPONENTS[run.driver]) for run in runs)
            shown = f"{limit:.{budget.digits}f}"
            rows.append([nodes, budget.what, figure.text(budget.digits), shown, verdict(figure, limit)])
    return table(["nodes", "what", "measured", "budget", ""], rows)


def comparison(ours: Sizes, known: Sizes) -> str:
    """The figures that decide, side by side; ratios by medians."""
    measures: Sequence[tuple[str, int, Callable[[Run], float]]] = (
        ("requests to form", 0, lambda run: run.sum("formation", COMPONENTS[run.driver]).total),
        ("conflicts", 0, lambda run: run.sum("formation", COMPONENTS[run.driver]).conflicts),
        ("requests to tear down", 0, lambda run: run.sum("teardown", COMPONENTS[run.driver]).total),
        ("last channel prepared, s", 2, lambda run: run.seconds.all_prepared),
        ("status shows all nodes Ready, s", 2, lambda run: run.seconds.domain_ready),
        ("domain gone, s", 2, lambda run: run.seconds.domain_gone),
        ("nothing left, s", 2, lambda run: run.seconds.nothing_left),
        ("clique watch traffic, kB", 0, lambda run: run.watch_bytes["formation"].get(CLIQUES, 0) / 1000),
        ("CPU of the driver to form, s", 2, _driver_cpu),
        ("CPU of kube-apiserver to form, s", 2, lambda run: run.processes["formation"]["kube-apiserver"].cpu_s),
        (
            "scheduler's and controller-manager's requests to form",
            0,
            lambda run: run.sum("formation", PLATFORM[:2]).total,
        ),
    )
    rows = []
    for nodes in sorted(set(ours) & set(known)):
        for what, digits, measure in measures:
            left, right = (Figure.of(measure(run) for run in sizes[nodes]) for sizes in (ours, known))
            rows.append([nodes, what, left.text(digits), right.text(digits), ratio(left, right)])
    return table(["nodes", "what", LABELS[OURS], f"{LABELS[KNOWN]} (recorded)", "ratio"], rows)


def times(sizes: Sizes) -> str:
    """Ends of the phases."""
    rows = []
    for nodes, runs in sizes.items():
        pods = Figure.of(pod.prepared for run in runs for pod in run.pods)
        seconds = [run.seconds for run in runs]
        rows.append(
            [
                nodes,
                runs[0].cliques,
                pods.text(2),
                Figure.of(start for run in runs for start in run.imex_starts).text(2),
                *(Figure.of(getattr(one, field) for one in seconds).text(2) for field in _ENDS),
                sum(not run.good for run in runs),
            ]
        )
    head = [
        "nodes",
        "cliques",
        "channel of a pod",
        "start of IMEX",
        "all bound",
        "all channels",
        "all pods Ready",
        "status Ready",
    ]
    return table([*head, "domain gone", "nothing left", "failed runs"], rows)


def stages(sizes: Sizes) -> str:
    """Where a pod's time goes: medians over pods and runs."""
    rows = []
    for nodes, runs in sizes.items():
        pods = [pod for run in runs for pod in run.pods]
        moments = {stage: Figure.of(getattr(pod, stage) for pod in pods) for stage in _STAGES}
        waits = Figure.of(
            pod.prepared - pod.called for pod in pods if pod.prepared is not None and pod.called is not None
        )
        rows.append([nodes, *(f"{moments[s].median:.2f}" if moments[s] else NONE for s in _STAGES), waits.text(2)])
    head = ["nodes", "bound", "Prepare called", "daemon Ready", "prepared", "pod Ready", "in Prepare (range)"]
    return table(head, rows)


def steps(sizes: Sizes, *, phase: str) -> str:
    """When the driver's own writes reached the server, for the largest size of one clique."""
    runs = _largest(sizes)
    names = [name for name in runs[0].steps if name.startswith(f"{phase}: ")]
    names.sort(key=lambda name: runs[0].steps[name])
    rows = [[name.removeprefix(f"{phase}: "), Figure.of(run.steps.get(name) for run in runs).text(2)] for name in names]
    return table([f"{runs[0].nodes} nodes, {phase}", "s"], rows)


def requests(sizes: Sizes, *, phase: str) -> str:
    """Requests by component and kind."""
    rows = []
    for nodes, runs in sizes.items():
        own = COMPONENTS[runs[0].driver]
        groups: list[tuple[str, tuple[str, ...]]] = [(name, (name,)) for name in own]
        groups += [("**driver**", own)]
        groups += [(name, (name,)) for name in PLATFORM]
        groups += [("**platform**", PLATFORM)]
        for label, components in groups:
            counts = [run.sum(phase, components) for run in runs]
            if any(count.total for count in counts) or label.startswith("**"):
                rows.append([nodes, label, *_kinds(counts), f"{Figure.of(c.total for c in counts).median / nodes:.1f}"])
    return table(["nodes", "client", "writes", "conflicts", "GET", "LIST", "WATCH", "all", "per node"], rows)


def details(sizes: Sizes) -> str:
    """The driver's requests of the largest size of one clique, one by one."""
    runs = _largest(sizes)
    rows = []
    for phase in ("formation", "settling", "steady", "teardown", "afterwards"):
        for component in COMPONENTS[runs[0].driver]:
            whats = dict.fromkeys(
                what for run in runs for what in run.requests_detail.get(phase, {}).get(component, {})
            )
            for what in whats:
                if "leases" not in what:
                    counts = [run.requests_detail.get(phase, {}).get(component, {}).get(what, 0) for run in runs]
                    rows.append([phase, component, what, Figure.of(counts).text()])
    return table([f"{runs[0].nodes} nodes", "client", "request", "times"], rows)


def traffic(sizes: Sizes) -> str:
    """Bytes of watch events by kind."""
    rows = []
    for phase in ("formation", "teardown"):
        for nodes, runs in sizes.items():
            cells = [
                Figure.of(run.watch_bytes.get(phase, {}).get(kind, 0) / 1000 for run in runs).text()
                for kind in _WATCHED.values()
            ]
            rows.append([phase, nodes, *cells])
    return table(["kB", "nodes", *_WATCHED], rows)


def resources(sizes: Sizes) -> str:
    """CPU and memory by kind of process."""
    rows = []
    for nodes, runs in sizes.items():
        for kind in runs[0].processes["formation"]:
            formed = [run.processes["formation"][kind] for run in runs if kind in run.processes["formation"]]
            rested = [run.processes["steady"][kind] for run in runs if kind in run.processes["steady"]]
            memory = [run.memory[kind] for run in runs if kind in run.memory]
            helpers = Figure.of(p.helpers_cpu_s for p in formed)
            rows.append(
                [
                    nodes,
                    kind,
                    formed[0].n,
                    Figure.of(p.cpu_s for p in formed).text(2),
                    helpers.text(2) if any(helpers.values) else NONE,
                    Figure.of(p.cpu_s + p.helpers_cpu_s for p in rested).text(2),
                    f"{max(p.peak_rss_mib for p in rested):.0f}" if rested else NONE,
                    f"{max(m.pss for m in memory):.0f}" if memory else NONE,
                ]
            )
    head = ["nodes", "process", "count", "CPU to form, s", "of its helpers, s", "CPU at rest, s", "peak RSS, MiB"]
    return table([*head, "PSS at rest, MiB"], rows)


def load(sizes: Sizes) -> str:
    """What the machine was doing meanwhile, in percent of all cores."""
    rows = []
    for nodes, runs in sizes.items():

        def share(phase: str, field: str, runs: Sequence[Run] = runs) -> str:
            return Figure.of(100 * getattr(run.load[phase], field) for run in runs).text()

        before = Figure.of(run.machine.load_before for run in runs if run.machine is not None)
        rows.append(
            [
                nodes,
                share("formation", "mean"),
                share("formation", "own"),
                share("formation", "over90"),
                share("formation", "stalled"),
                share("steady", "mean"),
                share("teardown", "mean"),
                before.text(1),
            ]
        )
    head = ["nodes", "forming: busy", "of it this bench", "samples over 90 %", "some task waited", "rest: busy"]
    return table([*head, "teardown: busy", "load average before"], rows)


def floor(sizes: Sizes) -> str:
    """The time below which this machine cannot form a domain: CPU of everything over its cores."""
    rows = []
    for nodes, runs in sizes.items():
        known = [run for run in runs if run.machine is not None]
        used = [total_cpu(run.processes["formation"]) for run in known]
        server = Figure.of(run.processes["formation"]["kube-apiserver"].cpu_s for run in known)
        least = Figure.of(
            seconds / run.machine.cores for seconds, run in zip(used, known, strict=True) if run.machine is not None
        )
        taken = Figure.of(run.seconds.all_prepared for run in known)
        rows.append([nodes, Figure.of(used).text(2), server.text(2), least.text(2), taken.text(2)])
    head = ["nodes", "CPU of everything to form, s", "of it kube-apiserver, s", "over the cores, s", "taken, s"]
    return table(head, rows)


def _largest(sizes: Sizes) -> Sequence[Run]:
    """The runs with the most nodes in one clique, else the most nodes."""
    single = [runs for runs in sizes.values() if runs[0].cliques == 1]
    return (single or list(sizes.values()))[-1]


def _kinds(counts: Sequence[Requests]) -> list[str]:
    return [Figure.of(getattr(count, kind) for count in counts).text() for kind in _KINDS]


def _driver_cpu(run: Run) -> float:
    """Its programs with their helpers; IMEX itself is not the driver's."""
    kinds = {OURS: COMPONENTS[OURS], KNOWN: (*COMPONENTS[KNOWN], "probe programs")}[run.driver]
    used = run.processes["formation"]
    return sum(used[kind].cpu_s + used[kind].helpers_cpu_s for kind in kinds if kind in used)
