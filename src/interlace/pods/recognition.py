"""Which hardware family a Pod is for, from what the Pod itself says.

A machine type is a proof, an accelerator label a strong hint (a3-high shares its one with machines that have no
GPUDirect), a number of GPUs only narrows. Invariant: two candidates are no answer; nothing is guessed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Final

import msgspec

from interlace.api.webhook import FABRIC_LABEL, OFF
from interlace.fabric.family import Family, FamilyError, families, find
from interlace.pods.draft import Draft, mapping, mappings, strings, words
from interlace.pods.errors import InjectError
from interlace.pods.gpus import CHANNEL_CLASS, Gpus, claimed, gpus, has_unknown_claims

MACHINE_KEYS: Final = (
    "node.kubernetes.io/instance-type",
    "cloud.google.com/gce-machine-type",
    "beta.kubernetes.io/instance-type",
)
ACCELERATOR_KEY: Final = "cloud.google.com/gke-accelerator"
PRODUCT_KEY: Final = "nvidia.com/gpu.product"
_FORBIDDEN: Final = {
    "cloud.google.com/gke-gpu-partition-size": ("MIG", "GPUDirect does not work on parts of GPUs"),
    "cloud.google.com/gke-max-shared-clients-per-gpu": (
        "time-sharing or MPS",
        "GPUDirect does not work on GPUs that are shared",
    ),
    "cloud.google.com/gke-gpu-sharing-strategy": (
        "time-sharing or MPS",
        "GPUDirect does not work on GPUs that are shared",
    ),
    "cloud.google.com/gke-nccl-fastsocket": (
        "Fast Socket",
        "its NCCL plugin takes the place of the one for GPUDirect",
    ),
}


class Recognition(msgspec.Struct, frozen=True, kw_only=True):
    """The family and what says so; ``family`` None: the Pod is none of our business, ``why`` says why."""

    family: Family | None
    why: str


def recognise(
    draft: Draft,
    *,
    named: str | None = None,
    by: str = "--family",
    claims: Mapping[str, tuple[str, ...]] | None = None,
    also: Collection[str] = (),
) -> Recognition:
    """The family of a Pod. ``named``: a family that the user gave (``auto`` and None: look), ``by``: where.

    Raises InjectError when it cannot be told, when two statements differ, and for nodes that GPUDirect excludes.
    """
    found = gpus(draft, claims=claims or {}, also=also)
    label = draft.labels.get(FABRIC_LABEL, "auto")
    if not found.containers:
        _unknown_claims(draft, claims or {}, asked=OFF not in (label, named) and {label, named or "auto"} != {"auto"})
        return Recognition(family=None, why="no container asks for GPUs")
    wanted = wishes(draft)
    given = named if named not in (None, "auto") else label if label != "auto" else None
    path = f"metadata.labels[{FABRIC_LABEL}]" if named in (None, "auto") else by
    if OFF in (label, given):
        return Recognition(family=None, why=f"the label {FABRIC_LABEL} says {OFF}")
    told = _given(given, path) if given else None
    selected = _selected(wanted)
    if told is not None:
        _agree(told, selected, path)
        _exclude(wanted)
        return Recognition(family=told, why=f"{path} says {given}")
    if selected is not None:
        where, value, candidates = selected
        if not candidates:
            return Recognition(family=None, why=f"{where} selects {value}, which is no machine of a known family")
        if len(candidates) == 1:
            _exclude(wanted)
            return Recognition(family=candidates[0], why=f"{where} selects {value}")
        raise InjectError(
            where,
            value,
            f"it allows several families: {_names(candidates)}",
            "select one machine type, or give --family",
        )
    candidates = _by_count(draft, found, claims or {})
    if len(candidates) == 1:
        _exclude(wanted)
        return Recognition(family=candidates[0], why=f"only its nodes serve {found.count} GPUs in this way")
    what = f"{found.count} GPUs" if found.count else "GPUs by claims"
    raise InjectError(
        "spec.nodeSelector",
        draft.spec.get("nodeSelector"),
        f"the family cannot be told: the Pod asks for {what} and selects no machine type"
        + (f"; it may be for {_names(candidates)}" if candidates else ""),
        f"give --family, set the label {FABRIC_LABEL}, or select {MACHINE_KEYS[0]}",
    )


def wishes(draft: Draft) -> dict[str, tuple[str, frozenset[str]]]:
    """What the Pod asks of its node: key of a label to (path, values), from nodeSelector and required affinity."""
    selector = strings(draft.spec, "nodeSelector", "spec.nodeSelector")
    found = {key: (f"spec.nodeSelector[{key}]", frozenset((value,))) for key, value in selector.items()}
    path = "spec.affinity.nodeAffinity"
    affinity = mapping(mapping(draft.spec, "affinity", "spec.affinity"), "nodeAffinity", path)
    path += ".requiredDuringSchedulingIgnoredDuringExecution"
    required = mapping(affinity, "requiredDuringSchedulingIgnoredDuringExecution", path)
    path += ".nodeSelectorTerms"
    terms = mappings(required, "nodeSelectorTerms", path)
    each: list[dict[str, frozenset[str]]] = []
    for number, term in enumerate(terms):
        where = f"{path}[{number}].matchExpressions"
        values: dict[str, frozenset[str]] = {}
        for index, entry in enumerate(mappings(term, "matchExpressions", where)):
            if entry.get("operator") == "In":
                listed = frozenset(words(entry, "values", f"{where}[{index}].values"))
                key = str(entry.get("key"))
                values[key] = values.get(key, listed) & listed
            elif entry.get("operator") == "Exists" and entry.get("key") in _FORBIDDEN:
                values[str(entry.get("key"))] = frozenset(("true",))
        each.append(values)
    for key in {key for values in each for key in values}:
        if all(key in values for values in each):  # terms are alternatives: a key binds if all of them have it
            allowed = frozenset().union(*(values[key] for values in each))
            where, before = found.get(key, (path, allowed))
            found[key] = (where, before & allowed)
    return found


def _unknown_claims(draft: Draft, claims: Mapping[str, tuple[str, ...]], *, asked: bool) -> None:
    """Refuse a Pod that is to get a fabric and whose GPUs may be behind claims that nothing is known of."""
    if asked and has_unknown_claims(draft, claims):
        names = [name for name, classes in claimed(draft, claims).items() if not classes]
        raise InjectError(
            "spec.resourceClaims",
            ", ".join(names),
            "no container asks for GPUs by number, and nothing is known of what these claim",
            "put their ResourceClaimTemplates into the same file",
        )


def _selected(wanted: Mapping[str, tuple[str, frozenset[str]]]) -> tuple[str, str, list[Family]] | None:
    """Where a machine is selected, its value, and the families that this allows; machine types before labels."""
    for keys, matches in (
        (MACHINE_KEYS, lambda family, value: value in family.machines),
        ((ACCELERATOR_KEY,), lambda family, value: bool(value) and value == family.node.accelerator),
        ((PRODUCT_KEY,), lambda family, value: family.node.product in value),
    ):
        for key in keys:
            if key in wanted:
                where, values = wanted[key]
                refused = _refused(values) if keys is MACHINE_KEYS else ""
                if refused:
                    raise InjectError(where, ", ".join(sorted(values)), refused, "use another machine type")
                allowed = [each for each in families() if any(matches(each, value) for value in values)]
                return where, ", ".join(sorted(values)), allowed
    return None


def _refused(values: Iterable[str]) -> str:
    return "; ".join(each.why for family in families() for each in family.refused if each.machine in set(values))


def _given(name: str, path: str) -> Family:
    try:
        return find(name)
    except FamilyError as error:
        raise InjectError(path, name, str(error), "name one of these, or auto") from None


def _agree(told: Family, selected: tuple[str, str, list[Family]] | None, path: str) -> None:
    if selected is None:
        return
    where, value, candidates = selected
    if told not in candidates:
        named = _names(candidates) or "no known family"
        raise InjectError(
            where, value, f"it selects nodes of {named}, and {path} says {told.id}", "change one of the two"
        )


def _exclude(wanted: Mapping[str, tuple[str, frozenset[str]]]) -> None:
    for key, (title, cause) in _FORBIDDEN.items():
        if key in wanted:
            where, values = wanted[key]
            value = ", ".join(sorted(values))
            if value == "false":
                continue
            raise InjectError(where, value, f"it selects nodes with {title}, and {cause}", "select nodes without it")


def _by_count(draft: Draft, found: Gpus, claims: Mapping[str, tuple[str, ...]]) -> list[Family]:
    channels = any(CHANNEL_CLASS in classes for classes in claimed(draft, claims).values())
    return [
        family
        for family in families()
        if (not found.count or family.node.gpus == found.count) and (family.node.mnnvl or not channels)
    ]


def _names(found: Iterable[Family]) -> str:
    return ", ".join(family.id for family in found)
