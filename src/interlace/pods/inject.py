"""Every Pod set up for the fabric of its nodes: the one function that the command and the webhook call.

Pure over plain JSON objects. Invariant: the result depends on the arguments alone; what agrees with the
contract of the family is left as it is, what is missing is added, what differs is refused; injecting the result
again changes nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Final

import msgspec

from interlace.fabric.environment import Interfaces, default_interfaces
from interlace.fabric.family import Family, FamilyError, SoftwareTuple
from interlace.fabric.minimum import judge
from interlace.fabric.version import GkeVersion, Minor
from interlace.pods import interfaces as networking
from interlace.pods.capabilities import grant, privilege
from interlace.pods.command import hides_environment
from interlace.pods.daemon import find_daemon, tuple_of
from interlace.pods.draft import Change, Container, Draft
from interlace.pods.environment import settle
from interlace.pods.errors import InjectError
from interlace.pods.gpus import Gpus, check, gpus, has_unknown_claims
from interlace.pods.nvlink import join_domain
from interlace.pods.placement import place
from interlace.pods.recognition import recognise
from interlace.pods.sidecar import install
from interlace.pods.volumes import mount

TUPLE: Final = "interlace.dev/tuple"
"""Annotation: the software tuple that a Pod was set up for."""


LOST_OVER_SSH: Final = (
    "its SSH server keeps the NCCL settings of the container from ranks that mpirun starts over it; start it with "
    "sshd -o SetEnv=…, or name the settings to mpirun with -x"
)


class Injection(msgspec.Struct, frozen=True, kw_only=True):
    """The new Pod, what was done to it and why, and what a person should know."""

    pod: dict[str, Any]
    changes: tuple[Change, ...] = ()
    warnings: tuple[str, ...] = ()
    software: str = ""
    """Id of the tuple; empty if nothing was to do."""


def inject(
    pod: Mapping[str, Any],
    *,
    family: Family,
    software: SoftwareTuple | None = None,
    profile: str = "default",
    version: GkeVersion | Minor | None = None,
    networks: Mapping[str, str] | None = None,
    claims: Mapping[str, tuple[str, ...]] | None = None,
    channel: str = "",
    host_network: bool = False,
    required_plugin: str = "",
    gpu_containers: Collection[str] = (),
    placed: bool = False,
) -> Injection:
    """The Pod (or Pod template: ``metadata`` and ``spec``) with everything that the family's fabric needs.

    ``software``: the tuple (None: that of a daemon or mark that the Pod has, else the family's choice for
    ``version``, the GKE version of the cluster, None where it is not known). ``networks``: name of a Network in the
    family file to its name in this cluster. ``claims``: name of a ResourceClaim or ResourceClaimTemplate to the
    DeviceClasses it asks for. ``channel``: name of the ResourceClaimTemplate of the job's ComputeDomain, for
    families with NVLink between nodes; else the Pod's label ``interlace.dev/channel`` has it. ``host_network``: the
    form without annotations, with hostNetwork and privileged containers. ``gpu_containers``: containers that get their
    GPUs later. ``required_plugin``: NRI plugin without which a runtime that checks this makes no daemon. ``placed``:
    what makes the Pods keeps them within one topology domain.

    A Pod without GPUs comes back as it is. Raises InjectError.
    """
    draft = Draft(pod)
    known = claims or {}
    found = gpus(draft, claims=known, also=gpu_containers)
    if not found.containers:
        return Injection(pod=draft.pod)
    recognise(draft, named=family.id, claims=known, also=gpu_containers)
    daemon = find_daemon(draft, family=family)
    check(found, family=family)
    if family.pod.one_per_node and found.by_claim:
        draft.warn(
            f"spec.resourceClaims: GPUs that come by a claim are not counted here; claim all {family.node.gpus} of a "
            f"node, since its NICs serve one Pod of family {family.id}"
        )
    _support(draft, family, version)
    tuple_ = _software(draft, daemon, family=family, software=software, version=version)
    _host_network(draft, found, family=family, wanted=host_network)
    if family.pod.default_interface and not found.nics_by_claim and has_unknown_claims(draft, known):
        draft.warn(
            "spec.resourceClaims: nothing is known of what they claim, and NICs are given by annotation; if they claim "
            "NICs, put their templates into the same file"
        )
    names = _interfaces(draft, found, family=family, networks=networks or {}, host_network=host_network)
    place(draft, found, family=family)
    if family.pod.sidecar is not None:
        install(
            draft,
            family.pod.sidecar,
            daemon,
            family=family,
            software=tuple_,
            version=version,
            host_network=host_network,
            required_plugin=required_plugin,
        )
        found = gpus(draft, claims=known, also=gpu_containers)  # the daemon moved the init containers by one
    for container in found.containers:
        _equip(draft, container, family=family, software=tuple_, profile=profile, interfaces=names)
    if family.node.mnnvl:
        join_domain(draft, found.containers, channel=channel, claims=known, placed=placed)
    if TUPLE not in draft.annotations:
        draft.annotate(TUPLE, tuple_.id, "the release that the rest of the Pod is for")
    return Injection(pod=draft.pod, changes=tuple(draft.changes), warnings=tuple(draft.warnings), software=tuple_.id)


def _equip(
    draft: Draft,
    container: Container,
    *,
    family: Family,
    software: SoftwareTuple,
    profile: str,
    interfaces: Interfaces,
) -> None:
    reason = "GPU containers of this family need it"
    mount(draft, container, family.pod.mounts, contract=family.pod, reason=reason)
    grant(draft, container, family.pod.capabilities, reason=reason)
    try:
        chosen = family.profile(profile, of=software) if software.profiles else None
    except FamilyError as error:
        raise InjectError("--profile", profile, str(error), "name one of these") from None
    settle(draft, container, family=family, software=software, profile=chosen, interfaces=interfaces)
    if hides_environment(container):
        draft.warn(f"{container.path}: {LOST_OVER_SSH}")


def _software(
    draft: Draft,
    daemon: Container | None,
    *,
    family: Family,
    software: SoftwareTuple | None,
    version: GkeVersion | Minor | None,
) -> SoftwareTuple:
    """One tuple for the whole Pod: what it has already decides, and differing statements are refused."""
    path = f"metadata.annotations[{TUPLE}]"
    mark = draft.annotations.get(TUPLE)
    stated: list[tuple[str, SoftwareTuple]] = []
    try:
        if mark is not None:
            stated.append((path, family.software(mark)))
    except FamilyError as error:
        raise InjectError(path, mark, str(error), "remove the annotation, or write one of these") from None
    of_daemon = tuple_of(daemon, family=family) if daemon is not None else None
    if daemon is not None and of_daemon is not None:
        stated.append((f"{daemon.path}.image", of_daemon))
    if software is not None:
        stated.append(("--tuple", software))
    if not stated:
        try:
            return family.software_for(version)
        except FamilyError as error:
            raise InjectError("--cluster-version", str(version), str(error), "use another cluster") from None
    first, chosen = stated[0]
    for where, other in stated[1:]:
        if other.id != chosen.id:
            raise InjectError(
                first,
                chosen.id,
                f"{where} is of tuple {other.id}, and the parts of two releases do not work together",
                "change one of the two",
            )
    if version is not None and not chosen.fits_gke(version):
        draft.warn(f"{first}: tuple {chosen.id} is not meant for GKE {version}")
    return chosen


def _host_network(draft: Draft, found: Gpus, *, family: Family, wanted: bool) -> None:
    """Refuse hostNetwork where the annotations take its place, or set up the form that needs it."""
    on = draft.spec.get("hostNetwork") is True
    if not family.node.gke:
        return
    if on and not wanted:
        raise InjectError(
            "spec.hostNetwork",
            True,
            f"Pods of family {family.id} get the NICs by annotation, and the host's own network has no part in that",
            "remove hostNetwork (--host-network renders the form with privileged containers instead)",
        )
    if not wanted:
        return
    if networking.INTERFACES in draft.annotations:
        raise InjectError(
            f"metadata.annotations[{networking.INTERFACES}]",
            draft.annotations[networking.INTERFACES],
            "a Pod on the host's network takes no interfaces by annotation",
            "remove it, or do without --host-network",
        )
    draft.warn(
        "spec.hostNetwork: GPU containers and the daemon run privileged on the host's network: whoever can start "
        "such a Pod owns the node; interfaces may have other names there"
    )
    reason = "the form without annotations"
    if not on:
        draft.spec["hostNetwork"] = True
        draft.added("spec.hostNetwork", True, reason)
    if draft.spec.get("dnsPolicy") in (None, "ClusterFirst"):
        draft.spec["dnsPolicy"] = "ClusterFirstWithHostNet"
        draft.added("spec.dnsPolicy", "ClusterFirstWithHostNet", reason)
    for container in found.containers:
        privilege(draft, container, reason=reason)


def _interfaces(
    draft: Draft, found: Gpus, *, family: Family, networks: Mapping[str, str], host_network: bool
) -> Interfaces:
    if not family.node.gke and draft.spec.get("hostNetwork") is True:
        return Interfaces(control="", data=())
    if host_network:
        return default_interfaces(family)
    return networking.attach(draft, found, family=family, networks=networks)


def _support(draft: Draft, family: Family, version: GkeVersion | Minor | None) -> None:
    """Refuse a GKE version below the family's. Raises InjectError."""
    if not isinstance(version, GkeVersion) or not family.node.gke:
        return
    verdict = judge(family, version)
    if not verdict.ok:
        raise InjectError("--cluster-version", str(version), verdict.why, "use a newer cluster")
    if not verdict.known:
        draft.warn(f"--cluster-version: {verdict.why}")
