"""Label, node and toleration matching: pure predicates that scheduler and controllers share."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from interlace.sim.platform.kinds import LabelSelector, NodeSelector, NodeSelectorTerm, Requirement, Taint, Toleration


def satisfies(requirement: Requirement, labels: Mapping[str, str]) -> bool:
    """Whether ``labels`` meet one expression; an operator that does not exist matches nothing."""
    value = labels.get(requirement.key)
    match requirement.operator:
        case "In":
            return value in requirement.values if value is not None else False
        case "NotIn":
            return value is None or value not in requirement.values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case "Gt" | "Lt":
            return _compares(requirement, value)
        case _:
            return False


def _compares(requirement: Requirement, value: str | None) -> bool:
    if value is None or len(requirement.values) != 1:
        return False
    try:
        left, right = int(value), int(requirement.values[0])
    except ValueError:
        return False
    return left > right if requirement.operator == "Gt" else left < right


def selects(selector: LabelSelector | None, labels: Mapping[str, str]) -> bool:
    """Whether a label selector matches; an absent one matches nothing, an empty one everything."""
    if selector is None:
        return False
    return all(labels.get(key) == value for key, value in selector.match_labels.items()) and all(
        satisfies(requirement, labels) for requirement in selector.match_expressions
    )


def term_matches(term: NodeSelectorTerm, *, name: str, labels: Mapping[str, str]) -> bool:
    """Whether a node meets all of one term; an empty term matches nothing."""
    if not term.match_expressions and not term.match_fields:
        return False
    fields = {"metadata.name": name}
    return all(satisfies(requirement, labels) for requirement in term.match_expressions) and all(
        satisfies(requirement, fields) for requirement in term.match_fields
    )


def node_matches(selector: NodeSelector, *, name: str, labels: Mapping[str, str]) -> bool:
    """Whether a node meets one of the terms."""
    return any(term_matches(term, name=name, labels=labels) for term in selector.node_selector_terms)


def tolerates(toleration: Toleration, taint: Taint) -> bool:
    """Whether one toleration covers one taint."""
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    if toleration.operator == "Exists":
        return True
    return bool(toleration.key) and toleration.value == taint.value


def untolerated(taints: Iterable[Taint], tolerations: Iterable[Toleration], *, effects: frozenset[str]) -> Taint | None:
    """The first taint of one of ``effects`` that nothing tolerates."""
    known = list(tolerations)
    for taint in taints:
        if taint.effect in effects and not any(tolerates(toleration, taint) for toleration in known):
            return taint
    return None
