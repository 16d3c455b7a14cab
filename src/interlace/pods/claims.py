"""ResourceClaims and templates that name a ComputeDomain: what a hand-written one lacks, and what is wrong in it.

The templates of ComputeDomains are complete. One written by hand lacks the label by which the controller counts
its nodes, and the selector that keeps it off the nodes of other domains; both are added. Invariant: nothing that is
there is changed, and a claim without parameters for our driver is not touched at all.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

import msgspec

from interlace.api.channel import OpaqueError, decode, own_or_free
from interlace.api.computedomain import (
    CHANNEL_CLASS,
    DOMAIN_LABEL,
    DRIVER,
    SHARED,
    ComputeDomain,
    ComputeDomainChannelConfig,
)
from interlace.api.resource import DeviceConfiguration
from interlace.pods.patching import difference
from interlace.pods.review import ALLOWED, Request, Verdict, refuse

TEMPLATES: Final = "resourceclaimtemplates"
_UID: Final = re.compile(r"[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?\Z")
_DOMAIN: Final = f'"{DRIVER}"].domain'


class _Devices(msgspec.Struct, frozen=True):
    config: list[DeviceConfiguration] = []


class _Spec(msgspec.Struct, frozen=True):
    devices: _Devices = _Devices()


class _Claim(msgspec.Struct, frozen=True):
    spec: _Spec = _Spec()


class _TemplateSpec(msgspec.Struct, frozen=True):
    spec: _Spec = _Spec()


class _Template(msgspec.Struct, frozen=True):
    spec: _TemplateSpec = _TemplateSpec()


def domain_of(request: Request) -> str:
    """The uid of the one domain that a claim or template names; empty where it names none, or several."""
    domains = {config.domain_id for _, config, fault in _configs(request) if config is not None and not fault}
    return domains.pop() if len(domains) == 1 else ""


def complete(request: Request, *, domain: ComputeDomain | None) -> Verdict:
    """Add label and selector to a new claim or template (mutating). What is wrong in it, ``check`` says.

    ``domain``: the one that it names, if there is one in its namespace.
    """
    template = request.resource.resource == TEMPLATES
    uid = domain_of(request)
    if not uid:
        return ALLOWED
    channel = domain is not None and domain.spec is not None and domain.spec.isolation == "Channel"
    holder_of_nodes = SHARED if channel else uid
    lost = f"no ComputeDomain of namespace {request.namespace} has the uid {uid}: Pods with this claim will not start"
    warnings = () if domain is not None else (lost,)
    body: dict[str, Any] = msgspec.json.decode(request.object)
    changed: dict[str, Any] = msgspec.json.decode(request.object)
    holder = changed["spec"] if template else changed
    labels = holder.setdefault("metadata", {})
    labels["labels"] = {DOMAIN_LABEL: uid} | (labels.get("labels") or {})
    for wanted in _channel_requests(holder["spec"]["devices"]):
        selectors = list(wanted.get("selectors") or [])
        if not any(_DOMAIN in str(item.get("cel", {}).get("expression", "")) for item in selectors):
            wanted["selectors"] = [*selectors, {"cel": {"expression": own_or_free(holder_of_nodes)}}]
    return Verdict(patch=difference(body, changed), warnings=warnings)


def check(request: Request) -> Verdict:
    """Refuse parameters of our driver that Prepare would refuse (validating)."""
    template = request.resource.resource == TEMPLATES
    root = "spec.spec.devices.config" if template else "spec.devices.config"
    reasons = [f"{root}[{index}].opaque.parameters: {fault}" for index, _, fault in _configs(request) if fault]
    configs = [config for _, config, fault in _configs(request) if config is not None and not fault]
    domains = sorted({config.domain_id for config in configs})
    if len(domains) > 1:
        reasons.append(f"{root}: it names {len(domains)} ComputeDomains ({', '.join(domains)}); a claim can have one")
    if configs and not reasons:
        reasons += _label_faults(request, template=template, uid=domains[0])
    return refuse(reasons) if reasons else ALLOWED


def _label_faults(request: Request, *, template: bool, uid: str) -> list[str]:
    body = msgspec.json.decode(request.object)
    holder = body["spec"] if template else body
    label = ((holder.get("metadata") or {}).get("labels") or {}).get(DOMAIN_LABEL)
    if label == uid:
        return []
    path = "spec.metadata.labels" if template else "metadata.labels"
    found = "missing" if label is None else label
    fault = f"{path}[{DOMAIN_LABEL}] is {found}, and the parameters name the domain {uid}"
    return [f"{fault}; set the label to {uid}, or leave it out and it is set"]


def _configs(request: Request) -> Iterator[tuple[int, ComputeDomainChannelConfig | None, str]]:
    """Ours among the configurations: place, content, and what is wrong with it."""
    if request.resource.resource == TEMPLATES:
        devices = msgspec.json.decode(request.object, type=_Template).spec.spec.devices
    else:
        devices = msgspec.json.decode(request.object, type=_Claim).spec.devices
    for index, entry in enumerate(devices.config):
        if entry.opaque is None or entry.opaque.driver != DRIVER:
            continue
        try:
            config = decode(bytes(entry.opaque.parameters))
        except OpaqueError as error:
            yield index, None, str(error)
            continue
        odd = not _UID.match(config.domain_id)
        yield index, config, f"domainID {config.domain_id!r} is no uid of a ComputeDomain" if odd else ""


def _channel_requests(devices: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Where the selectors of requests for channels stand, in every served version of the API."""
    for request in devices.get("requests") or []:
        # v1 nests one request under exactly; v1beta1 has it flat; alternatives are flat in both.
        for part in (request, request.get("exactly") or {}, *(request.get("firstAvailable") or [])):
            if part.get("deviceClassName") == CHANNEL_CLASS:
                yield part
