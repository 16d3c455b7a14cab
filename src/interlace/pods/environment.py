"""The environment of containers: the profile of a software tuple, merged with what the user wrote.

Invariant: a value of the user's that agrees stays; one that differs is an error that names both, unless the fabric
only recommends its own. The texts that people copy from have faults that are known; they are mended, and said.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from interlace.fabric.environment import Interfaces, settings
from interlace.fabric.family import Family, PodContract, Profile, SoftwareTuple, Variable
from interlace.pods.command import does_so_itself, prepare
from interlace.pods.draft import Container, Draft, Json, mappings, rows
from interlace.pods.errors import InjectError

LIBRARY_PATH: Final = "LD_LIBRARY_PATH"
_SELF: Final = ("${LD_LIBRARY_PATH}", "$LD_LIBRARY_PATH", "$(LD_LIBRARY_PATH)")
_NEVER_MOUNTED: Final = "/usr/local/tcpx/lib64"
_SEGMENTS: Final = re.compile(r"expandable_segments\s*:\s*true", re.IGNORECASE)


def settle(
    draft: Draft,
    container: Container,
    *,
    family: Family,
    software: SoftwareTuple | None,
    profile: Profile | None,
    interfaces: Interfaces,
) -> None:
    """Complete the environment of one GPU container. Raises InjectError."""
    contract = family.pod
    _unquote(draft, container)
    sourced = profile.script if profile and software and software.environment == "source" else ""
    sourced = sourced.replace("{lib}", contract.lib)
    by_script = bool(sourced) and prepare(
        draft, container, library_path=_library_path(draft, container, contract), source=sourced, reason=_SOURCED
    )
    if sourced and not by_script:
        draft.warn(
            f"{container.path}.command: there is none, so the settings that are known were set; {sourced} on the node "
            f"may set others that its release enforces: give {container.path} a command, and it is sourced"
        )
    variables = [*contract.env, *(profile.variables if profile else ())]
    if not interfaces.control:  # a host's own interfaces have any name
        variables = [each for each in variables if "{" not in each.value.replace("{lib}", "")]
    merge(
        draft,
        container,
        variables,
        interfaces=interfaces,
        lib=contract.lib,
        check_only={each.name for each in variables if each.source != _OWN} if by_script else set(),
    )
    if contract.library_path and not by_script:
        _libraries(draft, container, contract)
    _left_out(draft, container, profile)
    _contradictions(draft, container, family)


_OWN: Final = "interlace"
"""The source of what no script on the node sets."""
_SOURCED: Final = "the software on the node brings the NCCL settings as a script"


def merge(
    draft: Draft,
    container: Container,
    variables: Iterable[Variable],
    *,
    interfaces: Interfaces,
    lib: str,
    check_only: set[str] | frozenset[str] = frozenset(),
) -> None:
    """Add variables that are missing. Raises InjectError for values that differ.

    ``check_only``: names that are compared and not added.
    """
    path = f"{container.path}.env"
    existing = _by_name(container)
    try:
        wanted = settings(variables, interfaces=interfaces, lib=lib)
    except ValueError as error:
        raise InjectError(path, "", str(error), "give the Pod all networks of the family") from None
    for setting in wanted:
        entry = existing.get(setting.name)
        where = f"{path}[{setting.name}]"
        need = setting.variable.need
        if entry is None:
            if setting.name not in check_only:
                rows(container.fields, "env", path).append({"name": setting.name, "value": setting.value})
                draft.added(where, setting.value, setting.variable.why)
        elif "valueFrom" in entry:
            if need != "recommended":
                draft.warn(f"{where}: its value comes from elsewhere and was not compared; it must be {setting.value}")
        elif str(entry.get("value") or "") != setting.value and need != "recommended":
            verb = "enforces" if need == "enforced" else "needs"
            raise InjectError(
                where,
                entry.get("value"),
                f"the fabric {verb} {setting.value} ({setting.variable.why})",
                f"remove it, or write {setting.value}",
            )


def _by_name(container: Container) -> dict[str, Json]:
    path = f"{container.path}.env"
    found: dict[str, Json] = {}
    for index, entry in enumerate(mappings(container.fields, "env", path)):
        name = str(entry.get("name"))
        value = entry.get("value")
        if value is not None and not isinstance(value, str):
            raise InjectError(f"{path}[{index}].value", value, f"{name} must be a string", "put the value in quotes")
        if name in found and found[name] != entry:
            raise InjectError(f"{path}[{index}]", name, "it is set twice with two values", "write it once")
        found[name] = entry
    return found


def _unquote(draft: Draft, container: Container) -> None:
    r"""Values copied as ``"K=\"V\""`` carry quote marks that no shell takes away."""
    for name, entry in _by_name(container).items():
        value = entry.get("value")
        if name.startswith(("NCCL_", LIBRARY_PATH)) and isinstance(value, str) and len(value) > 1:
            bare = value.removeprefix("\\").replace('\\"', '"')
            if bare[0] == bare[-1] == '"' and len(bare) > 1:
                entry["value"] = bare[1:-1]
                draft.mended(
                    f"{container.path}.env[{name}]", bare[1:-1], f"the quote marks were part of the value {value}"
                )


def _library_path(draft: Draft, container: Container, contract: PodContract) -> tuple[str, ...]:
    """Folders that a shell has to put in front: none if the container sets the variable itself."""
    if LIBRARY_PATH in _by_name(container):
        _libraries(draft, container, contract)
        return ()
    return contract.library_path


def _libraries(draft: Draft, container: Container, contract: PodContract) -> None:
    """The contract's folders first on LD_LIBRARY_PATH, so that NCCL of the node wins over that of the image."""
    reason = "NCCL and its plugin of the node must be found before those of the image"
    path = f"{container.path}.env[{LIBRARY_PATH}]"
    entry = _by_name(container).get(LIBRARY_PATH)
    first = contract.library_path
    if entry is None:
        if does_so_itself(container, f"{LIBRARY_PATH}={first[0]}"):
            return
        if not prepare(draft, container, library_path=first, source="", reason=reason):
            rows(container.fields, "env", f"{container.path}.env").append(
                {"name": LIBRARY_PATH, "value": ":".join(first)}
            )
            draft.added(path, ":".join(first), reason)
            draft.warn(
                f"{path}: it hides the value that the image may set; give {container.path} a command and it is only "
                "put in front"
            )
        return
    if "valueFrom" in entry:
        draft.warn(f"{path}: its value comes from elsewhere and was not compared; {':'.join(first)} must come first")
        return
    value = str(entry.get("value") or "")
    parts = [part for part in value.split(":") if part]
    kept = [part for part in parts if part not in _SELF and part not in first]
    wanted = ":".join((*first, *kept))
    if _NEVER_MOUNTED in kept:
        draft.warn(f"{path}: nothing is ever mounted at {_NEVER_MOUNTED}; the libraries are in {first[0]}")
    if wanted == value:
        return
    entry["value"] = wanted
    if any(part in _SELF for part in parts):
        draft.mended(path, wanted, f"Kubernetes does not expand {value}, it stays as these characters")
        draft.warn(f"{path}: {value} was not expanded; folders that the image needs must be written out")
    else:
        draft.completed(path, wanted, reason)


