"""What the API server asks a webhook, and what it is answered: ``admission.k8s.io/v1.AdmissionReview``.

Invariant: the object stays raw bytes until somebody needs it, so that nothing of it is lost; an answer carries a
JSON patch of what changed and never the whole object.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import msgspec

from interlace.api.meta import Struct

API_VERSION = "admission.k8s.io/v1"
_NULL = msgspec.Raw(b"null")


class GroupVersionResource(Struct, frozen=True):
    """``metav1.GroupVersionResource``."""

    group: str = ""
    version: str = ""
    resource: str = ""


class Request(Struct, frozen=True):
    """``AdmissionReview.request`` in part."""

    uid: str
    resource: GroupVersionResource = GroupVersionResource()
    sub_resource: str = ""
    name: str = ""
    namespace: str = ""
    operation: Literal["CREATE", "UPDATE", "DELETE", "CONNECT"] = "CREATE"
    object: msgspec.Raw = _NULL
    old_object: msgspec.Raw = _NULL


class _Review(Struct, frozen=True):
    request: Request
    api_version: str = ""
    kind: str = ""


class ReviewError(ValueError):
    """The body is no AdmissionReview that we know."""


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """An answer. ``warnings`` reach whoever sent the request, refused or not."""

    refused: str = ""
    """Why not, in sentences that stand in an event of the owner; empty: allowed."""
    code: int = 422
    """HTTP status of a refusal."""
    warnings: tuple[str, ...] = ()
    patch: tuple[Mapping[str, Any], ...] = ()
    """JSON patch (RFC 6902)."""


ALLOWED = Verdict()
_REASONS = {403: "Forbidden", 422: "Invalid", 500: "InternalError", 503: "ServiceUnavailable"}
_decoder = msgspec.json.Decoder(_Review)


def decode(body: bytes) -> Request:
    """The request of a review. Raises ``ReviewError``."""
    try:
        review = _decoder.decode(body)
    except msgspec.MsgspecError as error:
        raise ReviewError(f"the body is no AdmissionReview: {error}") from None
    if (review.api_version, review.kind) != (API_VERSION, "AdmissionReview"):
        raise ReviewError(f"the body is {review.api_version} {review.kind}; only {API_VERSION} AdmissionReview is read")
    return review.request


def encode(uid: str, verdict: Verdict) -> bytes:
    """The answer to the request ``uid``."""
    response: dict[str, Any] = {"uid": uid, "allowed": not verdict.refused}
    if verdict.refused:
        reason = _REASONS.get(verdict.code, "Invalid")
        response["status"] = {"code": verdict.code, "reason": reason, "message": verdict.refused}
    elif verdict.patch:
        response["patchType"] = "JSONPatch"
        response["patch"] = base64.b64encode(msgspec.json.encode(verdict.patch)).decode()
    if verdict.warnings:
        response["warnings"] = [_short(text) for text in verdict.warnings]
    return msgspec.json.encode({"apiVersion": API_VERSION, "kind": "AdmissionReview", "response": response})


def refuse(reasons: Sequence[str], *, code: int = 422, warnings: Sequence[str] = ()) -> Verdict:
    """One refusal with all reasons, each a sentence of its own."""
    return Verdict(refused=" ".join(_sentence(text) for text in reasons), code=code, warnings=tuple(warnings))


def _sentence(text: str) -> str:
    return text if text.endswith((".", "!", "?")) else f"{text}."


def _short(text: str) -> str:
    """API servers cut warnings at 256 characters each."""
    return text if len(text) <= 256 else f"{text[:253]}..."
