"""``interlace inject``: manifests in, the same manifests with the fabric of their nodes out.

Bytes are read and written as they are: what is not injected comes out as it went in. Everything is decided before
the first byte is printed.
"""

from __future__ import annotations

import difflib
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from interlace.cli.exits import Code, Exit

if TYPE_CHECKING:
    from interlace.pods.bundle import Outcome
    from interlace.pods.workloads import Options

_BOM = "\ufeff"


@click.command("inject")
@click.option(
    "-f", "--file", "source", required=True, metavar="FILE", help="Manifests, YAML or JSON; - reads standard input."
)
@click.option("--family", help="Of all Pods; default: what each Pod's node selector, affinity or label says.")
@click.option("--tuple", "software", metavar="ID", help="Software tuple, as `interlace families show F` lists them.")
@click.option("--profile", default="default", show_default=True, metavar="NAME", help="NCCL profile of the tuple.")
@click.option(
    "--cluster-version", metavar="V", help="GKE version, as 1.34.5-gke.1153000 or 1.34; default: a current one."
)
@click.option("--network-map", metavar="A=B,…", help="Names of the cluster's networks, as vpc1=rail1,vpc2=rail2.")
@click.option(
    "--compute-domain", is_flag=True, help="Add the ComputeDomain for NVLink between nodes where none is named."
)
@click.option(
    "--pod-path",
    "pod_paths",
    multiple=True,
    metavar="[KIND=]PATH",
    help="Where other kinds have their Pod templates, as Foo=spec.tasks[*].template.",
)
@click.option("--host-network", is_flag=True, help="Use hostNetwork and privileged containers instead of annotations.")
@click.option(
    "--require-plugin",
    default="",
    metavar="NAME",
    help="NRI plugin without which containerd 2.2 or later, its default validator on, makes no daemon: interlace.",
)
@click.option("--diff", is_flag=True, help="Print what would change; exit 1 if anything would.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document with changes and reasons instead.")
def inject(
    *,
    source: str,
    family: str | None,
    software: str | None,
    profile: str,
    cluster_version: str | None,
    network_map: str | None,
    compute_domain: bool,
    pod_paths: tuple[str, ...],
    host_network: bool,
    require_plugin: str,
    diff: bool,
    as_json: bool,
) -> None:
    """Set up the Pods of manifests for the fabric of their nodes, and print all of them.

    Documents without such Pods are printed as they are. One that cannot be set up is left out, with a sentence on
    stderr that says what to change, and the exit code is 2. What is set up already does not change again.

    Into a cluster: `interlace inject -f job.yaml | kubectl apply -f -`. Behind kustomize:
    `kubectl kustomize . | interlace inject -f - --family a3-mega`.
    """
    from interlace.pods.bundle import inject_text, text_of
    from interlace.pods.documents import DocumentError

    if not re.fullmatch(r"[A-Za-z0-9_.+-]{0,64}", require_plugin):
        raise Exit(Code.REFUSED, f"--require-plugin: {require_plugin!r} is no name; use letters, digits and _ . + -")
    if diff and as_json:
        raise Exit(Code.REFUSED, "--diff and --json: each prints the whole answer; give one of them")
    options = _options(
        family=family,
        software=software,
        profile=profile,
        version=cluster_version,
        network_map=network_map,
        compute_domain=compute_domain,
        pod_paths=pod_paths,
        host_network=host_network,
        required_plugin=require_plugin,
    )
    text = _read(source)
    bom = _BOM if text.startswith(_BOM) else ""
    text = text.removeprefix(_BOM)
    name = "standard input" if source == "-" else source
    if not text.strip():
        raise Exit(Code.REFUSED, f"{name}: it is empty; give a file with manifests")
    try:
        outcomes = inject_text(text, options=options)
    except DocumentError as error:
        raise Exit(Code.REFUSED, f"{name}: {error}") from None
    refused = [outcome for outcome in outcomes if outcome.result == "refused"]
    if as_json:
        _write(_document(outcomes, text_of(outcomes)) + "\n")
    elif diff:
        _write(_diff(outcomes, text, name))
    else:
        _write(bom + text_of(outcomes) if len(refused) < len(outcomes) else "")
    for outcome in outcomes:
        for warning in outcome.warnings:
            click.echo(f"interlace: {name}: {outcome.title}: warning: {warning}", err=True)
        if outcome.refusal is not None:
            click.echo(f"interlace: {name}: {outcome.title}: {outcome.refusal}", err=True)
    if refused:
        raise Exit(Code.REFUSED, f"{name}: {len(refused)} of {len(outcomes)} documents left out")
    if diff and any(outcome.result == "injected" for outcome in outcomes):
        raise Exit(Code.BAD)


