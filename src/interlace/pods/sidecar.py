"""The daemon beside the GPU containers: built from the family's contract and a tuple, or completed.

Where the cluster has native sidecars it is the first init container: it is ready before the others start and ends
after them. Before, it is an ordinary container: in Pods that run to completion it then needs a rule by which it
ends (see ``ending``). Invariant: its devices are named by an annotation for exactly the name it has.
"""

from __future__ import annotations

from typing import Final

from interlace.fabric.devices import PREFIX, DevicesError, allow, annotated, read
from interlace.fabric.environment import Interfaces
from interlace.fabric.family import Family, Sidecar, SoftwareTuple
from interlace.fabric.version import GkeVersion, Minor, minor_version
from interlace.pods import ending
from interlace.pods.capabilities import as_root, grant, privilege
from interlace.pods.draft import Container, Draft, Json, words
from interlace.pods.environment import merge
from interlace.pods.errors import InjectError
from interlace.pods.starting import require_plugin, startup_probe
from interlace.pods.volumes import mount

_RETIRED: Final = ("--num_nics", "--uid", "--alsologtostderr")


def install(
    draft: Draft,
    contract: Sidecar,
    daemon: Container | None,
    *,
    family: Family,
    software: SoftwareTuple,
    version: GkeVersion | Minor | None,
    host_network: bool,
    required_plugin: str = "",
) -> None:
    """Give the Pod its daemon, or complete the one it has. Raises InjectError."""
    if daemon is None:
        daemon = _place(draft, contract, software=software, version=version)
        reason = "the daemon's contract"
    else:
        reason = "the daemon that is there lacks it"
        _judge(draft, daemon, software=software)
    if daemon.init:
        _stay(draft, contract, daemon, devices=() if host_network else contract.devices)
    merge(draft, daemon, contract.env, interfaces=Interfaces(), lib=family.pod.lib)
    mount(draft, daemon, contract.mounts, contract=family.pod, reason=reason)
    as_root(draft, daemon, reason="the daemon sets up the NICs, whoever the work runs as")
    if host_network:
        privilege(draft, daemon, reason=reason)
        return
    grant(draft, daemon, contract.capabilities, reason=reason)
    _devices(draft, contract, daemon)
    if required_plugin:
        require_plugin(draft, daemon, required_plugin)


def _place(
    draft: Draft, contract: Sidecar, *, software: SoftwareTuple, version: GkeVersion | Minor | None
) -> Container:
    fields: Json = {"name": contract.name, "image": software.daemon, "imagePullPolicy": contract.pull_policy}
    args = [_filled(each, software) for each in contract.args]
    if native(contract, version):
        fields |= {"restartPolicy": "Always", "command": list(contract.command)}
        if args:
            fields["args"] = args
        where, path = "initContainers", "spec.initContainers[0]"
        reason = "the daemon starts before the GPU containers and ends after them"
    else:
        where, path = "containers", "spec.containers[0]"
        reason = "the daemon runs beside the GPU containers; this cluster has no native sidecars"
        policy = draft.spec.get("restartPolicy", "Always")
        if policy == "OnFailure":
            raise InjectError(
                "spec.restartPolicy",
                policy,
                f"before GKE {contract.native_from} the daemon ends once no other container runs, and a container that "
                "is started again would find none",
                "write Never (a Job then makes a new Pod), or use a newer cluster",
            )
        if policy == "Never":
            fields["command"] = ending.command([*contract.command, *args])
            _share_processes(draft)
        else:
            fields["command"] = list(contract.command)
            if args:
                fields["args"] = args
    existing = draft.spec.get(where) or []
    draft.spec[where] = [fields, *existing]  # kubelet starts containers in their order
    draft.added(path, f"{contract.name}, {software.daemon}", reason)
    return Container(path=path, name=contract.name, init=where == "initContainers", fields=fields)


def _share_processes(draft: Draft) -> None:
    """Let the daemon see the processes of the other containers, and of nobody else. Raises InjectError."""
    for key, refused in (("shareProcessNamespace", False), ("hostPID", True)):
        if draft.spec.get(key) is refused:
            raise InjectError(
                f"spec.{key}",
                refused,
                "on this cluster the daemon ends when it sees no process of another container of the Pod",
                "remove it, or use a cluster with native sidecars",
            )
    if draft.spec.get("shareProcessNamespace") is not True:
        draft.spec["shareProcessNamespace"] = True
        draft.added("spec.shareProcessNamespace", True, "the daemon sees by it that the work has ended")


