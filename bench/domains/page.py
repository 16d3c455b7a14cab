"""``docs/performance.md``: the tables of `report` with what a reader must know to judge them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from bench import cli, footprint
from bench.domains import report
from bench.domains.record import Run
from bench.figures import Figure

_HEAD = """# Performance

Written by `python -m bench.domains report` from the result files in `bench/`; do not edit. `make bench` measures anew.

Cells are the median of the runs, with the smallest and the largest. A budget is met or missed by the median.
"""

_METHOD = """## How it is measured

`bench/domains` starts real etcd, kube-apiserver, kube-scheduler and kube-controller-manager on loopback,
installs what is in `deploy/`, and gives each hollow node one real `interlace serve agent` and one real
`interlace serve imex-host` process, plus one `interlace serve controller` for all. They authenticate with their
own service account tokens, bound to Pod and node. A user then creates a ComputeDomain and a Deployment of one
pod a node, waits, and deletes both.

| phase | from | until |
| --- | --- | --- |
| formation | just before the ComputeDomain is created | all pods are Ready and status shows all nodes Ready |
| settling | then | 2 s later |
| rest | then | {steady:.0f} s later |
| teardown | both are deleted | domain, pods and claims are gone |
| afterwards | then | the pause before the next run; a full listing of the cluster must be what it was before |

Requests are counted by the API server's audit log and told apart by user. A watch counts once, when it starts;
Leases are apart; events count as writes; writes include refused ones, and conflicts are the 409s among them.
Watch traffic is the API server's own metric and covers all watchers of a kind. One warm-up run a size is left
out.

**Simulated:** kubelets (they call Prepare as a kubelet does, apply CDI to a record, and start no container),
GPUs (a C library in NVML's place that reports fabric information), `nvidia-imex` (a Python program with the
documented behaviour and real TCP connections between all nodes, READY {imex:.0f} ms after its start).
Everything else is real.
"""

_CAVEATS = """## What to keep in mind

* **One machine for all.** {nodes} agents, as many imex-hosts and simulated `nvidia-imex`, the control plane and
  the hollow kubelets share {cores} cores; a real cluster has them on separate machines. The table of the load
  says how busy the cores were and with what; where it shows others' work or more than three quarters busy, read
  counts, not times.