def _options(
    *,
    family: str | None,
    software: str | None,
    version: str | None,
    network_map: str | None,
    pod_paths: tuple[str, ...],
    **rest: Any,
) -> Options:
    """The options in their own types. Raises Exit."""
    from interlace.cli.families import known_family, known_version, network_names
    from interlace.fabric.family import FamilyError, families
    from interlace.pods.workloads import Options

    found = known_family(family) if family and family != "auto" else None
    try:
        if software and found is not None:
            found.software(software)
        elif software and not any(software == each.id for one in families() for each in one.tuples):
            known = ", ".join(each.id for one in families() for each in one.tuples)
            raise FamilyError(f"unknown software tuple {software!r}; the known ones are {known}")
    except FamilyError as error:
        raise Exit(Code.REFUSED, str(error)) from None
    return Options(
        family=found.id if found else "",
        software=software or "",
        version=known_version(version),
        networks=network_names(found, network_map),
        pod_paths=dict(_pod_path(each) for each in pod_paths),
        **rest,
    )


def _pod_path(text: str) -> tuple[str, str]:
    from interlace.pods.kinds import steps

    kind, equals, path = text.partition("=")
    if not equals:
        kind, path = "*", text
    try:
        steps(path)
    except ValueError as error:
        raise Exit(Code.REFUSED, f"--pod-path: {error}") from None
    return kind, path


def _read(source: str) -> str:
    """The text of a file or of standard input. Raises Exit."""
    from interlace.pods.documents import LONGEST_FILE

    try:
        if source == "-":
            data = sys.stdin.buffer.read(LONGEST_FILE + 1)
        else:
            with Path(source).open("rb") as file:
                data = file.read(LONGEST_FILE + 1)
    except OSError as error:
        raise Exit(Code.REFUSED, f"{source}: {error.strerror or error}; give a file that can be read") from None
    if len(data) > LONGEST_FILE:
        raise Exit(
            Code.REFUSED,
            f"{source}: it has more than {LONGEST_FILE} bytes, and no more are read; inject the file in parts",
        )
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise Exit(
            Code.REFUSED, f"{source}: byte {error.start} is no UTF-8 ({error.reason}); save the file as UTF-8"
        ) from None


def _write(text: str) -> None:
    """To standard output, without touching line ends."""
    sys.stdout.flush()
    sys.stdout.buffer.write(text.encode())
    sys.stdout.buffer.flush()


def _diff(outcomes: tuple[Outcome, ...], text: str, name: str) -> str:
    """A unified diff; documents that were refused stay as they are in it."""
    from interlace.pods.documents import split

    before = [document.text for document in split(text)]
    after = [
        old if outcome.result == "refused" else outcome.text for old, outcome in zip(before, outcomes, strict=True)
    ]
    lines = difflib.unified_diff(_lines("".join(before)), _lines("".join(after)), name, f"{name} (injected)")
    return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)


def _lines(text: str) -> list[str]:
    """Lines with their ends; a line ends at a line feed alone, as in YAML and in what reads diffs."""
    return re.findall(r"[^\n]*\n|[^\n]+", text)


def _document(outcomes: tuple[Outcome, ...], output: str) -> str:
    """The JSON document: ``{"documents": [...], "output": TEXT}``."""
    import msgspec

    documents = [
        {
            "number": outcome.number,
            "line": outcome.line,
            "kind": outcome.kind,
            "name": outcome.name,
            "result": outcome.result,
            "families": outcome.families,
            "tuples": outcome.software,
            "changes": outcome.changes,
            "warnings": outcome.warnings,
            "refusal": outcome.refusal,
        }
        for outcome in outcomes
    ]
    return msgspec.json.format(msgspec.json.encode({"documents": documents, "output": output})).decode()