def native(contract: Sidecar, version: GkeVersion | Minor | None) -> bool:
    """Whether the cluster runs init containers that stay; one of unknown version is taken for a current one."""
    if version is None:
        return True
    minor = version.of if isinstance(version, GkeVersion) else version
    return minor >= minor_version(contract.native_from)


def _filled(text: str, software: SoftwareTuple) -> str:
    return text.replace(" {args}", "".join(f" {each}" for each in software.daemon_args))


def _judge(draft: Draft, daemon: Container, *, software: SoftwareTuple) -> None:
    """Say what is wrong with a daemon that somebody else placed, and works all the same."""
    texts = " ".join(
        words(daemon.fields, "command", f"{daemon.path}.command") + words(daemon.fields, "args", f"{daemon.path}.args")
    )
    known = tuple(software.daemon_args)
    retired = [flag for flag in _RETIRED if flag in texts and not any(own.startswith(flag) for own in known)]
    if retired:
        draft.warn(f"{daemon.path}: {', '.join(retired)} mean nothing to this release of the daemon")
    if not daemon.init and draft.spec.get("restartPolicy", "Always") != "Always":
        draft.warn(
            f"{daemon.path}: as an ordinary container the daemon runs on when the work has ended, and a Job with such "
            "Pods does not complete; move it to initContainers with restartPolicy Always"
        )


def _stay(draft: Draft, contract: Sidecar, daemon: Container, *, devices: tuple[str, ...]) -> None:
    """Make an init container one that stays, and that the others wait for until it is ready."""
    if not daemon.native_sidecar:
        draft.completed(f"{daemon.path}.restartPolicy", "Always", "without it the Pod waits for the daemon's end")
        daemon.fields["restartPolicy"] = "Always"
    probe = startup_probe(contract.probe, devices=devices)
    if probe is not None and daemon.fields.get("startupProbe") is None:
        what = [
            *(["all devices are there"] if devices else []),
            *([" ".join(contract.probe.command)] if contract.probe else []),
        ]
        draft.added(f"{daemon.path}.startupProbe", ", ".join(what), "the work starts when the daemon is ready")
        daemon.fields["startupProbe"] = probe


def _devices(draft: Draft, contract: Sidecar, daemon: Container) -> None:
    """The annotation that gives the daemon its devices. Raises InjectError."""
    present = annotated(draft.annotations)
    names = {container.name for container in draft.containers()}
    for name in present:
        if name not in names:
            raise InjectError(
                f"metadata.annotations[{PREFIX}{name}]",
                name,
                "no container has this name",
                f"name the daemon: {PREFIX}{daemon.name}",
            )
    key = PREFIX + daemon.name
    text = present.get(daemon.name, "")
    try:
        listed = [device.path for device in read(text).devices]
    except DevicesError as error:
        raise InjectError(f"metadata.annotations[{key}]", text, str(error), "write - path: /dev/<name>") from None
    others = [path for path in listed if path not in contract.devices]
    if others and (strange := [path for path in others if path not in allow()]):
        draft.warn(
            f"metadata.annotations[{key}]: GPUDirect needs no {', '.join(strange)}, and the device guard of a cluster "
            "refuses such devices; leave it out"
        )
    missing = [path for path in contract.devices if path not in listed]
    if missing:
        lines = "".join(f"- path: {path}\n" for path in missing)
        kept = text if not text or text.endswith("\n") else f"{text}\n"
        if kept and not kept.lstrip().startswith("- "):  # a list in brackets, or an indented one
            kept, lines = "", "".join(f"- path: {path}\n" for path in [*listed, *missing])
        elif kept.startswith(" "):
            indent = kept[: len(kept) - len(kept.lstrip(" "))]
            lines = "".join(f"{indent}- path: {path}\n" for path in missing)
        draft.annotate(key, kept + lines, "the daemon gets the GPUs of the node by it, without asking for them")
