"""Settings of the agent, under the names that the existing driver uses where it has them.

A flag wins over its environment variable, that over the default. Each bad value is one sentence.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

import msgspec

from interlace.node.errors import SettingsError

_NAME = re.compile(r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?\Z")


class AgentSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that differs between two agents; times in seconds."""

    node_name: str
    namespace: str = "default"
    """Where the controller's cliques are: the namespace that the agent runs in."""
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
    kubeconfig: Path | None = None
    """None: the service account of the pod."""
    prepare_timeout: float = 40.0
    """How long one Prepare call waits; kubelet gives up after 45 s."""
    report_after: float = 5.0
    """When a waiting claim says in its status what it waits for."""
    fabric_interval: float = 30.0
    fabric_interval_unsettled: float = 5.0
    sweep_interval: float = 600.0
    """How often prepared claims are compared with the API server."""
    rival_timeout: float = 60.0
    """How long slices that somebody else left behind may take to go; kubelet removes them after about 30 s."""
    peers_grace: float = 1.0
    """How long a peer has to be away before it is reported; the imex-host has looked twice already."""
    peers_first_grace: float = 8.0
    """The same for the first time after this node's IMEX became ready: the others are still starting."""

    @property
    def home(self) -> Path:
        """Folder of sockets, lock and checkpoint."""
        return self.plugins_dir / "compute-domain.nvidia.com"

    @classmethod
    def parse(cls, argv: Sequence[str], env: Mapping[str, str]) -> AgentSettings:
        """From flags and environment. Raises ``SettingsError``; ``--help`` exits as usual."""
        parser = _Parser(prog="interlace serve agent", description="Node agent: DRA driver compute-domain.nvidia.com.")
        for option in _OPTIONS:
            parser.add_argument(f"--{option.flag}", metavar=option.flag.rpartition("-")[2].upper(), help=option.help)
        flags = vars(parser.parse_args(list(argv)))
        values: dict[str, Any] = {}
        for option in _OPTIONS:
            given, source = flags[option.flag.replace("-", "_")], f"--{option.flag}"
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


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise SettingsError(f"{message}; `{self.prog} --help` lists the flags.")


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


def _endpoint(value: str) -> dict[str, Any]:
    host, separator, port = value.rpartition(":")
    if not separator:
        raise ValueError("it has to be HOST:PORT or :PORT")
    found = _number("http_port", 0, 65535)(port)
    return {**found, "http_host": host.strip("[]")} if host else found


_OPTIONS = (
    _Option(flag="node-name", env=("NODE_NAME",), convert=_name("node_name"), required=True, help="Name of this Node."),
    _Option(flag="namespace", env=("NAMESPACE",), convert=_name("namespace"), help="Namespace of the controller."),
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
    _Option(flag="kubeconfig", env=("KUBECONFIG",), convert=_path("kubeconfig"), help="Default: the service account."),
)
