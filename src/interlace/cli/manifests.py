"""``interlace manifests``: the objects of ``deploy/interlace.yaml`` with values of one's own, and those of a family."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from interlace.cli.exits import Code, Exit

if TYPE_CHECKING:
    from interlace.fabric.family import Family, SoftwareTuple
    from interlace.fabric.version import GkeVersion, Minor
    from interlace.manifests.family import Plan

_LABEL = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\Z")
_PARTS = ("components", "networks", "installer", "canary", "test")
"""Those of ``interlace.manifests.family``, here so that ``--help`` need not import it."""


def _checked(
    pattern: re.Pattern[str], wanted: str
) -> Callable[[click.Context, click.Parameter, str | None], str | None]:
    def check(_context: click.Context, _option: click.Parameter, value: str | None) -> str | None:
        if value is not None and not pattern.match(value):
            raise click.BadParameter(f"{value!r} is not {wanted}")
        return value

    return check


_NAMESPACE = _checked(_LABEL, "the name of a namespace (lower-case letters, digits and inner '-')")
_IMAGE = _checked(re.compile(r"[!-~]+\Z"), "the name of an image")


@click.group("manifests", invoke_without_command=True)
@click.option(
    "--namespace",
    default="interlace-system",
    show_default=True,
    callback=_NAMESPACE,
    help="Where the components run.",
)
@click.option("--image", callback=_IMAGE, help="Container image of all components.")
@click.option(
    "--replicas",
    default=2,
    show_default=True,
    type=click.IntRange(1, 5),
    metavar="COUNT",
    help="Of the controller, or of the webhook, 1 to 5.",
)
@click.option(
    "--driver-root",
    callback=_checked(re.compile(r"/.*\Z"), "an absolute path"),
    help="Where the NVIDIA driver is on the nodes (/, or where the family has it).",
)
@click.option("--webhook", is_flag=True, help="Print the webhook instead, which works with or without the rest.")
@click.option(
    "--device-guard",
    type=click.Choice(["enforce", "warn", "off"]),
    default="enforce",
    show_default=True,
    help="Of the webhook: what happens to Pods that ask for other devices than GPUs.",
)
@click.option("--allow-device", multiple=True, metavar="PATH", help="Of the webhook: a device that Pods may ask for.")
@click.option("--guard-exempt", multiple=True, metavar="NAMESPACE", help="Of the webhook: a namespace without guard.")
@click.option(
    "--resource-version",
    default="v1",
    show_default=True,
    type=click.Choice(["v1", "v1beta2", "v1beta1"]),
    help="Of resource.k8s.io: v1beta2 for Kubernetes 1.33, v1beta1 for 1.32.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document (a List) instead of YAML.")
@click.option("--family", "family_name", metavar="F", help="Also what hardware of this family needs.")
@click.option("--tuple", "tuple_id", metavar="T", help="With --family: software tuple; else the preferred one.")
@click.option("--cluster-version", metavar="VERSION", help="With --family: GKE version that the tuple must fit.")
@click.option(
    "--part",
    "parts",
    multiple=True,
    type=click.Choice(_PARTS),
    help="With --family: only this part; may be given again.",
)
@click.option(
    "--network-prefix",
    default="interlace",
    show_default=True,
    callback=_checked(_LABEL, "a prefix of VPC names (lower-case letters, digits and inner '-')"),
    help="With --family: VPC networks and subnets are PREFIX-net-1, PREFIX-sub-1 and so on.",
)
@click.option(
    "--network-map",
    metavar="A=B,…",
    help="With --family or --webhook: names of Network objects that differ, vpc1=rail1.",
)
@click.option(
    "--test-nodes",
    default=2,
    show_default=True,
    type=click.IntRange(2, 10_000),
    metavar="COUNT",
    help="With --family: nodes of the test workload.",
)
@click.option(
    "--test-namespace",
    default="default",
    show_default=True,
    callback=_NAMESPACE,
    help="With --family: where canary and test run.",
)
@click.pass_context
def print_manifests(context: click.Context, /, **options: Any) -> None:
    """Print what installs Interlace, for `kubectl apply --server-side -f -`.

    With --family also what nodes of that hardware need: networks, the installer of the NCCL plugin, a canary Pod and a
    suspended all-gather test. Every image comes from one software tuple.
    """
    if context.invoked_subcommand is not None:
        return
    from interlace.manifests import IMAGE, manifests

    if options["family_name"] is not None:
        if options["webhook"]:
            raise click.UsageError("--webhook prints the webhook alone, without --family")
        _print_family(options)
        return
    for name in ("tuple_id", "cluster_version", "parts", *([] if options["webhook"] else ["network_map"])):
        if options[name]:
            flag = {"tuple_id": "--tuple", "parts": "--part"}.get(name, f"--{name.replace('_', '-')}")
            raise click.UsageError(f"{flag} goes with --family")
    common = {name: options[name] for name in ("namespace", "replicas")} | {"image": options["image"] or IMAGE}
    if options["webhook"]:
        objects = _webhook(options, common)
    else:
        objects = manifests(**common, driver_root=options["driver_root"] or "/")
    _print(objects, options, by="python -m interlace.manifests")


def _webhook(options: dict[str, Any], common: dict[str, Any]) -> list[dict[str, Any]]:
    """The webhook's objects; refuses now what the webhook would refuse when it starts."""
    from interlace.manifests.webhook import webhook_manifests
    from interlace.pods.settings import WebhookSettings

    flags = [f"--allow-device={','.join(options['allow_device'])}"] if options["allow_device"] else []
    flags += [f"--network-map={options['network_map']}"] if options["network_map"] else []
    WebhookSettings.parse(flags, {})
    return webhook_manifests(**common, guard=options["device_guard"], arguments=flags, exempt=options["guard_exempt"])


