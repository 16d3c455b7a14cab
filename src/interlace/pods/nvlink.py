"""NVLink between nodes: the claim of an IMEX channel, and Pods kept within one NVLink partition.

The channel is a claim from the ResourceClaimTemplate of the job's ComputeDomain. The label ``interlace.dev/channel``
holds that template's name: it says so to the webhook, and it is what the Pods of the domain find each other by.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from interlace.pods.draft import Container, Draft, Json, mapping, mappings, room, rows
from interlace.pods.errors import InjectError
from interlace.pods.gpus import CHANNEL_CLASS, claimed

LABEL: Final = "interlace.dev/channel"
CLIQUE: Final = "nvidia.com/gpu.clique"
CLAIM: Final = "imex-channel"
_PLACED_BY: Final = (
    "kueue.x-k8s.io/podset-required-topology",
    "kueue.x-k8s.io/podset-preferred-topology",
    "kueue.x-k8s.io/podset-unconstrained-topology",
    "alpha.jobset.sigs.k8s.io/exclusive-topology",
)
_GATES: Final = ("kueue.x-k8s.io/topology", "gke.io/topology-aware-auto-")
_LABEL_VALUE: Final = re.compile(r"[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?\Z")


def join_domain(
    draft: Draft,
    containers: tuple[Container, ...],
    *,
    channel: str,
    claims: Mapping[str, tuple[str, ...]],
    placed: bool = False,
) -> None:
    """Give GPU containers the channel of their domain. Raises InjectError if no domain is named.

    ``placed``: something around the Pod keeps the Pods of the job together.
    """
    labelled = draft.labels.get(LABEL, "")
    if channel and labelled and channel != labelled:
        raise InjectError(
            f"metadata.labels[{LABEL}]", labelled, f"the channel is to come from {channel}", "change one of the two"
        )
    channel = channel or labelled
    claim, template = _existing(draft, channel=channel, claims=claims)
    if not claim and not channel:
        if mappings(draft.spec, "resourceClaims", "spec.resourceClaims"):
            draft.warn("spec.resourceClaims: one of them is taken to be the IMEX channel; nothing was added for NVLink")
            return
        raise InjectError(
            f"metadata.labels[{LABEL}]",
            "",
            "GPUs of several nodes reach each other over NVLink through a ComputeDomain, and none is named",
            f"set the label {LABEL} to the name of its ResourceClaimTemplate, or give --compute-domain",
        )
    channel = channel or template
    if not _LABEL_VALUE.match(channel):
        raise InjectError(
            f"metadata.labels[{LABEL}]", channel, "this is no value of a label", "use a shorter name for the template"
        )
    if not claim:
        claim = _claim(draft, channel)
    for container in containers:
        path = f"{container.path}.resources"
        resources = room(container.fields, "resources", path)
        listed = rows(resources, "claims", f"{path}.claims")
        if all(each.get("name") != claim for each in listed):
            listed.append({"name": claim})
            draft.added(f"{path}.claims[{claim}]", claim, "the IMEX channel appears in the containers that name it")
    if not placed and not _placed(draft):
        _affinity(draft, channel)


def _existing(draft: Draft, *, channel: str, claims: Mapping[str, tuple[str, ...]]) -> tuple[str, str]:
    """Name of the Pod's claim of a channel, and of its template; empty ones if there is none."""
    classes = claimed(draft, claims)
    for entry in mappings(draft.spec, "resourceClaims", "spec.resourceClaims"):
        name = str(entry.get("name"))
        template = str(entry.get("resourceClaimTemplateName") or entry.get("resourceClaimName") or "")
        if CHANNEL_CLASS in classes.get(name, ()) or (channel and template == channel):
            if channel and template != channel:
                raise InjectError(
                    f"spec.resourceClaims[{name}]",
                    template,
                    f"a Pod is in one ComputeDomain, and the channel is to come from {channel}",
                    "change one of the two",
                )
            return name, template
    return "", ""


def _claim(draft: Draft, channel: str) -> str:
    listed = rows(draft.spec, "resourceClaims", "spec.resourceClaims")
    if any(each.get("name") == CLAIM for each in listed):
        raise InjectError(
            f"spec.resourceClaims[{CLAIM}]", CLAIM, "this name is taken by another claim", "give that another name"
        )
    listed.append({"name": CLAIM, "resourceClaimTemplateName": channel})
    draft.added(f"spec.resourceClaims[{CLAIM}]", channel, "the node joins the ComputeDomain by this claim")
    return CLAIM


def _affinity(draft: Draft, channel: str) -> None:
    if LABEL not in draft.labels:
        draft.annotate(LABEL, channel, "the Pods of a domain find each other by it", section="labels")
    path = "spec.affinity"
    pods = room(room(draft.spec, "affinity", path), "podAffinity", f"{path}.podAffinity")
    field = "requiredDuringSchedulingIgnoredDuringExecution"
    term: Json = {"labelSelector": {"matchLabels": {LABEL: channel}}, "topologyKey": CLIQUE}
    rows(pods, field, f"{path}.podAffinity.{field}").append(term)
    draft.added(f"{path}.podAffinity.{field}[{CLIQUE}]", channel, "NVLink reaches no further than one clique")


def places_together(annotations: Mapping[str, Any]) -> bool:
    """Whether annotations of a Pod, or of an object around it, ask Kueue or JobSet for Pods in one topology domain."""
    return any(key in annotations for key in _PLACED_BY)


def _placed(draft: Draft) -> bool:
    """Whether something keeps the Pods together already: an affinity to a clique, or a scheduler of topologies."""
    if places_together(draft.annotations):
        return True
    gates = mappings(draft.spec, "schedulingGates", "spec.schedulingGates")
    if any(str(gate.get("name", "")).startswith(_GATES) for gate in gates):
        return True
    path = "spec.affinity.podAffinity"
    affinity = mapping(mapping(draft.spec, "affinity", "spec.affinity"), "podAffinity", path)
    terms: list[Any] = mappings(affinity, "requiredDuringSchedulingIgnoredDuringExecution", f"{path}.required…")
    for term in mappings(affinity, "preferredDuringSchedulingIgnoredDuringExecution", f"{path}.preferred…"):
        terms = [*terms, term.get("podAffinityTerm")]
    return any(isinstance(term, dict) and term.get("topologyKey") == CLIQUE for term in terms)