* **From 18 nodes on, CPU decides the time here**, see [what the cores allow](#what-the-cores-allow): where its last
  two columns come near each other, the figure is that of two cores doing the work of all machines.
* **The budgets of time come from a prototype whose agents shared one process.** The side series `together` has our
  components in the process of the hollow nodes likewise, so two cores are not shared by sixty programs.
* **The known driver's figures were recorded earlier** on a machine of the same size, with Kubernetes 1.36.2, by
  the harness that this one grew out of ([bench/domains/README.md](../bench/domains/README.md)); they are not
  from the same hour. Counts compare well, times only in size. Its kubelet model asked GET and PATCH for each
  status, ours PATCH alone, so kubelets' requests are not compared. Its stand-in for IMEX was a C program
  without peers; ours is a Python program that connects to all peers, which costs ours more.
* **IMEX READY after {imex:.0f} ms** says nothing about real IMEX, whose start adds to every line for both
  drivers.
* **No wait for volumes** in the main series, as in the recorded one: the hollow kubelet calls Prepare as soon
  as it sees the pod. A real kubelet takes 0.31 s; the side series `kubelet-wait` has it.
* **No images, no CNI, no container runtime, no network.** etcd runs without fsync; round trips on loopback take
  less than 1 ms. Scheduler and controller-manager run at their own default client rates. Ours was measured on a
  control plane with `GOGC=400`, the known driver on one with Go's default, which costs about 0.15 s more to form.
* **36 Pods on 18 nodes wait for the platform.** At its own rate of 20 requests a second the controller-manager notes
  the last claim in its Pod 2.1 to 2.2 s after creation, so 0.3 s of the budget are left for scheduler and Prepare.
* Each agent reads NVML in a short-lived process every 30 s, and agents that were started together read together.
  On one machine such a round fills all cores for a second or more, so a run begins when one has just ended.
* Three runs are few: the spread of a cell is the spread of three.
"""


def render(runs: Sequence[Run], *, starts: cli.Starts | None = None, idle: footprint.Footprint | None = None) -> str:
    """The whole page. ``runs`` hold at least one of ours."""
    ours = report.select(runs, driver=report.OURS)
    known = report.select(runs, driver=report.KNOWN)
    some = next(iter(ours.values()))[0]
    cores = some.machine.cores if some.machine else 0
    imex = 1000 * float(some.settings.get("imex_start") or 0.0)
    parts = [
        _HEAD,
        "## Budgets\n",
        report.budgets(ours),
        _phases(ours),
        "## Beside the known driver\n",
        report.comparison(ours, known),
        _METHOD.format(steady=_length(ours), imex=imex),
        _machine(runs),
        _CAVEATS.format(nodes=max(ours), cores=cores, imex=imex),
        "## Times, seconds\n",
        report.times(ours),
        "The known driver (recorded):\n",
        report.times(known),
        "## Where a pod's time goes, seconds after creation\n",
        report.stages(ours),
        "The known driver (recorded; it waits for a daemon pod on the node):\n",
        report.stages(known),
        "When the requests of our components reached the server:\n",
        report.steps(ours, phase="formation"),
        report.steps(ours, phase="teardown"),
        "## Requests, formation\n",
        report.requests(ours, phase="formation"),
        "The known driver (recorded):\n",
        report.requests(known, phase="formation"),
        "## Requests, teardown\n",
        report.requests(ours, phase="teardown"),
        "The known driver (recorded):\n",
        report.requests(known, phase="teardown"),
        "## Our requests one by one\n",
        report.details(ours),
        "## Watch traffic to all watchers\n",
        report.traffic(ours),
        "The known driver (recorded):\n",
        report.traffic(known),
        "## CPU and memory\n",
        report.resources(ours),
        "The known driver (recorded):\n",
        report.resources(known),
        "## What the cores allow\n",
        "A domain cannot form faster here than all cores can do the work of all machines:\n",
        report.floor(ours),
        "## Load of the machine, %\n",
        report.load(ours),
        "The known driver (recorded):\n",
        report.load(known),
        *_side_series(runs),
        *_programs(starts, idle),
    ]
    return "\n".join(part.rstrip("\n") + "\n" for part in parts if part)


def _phases(sizes: report.Sizes) -> str:
    """What the formation leaves to later, so that nothing hides between two phases."""
    cells = []
    for nodes, runs in sizes.items():
        later = [
            sum(run.sum(phase, report.COMPONENTS[run.driver]).total for phase in ("settling", "steady", "afterwards"))
            for run in runs
        ]
        cells.append(f"{nodes} nodes: {Figure.of(later).text()}")
    return (
        "Requests of our components outside formation and teardown (settling, rest and afterwards together): "
        + "; ".join(cells)
        + ".\n"
    )


def _length(sizes: report.Sizes) -> float:
    some = next(iter(sizes.values()))[0]
    return float(some.settings.get("steady") or 0.0)


def _machine(runs: Iterable[Run]) -> str:
    ours = [run for run in runs if run.driver == report.OURS and run.machine is not None]
    if not ours or ours[0].machine is None:
        return ""
    machine = ours[0].machine
    dates = sorted(run.date[:10] for run in ours)
    when = dates[0] if dates[0] == dates[-1] else f"{dates[0]} to {dates[-1]}"
    loops = Figure.of(run.machine.loop_ms for run in ours if run.machine is not None).text(1)
    niceness = sorted({run.machine.nice for run in ours if run.machine is not None})
    yields = sorted({int(run.settings.get("nodes_yield") or 0) for run in ours})
    nodes = "" if yields == [0] else f", the programs of nodes {' or '.join(map(str, yields))} nicer"
    return (
        "## Machine\n\n"
        f"{machine.cores} cores ({machine.cpu}), {machine.memory_gib:.0f} GiB, Linux {machine.kernel}, "
        f"Python {machine.python}, Kubernetes {ours[0].server_version}; bench at nice "
        f"{', '.join(map(str, niceness))}{nodes}; measured {when}. "
        f"A loop of 100,000 multiplications and additions in Python took {loops} ms of CPU.\n"
    )


def _side_series(runs: Sequence[Run]) -> list[str]:
    parts = []
    for tag in report.tags(runs, driver=report.OURS):
        sizes = report.select(runs, driver=report.OURS, tag=tag)
        some = next(iter(sizes.values()))[0]
        settings = ", ".join(
            f"{name.replace('_', ' ')} {'default' if value is None else value}" for name, value in some.settings.items()
        )
        parts += [
            f"## Side series {tag}\n",
            f"{some.pods_per_node} pod(s) a node; {settings}.\n",
            report.budgets(sizes),
            report.times(sizes),
            report.load(sizes),
        ]
    return parts


def _programs(starts: cli.Starts | None, idle: footprint.Footprint | None) -> list[str]:
    parts = []
    if starts is not None:
        parts += [
            "## Start of the command\n",
            f"{cli.STARTS} starts each, Python {starts.python}, load average before {starts.load_before}.\n",
            cli.render(starts),
        ]
    if idle is not None:
        parts += [
            "## Memory of idle components\n",
            f"{idle.nodes} hollow nodes beside the embedded (simulated) API server, no domain, Python {idle.python}.\n",
            footprint.render(idle),
        ]
    return parts
