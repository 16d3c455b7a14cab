"""The reference of hardware families: ``python -m tools.families_reference [--check]``.

Written to docs/families.md from ``interlace.fabric``, so that the page cannot say something else than what is rendered
and judged; ``--check`` fails if the file is not what the data say.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from interlace.fabric.bands import table
from interlace.fabric.family import Family, PodContract, Profile, SoftwareTuple, families

ROOT = Path(__file__).parents[1]
TARGET = ROOT / "docs" / "families.md"
HEAD = """# Hardware families

Made from the data of `src/interlace/fabric/data` by `python -m tools.families_reference`; `make check` compares.

Every verb takes the id of a family or a machine type. `interlace families show FAMILY` prints each value with its
source and date, `interlace env` the NCCL environment, `interlace manifests --family` what a cluster needs.

A software tuple is software that was released to work together: installer, daemon, NCCL and environment are those of
one tuple, never of two. The preferred tuple is the one that is taken if nothing else is asked for. In the tables of
variables, `enforced` means that the plugin ends a job whose value differs, `required` that the fabric does not work or
is slower without it, `recommended` that a value of your own stands. `{control}` is the interface of the Pod network,
`{data}` those for traffic of GPUs in the order of the NICs, `{lib}` the folder with NCCL and its plugin.

## From a node pool to a first measurement

```sh
interlace families versions a3-mega --cluster-version 1.33.5-gke.1308000   # is the cluster new enough?
interlace manifests --family a3-mega --network-prefix my-project | kubectl apply --server-side -f -
interlace manifests status --family a3-mega --timeout 600                  # waits; says what is missing and why
kubectl logs interlace-canary                                              # what a container on such a node is given
kubectl patch job nccl-test -p '{"spec":{"suspend":false}}'                # an all-gather over two nodes
```

The networks name the VPC networks `PREFIX-net-1` and subnets `PREFIX-sub-1` and so on (RDMA families:
`PREFIX-rdma-net`, `PREFIX-rdma-sub-0`, and `PREFIX-gvnic-net-0` for the NIC of the host). The installer has the name
and the labels of Google's own and takes its place; each of its steps may run again on a node. The test is a suspended
Job, wired by the same injection as any Pod. `--part` prints parts of it all.

What the plugin on a node would say to an environment is known before a job starts:

```sh
kubectl exec POD -- cat /usr/local/nvidia/lib64/a3plus_guest_config.textproto |
  interlace env --family a3-mega --check -                # --env-file FILE checks an environment of your own
```

## The families

