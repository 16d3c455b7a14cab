"""The DaemonSet that puts NCCL and its plugin on the nodes of a family.

It has the name, the namespace and the labels of Google's own, so that it takes its place and two never write the same
folder. Invariant: each step may run again on a node where it ran before, and one that fails ends with a sentence, so
that the Pod does not become Ready.
"""

from __future__ import annotations

from typing import Any, Final

from interlace.fabric.family import Family, Installer, SoftwareTuple

NAMESPACE: Final = "kube-system"
LIBRARY: Final = "libnccl-net.so"
"""What a folder of installed plugins must hold."""

_Object = dict[str, Any]

_APERTURES: Final = """\
count=0
for device in /sys/bus/pci/devices/*; do
  [ "$(cat "$device/vendor")" = "0x{vendor}" ] && [ "$(cat "$device/device")" = "0x{device}" ] || continue
  target="/dev/aperture_devices/${{device##*/}}"
  mkdir -p "$target"
  mountpoint -q "$target" || mount --bind "$(readlink -f "$device")" "$target"
  chmod -R a+r "$target"
  chmod a+rw "$target"/resource*
  count=$((count + 1))
done
if [ "$count" = 0 ]; then
  echo "no PCI function {vendor}:{device} on this node: is it of machine type {machine}?" >&2
  exit 1
fi
echo "$count apertures are bound under /dev/aperture_devices"
"""


def installer(family: Family, *, software: SoftwareTuple) -> _Object | None:
    """The DaemonSet for a tuple; None for a family that installs nothing."""
    plan = family.installer
    if plan is None:
        return None
    labels = {"k8s-app": plan.name}
    mounts = list(plan.host_mounts.items())
    steps = [_install(plan, software=software, mounts=mounts)]
    if prepare := prepare_script(family):
        steps.insert(0, _prepare(software, prepare))
    pod = {
        "priorityClassName": "system-node-critical",
        "affinity": _on_machines(family),
        "tolerations": [{"operator": "Exists"}],
        "hostPID": True,
        "terminationGracePeriodSeconds": 5,
        "initContainers": steps,
        "containers": [_rest(software)],
        "volumes": [
            {"name": f"host-{index}", "hostPath": {"path": host, "type": "DirectoryOrCreate"}}
            for index, (host, _) in enumerate(mounts)
        ],
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": plan.name, "namespace": NAMESPACE, "labels": labels},
        "spec": {
            "selector": {"matchLabels": labels},
            "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "20%"}},
            "template": {
                "metadata": {"labels": {"name": plan.name, **labels}, "annotations": _marks(software)},
                "spec": pod,
            },
        },
    }


def prepare_script(family: Family) -> str:
    """What is done in the host's own namespaces before the plugin is installed; empty: nothing."""
    plan = family.installer
    if plan is None:
        return ""
    lines = []
    if plan.accept_tcp:
        rule = "INPUT -p tcp -m tcp -j ACCEPT"
        lines.append(f"iptables -w 30 -C {rule} 2>/dev/null || iptables -w 30 -I {rule}\n")
    lines += [f"modprobe {module}\n" for module in plan.modules]
    if plan.apertures:
        vendor, device = plan.apertures.split(":")
        lines.append(_APERTURES.format(vendor=vendor, device=device, machine=" or ".join(family.machines)))
    return "set -eu\n" + "".join(lines) if lines else ""


def install_script(plan: Installer) -> str:
    """Run the image's own installer, then copy what it made and look that the plugin is there."""
    lines = [
        "set -eu",
        f"sh -c 'chmod 755 /scripts/container_entry.sh && /scripts/container_entry.sh {' '.join(plan.args)}'",
    ]
    for source, target in plan.copies.items():
        lines += [
            f"mkdir -p {target}",
            # Files are unlinked before they are written: jobs that run keep the libraries they have open.
            f"cp -a --remove-destination {source}/. {target}/",
        ]
    libraries = [target for target in plan.copies.values() if target.endswith("lib64")]
    lines += [
        f"[ -e {target}/{LIBRARY} ] || {{ echo 'the installer left no {LIBRARY} in {target}' >&2; exit 1; }}"
        for target in libraries
    ]
    return "\n".join(lines) + "\n"


def _marks(software: SoftwareTuple) -> dict[str, str]:
    return {"interlace.dev/software": software.id}


def _on_machines(family: Family) -> _Object:
    """By machine type: the accelerator label is shared with machines of other families."""
    wanted = {"key": "node.kubernetes.io/instance-type", "operator": "In", "values": list(family.machines)}
    return {
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{"matchExpressions": [wanted]}]}
        }
    }


def _prepare(software: SoftwareTuple, script: str) -> _Object:
    return {
        "name": "pre-installation",
        "image": software.plugin,
        "command": ["nsenter", "--all", "--target", "1", "--", "/bin/sh", "-c", script],
        "securityContext": {"privileged": True},
        "resources": _RESOURCES,
    }


def _install(plan: Installer, *, software: SoftwareTuple, mounts: list[tuple[str, str]]) -> _Object:
    return {
        "name": plan.name,
        "image": software.plugin,
        "command": ["/bin/sh", "-c", install_script(plan)],
        "securityContext": {"privileged": True},
        "resources": _RESOURCES,
        "volumeMounts": [{"name": f"host-{index}", "mountPath": path} for index, (_, path) in enumerate(mounts)],
    }


def _rest(software: SoftwareTuple) -> _Object:
    """Keeps the Pod there without another image."""
    return {
        "name": "installed",
        "image": software.plugin,
        "command": ["/bin/sh", "-c", "trap 'exit 0' TERM; while :; do sleep 3600 & wait $!; done"],
        "resources": {"requests": {"cpu": "1m", "memory": "8Mi"}, "limits": {"memory": "32Mi"}},
    }


_RESOURCES: Final[_Object] = {"requests": {"cpu": "150m", "memory": "64Mi"}}
