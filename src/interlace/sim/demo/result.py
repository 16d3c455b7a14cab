"""What a demonstration measured, in the documented JSON form."""

from __future__ import annotations

import msgspec


class Requests(msgspec.Struct, kw_only=True):
    """Requests by kind; Leases apart. ``write`` holds every mutating call, ``conflict`` the 409s among them."""

    get: int = 0
    list: int = 0
    watch: int = 0
    write: int = 0
    conflict: int = 0

    @property
    def total(self) -> int:
        """All of them; conflicts are writes already."""
        return self.get + self.list + self.watch + self.write


class Cost(msgspec.Struct, kw_only=True):
    """Requests by who made them."""

    ours: Requests = msgspec.field(default_factory=Requests)
    """By the components of Interlace."""
    platform: Requests = msgspec.field(default_factory=Requests)
    """By scheduler, controllers and kubelets."""


class Teardown(msgspec.Struct, kw_only=True):
    """The cost of deletion."""

    seconds: float | None = None
    """Until Pods, claims and domain were gone."""
    requests: Cost = msgspec.field(default_factory=Cost)


class Result(msgspec.Struct, kw_only=True):
    """The JSON document of ``interlace demo --json``. Times in seconds; null where it was not reached."""

    server: str
    """``embedded`` (simulated) or ``real``."""
    server_version: str = ""
    """As the API server reports it."""
    nodes: int
    """Simulated GPU nodes."""
    pods_ready: int = 0
    """Pods of the job that were Ready with the domain: those whose kubelets reported a moment later included."""
    domain_status: str = "NotReady"
    """``status.status`` of the domain then."""
    formation_seconds: float | None = None
    """From just before the creation of domain and job until then."""
    first_channel_seconds: float | None = None
    """From the same start until the first channel was prepared."""
    last_channel_seconds: float | None = None
    """Until the last one was."""
    heal_seconds: float | None = None
    """From the power cut of a node until the domain was whole again."""
    requests: Cost = msgspec.field(default_factory=Cost)
    """Of the formation."""
    teardown: Teardown = msgspec.field(default_factory=Teardown)
    left_behind: list[str] = []
    """What is there after the end and was not there before the start."""
    components: dict[str, Requests] = {}
    """Requests of the formation by component."""
    simulated: list[str] = []
    """What was not real."""
    problems: list[str] = []
    """Why the end state is wrong; empty when all is well."""

    @property
    def good(self) -> bool:
        """Whether everything ended as it should."""
        return not self.problems and not self.left_behind


def encode(result: Result) -> str:
    """The document on one line."""
    return msgspec.json.encode(result).decode()
