"""The ResourceClaimTemplate that Pods of a domain refer to.

Invariant: the opaque parameters are compact JSON with sorted keys. The API server compares the
parameters of an allocated claim byte by byte and refuses status patches of anything else, ours
and the scheduler's.
"""

from __future__ import annotations

import json
from typing import Any

import msgspec

from interlace.api.channel import own_or_free
from interlace.api.computedomain import (
    API_VERSION,
    CHANNEL_CLASS,
    DOMAIN_LABEL,
    DRIVER,
    FINALIZER,
    SHARED,
    TARGET_LABEL,
    ComputeDomain,
    ComputeDomainSpec,
)
from interlace.api.resource import ResourceClaimTemplate

REQUEST = "channel"
"""Name of the request in each claim."""
WORKLOAD = "Workload"
"""Value of ``TARGET_LABEL`` on templates for workloads."""
SELECTOR = f"{TARGET_LABEL}={WORKLOAD},{DOMAIN_LABEL}"
"""Label selector of the templates that we keep."""


def template(domain: ComputeDomain, *, spec: ComputeDomainSpec) -> dict[str, Any]:
    """The template of ``domain``, ready to create in the domain's namespace."""
    uid = domain.metadata.uid
    holder = SHARED if spec.isolation == "Channel" else uid
    resource = ResourceClaimTemplate.resource
    return {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "metadata": {
            "name": spec.channel.resource_claim_template.name,
            "namespace": domain.metadata.namespace,
            "labels": {DOMAIN_LABEL: uid, TARGET_LABEL: WORKLOAD},
            "finalizers": [FINALIZER],
        },
        "spec": {
            "metadata": {"labels": {DOMAIN_LABEL: uid}},
            "spec": {
                "devices": {
                    "requests": [
                        {
                            "name": REQUEST,
                            "exactly": {
                                "deviceClassName": CHANNEL_CLASS,
                                "selectors": [{"cel": {"expression": own_or_free(holder)}}],
                            },
                        }
                    ],
                    "config": [
                        {
                            "requests": [REQUEST],
                            "opaque": {
                                "driver": DRIVER,
                                "parameters": parameters(uid, allocation_mode=spec.channel.allocation_mode),
                            },
                        }
                    ],
                }
            },
        },
    }


def parameters(uid: str, *, allocation_mode: str) -> msgspec.Raw:
    """Opaque parameters of a channel claim, compact and with sorted keys."""
    value = {
        "allocationMode": allocation_mode,
        "apiVersion": API_VERSION,
        "domainID": uid,
        "kind": "ComputeDomainChannelConfig",
    }
    return msgspec.Raw(json.dumps(value, sort_keys=True, separators=(",", ":")).encode())


__all__ = ["REQUEST", "SELECTOR", "WORKLOAD", "own_or_free", "parameters", "template"]
