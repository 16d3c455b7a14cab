"""What ``verify run`` and ``verify pairs`` share: options of a test, its objects, and the way to the cluster."""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click
import msgspec

from interlace.cli.exits import Code, Exit

if TYPE_CHECKING:
    from interlace.fabric.family import Family, SoftwareTuple
    from interlace.kube.config import Config
    from interlace.verify.attribution import Attribution
    from interlace.verify.sweep import Sweep

F = TypeVar("F", bound=Callable[..., Any])
KEPT: Final = 600
"""Seconds that Kubernetes keeps an ended Job whose maker was killed."""
_NODE = re.compile(r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?\Z")


class Setup(msgspec.Struct, frozen=True, kw_only=True):
    """How tests are made."""

    family: Family
    software: SoftwareTuple
    networks: dict[str, str]
    namespace: str

    def objects(self, measured: Sweep, *, nodes: int, hosts: tuple[str, ...], rail: int | None) -> list[dict[str, Any]]:
        """All objects of one test, under a name that nobody has. Raises ValueError if the family has no test."""
        from interlace.manifests.workload import TestPlan, workload
        from interlace.pods.inject import inject

        plan = TestPlan(
            nodes=nodes,
            namespace=self.namespace,
            name=f"nccl-test-{secrets.token_hex(4)}",
            hosts=hosts,
            collective=measured.collective,
            least=str(measured.least),
            most=str(measured.most),
            rail=rail,
            keep=KEPT,
        )

        def wire(template: dict[str, Any]) -> dict[str, Any]:
            channel = plan.channel if self.family.node.mnnvl else ""
            return inject(
                template, family=self.family, software=self.software, networks=self.networks, channel=channel
            ).pod

        return workload(self.family, software=self.software, plan=plan, wire=wire)


def setup_of(options: dict[str, Any], *, namespace: str) -> Setup:
    """From the options of `test_options`. Raises Exit."""
    from interlace.cli.families import choose_software, known_family, network_names

    family = known_family(options["family_name"])
    if family.test is None:
        raise Exit(Code.REFUSED, f"no public image with nccl-tests is known for {family.id}; judge a log of your own")
    software = choose_software(family, tuple_id=options["tuple_id"], cluster_version=None)
    names = network_names(family, options["network_map"])
    return Setup(family=family, software=software, networks=names, namespace=namespace)


def config_of(options: dict[str, Any]) -> Config:
    """Where the cluster is. Raises ConfigError."""
    from interlace.kube.config import load, load_kubeconfig

    path = Path(options["kubeconfig"]) if options["kubeconfig"] else None
    return load_kubeconfig(path, context=options["context"]) if path or options["context"] else load()


def named_nodes(text: str | None) -> tuple[str, ...]:
    """``a,b,c`` as names, in order. Raises Exit for one that cannot be a node or is given twice."""
    names = tuple(part.strip() for part in (text or "").split(",") if part.strip())
    for name in names:
        if not _NODE.match(name):
            raise Exit(Code.REFUSED, f"--nodes: {name!r} cannot be the name of a node; give names with commas between")
        if names.count(name) > 1:
            raise Exit(Code.REFUSED, f"--nodes: {name} is given twice; a node measures with another one")
    if text is not None and not names:
        raise Exit(Code.REFUSED, "--nodes: no node is named; give names with commas between")
    return names


def test_options(command: F) -> F:
    """Options of both verbs."""
    for option in reversed(
        (
            click.option("--family", "family_name", required=True, metavar="F", help="Hardware: `interlace families`."),
            click.option("--tuple", "tuple_id", metavar="T", help="Software tuple; else the family's preferred one."),
            click.option("--network-map", metavar="A=B,…", help="Names of Network objects that differ, vpc1=rail1."),
            click.option("-n", "--namespace", help="Where the test runs; default: that of the kubeconfig's context."),
            click.option("--context", help="Context of the kubeconfig."),
            click.option("--kubeconfig", type=click.Path(dir_okay=False), help="Instead of $KUBECONFIG."),
            click.option("--json", "as_json", is_flag=True, help="Print one JSON document (docs/measuring.md)."),
        )
    ):
        command = option(command)
    return command


def explain_findings(found: Attribution) -> list[str]:
    """What is typical, a line for each level and rail."""
    lines = []
    for (level, rail), value in found.typical.items():
        where = "in one NVLink domain or block" if level == "inside" else "between cliques"
        on = "" if rail is None else f" on rail {rail}"
        lines.append(f"a typical pair {where}{on} reaches {value:.4g} GB/s; one reading varies by"
                     f" {found.noise[level, rail]:.1%}")  # fmt: skip
    return lines
