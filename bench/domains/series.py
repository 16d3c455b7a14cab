"""What a series of runs is made of: the same for every driver, so that two of them can be compared."""

from __future__ import annotations

from pathlib import Path

import msgspec

HERE = Path(__file__).parent
RESULTS = HERE / "results"


class Series(msgspec.Struct, frozen=True, kw_only=True):
    """Settings of one series. Times in seconds."""

    out: Path
    """Folder of the result files."""
    sizes: tuple[int, ...] = (2, 9, 18, 36)
    """Numbers of nodes; a new cluster for each."""
    runs: int = 3
    warmup: int = 1
    """Runs before the measured ones; kept as run 0 and left out of reports."""
    per_clique: int = 18
    pods_per_node: int = 1
    imex_start: float = 0.05
    """From the start of a simulated ``nvidia-imex`` until it is READY."""
    platform_rate: int | None = None
    """Client rate of scheduler and controller-manager, requests a second; None is the platform's own."""
    volume_wait: float = 0.0
    """From a pod's binding to its first Prepare. A real kubelet waits 0.31 s for volumes; 0 is how the known driver
    was measured."""
    steady: float = 10.0
    """How long the formed domain is watched at rest."""
    pause: float = 5.0
    """Rest before the first and after each run."""
    limit: float = 180.0
    """For each phase."""
    together: bool = False
    """Our components in the process of the hollow nodes, as the prototype that the budgets of time come from had them,
    instead of one process each: two cores are then not shared by sixty programs."""
    tag: str = ""
    """Part of the names of the result files; tells series with different settings apart."""
    driver_programs: Path | None = None
    """Folder of the programs of a driver that is not ours."""
    driver_source: Path | None = None
    """Its source tree, for CRDs and templates."""

    def file(self, *, driver: str, nodes: int, run: int) -> Path:
        """Where the result of one run goes."""
        return self.out / f"{self._prefix(driver, nodes)}{run}.json"

    def clear(self, *, driver: str, nodes: int) -> None:
        """Remove results of an earlier series of this name and size, so that two never make one median."""
        for path in self.out.glob(f"{self._prefix(driver, nodes)}*.json"):
            path.unlink()

    def _prefix(self, driver: str, nodes: int) -> str:
        tag = f"-{self.tag}" if self.tag else ""
        return f"{driver}{tag}-n{nodes:03d}-r"

    def cliques(self, nodes: int) -> int:
        """NVLink partitions that so many nodes are in."""
        return -(-nodes // self.per_clique)
