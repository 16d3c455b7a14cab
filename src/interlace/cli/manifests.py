"""``interlace manifests``: the objects of ``deploy/interlace.yaml`` with values of one's own."""

from __future__ import annotations

import click


@click.command("manifests")
@click.option("--namespace", default="interlace-system", show_default=True, help="Where the components run.")
@click.option("--image", help="Container image of all components.")
@click.option("--replicas", default=2, show_default=True, type=click.IntRange(1, 5), help="Of the controller.")
@click.option("--driver-root", default="/", show_default=True, help="Where the NVIDIA driver is on the nodes.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document (a List) instead of YAML.")
def print_manifests(*, namespace: str, image: str | None, replicas: int, driver_root: str, as_json: bool) -> None:
    """Print what installs Interlace: ``interlace manifests | kubectl apply --server-side -f -``."""
    import msgspec

    from interlace.manifests import IMAGE, manifests, render

    objects = manifests(namespace=namespace, image=image or IMAGE, replicas=replicas, driver_root=driver_root)
    if as_json:
        click.echo(msgspec.json.encode({"apiVersion": "v1", "kind": "List", "items": objects}).decode())
    else:
        click.echo(render(objects), nl=False)
