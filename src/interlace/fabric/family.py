"""What is known about each hardware family: the single source for every verb.

One TOML file a family under ``fabric/data``; each table names the ``source`` of its values (``source_of`` that of
single ones; a table inside takes the source of the one around it unless it names its own), and ``[sources]`` says
what that is and from when. Invariant: a ``SoftwareTuple`` is chosen whole, its parts are never mixed with those of
another; everything here is frozen.
"""

from __future__ import annotations

import tomllib
from functools import cache
from importlib import resources
from typing import Any, Final, Literal

import msgspec

from interlace.fabric.version import GkeVersion, Minor, minor_version

IDS: Final = ("a3-high", "a3-mega", "a3-ultra", "a4", "a4x", "gb200-nvl72")

Transport = Literal["tcpx", "tcpxo", "rdma", "nvlink"]


class FamilyError(ValueError):
    """A family, tuple or profile that is not known; names those that are."""


class Source(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where a value is from: ``title`` of the text and ``date`` (YYYY-MM-DD) it was published or read."""

    title: str
    date: str


class Node(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A machine of the family."""

    source: str
    gpus: int
    product: str
    """Value of the node label ``nvidia.com/gpu.product`` without suffixes, as people write it: ``H100``."""
    accelerator: str = ""
    """Value of ``cloud.google.com/gke-accelerator``; not unique: a3-edge shares that of a3-high."""
    nics: int
    """NICs for traffic of GPUs."""
    nic_gbps: int
    """Line rate of one of them, in Gbit/s one way."""
    arch: Literal["amd64", "arm64"]
    vcpus: int = 0
    mtu: int = 0
    """Of the networks for traffic of GPUs; 0: the family has none."""
    transport: Transport
    nccl_network: str = ""
    """What NCCL prints behind ``Using network``."""
    mnnvl: bool = False
    """NVLink reaches beyond the node: GPUs of other nodes through an IMEX domain."""
    domain_nodes: int = 0
    """Most nodes of one NVLink domain."""
    whole_node: bool
    """A Pod takes all GPUs and all NICs of a node."""
    driver_root: str = "/"
    """Where the NVIDIA driver is on a node."""
    gke: bool = True
    """Whether the family is offered on GKE."""

    @property
    def rate_gb_s(self) -> float:
        """Line rate of all its NICs, one way, in GB/s of 10^9 bytes."""
        return self.nics * self.nic_gbps / 8


class Refused(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A machine type that looks like the family and is not."""

    source: str
    machine: str
    why: str


class Network(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A Network object beside ``default``, in the order of the NICs."""

    source: str
    name: str
    """Default name of the Network and of its GKENetworkParamSet; a cluster may use others."""
    interface: str
    """Default name of the interface in the Pod."""
    mode: Literal["NetDevice", "RDMA"]
    gpu: bool = True
    """Carries traffic of GPUs; else it is a network of the host that Pods need not join."""


class MinimumVersion(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The least GKE version of one minor; ``version`` empty: any patch. ``recommended``: one that was tested."""

    source: str
    minor: str
    version: str = ""
    recommended: str = ""
    why: str = ""


class Variable(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One environment variable. ``value`` may hold ``{control}``, ``{data}``, ``{data[0]}`` … and ``{lib}``.

    ``enforced``: the plugin ends the job if the value differs. ``required``: the fabric does not work, or not as
    fast, without it. ``recommended``: a value of the user's own stands.
    """

    source: str
    name: str
    value: str
    why: str
    need: Literal["enforced", "required", "recommended"] = "required"


class LeftOut(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A variable that other texts set, and that a profile does not."""

    source: str
    name: str
    why: str
    value: str = ""
    """The value that is set elsewhere."""


class Profile(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An NCCL environment. ``script``: the file that sets the same values when sourced (``{lib}``), if any."""

    source: str
    id: str
    title: str
    script: str = ""
    variables: tuple[Variable, ...]
    left_out: tuple[LeftOut, ...] = ()


class SoftwareTuple(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Software that was released to work together."""

    source: str
    id: str
    released: str
    """Date of the release, or where that is not told of the text that names it."""
    plugin: str = ""
    """Image with the NCCL plugin, its installer and the tests."""
    daemon: str = ""
    """Image of the sidecar, for families that have one."""
    test: str = ""
    """Image with the NCCL tests, where it is not the plugin's."""
    nccl: str = ""
    cuda: str = ""
    driver_from: str
    driver_below: str = ""
    driver_qualified: str = ""
    gke_from: str = ""
    gke_below: str = ""
    glibc: str = ""
    """The least glibc of the containers that load the plugin."""
    profiles: dict[str, str]
    """Profile as the user names it (``default``, ``simple`` …) to ``Profile.id``."""
    environment: Literal["set", "source"] = "set"
    """Whether the profile's values are set one by one, or its script is sourced before the user's command."""
    daemon_args: tuple[str, ...] = ()
    """Arguments of the daemon that only this release needs."""
    preferred: bool = False
    """The one that is taken for its GKE minors if nothing else is asked for."""
    note: str = ""

    def fits_gke(self, version: GkeVersion | Minor | None) -> bool:
        """Whether it is meant for that minor; unknown (None) fits."""
        if version is None:
            return True
        minor = version.of if isinstance(version, GkeVersion) else version
        return (not self.gke_from or minor >= minor_version(self.gke_from)) and (
            not self.gke_below or minor < minor_version(self.gke_below)
        )


class Volume(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A volume of the Pod: ``host_path``, or an emptyDir (``memory``: in memory, ``size`` at most)."""

    source: str
    name: str
    host_path: str = ""
    memory: bool = False
    size: str = ""


class Mount(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where a volume is seen in a container."""

    source: str
    volume: str
    path: str
    read_only: bool = False


class Probe(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A startupProbe: ``command`` in the container, times in seconds."""

    source: str
    command: tuple[str, ...]
    delay: int
    period: int
    failures: int


class Sidecar(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The daemon beside the GPU containers; its image is the tuple's."""

    source: str
    name: str
    command: tuple[str, ...]
    args: tuple[str, ...] = ()
    """``{args}`` stands for the tuple's ``daemon_args``."""
    capabilities: tuple[str, ...] = ()
    pull_policy: str = "Always"
    devices: tuple[str, ...]
    """Device nodes that the NRI injector gives it, by the annotation ``devices.gke.io/container.<name>``."""
    mounts: tuple[Mount, ...]
    env: tuple[Variable, ...] = ()
    probe: Probe | None = None
    native_from: str = "1.29"
    """The GKE minor from which an init container may be a native sidecar."""


class Toleration(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A taint of the nodes that Pods of the family tolerate."""

    source: str
    key: str
    operator: Literal["Exists", "Equal"] = "Exists"
    value: str = ""
    effect: str = "NoSchedule"


class PodContract(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a Pod needs beside its own spec."""

    source: str
    default_interface: str = ""
    """Value of ``networking.gke.io/default-interface``; empty: no interfaces annotation."""
    lib: str = ""
    """Folder with NCCL and its plugin in containers (``NCCL_LIB_DIR``)."""
    library_path: tuple[str, ...] = ()
    """Folders to put first on ``LD_LIBRARY_PATH``."""
    volumes: tuple[Volume, ...] = ()
    mounts: tuple[Mount, ...] = ()
    """Of every GPU container."""
    env: tuple[Variable, ...] = ()
    """Of every GPU container, beside the profile."""
    capabilities: tuple[str, ...] = ()
    """Of every GPU container."""
    tolerations: tuple[Toleration, ...] = ()
    sidecar: Sidecar | None = None
    one_per_node: bool = False
    """Two such Pods on a node disturb each other."""


class Installer(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The DaemonSet that puts the plugin on nodes."""

    source: str
    name: str
    args: tuple[str, ...]
    """Of the plugin image's entry script."""
    host_mounts: dict[str, str]
    """Folder on the node to folder in the container that installs."""
    copies: dict[str, str]
    """Folder to folder in that container, content copied after the entry script."""
    modules: tuple[str, ...] = ()
    """Kernel modules to load."""
    apertures: str = ""
    """PCI id of the functions whose folders are bound under ``/dev/aperture_devices``."""
    accept_tcp: bool = False
    """Whether a rule that accepts all TCP goes into the host's INPUT chain."""


class Test(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How the test image runs nccl-tests over several nodes."""

    source: str
    binaries: str
    """Folder with ``all_gather_perf`` and the others, built with MPI."""
    start: tuple[str, ...]
    """Starts the SSH server over which MPI starts its processes."""
    port: int
    """Where that server listens."""
    cpus: str = ""
    """CPUs to bind the processes to, as ``taskset`` takes them."""


class Family(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A hardware family, whole."""

    id: str
    title: str
    sources: dict[str, Source]
    machines: tuple[str, ...]
    """Machine types: other names of the family."""
    node: Node
    refused: tuple[Refused, ...] = ()
    networks: tuple[Network, ...] = ()
    versions: tuple[MinimumVersion, ...] = ()
    tuples: tuple[SoftwareTuple, ...] = ()
    """Oldest first."""
    profiles: tuple[Profile, ...] = ()
    pod: PodContract
    installer: Installer | None = None
    test: Test | None = None
    """None: no public image with tests is known."""

    @property
    def gpu_networks(self) -> tuple[Network, ...]:
        """Networks for traffic of GPUs, in the order of their NICs."""
        return tuple(network for network in self.networks if network.gpu)

    def software(self, id: str) -> SoftwareTuple:
        """The tuple of that id. Raises FamilyError."""
        for each in self.tuples:
            if each.id == id:
                return each
        known = ", ".join(each.id for each in self.tuples) or "none"
        raise FamilyError(f"family {self.id} has no software tuple {id!r}; it has: {known}")

    def software_for(self, version: GkeVersion | Minor | None = None) -> SoftwareTuple:
        """The tuple to take on that GKE version (None: not known): the newest preferred one that fits.

        Raises FamilyError if the family has none for it.
        """
        for each in reversed(self.tuples):
            if each.preferred and each.fits_gke(version):
                return each
        raise FamilyError(f"family {self.id} has no software tuple for GKE {version}")

    def profile(self, name: str, *, of: SoftwareTuple) -> Profile:
        """The NCCL environment that a tuple knows under ``name``. Raises FamilyError."""
        wanted = of.profiles.get(name)
        for each in self.profiles:
            if each.id == wanted:
                return each
        known = ", ".join(of.profiles) or "none"
        raise FamilyError(f"software tuple {of.id} of family {self.id} has no profile {name!r}; it has: {known}")


@cache
def families() -> tuple[Family, ...]:
    """All families, in the order of ``IDS``."""
    return tuple(_load(each) for each in IDS if _file(each).is_file())


def find(name: str) -> Family:
    """The family of that id or machine type. Raises FamilyError, which names the known ones."""
    wanted = name.strip().lower()
    for family in families():
        if wanted == family.id or wanted in family.machines:
            return family
        for refused in family.refused:
            if wanted == refused.machine:
                raise FamilyError(f"machine type {wanted} is not of family {family.id}: {refused.why}")
    known = ", ".join(f"{family.id} ({', '.join(family.machines)})" for family in families())
    raise FamilyError(f"unknown hardware family {name!r}; the known ones are {known}")


def document(id: str) -> dict[str, Any]:
    """The data file of a family as it stands, for those who show sources of values."""
    return tomllib.loads(_file(id).read_text(encoding="utf-8"))


def _file(id: str) -> Any:
    return resources.files(__package__) / "data" / f"{id}.toml"


def _load(id: str) -> Family:
    return msgspec.convert(inherit(document(id)), Family)


def inherit(table: dict[str, Any], *, source: str = "") -> dict[str, Any]:
    """Give each table the source of the one around it where it names none, and drop ``source_of``. Pure."""
    if source and "source" not in table:
        table = {**table, "source": source}
    own = table.get("source", source)
    return {key: _inherited(key, value, source=own) for key, value in table.items() if key != "source_of"}


def _inherited(key: str, value: Any, *, source: str) -> Any:
    if isinstance(value, dict):
        return value if key in _PLAIN else inherit(value, source=source)
    if isinstance(value, list):
        return [inherit(each, source=source) if isinstance(each, dict) else each for each in value]
    return value


_PLAIN: Final = frozenset({"sources", "profiles", "host_mounts", "copies"})
"""Tables that are maps of values, not structs."""
