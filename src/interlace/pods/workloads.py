"""One object of a file: all of its Pod templates set up for the fabric, whatever kind it is.

Pure over plain JSON objects. Invariant: an object is injected whole or refused whole.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec

from interlace.api.webhook import FABRIC_LABEL
from interlace.fabric.family import Family, FamilyError
from interlace.fabric.version import GkeVersion, Minor
from interlace.pods.daemon import is_daemon
from interlace.pods.draft import Change, Draft, copied, mapping
from interlace.pods.errors import InjectError, join
from interlace.pods.gpus import CHANNEL_CLASS, RESOURCE, claimed
from interlace.pods.inject import LOST_OVER_SSH, inject
from interlace.pods.kinds import PATHS, asked, group_and_kind, hidden, labelled, places
from interlace.pods.nvlink import LABEL as CHANNEL
from interlace.pods.nvlink import places_together
from interlace.pods.recognition import recognise
from interlace.pods.surroundings import Surroundings, networks_for

_UNRENDERED: Final = re.compile(r"\{\{.*?\}\}|\$\{[^}]*\}", re.DOTALL)
_INDEX: Final = re.compile(r"\[\d+\]")
_RANKS_OVER_SSH: Final = re.compile(r"MPIJob spec\.mpiReplicaSpecs\.Worker\.")
"""Whose containers run the operator's SSH server where they have no command."""
_TRAINER: Final = "trainer.kubeflow.org/trainjob-ancestor-step"


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """What the user asked for. ``pod_paths``: kind to the path of its Pod templates, ``*`` for any unknown kind."""

    family: str = ""
    software: str = ""
    profile: str = "default"
    version: GkeVersion | Minor | None = None
    networks: dict[str, str] = {}
    pod_paths: dict[str, str] = {}
    compute_domain: bool = False
    host_network: bool = False
    required_plugin: str = ""


class Workload(msgspec.Struct, frozen=True, kw_only=True):
    """The object afterwards. ``families``: of its Pods, none if nothing was to do. ``domain``: a ComputeDomain that
    has to go with it.
    """

    value: dict[str, Any]
    families: tuple[str, ...] = ()
    software: tuple[str, ...] = ()
    changes: tuple[Change, ...] = ()
    warnings: tuple[str, ...] = ()
    domain: dict[str, Any] | None = None


def equip(document: dict[str, Any], *, options: Options, found: Surroundings) -> Workload:
    """Inject all Pod templates of one object. Raises InjectError, paths counted from the object."""
    value = copied(document)
    group, kind = group_and_kind(value)
    if not kind:
        raise InjectError("kind", value.get("kind"), "a manifest says what kind of object it is", "give it a kind")
    paths = _paths(group=group, kind=kind, options=options)
    if (group, kind) == ("trainer.kubeflow.org", "TrainJob"):
        return _train_job(value, found)
    work = _Work(value, kind, options, found)
    templates = [each for path in paths for each in places(value, path)]
    if not templates:
        work.warnings += _seen(value, kind=kind, paths=paths)
    for at, template in templates:
        work.template(at, template)
    return work.result()


def _paths(*, group: str, kind: str, options: Options) -> tuple[str, ...]:
    if kind in options.pod_paths:
        return (options.pod_paths[kind],)
    if (group, kind) in PATHS:
        return PATHS[group, kind]
    return (options.pod_paths["*"],) if "*" in options.pod_paths else ()


def _seen(value: Mapping[str, Any], *, kind: str, paths: tuple[str, ...]) -> list[str]:
    """What to say of an object whose Pods with GPUs are where nobody looked.

    Raises InjectError where something can be done here. Pods that have the label get their fabric from the webhook.
    """
    where = hidden(value)
    is_template = where == "spec" or where.endswith(".spec")
    if not is_template and labelled(value, FABRIC_LABEL):
        return []
    looked = f"none is at {', '.join(paths)}" if paths else "nothing is known of this kind"
    webhook = f"set the label {FABRIC_LABEL} on its Pods and leave them to the webhook"
    if where:
        path = "" if where == "spec" else _INDEX.sub("[*]", where).removesuffix(".spec")
        raise InjectError(
            where,
            f"{value.get('apiVersion')} {kind}",
            f"a Pod {'template' if is_template else 'spec without metadata'} asks for GPUs here, and {looked}",
            f"say where its templates are: --pod-path {kind}={path}" if is_template else webhook,
        )
    at = asked(value)
    return [f"{at}: left as it is: GPUs are asked for here, outside of any Pod template; {webhook}"] if at else []


