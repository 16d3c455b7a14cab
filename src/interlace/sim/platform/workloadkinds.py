"""Workload kinds as their controllers read them, with the status that they write.

Invariant: pod templates stay dicts, so that a pod is made from all of a template; status structs write their zeros,
because a merge patch keeps what it does not name.
"""

from __future__ import annotations

from typing import Any, ClassVar

from interlace.api.meta import ObjectMeta, Resource, Struct
from interlace.sim.platform.kinds import LabelSelector


class RollingUpdate(Struct, frozen=True):
    """``rollingUpdate`` of a Deployment or DaemonSet: numbers or percentages."""

    max_unavailable: int | str | None = None
    max_surge: int | str | None = None


class UpdateStrategy(Struct, frozen=True):
    """``strategy`` of a Deployment, ``updateStrategy`` of a DaemonSet or StatefulSet."""

    type: str = "RollingUpdate"
    rolling_update: RollingUpdate | None = None


class DeploymentSpec(Struct, frozen=True):
    """``apps/v1.DeploymentSpec`` in part; the template stays a dict."""

    selector: LabelSelector = LabelSelector()
    template: dict[str, Any] = {}
    replicas: int | None = None
    strategy: UpdateStrategy = UpdateStrategy()
    paused: bool = False
    revision_history_limit: int = 10


class DeploymentStatus(Struct, frozen=True, omit_defaults=False):
    """``apps/v1.DeploymentStatus``; zeros are written, because a merge patch keeps what it does not name."""

    observed_generation: int = 0
    replicas: int = 0
    updated_replicas: int = 0
    ready_replicas: int = 0
    available_replicas: int = 0
    unavailable_replicas: int = 0
    conditions: list[dict[str, Any]] = []


class Deployment(Struct, frozen=True):
    """``apps/v1.Deployment``."""

    resource: ClassVar[Resource] = Resource("apps", "v1", "deployments", "Deployment", True)
    metadata: ObjectMeta = ObjectMeta()
    spec: DeploymentSpec = DeploymentSpec()
    status: DeploymentStatus = DeploymentStatus()


class ReplicaSetSpec(Struct, frozen=True):
    """``apps/v1.ReplicaSetSpec``."""

    selector: LabelSelector = LabelSelector()
    template: dict[str, Any] = {}
    replicas: int | None = None


class ReplicaSetStatus(Struct, frozen=True, omit_defaults=False):
    """``apps/v1.ReplicaSetStatus``."""

    observed_generation: int = 0
    replicas: int = 0
    fully_labeled_replicas: int = 0
    ready_replicas: int = 0
    available_replicas: int = 0


class ReplicaSet(Struct, frozen=True):
    """``apps/v1.ReplicaSet``."""

    resource: ClassVar[Resource] = Resource("apps", "v1", "replicasets", "ReplicaSet", True)
    metadata: ObjectMeta = ObjectMeta()
    spec: ReplicaSetSpec = ReplicaSetSpec()
    status: ReplicaSetStatus = ReplicaSetStatus()


class StatefulSetSpec(Struct, frozen=True):
    """``apps/v1.StatefulSetSpec`` without volume claims."""

    selector: LabelSelector = LabelSelector()
    template: dict[str, Any] = {}
    replicas: int | None = None
    service_name: str = ""
    pod_management_policy: str = "OrderedReady"
    update_strategy: UpdateStrategy = UpdateStrategy()


class StatefulSetStatus(Struct, frozen=True, omit_defaults=False):
    """``apps/v1.StatefulSetStatus``."""

    observed_generation: int = 0
    replicas: int = 0
    ready_replicas: int = 0
    available_replicas: int = 0
    current_replicas: int = 0
    updated_replicas: int = 0
    current_revision: str = ""
    update_revision: str = ""


class StatefulSet(Struct, frozen=True):
    """``apps/v1.StatefulSet``."""

    resource: ClassVar[Resource] = Resource("apps", "v1", "statefulsets", "StatefulSet", True)
    metadata: ObjectMeta = ObjectMeta()
    spec: StatefulSetSpec = StatefulSetSpec()
    status: StatefulSetStatus = StatefulSetStatus()


class DaemonSetSpec(Struct, frozen=True):
    """``apps/v1.DaemonSetSpec`` in part."""

    selector: LabelSelector = LabelSelector()
    template: dict[str, Any] = {}
    update_strategy: UpdateStrategy = UpdateStrategy()


class DaemonSetStatus(Struct, frozen=True, omit_defaults=False):
    """``apps/v1.DaemonSetStatus``."""

    observed_generation: int = 0
    current_number_scheduled: int = 0
    desired_number_scheduled: int = 0
    number_misscheduled: int = 0
    number_ready: int = 0
    number_available: int = 0
    number_unavailable: int = 0
    updated_number_scheduled: int = 0


class DaemonSet(Struct, frozen=True):
    """``apps/v1.DaemonSet``."""

    resource: ClassVar[Resource] = Resource("apps", "v1", "daemonsets", "DaemonSet", True)
    metadata: ObjectMeta = ObjectMeta()
    spec: DaemonSetSpec = DaemonSetSpec()
    status: DaemonSetStatus = DaemonSetStatus()


class JobSpec(Struct, frozen=True):
    """``batch/v1.JobSpec`` in part."""

    selector: LabelSelector | None = None
    template: dict[str, Any] = {}
    parallelism: int | None = None
    completions: int | None = None
    completion_mode: str = "NonIndexed"
    backoff_limit: int = 6
    suspend: bool = False


class JobStatus(Struct, frozen=True, omit_defaults=False):
    """``batch/v1.JobStatus`` in part."""

    active: int = 0
    ready: int = 0
    succeeded: int = 0
    failed: int = 0
    terminating: int = 0
    completed_indexes: str = ""
    start_time: str | None = None
    completion_time: str | None = None
    conditions: list[dict[str, Any]] = []


class Job(Struct, frozen=True):
    """``batch/v1.Job``."""

    resource: ClassVar[Resource] = Resource("batch", "v1", "jobs", "Job", True)
    metadata: ObjectMeta = ObjectMeta()
    spec: JobSpec = JobSpec()
    status: JobStatus = JobStatus()