def _left_out(draft: Draft, container: Container, profile: Profile | None) -> None:
    existing = _by_name(container)
    for each in profile.left_out if profile else ():
        if each.name in existing:
            draft.warn(f"{container.path}.env[{each.name}]: best left out: {each.why}")


def _contradictions(draft: Draft, container: Container, family: Family) -> None:
    """Settings of the user's that take the fabric away. Raises InjectError."""
    existing = _by_name(container)

    def value(name: str) -> str:
        return str(existing.get(name, {}).get("value") or "")

    path = f"{container.path}.env"
    network = family.node.nccl_network
    chosen = value("NCCL_NET")
    if chosen and network and chosen.lower() != network.lower():
        raise InjectError(
            f"{path}[NCCL_NET]", chosen, f"family {family.id} runs on {network}", f"remove it, or write {network}"
        )
    plugin = value("NCCL_NET_PLUGIN")
    if "fastsocket" in plugin.lower() or plugin.lower() == "none":
        raise InjectError(
            f"{path}[NCCL_NET_PLUGIN]",
            plugin,
            "it takes the place of the plugin for GPUDirect",
            "remove it, and Fast Socket from the image",
        )
    if family.node.transport == "rdma" and value("NCCL_IB_DISABLE") == "1":
        raise InjectError(f"{path}[NCCL_IB_DISABLE]", "1", f"family {family.id} runs on RDMA", "remove it")
    if _SEGMENTS.search(value("PYTORCH_CUDA_ALLOC_CONF")) and family.pod.sidecar is not None:
        draft.warn(
            f"{path}[PYTORCH_CUDA_ALLOC_CONF]: buffers in expandable segments cannot be registered; write "
            "expandable_segments:False"
        )
    visible = value("CUDA_VISIBLE_DEVICES")
    if visible and len(visible.split(",")) < family.node.gpus and family.node.whole_node:
        draft.warn(
            f"{path}[CUDA_VISIBLE_DEVICES]: {visible} leaves GPUs out, and the plugin counts {family.node.gpus}; "
            "leave the choice to the launcher"
        )
