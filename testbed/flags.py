"""Command lines and configuration files of the components, as pure functions of the settings.

What is set away from a component's own default is set for speed on one machine (no fsync, no profiling),
to stay on loopback, or because a test asked for it; client rates stay as the platform ships them, since
they decide how long a real cluster takes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

COMPONENTS = ("etcd", "kube-apiserver", "kube-scheduler", "kube-controller-manager")
"""In the order in which they are started; ended the other way round."""

USERS = {
    "admin": ("interlace-admin", ("system:masters",)),
    "kube-scheduler": ("system:kube-scheduler", ()),
    "kube-controller-manager": ("system:kube-controller-manager", ()),
}
"""Kubeconfig files that every cluster has: name -> (user, groups)."""

SERVICE_RANGE = "10.96.0.0/24"
SERVICE_ADDRESS = "10.96.0.1"
"""Of the service ``kubernetes``: what Pods know the API server by."""

PROBE = "interlace-testbed"
"""Who asks whether a component is ready; not audited, so that requests can be counted."""

AUDIT_POLICY: Mapping[str, Any] = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived"],
    "rules": [{"level": "None", "users": [PROBE]}, {"level": "Metadata"}],
}

CLOUD_CONTROLLERS = ("node-ipam", "cloud-node-lifecycle", "service-lb", "node-route")
"""Controllers that need a cloud."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """How a control plane is to behave. The defaults are those of the platform."""

    scheduler: bool = True
    controller_manager: bool = True
    client_qps: int | None = None
    """Client rate of scheduler and controller manager, requests a second; burst is twice that.

    At the platform's own rates (scheduler 50, controller manager 20) the controller manager needs 5 s to
    make the ServiceAccounts of its controllers, before which no pod can be created; at 500, half a second.
    """
    node_monitor_grace_period: float | None = None
    """Seconds without a renewed Lease after which a node is Unknown."""
    toleration_seconds: int | None = None
    """Seconds that pods stay on a node that is not ready or unreachable, unless they say otherwise."""
    feature_gates: Mapping[str, bool] = field(default_factory=dict)
    """Handed to API server, scheduler and controller manager."""
    runtime_config: Mapping[str, bool] = field(default_factory=dict)
    """API versions to serve or not, e.g. ``{"resource.k8s.io/v1beta1": True}``."""
    authorization: tuple[str, ...] = ("Node", "RBAC")
    """Modes of the API server. Without Node it needs no ``resource.k8s.io/v1`` of its own to become ready."""

    @property
    def components(self) -> tuple[str, ...]:
        """Those that run, in order of start."""
        wanted = {"kube-scheduler": self.scheduler, "kube-controller-manager": self.controller_manager}
        return tuple(name for name in COMPONENTS if wanted.get(name, True))


@dataclass(frozen=True, slots=True, kw_only=True)
class Ports:
    """Ports on 127.0.0.1."""

    etcd: int
    etcd_peer: int
    apiserver: int
    scheduler: int
    controller_manager: int

    def of(self, component: str) -> int:
        """Port that answers the readiness probe of ``component``."""
        return {
            "etcd": self.etcd,
            "kube-apiserver": self.apiserver,
            "kube-scheduler": self.scheduler,
            "kube-controller-manager": self.controller_manager,
        }[component]


def arguments(component: str, *, state: Path, ports: Ports, settings: Settings) -> list[str]:
    """Arguments of ``component``; files are below ``state``."""
    return {
        "etcd": _etcd,
        "kube-apiserver": _apiserver,
        "kube-scheduler": _scheduler,
        "kube-controller-manager": _controller_manager,
    }[component](state, ports, settings)


def scheduler_configuration(state: Path, settings: Settings) -> dict[str, Any]:
    """Content of the scheduler's configuration file."""
    connection: dict[str, Any] = {"kubeconfig": str(state / "kube-scheduler.kubeconfig")}
    if settings.client_qps is not None:
        connection |= {"qps": settings.client_qps, "burst": 2 * settings.client_qps}
    return {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "clientConnection": connection,
        "leaderElection": {"leaderElect": False},
    }


def _etcd(state: Path, ports: Ports, settings: Settings) -> list[str]:  # noqa: ARG001 - one signature for all
    client, peer = f"http://127.0.0.1:{ports.etcd}", f"http://127.0.0.1:{ports.etcd_peer}"
    return [
        "--name=testbed",
        f"--data-dir={state / 'etcd'}",
        f"--listen-client-urls={client}",
        f"--advertise-client-urls={client}",
        f"--listen-peer-urls={peer}",
        f"--initial-advertise-peer-urls={peer}",
        f"--initial-cluster=testbed={peer}",
        "--unsafe-no-fsync",
        "--log-level=warn",
    ]


