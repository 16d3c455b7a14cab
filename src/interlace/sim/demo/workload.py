"""The two manifests that a user applies, read from a folder and fit for the demonstration.

Invariant: what would only show as a job that never starts is refused here, with file, field and remedy.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import yaml

_TOPOLOGY = "nvidia.com/gpu.clique"
_Object = dict[str, Any]


class Workload(msgspec.Struct, frozen=True):
    """A ComputeDomain and the Deployment that uses it."""

    domain: _Object
    deployment: _Object
    gpus: int = 0
    """Of each Pod."""
    notes: tuple[str, ...] = ()
    """What was changed for the demonstration, a sentence each."""

    @property
    def name(self) -> str:
        """Of the ComputeDomain."""
        return str(self.domain["metadata"]["name"])

    @property
    def namespace(self) -> str:
        """Of both."""
        return str(self.domain["metadata"].get("namespace", "default"))


def load_workload(folder: Path, *, replicas: int, partition: int = 18) -> Workload:
    """The ComputeDomain and the Deployment among the YAML files of ``folder``, scaled to ``replicas``.

    With more of them than an NVLink ``partition`` has nodes, the wish for one partition is dropped. Raises ValueError
    with one sentence if the folder does not hold exactly one of each, or if they do not fit together.
    """
    found: dict[str, list[tuple[Path, _Object]]] = {"ComputeDomain": [], "Deployment": []}
    for path in sorted([*folder.glob("*.yaml"), *folder.glob("*.yml")]):
        for document in _documents(path):
            kind = document.get("kind") if isinstance(document, dict) else None
            if isinstance(kind, str) and kind in found:
                found[kind].append((path, document))
    for kind, documents in found.items():
        if len(documents) != 1:
            raise ValueError(f"{folder} holds {len(documents)} manifests of kind {kind}, one is needed")
    (domain_file, domain), (job_file, deployment) = found["ComputeDomain"][0], found["Deployment"][0]
    _check(domain, deployment, domain_file=domain_file, job_file=job_file)
    deployment["spec"]["replicas"] = replicas
    notes = []
    if replicas > partition and _drop_affinity(deployment["spec"]["template"]["spec"]):
        notes.append(
            f"{replicas} nodes are several NVLink partitions, so podAffinity on {_TOPOLOGY} is left out; one "
            "ComputeDomain spans them"
        )
    return Workload(domain, deployment, _gpus(deployment["spec"]["template"]["spec"]), tuple(notes))


def _documents(path: Path) -> list[Any]:
    try:
        return list(yaml.safe_load_all(path.read_text()))
    except OSError as error:
        raise ValueError(f"{path} cannot be read: {error.strerror}") from None
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f", line {mark.line + 1}" if mark is not None else ""
        problem = " ".join(str(getattr(error, "problem", None) or error).split())
        raise ValueError(f"{path}{where} is not YAML: {problem}") from None
    except (ValueError, RecursionError) as error:  # bytes that are no text, a date that does not exist
        raise ValueError(f"{path} is not readable as YAML: {error}") from None


def _check(domain: _Object, deployment: _Object, *, domain_file: Path, job_file: Path) -> None:
    name = _text(domain, "metadata.name", file=domain_file)
    template = _text(domain, "spec.channel.resourceClaimTemplate.name", file=domain_file)
    job = _text(deployment, "metadata.name", file=job_file)
    labels = _field(deployment, "spec.selector.matchLabels", file=job_file, wanted=dict)
    worn = _field(deployment, "spec.template.metadata.labels", file=job_file, wanted=dict)
    pod = _field(deployment, "spec.template.spec", file=job_file, wanted=dict)
    if not labels.items() <= worn.items():
        raise ValueError(
            f"{job_file}: Deployment {job} has labels in spec.selector.matchLabels that its Pods do not have"
        )
    homes = [str(each["metadata"].get("namespace", "default")) for each in (domain, deployment)]
    if homes != ["default", "default"]:
        raise ValueError(
            f"{domain_file.parent}: ComputeDomain {name} is in namespace {homes[0]}, Deployment {job} in {homes[1]}; "
            "the demonstration has only the namespace default; leave metadata.namespace out"
        )
    claims = pod.get("resourceClaims")
    entries = [entry for entry in claims if isinstance(entry, dict)] if isinstance(claims, list) else []
    if template not in [entry.get("resourceClaimTemplateName") for entry in entries]:
        raise ValueError(
            f"{job_file}: no entry of spec.template.spec.resourceClaims of Deployment {job} has "
            f"resourceClaimTemplateName {template}, so its Pods would not join ComputeDomain {name}; add one"
        )


def _gpus(pod: _Object) -> int:
    """For the headline; what is no Pod is refused by the API server."""
    try:
        return sum(int(each["resources"]["limits"].get("nvidia.com/gpu", 0)) for each in pod["containers"])
    except (AttributeError, KeyError, TypeError, ValueError):
        return 0


def _text(document: _Object, path: str, *, file: Path) -> str:
    return str(_field(document, path, file=file, wanted=str))


def _field(document: _Object, path: str, *, file: Path, wanted: type) -> Any:
    """The value at a dotted path."""
    value: Any = document
    for key in path.split("."):
        value = value.get(key) if isinstance(value, dict) else None
    if not isinstance(value, wanted) or not value:
        kind = "a text" if wanted is str else "a mapping"
        raise ValueError(f"{file}: {path} of the {document['kind']} is {value!r}; {kind} is needed")
    return value


def _drop_affinity(pod: _Object) -> bool:
    """Take the terms that ask for one partition out of a Pod template; whether there were any."""
    affinity = pod.get("affinity")
    rules = affinity.get("podAffinity") if isinstance(affinity, dict) else None
    if not isinstance(rules, dict):
        return False
    dropped = False
    for rule, terms in list(rules.items()):
        rules[rule] = [term for term in terms if _TOPOLOGY not in str(term)]
        dropped |= len(rules[rule]) < len(terms)
    return dropped