@print_manifests.command("status")
@click.option("--family", "family_name", metavar="F", help="Family to check; else those the cluster has nodes of.")
@click.option(
    "--network-map", metavar="A=B,…", help="Names of Network objects that differ, vpc1=rail1 (with --family)."
)
@click.option("--system-namespace", default="interlace-system", show_default=True, help="Where the components run.")
@click.option(
    "--timeout",
    default=0.0,
    show_default=True,
    type=click.FloatRange(min=0),
    metavar="SECONDS",
    help="Wait so long until all is there; 0 looks once.",
)
@click.option("--context", metavar="NAME", help="Context of the kubeconfig.")
@click.option("--kubeconfig", metavar="FILE", help="Kubeconfig file.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def status(
    *,
    family_name: str | None,
    network_map: str | None,
    system_namespace: str,
    timeout: float,
    context: str | None,
    kubeconfig: str | None,
    as_json: bool,
) -> None:
    """Check on a live cluster that nodes, GPUs, networks, installer and injector of a family are ready.

    Exit 0 if all is there, 1 if something is not, 3 if something cannot be read.
    """
    from interlace.cli.families import known_family, network_names
    from interlace.cli.manifests_status import run_status
    from interlace.cli.running import run

    if network_map and not family_name:
        raise click.UsageError("--network-map goes with --family")
    family = known_family(family_name) if family_name else None
    run(
        run_status(
            family=family,
            names=network_names(family, network_map) if family else {},
            system=system_namespace,
            timeout=timeout,
            context=context,
            kubeconfig=kubeconfig,
            as_json=as_json,
        )
    )


def _print_family(options: dict[str, Any]) -> None:
    from interlace.cli.families import choose_software, known_family, known_version, network_names
    from interlace.fabric.vpcs import VpcNames
    from interlace.manifests import IMAGE
    from interlace.manifests.family import PARTS, Plan, family_manifests
    from interlace.manifests.workload import TestPlan

    family: Family = known_family(options["family_name"])
    software = choose_software(family, tuple_id=options["tuple_id"], cluster_version=options["cluster_version"])
    version = known_version(options["cluster_version"])
    plan = Plan(
        parts=tuple(part for part in PARTS if part in options["parts"]) or PARTS,
        vpcs=VpcNames(prefix=options["network_prefix"]),
        names=network_names(family, options["network_map"]),
        namespace=options["namespace"],
        image=options["image"] or IMAGE,
        replicas=options["replicas"],
        driver_root=options["driver_root"] or "",
        test=TestPlan(nodes=options["test_nodes"], namespace=options["test_namespace"]),
    )
    for sentence in _left_out(family, plan):
        click.echo(f"interlace: {sentence}", err=True)
    objects = family_manifests(family, software=software, plan=plan, wire=_wire(family, software, plan, version))
    if not objects:
        raise Exit(Code.REFUSED, f"nothing of {', '.join(plan.parts)} is needed for {family.id}")
    _print(objects, options, by=f"interlace manifests --family {family.id} --tuple {software.id}")


def _left_out(family: Family, plan: Plan) -> list[str]:
    """What a part that was asked for lacks, a sentence each."""
    sentences = []
    if "test" in plan.parts and family.test is None:
        sentences.append(f"there is no test workload: no public image with nccl-tests is known for {family.id}")
    if "networks" in plan.parts and family.networks:
        sentences.append(f"the networks are those of VPCs named {plan.vpcs.prefix}-…; --network-prefix names others")
    return sentences


def _wire(
    family: Family, software: SoftwareTuple, plan: Plan, version: GkeVersion | Minor | None
) -> Callable[[dict[str, Any]], dict[str, Any]]:
    """What any Pod of a user goes through as well."""
    from interlace.manifests.workload import CHANNEL
    from interlace.pods.inject import inject

    def wire(template: dict[str, Any]) -> dict[str, Any]:
        channel = CHANNEL if family.node.mnnvl else ""
        return inject(
            template, family=family, software=software, version=version, networks=plan.names, channel=channel
        ).pod

    return wire


def _print(objects: list[dict[str, Any]], options: dict[str, Any], *, by: str) -> None:
    import msgspec

    from interlace.kube.versions import manifest_in
    from interlace.manifests import render

    objects = [dict(manifest_in(options["resource_version"], found)) for found in objects]
    if options["as_json"]:
        click.echo(msgspec.json.encode({"apiVersion": "v1", "kind": "List", "items": objects}).decode())
    else:
        click.echo(render(objects, by=by), nl=False)
