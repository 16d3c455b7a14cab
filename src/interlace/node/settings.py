"""Settings of the agent, under the names that the existing driver uses where it has them.

A flag wins over its environment variable, that over the default. Each bad value is one sentence.
"""

from __future__ import annotations

import hashlib
import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

import msgspec

from interlace.api.computedomain import DRIVER
from interlace.fabric.devices import allow
from interlace.node.errors import SettingsError
from interlace.node.nri.injection import Rules
from interlace.node.nri.injector import InjectorSettings

DRA_VERSIONS = ("v1", "v1beta1")
_NAME = re.compile(r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?\Z")


class AgentSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that differs between two agents; times in seconds."""

    node_name: str
    namespace: str = "default"
    """Where the controller's cliques are: the namespace that the agent runs in."""
    instance: str = ""
    """Tells the agents of two Pods apart, one of which takes over from the other."""
    dra_versions: tuple[str, ...] = DRA_VERSIONS
    """Versions of the DRA service that kubelet is offered."""
    cdi_root: Path = Path("/var/run/cdi")
    driver_root: Path = Path("/driver-root")
    """Root of the NVIDIA driver as this process sees it."""
    registrar_dir: Path = Path("/var/lib/kubelet/plugins_registry")
    plugins_dir: Path = Path("/var/lib/kubelet/plugins")
    proc_devices: Path = Path("/proc/devices")
    proc_params: Path = Path("/proc/driver/nvidia/params")
    boot_id: Path = Path("/proc/sys/kernel/random/boot_id")
    imex_socket: Path = Path("/run/interlace/imex/host.sock")
    http_host: str = "0.0.0.0"  # noqa: S104  # probes and Prometheus come from outside the pod
    http_port: int = -1
    """Port of /healthz, /readyz and /metrics; 0 any free one, -1 none."""
    max_nodes: int = 18
    """Slots of one IMEX domain."""
    nri: bool = False
    """Whether the agent injects devices as an NRI plugin, and is ready only while it can."""
    nri_socket: Path = Path("/var/run/nri/nri.sock")
    nri_name: str = "interlace"
    nri_index: str = "50"
    nri_node_resource: bool = False
    allow_devices: tuple[str, ...] = ()
    """Device paths that may be injected beside those of `fabric.devices.ALLOWED`."""
    host_dev: Path = Path("/dev")
    """Where the host's /dev is mounted."""
    enable_nri: Path | None = None
    """Drop-in of containerd's configuration that is written if NRI is off."""
    restart_runtime: tuple[str, ...] = ()
    """The command that restarts the runtime after that; empty: nobody does."""
    kubeconfig: Path | None = None
    """None: the service account of the pod."""
    prepare_timeout: float = 40.0
    """How long one Prepare call waits; kubelet gives up after 45 s."""
    report_after: float = 5.0
    """When a waiting claim says in its status what it waits for."""
    fabric_interval: float = 30.0
    fabric_interval_unsettled: float = 5.0
    sweep_interval: float = 3600.0
    """How often prepared claims are compared with the API server: a thousand busy nodes ask less than once in 3 s."""
    rival_timeout: float = 60.0
    """How long slices that somebody else left behind may take to go; kubelet removes them after about 30 s."""
    peers_grace: float = 1.0
    """How long a peer has to be away before it is reported; the imex-host has looked twice already."""
    peers_first_grace: float = 8.0
    """The same for the first time after this node's IMEX became ready: the others are still starting."""

    @property
    def injector(self) -> InjectorSettings:
        """Those of the device injector."""
        return InjectorSettings(
            socket=self.nri_socket,
            name=self.nri_name,
            index=self.nri_index,
            rules=Rules(allowed=allow(self.allow_devices), node_resource=self.nri_node_resource, dev=self.host_dev),
        )

    @property
    def home(self) -> Path:
        """Folder of sockets, lock and checkpoint."""
        return self.plugins_dir / "compute-domain.nvidia.com"

    @property
    def endpoint(self) -> Path:
        """The DRA socket."""
        return self.home / f"dra{self.instance and '-'}{self.instance}.sock"

    @property
    def registration(self) -> Path:
        """The registration socket."""
        return self.registrar_dir / f"{DRIVER}{self.instance and '-'}{self.instance}-reg.sock"

    @classmethod
    def parse(cls, argv: Sequence[str], env: Mapping[str, str]) -> AgentSettings:
        """From flags and environment. Raises ``SettingsError``; ``--help`` exits as usual."""
        flags = _flags(argv)
        values: dict[str, Any] = {}
        for option in _OPTIONS:
            given, source = flags.get(option.flag), f"--{option.flag}"
            if given is None:
                given, source = next(
                    ((env[name], name) for name in option.env if env.get(name)), (None, f"--{option.flag}")
                )
            if given is None:
                if option.required:
                    raise SettingsError(f"{source} is missing: give it, or set {option.env[0]}.")
                continue
            try:
                values.update(option.convert(given))
            except ValueError as error:
                raise SettingsError(f"{source} is {given!r}: {error}.") from None
        return cls(**values)


class _Option(msgspec.Struct, frozen=True, kw_only=True):
    flag: str
    env: tuple[str, ...]
    convert: Callable[[str], dict[str, Any]]
    help: str
    required: bool = False


def _flags(argv: Sequence[str]) -> dict[str, str | None]:
    """The flags that are given, by name."""
    if not argv:
        return {}
    import argparse  # noqa: PLC0415 - Pods set the environment alone, and it takes half a megabyte

    class Parser(argparse.ArgumentParser):
        def error(self, message: str) -> NoReturn:
            raise SettingsError(f"{message}; `{self.prog} --help` lists the flags.")

    parser = Parser(prog="interlace serve agent", description="Node agent: DRA driver compute-domain.nvidia.com.")
    for option in _OPTIONS:
        metavar = option.flag.rpartition("-")[2].upper()
        parser.add_argument(f"--{option.flag}", metavar=metavar, help=option.help, dest=option.flag)
    return dict(vars(parser.parse_args(list(argv))))


def _name(field: str) -> Callable[[str], dict[str, Any]]:
    def convert(value: str) -> dict[str, Any]:
        if not _NAME.match(value):
            raise ValueError("it has to be a Kubernetes name (lower-case letters, digits, '-' and '.')")
        return {field: value}

    return convert


def _path(field: str) -> Callable[[str], dict[str, Any]]:
    def convert(value: str) -> dict[str, Any]:
        if not Path(value).is_absolute():
            raise ValueError("it has to be an absolute path")
        return {field: Path(value)}

    return convert


def _number(field: str, low: int, high: int) -> Callable[[str], dict[str, Any]]:
    def convert(value: str) -> dict[str, Any]:
        try:
            number = int(value)
        except ValueError:
            number = low - 1
        if not low <= number <= high:
            raise ValueError(f"it has to be a whole number from {low} to {high}")
        return {field: number}

    return convert


def _instance(value: str) -> dict[str, Any]:
    return {"instance": hashlib.sha256(value.encode()).hexdigest()[:8]}


def _versions(value: str) -> dict[str, Any]:
    found = tuple(word for word in value.split(",") if word)
    if not found or not set(found) <= set(DRA_VERSIONS):
        raise ValueError(f"it has to be one or more of {','.join(DRA_VERSIONS)}, separated by commas")
    return {"dra_versions": found}


def _switch(field: str) -> Callable[[str], dict[str, Any]]:
    def convert(value: str) -> dict[str, Any]:
        if value not in ("on", "off"):
            raise ValueError("it has to be on or off")
        return {field: value == "on"}

    return convert


def _matching(field: str, pattern: str, what: str) -> Callable[[str], dict[str, Any]]:
    def convert(value: str) -> dict[str, Any]:
        if not re.fullmatch(pattern, value):
            raise ValueError(f"it has to be {what}")
        return {field: value}

    return convert


def _devices(value: str) -> dict[str, Any]:
    paths = tuple(path.strip() for path in value.split(",") if path.strip())
    allow(paths)
    return {"allow_devices": paths}


def _command(value: str) -> dict[str, Any]:
    words = tuple(shlex.split(value))
    if not words:
        raise ValueError("it has to be a command")
    return {"restart_runtime": words}


def _endpoint(value: str) -> dict[str, Any]:
    host, separator, port = value.rpartition(":")
    if not separator:
        raise ValueError("it has to be HOST:PORT or :PORT")
    found = _number("http_port", 0, 65535)(port)
    return {**found, "http_host": host.strip("[]")} if host else found


_OPTIONS = (
    _Option(flag="node-name", env=("NODE_NAME",), convert=_name("node_name"), required=True, help="Name of this Node."),
    _Option(flag="namespace", env=("NAMESPACE",), convert=_name("namespace"), help="Namespace of the controller."),
    _Option(flag="pod-uid", env=("POD_UID",), convert=_instance, help="Uid of this Pod, for names of sockets."),
    _Option(
        flag="dra-versions",
        env=("INTERLACE_DRA_VERSIONS",),
        convert=_versions,
        help=f"What kubelet is offered, default {','.join(DRA_VERSIONS)}.",
    ),
    _Option(flag="cdi-root", env=("CDI_ROOT",), convert=_path("cdi_root"), help="Folder of CDI specs."),
    _Option(
        flag="container-driver-root",
        env=("DRIVER_ROOT_CTR_PATH", "NVIDIA_DRIVER_ROOT"),
        convert=_path("driver_root"),
        help="Root of the NVIDIA driver as this process sees it.",
    ),
    _Option(
        flag="kubelet-registrar-directory-path",
        env=("KUBELET_REGISTRAR_DIRECTORY_PATH",),
        convert=_path("registrar_dir"),
        help="Folder where kubelet looks for plugins.",
    ),
    _Option(
        flag="kubelet-plugins-directory-path",
        env=("KUBELET_PLUGINS_DIRECTORY_PATH",),
        convert=_path("plugins_dir"),
        help="Folder of the plugins' data.",
    ),
    _Option(
        flag="proc-devices", env=("ALT_PROC_DEVICES_PATH",), convert=_path("proc_devices"), help="For /proc/devices."
    ),
    _Option(
        flag="boot-id", env=("ALT_BOOT_ID_PATH",), convert=_path("boot_id"), help="For /proc/sys/kernel/random/boot_id."
    ),
    _Option(flag="imex-socket", env=("INTERLACE_IMEX_SOCKET",), convert=_path("imex_socket"), help="The imex-host's."),
    _Option(
        flag="healthcheck-port",
        env=("HEALTHCHECK_PORT",),
        convert=_number("http_port", -1, 65535),
        help="Port of /healthz, /readyz and /metrics; 0 any free one, -1 none.",
    ),
    _Option(
        flag="http-endpoint",
        env=("HTTP_ENDPOINT",),
        convert=_endpoint,
        help="The same with a host; wins over the port.",
    ),
    _Option(
        flag="max-nodes-per-imex-domain",
        env=("MAX_NODES_PER_IMEX_DOMAIN",),
        convert=_number("max_nodes", 1, 4096),
        help="Slots of one IMEX domain.",
    ),
    _Option(
        flag="nri",
        env=("INTERLACE_NRI",),
        convert=_switch("nri"),
        help="on or off (default): inject the devices that annotations ask for, as a plugin of containerd.",
    ),
    _Option(flag="nri-socket", env=("INTERLACE_NRI_SOCKET",), convert=_path("nri_socket"), help="containerd's."),
    _Option(
        flag="nri-plugin-name",
        env=("INTERLACE_NRI_PLUGIN_NAME",),
        convert=_matching("nri_name", r"[A-Za-z0-9_.+-]{1,64}", "letters, digits and _ . + -"),
        help="Default interlace.",
    ),
    _Option(
        flag="nri-plugin-index",
        env=("INTERLACE_NRI_PLUGIN_INDEX",),
        convert=_matching("nri_index", r"[0-9]{2}", "two digits"),
        help="Place among the plugins, default 50; above another injector's, which then goes first.",
    ),
    _Option(
        flag="nri-node-resource",
        env=("INTERLACE_NRI_NODE_RESOURCE",),
        convert=_switch("nri_node_resource"),
        help="on or off (default): read devices.noderesource.dev too.",
    ),
    _Option(
        flag="allow-device",
        env=("ALLOW_DEVICES",),
        convert=_devices,
        help="More device paths that may be injected, separated by commas; * stands for a number.",
    ),
    _Option(flag="host-dev", env=("INTERLACE_HOST_DEV",), convert=_path("host_dev"), help="The host's /dev."),
    _Option(
        flag="enable-nri",
        env=("INTERLACE_ENABLE_NRI",),
        convert=_path("enable_nri"),
        help="File that is written into containerd's configuration (/etc/containerd/conf.d/…) if NRI is off.",
    ),
    _Option(
        flag="restart-runtime",
        env=("INTERLACE_RESTART_RUNTIME",),
        convert=_command,
        help="Command that restarts containerd once that file is new; without it nobody restarts it.",
    ),
    _Option(flag="kubeconfig", env=("KUBECONFIG",), convert=_path("kubeconfig"), help="Default: the service account."),
)