def _train_job(value: dict[str, Any], found: Surroundings) -> Workload:
    """A TrainJob only refers to a runtime, which has the Pod template. Raises InjectError if that is elsewhere."""
    spec: Any = value.get("spec")
    trainer = spec.get("trainer") if isinstance(spec, dict) else None
    resources = trainer.get("resourcesPerNode") if isinstance(trainer, dict) else None
    limits = resources.get("limits") if isinstance(resources, dict) else None
    reference = spec.get("runtimeRef") if isinstance(spec, dict) else None
    runtime = reference.get("name") if isinstance(reference, dict) else None
    if isinstance(limits, dict) and RESOURCE in limits and runtime not in found.runtimes:
        raise InjectError(
            "spec.runtimeRef",
            runtime,
            "a TrainJob has no Pod template: its Pods are made from the runtime",
            f"put the runtime into the same file, or let the webhook set up its Pods (label {FABRIC_LABEL})",
        )
    return Workload(value=value)


class _Work:
    """The templates of one object, one after the other."""

    def __init__(self, value: dict[str, Any], kind: str, options: Options, found: Surroundings) -> None:
        self.value = value
        self.kind = kind
        self.options = options
        self.found = found
        self.families: list[str] = []
        self.software: list[str] = []
        self.changes: list[Change] = []
        self.warnings: list[str] = []
        self.domain: dict[str, Any] | None = None

    def template(self, at: str, template: dict[str, Any]) -> None:
        """Inject one in place. Raises InjectError."""
        try:
            self._inject(at, template)
        except InjectError as error:
            raise error.below(at) from None

    def _inject(self, at: str, template: dict[str, Any]) -> None:
        if not isinstance(template.get("spec"), dict):
            raise InjectError("spec", template.get("spec"), "a Pod template has a spec with containers", "write one")
        draft = Draft(template)
        later = self._later(at, draft)
        named, by = self._named(draft)
        recognition = recognise(draft, named=named, by=by, claims=self.found.claims, also=later)
        family = recognition.family
        if family is None:
            if "no container" not in recognition.why:
                self.warnings.append(f"{at or self.kind}: left as it is: {recognition.why}")
            return
        _rendered(draft, str(self._meta("name")))
        software = None
        if self.options.software:
            try:
                software = family.software(self.options.software)
            except FamilyError as error:
                raise InjectError("--tuple", self.options.software, str(error), "name one of these") from None
        injection = inject(
            template,
            family=family,
            software=software,
            profile=self.options.profile,
            version=self.options.version,
            networks=self.options.networks or networks_for(family, self.found),
            claims=self.found.claims,
            channel=self._channel(draft, family),
            host_network=self.options.host_network,
            required_plugin=self.options.required_plugin,
            gpu_containers=later,
            placed=any(places_together(each) for each in self._annotations(at)),
        )
        self._claims_hide_nothing(template, injection.pod)
        template.update(injection.pod)
        if _RANKS_OVER_SSH.match(f"{self.kind} {at}"):
            self.warnings += [
                f"{join(at, each.path)}: {LOST_OVER_SSH}"
                for each in Draft(template).containers()
                if RESOURCE in mapping(mapping(each.fields, "resources", ""), "limits", "")
                and not each.fields.get("command")
            ]
        self.families.append(family.id)
        self.software.append(injection.software)
        self.changes += [msgspec.structs.replace(change, path=join(at, change.path)) for change in injection.changes]
        self.warnings += [join(at, warning) for warning in injection.warnings]

    def _claims_hide_nothing(self, before: dict[str, Any], after: dict[str, Any]) -> None:
        """Refuse names of volumes that the object's own claim templates take from Pods. Raises InjectError."""
        had = {each.get("name") for each in before["spec"].get("volumes") or []}
        added = {each.get("name") for each in after["spec"].get("volumes") or []} - had
        spec: Any = self.value.get("spec")
        templates = spec.get("volumeClaimTemplates") if isinstance(spec, dict) else None
        for each in templates if isinstance(templates, list) else ():
            metadata = each.get("metadata") if isinstance(each, dict) else None
            if isinstance(metadata, dict) and metadata.get("name") in added:
                raise InjectError(
                    f"the volumeClaimTemplates of the {self.kind}",
                    metadata["name"],
                    "its volume takes the place of the one that the fabric needs under this name",
                    "give your volume another name",
                )

    def _named(self, draft: Draft) -> tuple[str, str]:
        """The family that the user names, by the option or on the object around the template, and where."""
        if self.options.family:
            return self.options.family, "--family"
        labels = self._meta("labels")
        around = labels.get(FABRIC_LABEL) if isinstance(labels, dict) else None
        if draft.labels.get(FABRIC_LABEL) or not isinstance(around, str):
            return "auto", ""
        return around, f"the label {FABRIC_LABEL} of the {self.kind}"

    def _meta(self, key: str) -> Any:
        metadata = self.value.get("metadata")
        return (metadata.get(key) if isinstance(metadata, dict) else None) or ""

    def _annotations(self, at: str) -> Iterator[dict[str, Any]]:
        """Those of the object and of every object inside it on the way to a template."""
        here: Any = self.value
        for key in ["", *re.findall(r"[A-Za-z0-9_-]+", at)]:
            if key:
                here = here[int(key)] if isinstance(here, list) else here[key]
            metadata = here.get("metadata") if isinstance(here, dict) else None
            annotations = metadata.get("annotations") if isinstance(metadata, dict) else None
            if isinstance(annotations, dict):
                yield annotations

    def _later(self, at: str, draft: Draft) -> tuple[str, ...]:
        """Containers of a training runtime that get their GPUs from the TrainJob."""
        if not self.kind.endswith("TrainingRuntime") or not (
            self.options.family or self._meta("name") in self.found.trained
        ):
            return ()
        job: Any = self.value
        for key in re.findall(r"[A-Za-z]+|\d+", at.removesuffix(".spec.template")):
            job = job[int(key)] if key.isdigit() else job[key]
        labels = mapping(mapping(job, "metadata", "metadata"), "labels", "metadata.labels")
        if _TRAINER not in labels:
            return ()
        return tuple(each.name for each in draft.containers() if not each.init and not is_daemon(each))

    def _channel(self, draft: Draft, family: Family) -> str:
        """The claim template of the Pods' domain; a new domain where the user wants one. Raises InjectError."""
        if not family.node.mnnvl or draft.labels.get(CHANNEL):
            return ""
        if any(CHANNEL_CLASS in classes for classes in claimed(draft, self.found.claims).values()):
            return ""
        name = str(self._meta("name"))
        if name in self.found.domains:
            return self.found.domains[name]
        if self.options.compute_domain:
            if not name:
                raise InjectError("metadata.name", "", "a ComputeDomain is named after the object", "give it a name")
            self.domain = _domain(name, str(self._meta("namespace")))
            return f"{name}-channel"
        return next(iter(self.found.domains.values())) if len(self.found.domains) == 1 else ""

    def result(self) -> Workload:
        """What came of it."""
        return Workload(
            value=self.value,
            families=tuple(dict.fromkeys(self.families)),
            software=tuple(dict.fromkeys(self.software)),
            changes=tuple(self.changes),
            warnings=tuple(dict.fromkeys(self.warnings)),
            domain=self.domain,
        )


def _domain(name: str, namespace: str) -> dict[str, Any]:
    return {
        "apiVersion": "resource.nvidia.com/v1beta1",
        "kind": "ComputeDomain",
        "metadata": {"name": name, **({"namespace": namespace} if namespace else {})},
        "spec": {"numNodes": 0, "channel": {"resourceClaimTemplate": {"name": f"{name}-channel"}}},
    }


def _rendered(draft: Draft, name: str) -> None:
    """Refuse what a template engine was to fill in. Raises InjectError."""
    texts = {"metadata.name": name}
    for container in draft.containers():
        texts[f"{container.path}.image"] = str(container.fields.get("image") or "")
    for key, value in (draft.spec.get("nodeSelector") or {}).items():
        texts[f"spec.nodeSelector[{key}]"] = f"{key} {value}"
    for path, text in texts.items():
        if _UNRENDERED.search(text):
            raise InjectError(path, text, "it is a template that was not rendered", "render it first")
