"""``interlace manifests``: the objects of ``deploy/interlace.yaml`` with values of one's own."""

from __future__ import annotations

import re
from collections.abc import Callable

import click

_NAME = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\Z")


def _checked(
    pattern: re.Pattern[str], wanted: str
) -> Callable[[click.Context, click.Parameter, str | None], str | None]:
    def check(_context: click.Context, _option: click.Parameter, value: str | None) -> str | None:
        if value is not None and not pattern.match(value):
            raise click.BadParameter(f"{value!r} is not {wanted}")
        return value

    return check


@click.command("manifests")
@click.option(
    "--namespace",
    default="interlace-system",
    show_default=True,
    callback=_checked(_NAME, "the name of a namespace (lower-case letters, digits and inner '-')"),
    help="Where the components run.",
)
@click.option(
    "--image",
    callback=_checked(re.compile(r"[!-~]+\Z"), "the name of an image"),
    help="Container image of all components.",
)
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
    default="/",
    show_default=True,
    callback=_checked(re.compile(r"/.*\Z"), "an absolute path"),
    help="Where the NVIDIA driver is on the nodes.",
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
@click.option("--network-map", metavar="A=B,…", help="Of the webhook: default name and name in this cluster.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document (a List) instead of YAML.")
def print_manifests(
    *,
    namespace: str,
    image: str | None,
    replicas: int,
    driver_root: str,
    webhook: bool,
    device_guard: str,
    allow_device: tuple[str, ...],
    guard_exempt: tuple[str, ...],
    network_map: str | None,
    as_json: bool,
) -> None:
    """Print what installs Interlace, for `kubectl apply --server-side -f -`."""
    import msgspec

    from interlace.manifests import IMAGE, manifests, render

    if webhook:
        from interlace.manifests.webhook import webhook_manifests

        flags = [f"--allow-device={','.join(allow_device)}"] if allow_device else []
        flags += [f"--network-map={network_map}"] if network_map else []
        _parse(flags)
        objects = webhook_manifests(
            namespace=namespace,
            image=image or IMAGE,
            replicas=replicas,
            guard=device_guard,
            arguments=flags,
            exempt=guard_exempt,
        )
    else:
        objects = manifests(namespace=namespace, image=image or IMAGE, replicas=replicas, driver_root=driver_root)
    if as_json:
        click.echo(msgspec.json.encode({"apiVersion": "v1", "kind": "List", "items": objects}).decode())
    else:
        click.echo(render(objects), nl=False)


def _parse(flags: list[str]) -> None:
    """Refuse now what the webhook would refuse when it starts."""
    from interlace.pods.settings import WebhookSettings

    WebhookSettings.parse(flags, {})
