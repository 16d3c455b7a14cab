"""A Kubernetes control plane as demo, tests and benchmarks see it.

There are two: the embedded API server with stand-ins around it, and real etcd,
kube-apiserver, kube-scheduler and kube-controller-manager. Both hand out credentials for
any user and tell afterwards who asked for what, so that the same scenario runs on both and
its cost is counted by the server and not by those who caused it.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Protocol

import msgspec

if TYPE_CHECKING:
    from interlace.kube.config import Config

Verb = Literal["get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"]


class AuditRecord(msgspec.Struct, frozen=True, kw_only=True):
    """One request as the server saw it: a watch when it started, others when they were answered."""

    time: float
    """When the request was received, seconds since the epoch."""
    user: str
    verb: str
    resource: str
    """Plural, or the path of a request that names no resource."""
    code: int
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    reason: str = ""
    """``reason`` of the Status that was answered, if one was."""
    user_agent: str = ""


class Plane(Protocol):
    """A running control plane."""

    @property
    def kind(self) -> Literal["embedded", "real"]:
        """``embedded`` is simulated, ``real`` is not."""
        ...

    @property
    def url(self) -> str:
        """Base URL of the API server, on loopback."""
        ...

    @property
    def version(self) -> str:
        """Version that the API server reports, e.g. ``v1.36.3``."""
        ...

    @property
    def kubeconfig(self) -> Path:
        """File for kubectl, as a member of ``system:masters``."""
        ...

    def credentials(self, user: str, *, groups: Sequence[str] = ()) -> Config:
        """Credentials that authenticate as ``user`` in ``groups``."""
        ...

    def audit(self) -> list[AuditRecord]:
        """All requests since the start, in the order in which they were recorded."""
        ...