"""


def cell(text: object) -> str:
    """A cell of a table."""
    return str(text).replace("|", "\\|").replace("\n", " ") or "-"


def rows(head: Iterable[str], body: Iterable[Iterable[object]]) -> str:
    """A table, or nothing if it would be empty."""
    lines = [f"| {' | '.join(cell(each) for each in row)} |" for row in body]
    if not lines:
        return ""
    names = list(head)
    return "\n".join([f"| {' | '.join(names)} |", f"|{' --- |' * len(names)}", *lines]) + "\n"


def overview() -> str:
    """All families in one table."""
    return rows(
        ("family", "machine types", "GPUs", "NICs of GPUs", "transport", "MTU", "preferred software"),
        (
            (
                f"[{family.id}](#{family.id})",
                ", ".join(f"`{machine}`" for machine in family.machines),
                f"{family.node.gpus} x {family.node.product.removeprefix('NVIDIA-')}",
                f"{family.node.nics} x {family.node.nic_gbps} Gbit/s",
                family.node.transport + (", NVLink across nodes" if family.node.mnnvl else ""),
                family.node.mtu or "-",
                family.software_for(None).id,
            )
            for family in families()
        ),
    )


def page(family: Family) -> Iterator[str]:
    """One family."""
    yield f"\n## {family.id}\n\n{family.title}.\n"
    for refused in family.refused:
        yield f"\n`{refused.machine}` is not of this family: {refused.why}.\n"
    if family.networks:
        names = ", ".join(
            f"`{network.name}` ({network.interface}{'' if network.gpu else ', of the host'})"
            for network in family.networks
        )
        yield f"\nNetworks in the order of the NICs: {names}.\n"
    if family.versions:
        yield "\n### Least GKE version of " + family.id + "\n\n"
        yield rows(
            ("minor", "version", "recommended", "source", "note"),
            (
                (
                    row.minor,
                    f"`{row.version}`" if row.version else "any patch",
                    f"`{row.recommended}`" if row.recommended else "",
                    _source(family, row.source),
                    row.why,
                )
                for row in family.versions
            ),
        )
        yield "\nA newer minor is accepted with a note, an older one refused.\n"
    yield f"\n### Software of {family.id}\n\n"
    yield rows(
        ("tuple", "released", "GKE", "driver", "NCCL", "profiles", "source", "note"),
        (_software(family, software) for software in family.tuples),
    )
    yield "\n" + "".join(_images(software) for software in family.tuples)
    for profile in family.profiles:
        yield from _profile(family, profile)
    yield from _pod(family.id, family.pod)
    yield from _bands(family)
    yield f"\n### Sources of {family.id}\n\n"
    yield rows(("source", "date", "title"), ((key, each.date, each.title) for key, each in family.sources.items()))


def _source(family: Family, key: str) -> str:
    return f"{key}, {family.sources[key].date}"


def _software(family: Family, software: SoftwareTuple) -> tuple[object, ...]:
    gke = f"from {software.gke_from}" if software.gke_from else "-"
    below = f", below {software.gke_below}" if software.gke_below else ""
    driver = f"from {software.driver_from}{f', below {software.driver_below}' if software.driver_below else ''}"
    name = f"`{software.id}`{', preferred' if software.preferred else ''}"
    profiles = ", ".join(f"{key} ({value})" for key, value in software.profiles.items())
    source = _source(family, software.source)
    return name, software.released, gke + below, driver, software.nccl, profiles, source, software.note


def _images(software: SoftwareTuple) -> str:
    named = (("plugin", software.plugin), ("daemon", software.daemon), ("tests", software.test))
    images = "; ".join(f"{what} `{image}`" for what, image in named if image)
    return f"* `{software.id}`: {images}\n" if images else ""


def _profile(family: Family, profile: Profile) -> Iterator[str]:
    yield f"\n### NCCL environment {profile.id}\n\n{profile.title} ({_source(family, profile.source)})."
    yield f" On the node `{profile.script.replace('{lib}/', '')}` sets the same.\n\n" if profile.script else "\n\n"
    yield rows(
        ("variable", "value", "need", "why"),
        ((f"`{each.name}`", f"`{each.value}`", each.need, each.why) for each in profile.variables),
    )
    for each in profile.left_out:
        yield f"\nLeft out: `{each.name}`{f' (elsewhere `{each.value}`)' if each.value else ''}: {each.why}.\n"


def _pod(id_: str, pod: PodContract) -> Iterator[str]:
    yield f"\n### What a Pod of {id_} needs\n\n"
    if pod.library_path:
        yield f"* first on `LD_LIBRARY_PATH`: {', '.join(f'`{path}`' for path in pod.library_path)}\n"
    for variable in pod.env:
        yield f"* `{variable.name}={variable.value}`: {variable.why}\n"
    volumes = {volume.name: volume for volume in pod.volumes}
    for mount in pod.mounts:
        volume = volumes[mount.volume]
        origin = f"`{volume.host_path}` of the node" if volume.host_path else "an empty folder"
        origin += f" in memory, {volume.size}" if volume.memory else ""
        yield f"* `{mount.path}`: {origin}{', read-only' if mount.read_only else ''}\n"
    if pod.sidecar:
        devices = ", ".join(f"`{path}`" for path in pod.sidecar.devices)
        rights = ", ".join(pod.sidecar.capabilities)
        yield f"* the sidecar `{pod.sidecar.name}` with {rights} and the devices {devices}\n"
    for toleration in pod.tolerations:
        yield f"* a toleration of `{toleration.key}`{f'=`{toleration.value}`' if toleration.value else ''}\n"


def _bands(family: Family) -> Iterator[str]:
    bands = [row for row in table().bands if row.family == family.id]
    if not bands:
        return
    sources = table().sources
    yield f"\n### What a measurement of {family.id} has to reach\n\nIn busbw of nccl-tests.\n\n"
    yield rows(
        ("where", "collectives", "pass", "degraded", "from size", "why", "source"),
        (
            (
                "between nodes" if row.scope == "nodes" else "within NVLink",
                ", ".join(row.collectives),
                f"{row.pass_share * row.bound_gb_s:.0f} GB/s",
                f"{row.degraded_share * row.bound_gb_s:.0f} GB/s",
                f"{row.from_bytes >> 20} MiB",
                row.why,
                f"{sources[row.source].title}, {sources[row.source].date}",
            )
            for row in bands
        ),
    )
    for floor in (row for row in table().floors if row.family == family.id):
        where = "between nodes" if floor.scope == "nodes" else "within NVLink"
        yield f"\n{floor.bytes >> 20} MiB {where} may take at most {floor.most_ms:g} ms: {floor.why}.\n"


def render() -> str:
    """The whole page."""
    return HEAD + overview() + "".join(part for family in families() for part in page(family))


def main() -> int:
    """Entry point."""
    text = render()
    if "--check" in sys.argv[1:]:
        if not TARGET.exists() or TARGET.read_text() != text:
            print("docs/families.md is not up to date; run: python -m tools.families_reference", file=sys.stderr)
            return 1
        return 0
    TARGET.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
