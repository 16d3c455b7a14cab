"""Flags and environment of the webhook."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import NoReturn

import msgspec

from interlace.api.webhook import PORT, SERVICE
from interlace.fabric.devices import AllowList, DevicesError, allow
from interlace.fabric.family import find
from interlace.fabric.networks import NetworkMapError, network_map
from interlace.fabric.version import GkeVersion, Minor, VersionError, gke_version
from interlace.pods.certificates import GRACE, LIFE
from interlace.pods.guard import MODES, Mode

DEFAULT_NAMESPACE = "interlace-system"


class WebhookSettings(msgspec.Struct, frozen=True, kw_only=True):
    """How the webhook runs."""

    namespace: str = DEFAULT_NAMESPACE
    """Where its Service and the Secret with its certificate are."""
    host: str = "0.0.0.0"  # noqa: S104 - API servers come from outside the Pod
    port: int = PORT
    """For admission, TLS; 0 takes a free one."""
    http_host: str = "0.0.0.0"  # noqa: S104 - probes and Prometheus come from outside the Pod
    http_port: int = 8080
    """For /healthz, /readyz and /metrics; 0 takes a free one."""
    guard: Mode = "enforce"
    allowed: AllowList = allow()
    networks: dict[str, str] = {}
    """Name of a Network in the family's data to its name in this cluster."""
    profile: str = "default"
    """NCCL environment profile."""
    software: dict[str, str] = {}
    """Id of a family to that of the software tuple for its Pods; else the family's choice for the version."""
    required_plugin: str = ""
    """NRI plugin that daemons are not made without, where the runtime checks this."""
    version: GkeVersion | Minor | None = None
    """GKE version of the cluster; None: the API server is asked."""
    names: tuple[str, ...] = ()
    """Names and addresses of the certificate beside those of the Service."""
    life: timedelta = LIFE
    grace: timedelta = GRACE
    qps: float = 20
    burst: int = 40
    kubeconfig: Path | None = None

    @property
    def certificate_names(self) -> tuple[str, ...]:
        """All names under which API servers may call."""
        service = f"{SERVICE}.{self.namespace}.svc"
        return (service, f"{service}.cluster.local", *self.names)

    @classmethod
    def parse(cls, argv: Sequence[str], env: Mapping[str, str]) -> WebhookSettings:
        """Flags win over environment. Bad input ends the program with status 2 and one sentence."""
        parser = _Parser(prog="interlace serve webhook", description="Admission: injects, guards and validates.")

        def add(flag: str, variable: str, default: str, text: str, convert: type = str) -> None:
            parser.add_argument(f"--{flag}", default=env.get(variable) or default, type=convert, help=text)

        add("namespace", "NAMESPACE", DEFAULT_NAMESPACE, "namespace of the Service and of the Secret")
        add("listen", "WEBHOOK_ENDPOINT", f":{PORT}", "[address]:port for API servers")
        add("http-endpoint", "HTTP_ENDPOINT", ":8080", "[address]:port for health and metrics")
        add("device-guard", "DEVICE_GUARD", "enforce", f"one of {', '.join(MODES)}")
        add("allow-device", "ALLOW_DEVICES", "", "device paths beside the usual ones, with commas; * is a number")
        add("network-map", "NETWORK_MAP", "", "default name=name in this cluster, with commas: vpc1=rail1,vpc2=rail2")
        add("tuple", "SOFTWARE_TUPLES", "", "software tuple of a family, with commas: a3-mega=tcpxo-1.0.15")
        add("profile", "NCCL_PROFILE", "default", "NCCL environment profile")
        add("require-plugin", "REQUIRED_PLUGIN", "", "NRI plugin that containerd 2.2 or later makes no daemon without")
        add("cluster-version", "CLUSTER_VERSION", "", "GKE version; the API server is asked where it is not given")
        add("certificate-names", "CERTIFICATE_NAMES", "", "names and addresses beside the Service's, with commas")
        add("certificate-days", "CERTIFICATE_DAYS", str(LIFE.days), "life of the serving certificate", int)
        add("kube-api-qps", "KUBE_API_QPS", "20", "requests per second", float)
        add("kube-api-burst", "KUBE_API_BURST", "40", "requests at once", int)
        parser.add_argument("--kubeconfig", type=Path, help="instead of $KUBECONFIG or the service account of the Pod")
        given = parser.parse_args(argv)
        if given.certificate_days < 1:
            parser.error("--certificate-days must be at least 1")
        modes = {mode: mode for mode in MODES}
        if given.device_guard not in modes:
            parser.error(f"--device-guard {given.device_guard!r} is not one of {', '.join(MODES)}")
        host, port = parser.endpoint("--listen", given.listen)
        http_host, http_port = parser.endpoint("--http-endpoint", given.http_endpoint)
        try:
            return cls(
                namespace=given.namespace,
                host=host,
                port=port,
                http_host=http_host,
                http_port=http_port,
                guard=modes[given.device_guard],
                allowed=allow(_words(given.allow_device)),
                networks=_networks(given.network_map),
                software=_tuples(given.tuple),
                profile=given.profile,
                required_plugin=given.require_plugin,
                version=gke_version(given.cluster_version) if given.cluster_version else None,
                names=_words(given.certificate_names),
                life=timedelta(days=given.certificate_days),
                qps=given.kube_api_qps,
                burst=given.kube_api_burst,
                kubeconfig=given.kubeconfig,
            )
        except (DevicesError, VersionError, ValueError) as error:
            parser.error(str(error))


def _words(text: str) -> tuple[str, ...]:
    return tuple(word for part in text.split(",") if (word := part.strip()))


def _networks(text: str) -> dict[str, str]:
    try:
        return network_map(text)
    except NetworkMapError as error:
        raise ValueError(f"--network-map: {error}") from None


def _tuples(text: str) -> dict[str, str]:
    """Id of a family, which may be given as machine type, to that of its software tuple. Raises ``ValueError``."""
    found: dict[str, str] = {}
    for word in _words(text):
        name, equals, chosen = word.partition("=")
        if not (name and equals and chosen) or find(name).id in found:
            raise ValueError(f"--tuple {word!r}: write each family once, as a3-mega=tcpxo-1.0.15")
        found[find(name).id] = find(name).software(chosen).id
    return found


class _Parser(argparse.ArgumentParser):
    def endpoint(self, flag: str, text: str) -> tuple[str, int]:
        """Address and port of ``[address]:port``."""
        host, _, port = text.rpartition(":")
        if not port.isdecimal() or int(port) > 65535:
            self.error(f"{flag} {text!r}: give [address]:port, for example :8080")
        return host.strip("[]") or "0.0.0.0", int(port)  # noqa: S104 - the Pod's addresses

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"interlace: {message}; `{self.prog} --help` lists the flags\n")
