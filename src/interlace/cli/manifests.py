"""``interlace manifests``: the objects of ``deploy/interlace.yaml`` with values of one's own."""

from __future__ import annotations

import click


@click.command()
@click.option("--namespace", default="interlace-system", show_default=True, help="Where the components run.")
@click.option("--image", help="Container image of all components.")
@click.option("--replicas", default=2, show_default=True, type=click.IntRange(1, 5), help="Of the controller.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document (a List) instead of YAML.")
def manifests(namespace: str, image: str | None, replicas: int, as_json: bool) -> None:
    """Print what installs Interlace: ``interlace manifests | kubectl apply --server-side -f -``."""
    import json

    import yaml

    from interlace.manifests import manifests as render

    values = {"image": image} if image else {}
    objects = render(namespace=namespace, replicas=replicas, **values)
    if as_json:
        click.echo(json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}))
    else:
        click.echo(yaml.safe_dump_all(objects, sort_keys=False, width=120), nl=False)
