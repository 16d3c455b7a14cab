"""Which kinds of objects make Pods, and where in them the Pod templates are.

A path has the names of fields between dots; ``[*]`` stands for each entry of a list, ``*`` for each value of a
mapping. The empty path is the object itself. Invariant: a kind that is not here and holds a Pod template with GPUs
is never passed over in silence (see ``hidden``).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from interlace.pods.errors import InjectError, join
from interlace.pods.gpus import RESOURCE

_TEMPLATE: Final = ("spec.template",)
_REPLICATED: Final = "replicatedJobs[*].template.spec.template"
_RAY: Final = ("headGroupSpec.template", "workerGroupSpecs[*].template")

PATHS: Final[Mapping[tuple[str, str], tuple[str, ...]]] = {
    ("", "Pod"): ("",),
    ("", "PodTemplate"): ("template",),
    ("", "ReplicationController"): _TEMPLATE,
    ("batch", "Job"): _TEMPLATE,
    ("batch", "CronJob"): ("spec.jobTemplate.spec.template",),
    ("apps", "Deployment"): _TEMPLATE,
    ("apps", "StatefulSet"): _TEMPLATE,
    ("apps", "DaemonSet"): _TEMPLATE,
    ("apps", "ReplicaSet"): _TEMPLATE,
    ("jobset.x-k8s.io", "JobSet"): (f"spec.{_REPLICATED}",),
    ("kubeflow.org", "MPIJob"): ("spec.mpiReplicaSpecs.*.template",),
    ("kubeflow.org", "PyTorchJob"): ("spec.pytorchReplicaSpecs.*.template",),
    ("kubeflow.org", "TFJob"): ("spec.tfReplicaSpecs.*.template",),
    ("kubeflow.org", "JAXJob"): ("spec.jaxReplicaSpecs.*.template",),
    ("ray.io", "RayCluster"): tuple(f"spec.{path}" for path in _RAY),
    ("ray.io", "RayJob"): (*(f"spec.rayClusterSpec.{path}" for path in _RAY), "spec.submitterPodTemplate"),
    ("ray.io", "RayService"): tuple(f"spec.rayClusterConfig.{path}" for path in _RAY),
    ("leaderworkerset.x-k8s.io", "LeaderWorkerSet"): (
        "spec.leaderWorkerTemplate.leaderTemplate",
        "spec.leaderWorkerTemplate.workerTemplate",
    ),
    ("trainer.kubeflow.org", "TrainingRuntime"): (f"spec.template.spec.{_REPLICATED}",),
    ("trainer.kubeflow.org", "ClusterTrainingRuntime"): (f"spec.template.spec.{_REPLICATED}",),
    ("trainer.kubeflow.org", "TrainJob"): (),
    ("batch.volcano.sh", "Job"): ("spec.tasks[*].template",),
}
"""Group and kind to paths. A TrainJob has no Pod template of its own: its runtime has."""

_STEP: Final = re.compile(r"(?:[A-Za-z_][A-Za-z0-9_-]*|\*)(?:\[\*\])?\Z")


def group_and_kind(document: Mapping[str, Any]) -> tuple[str, str]:
    """``("apps", "Deployment")``; empty texts for what is missing."""
    api, kind = document.get("apiVersion"), document.get("kind")
    group = api.rpartition("/")[0] if isinstance(api, str) else ""
    return group, kind if isinstance(kind, str) else ""


def steps(path: str) -> tuple[str, ...]:
    """A path in its parts. Raises ValueError."""
    if not path:
        return ()
    found: list[str] = []
    for part in path.split("."):
        if not _STEP.match(part):
            raise ValueError(f"{path!r} is no path to a Pod template; write it like spec.tasks[*].template")
        name, star, _ = part.partition("[*]")
        found.append(name)
        if star:
            found.append("[*]")
    return tuple(found)


def places(document: Any, path: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Where the Pod templates of ``path`` are, and the templates. Raises InjectError for one that is no mapping."""
    yield from _walk(document, steps(path), "")


def _walk(value: Any, left: tuple[str, ...], at: str) -> Iterator[tuple[str, dict[str, Any]]]:
    if value is None:
        return
    if not left:
        if not isinstance(value, dict):
            raise InjectError(at, value, "a Pod template is a mapping with a spec", "write one")
        yield at, value
        return
    first, rest = left[0], left[1:]
    if first == "[*]":
        if not isinstance(value, list):
            raise InjectError(at, value, "this must be a list", "write each entry behind a dash")
        for index, entry in enumerate(value):
            yield from _walk(entry, rest, f"{at}[{index}]")
        return
    if not isinstance(value, dict):
        raise InjectError(at, value, "this must be a mapping", "write it as key: value")
    for name in value if first == "*" else (first,):
        yield from _walk(value.get(name), rest, join(at, name))


def hidden(value: Any) -> str:
    """Where something that looks like the spec of a Pod asks for GPUs; empty if nothing does."""
    for at, each in _mappings(value):
        if isinstance(each.get("containers"), list) and any(_asks(one) for one in each["containers"]):
            return at or "the document"
    return ""


def asked(value: Any) -> str:
    """Where GPUs are asked for as a container does it, whatever it stands in; empty if nowhere."""
    return next((join(at, "resources") for at, each in _mappings(value) if _asks(each)), "")


def labelled(value: Any, label: str) -> bool:
    """Whether something in the object has the label."""
    return any(isinstance(labels := each.get("labels"), dict) and label in labels for _, each in _mappings(value))


def _mappings(value: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    """All mappings of an object, with their paths."""
    waiting: list[tuple[str, Any]] = [("", value)]
    while waiting:
        here, each = waiting.pop()
        if isinstance(each, dict):
            yield here, each
            waiting.extend((join(here, str(key)), inner) for key, inner in each.items())
        elif isinstance(each, list):
            waiting.extend((f"{here}[{index}]", inner) for index, inner in enumerate(each))


def _asks(container: Any) -> bool:
    resources = container.get("resources") if isinstance(container, dict) else None
    amounts = resources.get("limits") if isinstance(resources, dict) else None
    return isinstance(amounts, dict) and RESOURCE in amounts
