"""The ``observed-state/1`` form: one JSON document with everything that was seen of a project and a cluster.

Invariant: what does not have the form is refused with the place in the document; a member that is null is one that was
not read, at any depth, and unknown members are left out.
"""

from __future__ import annotations

import re
from typing import Any, Final

import msgspec

from interlace.fabric.family import Family, FamilyError, families, find
from interlace.gke.errors import Refused
from interlace.gke.observed.state import State, Want
from interlace.rules.pointer import pointer

FORMAT: Final = "observed-state/1"

_TYPE: Final = re.compile(r"`([^`]*)`")
_WORDS: Final = {
    "int": "an integer",
    "float": "a number",
    "str": "a string",
    "bool": "true or false",
    "array": "a list",
    "object": "an object",
}
_STEP: Final = re.compile(r"\.([^.\[\]]+)|\[(\d+)\]|\[\.\.\.\]")


class BundleError(Refused):
    """The document has not the form; ``pointer`` says where, empty for the whole."""

    def __init__(self, what: str, *, where: str = "", cause: str = "", remedy: str = "") -> None:
        super().__init__(what, cause=cause, remedy=remedy)
        self.pointer = where


def read(text: str | bytes) -> State:
    """The state that a bundle holds; one inside the member ``body`` of a recorded answer counts too.

    Raises BundleError.
    """
    try:
        document = msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BundleError(
            f"The bundle is no JSON document: {error}", remedy=f"Give a file of the form {FORMAT}."
        ) from None
    if isinstance(document, dict) and "format" not in document and isinstance(document.get("body"), dict):
        document = document["body"]
    if not isinstance(document, dict):
        raise BundleError("The bundle is no JSON object.", remedy=f"Give a file of the form {FORMAT}.")
    if document.get("format") != FORMAT:
        raise BundleError(
            f"/format is {document.get('format')!r}, not {FORMAT!r}.",
            where="/format",
            cause="Only that form is read.",
            remedy="Write a bundle with `interlace gke check --save FILE`.",
        )
    state = convert(document)
    wanted_family(state.want)
    return state


def convert(document: dict[str, Any]) -> State:
    """The state in a document of that form, whatever its ``format``. Raises BundleError."""
    try:
        return msgspec.convert(_without_nulls(document), State, strict=False)
    except msgspec.ValidationError as error:
        what, _, place = str(error).partition(" - at `")
        where = _pointer(place.rstrip("`"))
        raise BundleError(
            f"{where or 'The bundle'} has not the form that the API gives it: {_plainly(what)}.",
            where=where,
            remedy="Write the object as the API returns it.",
        ) from None
    except RecursionError:
        raise BundleError("The bundle is nested too deep.") from None


def wanted_family(want: Want) -> Family | None:
    """The family that ``want`` names, by id, machine type or transport; None where that does not tell.

    Raises BundleError for a name that nobody knows.
    """
    name = want.flavour.strip().lower()
    if not name:
        return None
    alike = [each for each in families() if each.node.gke and each.node.transport == name]
    if alike:
        return alike[0] if len(alike) == 1 else None
    try:
        family = find(name)
    except FamilyError as error:
        transports = ", ".join(dict.fromkeys(each.node.transport for each in families() if each.node.gke))
        raise BundleError(
            f"/want/flavour is {want.flavour!r}: {error}.",
            where="/want/flavour",
            remedy=f"Name a family, a machine type or a transport ({transports}).",
        ) from None
    if not family.node.gke:
        raise BundleError(f"/want/flavour is {want.flavour!r}, which GKE does not offer.", where="/want/flavour")
    return family


def _without_nulls(value: Any) -> Any:
    """Members that are null left out; null elements of lists stay, since they are not in the form."""
    if isinstance(value, dict):
        return {key: _without_nulls(each) for key, each in value.items() if each is not None}
    if isinstance(value, list):
        return [_without_nulls(each) for each in value]
    return value


def _plainly(what: str) -> str:
    """What msgspec says, with the words of JSON for its types."""
    text = _TYPE.sub(lambda match: " or ".join(_WORDS.get(each, each) for each in match[1].split(" | ")), what)
    return text[:1].lower() + text[1:]


def _pointer(path: str) -> str:
    """``$.cluster.nodePools[0]`` as a JSON pointer, down to the first step that has no name."""
    steps: list[str] = []
    for match in _STEP.finditer(path):
        if match[0] == "[...]":
            break
        steps.append(match[1] or match[2])
    return pointer(*steps)
