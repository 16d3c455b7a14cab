"""What one run measured, as it stands in a result file.

Invariant: a file says by itself what it was measured on; nothing in it is computed from another file.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import msgspec

PHASES = ("formation", "settling", "steady", "teardown", "afterwards")
"""Formation: from just before the domain is created until all pods are Ready and status shows all nodes Ready.
Settling: 2 s after it. Steady: the rest that follows. Teardown: until domain, pods and claims are gone.
Afterwards: the pause before the next run."""


class Requests(msgspec.Struct, kw_only=True, omit_defaults=True):
    """Requests by kind. A watch counts once, when it starts; Leases are apart."""

    writes: int = 0
    """Accepted ones, events included."""
    conflicts: int = 0
    """409 Conflict."""
    refused: int = 0
    """Writes refused for any other reason."""
    get: int = 0
    list: int = 0
    watch: int = 0
    lease: int = 0

    @property
    def mutating(self) -> int:
        """All writes, whatever became of them."""
        return self.writes + self.conflicts + self.refused

    @property
    def total(self) -> int:
        """Everything but Leases."""
        return self.mutating + self.get + self.list + self.watch


class Process(msgspec.Struct, kw_only=True):
    """What the processes of one kind used."""

    n: int
    cpu_s: float
    """Sum over them."""
    helpers_cpu_s: float = 0.0
    """Of the short-lived programs that they started and that have ended."""
    peak_rss_mib: float
    """Of the largest."""


class Memory(msgspec.Struct, kw_only=True):
    """Memory of the processes of one kind at rest, MiB."""

    rss: float = 0.0
    """Of the largest; 0 where it was not recorded."""
    pss: float
    """Of the largest: shared pages are divided among their users."""
    pss_sum: float


class Load(msgspec.Struct, kw_only=True):
    """How busy the machine was, as shares of all cores."""

    mean: float = 0.0
    """By anybody."""
    over90: float = 0.0
    """Share of the samples above 90 %."""
    stalled: float = 0.0
    """Share of the time in which some task waited for a core."""
    own: float = 0.0
    """By everything that this bench started, and itself; the rest is other people's work."""


class PodTimes(msgspec.Struct, kw_only=True, omit_defaults=True):
    """One workload pod, seconds after creation of the domain."""

    pod: str
    node: str
    calls: int = 0
    """Calls of Prepare."""
    bound: float | None = None
    """Its node's kubelet sees it."""
    called: float | None = None
    """First Prepare."""
    daemon_ready: float | None = None
    """The domain's daemon pod on the same node is Ready, for drivers that have one."""
    prepared: float | None = None
    """The channel is there."""
    running: float | None = None
    ready: float | None = None
    """Seen in the API."""


class Seconds(msgspec.Struct, kw_only=True):
    """Ends of the phases; formation after creation, teardown after deletion."""

    all_bound: float = 0.0
    all_prepared: float = 0.0
    all_ready: float = 0.0
    domain_ready: float = 0.0
    """Status shows all nodes Ready."""
    domain_gone: float = 0.0
    nothing_left: float = 0.0


class Machine(msgspec.Struct, kw_only=True):
    """What it was measured on."""

    cores: int
    cpu: str
    memory_gib: float
    kernel: str
    python: str
    nice: int
    load_before: float
    """Load average of the last minute when the run began."""
    loop_ms: float = 0.0
    """CPU time of a fixed loop in Python, the best of five: how fast a core was."""


class Run(msgspec.Struct, kw_only=True):
    """One formation, rest and teardown."""

    driver: str
    tag: str = ""
    nodes: int
    cliques: int
    pods_per_node: int = 1
    run: int
    date: str = ""
    server_version: str = ""
    settings: dict[str, bool | int | float | None] = {}
    machine: Machine | None = None
    problems: list[str] = []
    """What did not happen in time; empty when all went well."""
    left_behind: list[str] = []
    seconds: Seconds
    pods: list[PodTimes]
    imex_starts: list[float] = []
    """Seconds from the start of each node's IMEX process to READY, as the driver says; empty where it does not."""
    steps: dict[str, float] = {}
    """When requests of the driver's own reached the server, seconds after creation (teardown: after deletion)."""
    requests: dict[str, dict[str, Requests]]
    """By phase and component."""
    requests_detail: dict[str, dict[str, dict[str, int]]]
    """By phase, component and ``verb resource``."""
    watch_bytes: dict[str, dict[str, int]]
    """By phase and kind (``plural.group``): bytes of watch events sent to all watchers together."""
    processes: dict[str, dict[str, Process]]
    """By phase and kind of process."""
    memory: dict[str, Memory]
    load: dict[str, Load]
    """By phase."""

    @property
    def good(self) -> bool:
        """Whether the run ended as it should."""
        return not self.problems and not self.left_behind

    def sum(self, phase: str, components: Iterable[str]) -> Requests:
        """Requests of several components together."""
        total = Requests()
        for name in components:
            found = self.requests.get(phase, {}).get(name, Requests())
            for field in Requests.__struct_fields__:
                setattr(total, field, getattr(total, field) + getattr(found, field))
        return total

    def count(self, phase: str, components: Iterable[str], *, resource: str, verbs: Iterable[str]) -> int:
        """Requests of ``components`` with one of ``verbs`` on ``resource`` (status included), whatever the answer."""
        total = 0
        for name in components:
            for what, number in self.requests_detail.get(phase, {}).get(name, {}).items():
                verb, _, rest = what.partition(" ")
                if verb in verbs and rest.partition(" ")[0].partition("/")[0] == resource:
                    total += number
        return total


def write(run: Run, path: Path) -> None:
    """Store ``run``, readable for people."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(msgspec.json.format(msgspec.json.encode(run), indent=1) + b"\n")
