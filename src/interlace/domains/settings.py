"""Flags and environment of the controller, under the names that the existing driver gives them."""

from __future__ import annotations

import argparse
import socket
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NoReturn

import msgspec

DEFAULT_NAMESPACE = "interlace-system"
LEASE_NAME = "interlace-controller"
MAX_NODES_PER_CLIQUE = 18
"""Compute trays of one NVL72 rack, the most nodes that share one NVLink clique today."""


class ControllerSettings(msgspec.Struct, frozen=True, kw_only=True):
    """How the controller runs."""

    namespace: str = DEFAULT_NAMESPACE
    """Where cliques, imex-host Pods and the Lease are."""
    identity: str
    """Name of this replica in the Lease; unique."""
    max_nodes: int = MAX_NODES_PER_CLIQUE
    """Most nodes of one domain in one clique."""
    http_host: str = "0.0.0.0"  # noqa: S104 - probes and Prometheus come from outside the Pod
    http_port: int = 8080
    """For /healthz, /readyz and /metrics; 0 takes a free one."""
    workers: int = 8
    """Domains that are reconciled at a time."""
    host_quiet: float = 30
    """Seconds that a node must have been without a domain before its outdated imex-host is replaced."""
    qps: float = 50
    burst: int = 100
    lease_name: str = LEASE_NAME
    lease_duration: float = 15
    lease_renew_deadline: float = 10
    lease_retry_period: float = 2
    kubeconfig: Path | None = None
    """None: what ``KUBECONFIG`` names, else the service account of the Pod."""

    @classmethod
    def parse(cls, argv: Sequence[str], env: Mapping[str, str]) -> ControllerSettings:
        """Flags win over environment. Bad input ends the program with status 2 and one sentence."""
        parser = _Parser(prog="interlace serve controller", description="Reconciles ComputeDomains.")

        def add(flag: str, variable: str, default: str, convert: type, text: str) -> None:
            parser.add_argument(f"--{flag}", default=env.get(variable) or default, type=convert, help=text)

        add("pod-name", "POD_NAME", socket.gethostname(), str, "name of this Pod, for the Lease")
        add("namespace", "NAMESPACE", DEFAULT_NAMESPACE, str, "namespace of cliques, imex-host Pods and the Lease")
        add(
            "max-nodes-per-imex-domain",
            "MAX_NODES_PER_IMEX_DOMAIN",
            str(MAX_NODES_PER_CLIQUE),
            int,
            "most nodes of a domain in one clique",
        )
        add("http-endpoint", "HTTP_ENDPOINT", ":8080", str, "[address]:port for health and metrics")
        add("kube-api-qps", "KUBE_API_QPS", "50", float, "requests per second")
        add("kube-api-burst", "KUBE_API_BURST", "100", int, "requests at once")
        add("workers", "WORKERS", "8", int, "domains reconciled at a time")
        add("imex-host-quiet", "IMEX_HOST_QUIET", "30", float, "seconds without a domain before a host is replaced")
        add("leader-election-lease-name", "LEADER_ELECTION_LEASE_NAME", LEASE_NAME, str, "name of the Lease")
        add("leader-election-lease-duration", "LEADER_ELECTION_LEASE_DURATION", "15", int, "whole seconds")
        add("leader-election-renew-deadline", "LEADER_ELECTION_RENEW_DEADLINE", "10", float, "seconds")
        add("leader-election-retry-period", "LEADER_ELECTION_RETRY_PERIOD", "2", float, "seconds")
        parser.add_argument("--kubeconfig", type=Path, help="instead of $KUBECONFIG or the service account of the Pod")
        given = parser.parse_args(argv)
        host, _, port = given.http_endpoint.rpartition(":")
        if not port.isdecimal() or int(port) > 65535:
            parser.error(f"--http-endpoint {given.http_endpoint!r}: give [address]:port, for example :8080")
        if given.max_nodes_per_imex_domain < 1 or given.workers < 1:
            parser.error("--max-nodes-per-imex-domain and --workers must be at least 1")
        if not (
            given.leader_election_retry_period
            < given.leader_election_renew_deadline
            < given.leader_election_lease_duration
        ):
            parser.error("leader election needs retry period < renew deadline < lease duration")
        return cls(
            namespace=given.namespace,
            identity=f"{given.pod_name}-{uuid.uuid4()}",
            max_nodes=given.max_nodes_per_imex_domain,
            http_host=host.strip("[]") or "0.0.0.0",  # noqa: S104 - as above
            http_port=int(port),
            workers=given.workers,
            host_quiet=given.imex_host_quiet,
            qps=given.kube_api_qps,
            burst=given.kube_api_burst,
            lease_name=given.leader_election_lease_name,
            lease_duration=given.leader_election_lease_duration,
            lease_renew_deadline=given.leader_election_renew_deadline,
            lease_retry_period=given.leader_election_retry_period,
            kubeconfig=given.kubeconfig,
        )


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        self.exit(2, f"interlace: {message}; `{self.prog} --help` lists the flags\n")