def _apiserver(state: Path, ports: Ports, settings: Settings) -> list[str]:
    argv = [
        f"--etcd-servers=http://127.0.0.1:{ports.etcd}",
        "--bind-address=127.0.0.1",
        f"--secure-port={ports.apiserver}",
        # Only what is told to pods; nothing listens there (TEST-NET-1).
        "--advertise-address=192.0.2.1",
        "--endpoint-reconciler-type=none",
        f"--service-cluster-ip-range={SERVICE_RANGE}",
        *_serving(state),
        f"--client-ca-file={state / 'pki' / 'ca.crt'}",
        "--service-account-issuer=https://kubernetes.default.svc",
        f"--service-account-key-file={state / 'pki' / 'sa.pub'}",
        f"--service-account-signing-key-file={state / 'pki' / 'sa.key'}",
        "--authorization-mode=" + ",".join(settings.authorization),
        "--allow-privileged=true",
        # Names of hollow nodes cannot be resolved; logs are read from the nodes' addresses.
        "--kubelet-preferred-address-types=InternalIP",
        "--profiling=false",
        f"--audit-policy-file={state / 'audit-policy.yaml'}",
        f"--audit-log-path={state / 'audit.log'}",
        # One file, however long: requests are counted from it.
        "--audit-log-maxsize=0",
        *_gates(settings),
    ]
    if settings.runtime_config:
        argv.append("--runtime-config=" + _switches(settings.runtime_config))
    if settings.toleration_seconds is not None:
        argv += [
            f"--default-{what}-toleration-seconds={settings.toleration_seconds}"
            for what in ("not-ready", "unreachable")
        ]
    if not settings.controller_manager:
        # Nobody makes the ServiceAccount `default` then, without which no pod is admitted.
        argv.append("--disable-admission-plugins=ServiceAccount")
    return argv


def _scheduler(state: Path, ports: Ports, settings: Settings) -> list[str]:
    return [
        f"--config={state / 'scheduler.yaml'}",
        "--bind-address=127.0.0.1",
        f"--secure-port={ports.scheduler}",
        *_serving(state),
        *_delegated(state, "kube-scheduler"),
        *_gates(settings),
    ]


def _controller_manager(state: Path, ports: Ports, settings: Settings) -> list[str]:
    argv = [
        f"--kubeconfig={state / 'kube-controller-manager.kubeconfig'}",
        "--bind-address=127.0.0.1",
        f"--secure-port={ports.controller_manager}",
        *_serving(state),
        *_delegated(state, "kube-controller-manager"),
        "--leader-elect=false",
        "--use-service-account-credentials=true",
        f"--service-account-private-key-file={state / 'pki' / 'sa.key'}",
        f"--root-ca-file={state / 'pki' / 'ca.crt'}",
        "--profiling=false",
        "--controllers=" + ",".join(["*", *(f"-{name}-controller" for name in CLOUD_CONTROLLERS)]),
        *_gates(settings),
    ]
    if settings.client_qps is not None:
        argv += [f"--kube-api-qps={settings.client_qps}", f"--kube-api-burst={2 * settings.client_qps}"]
    if (grace := settings.node_monitor_grace_period) is not None:
        # Looked at four times within the grace period, at most every 5 s as the platform does.
        argv += [f"--node-monitor-grace-period={grace:g}s", f"--node-monitor-period={min(5.0, grace / 4):g}s"]
    return argv


def _serving(state: Path) -> list[str]:
    return [
        f"--tls-cert-file={state / 'pki' / 'server.crt'}",
        f"--tls-private-key-file={state / 'pki' / 'server.key'}",
    ]


def _delegated(state: Path, component: str) -> list[str]:
    """Who may ask the component itself: decided by the API server, users known by certificate as there."""
    kubeconfig = state / f"{component}.kubeconfig"
    return [
        f"--authentication-kubeconfig={kubeconfig}",
        f"--authorization-kubeconfig={kubeconfig}",
        "--authentication-skip-lookup",
        f"--client-ca-file={state / 'pki' / 'ca.crt'}",
    ]


def _gates(settings: Settings) -> list[str]:
    return ["--feature-gates=" + _switches(settings.feature_gates)] if settings.feature_gates else []


def _switches(values: Mapping[str, bool]) -> str:
    return ",".join(f"{name}={str(on).lower()}" for name, on in values.items())
