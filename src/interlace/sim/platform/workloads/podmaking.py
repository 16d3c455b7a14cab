"""Pods from templates: names, owner, and what admission adds on a server that has it.

Invariant: nothing of the template is changed; labels, tolerations and affinity are only added.
"""

from __future__ import annotations

import dataclasses
import hashlib
import math
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from interlace.api.meta import Object

_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"
"""Letters of generated names, without vowels (k8s.io/apimachinery, SafeEncodeString)."""

NOT_READY = "node.kubernetes.io/not-ready"
UNREACHABLE = "node.kubernetes.io/unreachable"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class PodMaker:
    """Makes the bodies of pods, which bear a node that is not ready or unreachable for ``toleration`` seconds."""

    toleration: float

    def make(
        self,
        template: Mapping[str, Any],
        *,
        owner: Object,
        name: str = "",
        labels: Mapping[str, str] | None = None,
        annotations: Mapping[str, str] | None = None,
        spec: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]:
        """A pod of ``owner``: named ``name``, else by ``generateName``; ``spec`` replaces fields of the template's."""
        source: Mapping[str, Any] = template.get("metadata") or {}
        metadata: dict[str, Any] = {
            "namespace": owner.metadata.namespace,
            "labels": {**(source.get("labels") or {}), **(labels or {})},
            "ownerReferences": [owner_reference(owner)],
        }
        if name:
            metadata["name"] = name
        else:
            metadata["generateName"] = f"{owner.metadata.name}-"
        if merged := {**(source.get("annotations") or {}), **(annotations or {})}:
            metadata["annotations"] = merged
        if source.get("finalizers"):
            metadata["finalizers"] = list(source["finalizers"])
        body: dict[str, Any] = {**(template.get("spec") or {}), **(spec or {})}
        body.setdefault("serviceAccountName", "default")
        body["tolerations"] = self._tolerations(body.get("tolerations") or [])
        return {"metadata": metadata, "spec": body}

    def _tolerations(self, given: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
        """As admission plugin DefaultTolerationSeconds: added unless the pod says something about the taint itself."""
        added = [
            {
                "key": key,
                "operator": "Exists",
                "effect": "NoExecute",
                "tolerationSeconds": math.ceil(self.toleration),
            }
            for key in (NOT_READY, UNREACHABLE)
            if not any(t.get("key", "") in {"", key} and t.get("effect", "") in {"", "NoExecute"} for t in given)
        ]
        return [*given, *added]


def owner_reference(owner: Object) -> dict[str, Any]:
    """A controlling owner reference to ``owner``."""
    return {
        "apiVersion": owner.resource.api_version,
        "kind": owner.resource.kind,
        "name": owner.metadata.name,
        "uid": owner.metadata.uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }


def template_hash(template: Mapping[str, Any], *, length: int = 10) -> str:
    """A short name for the content of a pod template; equal content, whatever the key order, has an equal name."""
    digest = hashlib.sha256(msgspec.json.encode(template, order="deterministic")).digest()
    return "".join(_ALPHABET[byte % len(_ALPHABET)] for byte in digest[:length])
