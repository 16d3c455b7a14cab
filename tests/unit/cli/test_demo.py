from __future__ import annotations

import io
import json
import os
import shutil
import sys
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from interlace.cli.bill import bill
from interlace.cli.demo import SIMULATED, example
from interlace.cli.main import main
from interlace.cli.printing import echo
from interlace.cli.stage import Show
from interlace.sim.demo.result import Requests, Result, Teardown
from interlace.sim.demo.workload import load_workload
from tests.unit.cli.programs import interlace


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A copy of the example."""
    for path in example().glob("*.yaml"):
        shutil.copy(path, tmp_path)
    return tmp_path


def change(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def test_the_example_is_scaled_to_the_nodes() -> None:
    workload = load_workload(example(), replicas=7)
    assert workload.deployment["spec"]["replicas"] == 7
    assert (workload.name, workload.namespace, workload.gpus) == ("compute-domain-0", "default", 4)
    assert workload.notes == ()
    assert workload.deployment["spec"]["template"]["spec"]["affinity"]["podAffinity"]


def test_more_pods_than_a_partition_has_nodes_are_not_kept_in_one() -> None:
    workload = load_workload(example(), replicas=19)
    rules = workload.deployment["spec"]["template"]["spec"]["affinity"]["podAffinity"]
    assert not any(rules.values())
    assert "podAffinity on nvidia.com/gpu.clique is left out" in workload.notes[0]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("a: [", "more.yaml, line 1 is not YAML: expected the node content"),
        ("\x00", "more.yaml is not YAML: unacceptable character #x0000"),
        ("at: 2026-02-30", "more.yaml is not readable as YAML: day is out of range"),
        ("kind: ComputeDomain", "holds 2 manifests of kind ComputeDomain, one is needed"),
        ("[" * 5000, "more.yaml is not readable as YAML"),
    ],
)
def test_a_file_that_does_not_belong_is_refused_by_name(folder: Path, text: str, says: str) -> None:
    (folder / "more.yaml").write_text(text)
    with pytest.raises(ValueError, match=r"\A[^\n]*\Z") as refused:
        load_workload(folder, replicas=2)
    assert says in str(refused.value)


def test_files_that_are_something_else_are_passed_over(folder: Path) -> None:
    (folder / "more.yml").write_text("- kind: Deployment\n---\nkind: [a]\n---\nword\n---\n")
    assert load_workload(folder, replicas=2).name == "compute-domain-0"


@pytest.mark.parametrize(
    ("file", "old", "new", "says"),
    [
        ("deployment", "kind: Deployment", "kind: StatefulSet", "holds 0 manifests of kind Deployment"),
        ("deployment", "compute-domain-0-rct", "other", "has resourceClaimTemplateName compute-domain-0-rct, so"),
        ("deployment", "      resourceClaims:", "      others:", "has resourceClaimTemplateName compute-domain-0-rct"),
        (
            "deployment",
            "matchLabels:\n      job: ex1",
            "matchLabels:\n      job: ex2",
            "that its Pods do not have",
        ),
        ("deployment", "matchLabels", "matchWords", "spec.selector.matchLabels of the Deployment is None"),
        ("deployment", "  name: example-mnnvl-workload", "  nam: x", "metadata.name of the Deployment is None"),
        ("computedomain", "resourceClaimTemplate:", "template:", "spec.channel.resourceClaimTemplate.name of the"),
        ("computedomain", "\nmetadata:", "\nmetadata:\n  namespace: team", "leave metadata.namespace out"),
        ("computedomain", "name: compute-domain-0\n", "name: [1]\n", "metadata.name of the ComputeDomain is [1]"),
    ],
)
def test_manifests_that_would_never_form_a_domain_are_refused(
    folder: Path, file: str, old: str, new: str, says: str
) -> None:
    change(folder / f"{file}.yaml", old, new)
    told = CliRunner().invoke(main, ["demo", "--manifests", str(folder)])
    assert (told.exit_code, told.stdout) == (2, "")
    assert says in told.stderr
    assert told.stderr.count("\n") == 1


def test_replicas_need_not_be_given(folder: Path) -> None:
    change(folder / "deployment.yaml", "  replicas: 18\n", "")
    assert load_workload(folder, replicas=3).deployment["spec"]["replicas"] == 3


@pytest.mark.parametrize(
    "arguments",
    [
        ["--nodes", "1"],
        ["--nodes", "201"],
        ["--nodes", "x"],
        ["--server", "moon"],
        ["--speed", "0"],
        ["--manifests", "/x"],
    ],
)
def test_bad_options_are_refused(arguments: list[str]) -> None:
    told = CliRunner().invoke(main, ["demo", *arguments])
    assert (told.exit_code, told.stdout) == (2, "")
    assert arguments[0] in told.stderr


async def test_a_real_control_plane_that_was_not_built_is_refused_with_the_way_to_get_it(tmp_path: Path) -> None:
    ended = await interlace("demo", "--server", "real", "--json", env={"XDG_CACHE_HOME": str(tmp_path)})
    assert (ended.code, ended.out) == (2, "")
    assert "python -m testbed get" in ended.errors
    assert ended.errors.count("\n") == 1


async def test_a_package_without_the_parts_of_the_simulation_says_what_to_install(tmp_path: Path) -> None:
    """An interpreter that sees the package and its own dependencies, and nothing that the extra adds."""
    site = tmp_path / "site"
    site.mkdir()
    for path in Path(sys.prefix, "lib").glob("python3*/site-packages/*"):
        if not path.name.startswith(("cryptography", "cel_expr_python", "__editable__", "_interlace")):
            (site / path.name).symlink_to(path)
    (site / "interlace").symlink_to(Path(main.callback.__code__.co_filename).parents[1])  # type: ignore[union-attr]
    ended = await interlace("demo", env={"PYTHONPATH": str(site)}, python=["-S"])
    assert (ended.code, ended.out) == (2, "")
    assert "pip install 'interlace[sim]'" in ended.errors


async def test_a_cluster_that_does_not_come_up_is_told_in_the_json_and_ends_with_4(tmp_path: Path) -> None:
    """The process may not write to any file, as on a full disk."""
    full = "import resource\nresource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))\n"
    (tmp_path / "sitecustomize.py").write_text(full)
    path = os.pathsep.join([str(tmp_path), *sys.path])
    ended = await interlace("demo", "--nodes", "2", "--json", env={"PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"})
    assert ended.code == 4
    result = json.loads(ended.out)
    assert "set TMPDIR to a folder that may be written" in result["problems"][0]
    assert (result["pods_ready"], result["domain_status"]) == (0, "NotReady")


def result(**more: object) -> Result:
    made = Result(server="embedded", nodes=2, simulated=SIMULATED["embedded"])
    for name, value in more.items():
        setattr(made, name, value)
    return made


def bill_of(one: Result) -> str:
    file = io.StringIO()
    echo(bill(one), stream=file)
    return file.getvalue()


def test_the_bill_names_each_component_under_its_sum_and_what_was_simulated() -> None:
    names = ("controller", "agent", "scheduler", "controller-manager", "kubelet")
    components = {name: Requests(get=1, write=2) for name in names}
    told = bill_of(result(components=components, formation_seconds=1.5, teardown=Teardown(seconds=0.5)))
    rows = [line.split() for line in told.splitlines()]
    order = [row[0] for row in rows if row and (row[0] in names or row[0].endswith("ing:"))]
    assert order == ["forming:", "controller", "agent", "forming:", *names[2:], "deleting:", "deleting:"]
    assert ["agent", "1", "0", "0", "2", "0", "3"] in rows
    assert "formed       after 1.50 s" in told
    assert "healed       not reached" in told
    assert "simulated    API server, scheduler, controllers, kubelets, GPUs, nvidia-imex" in told


def test_the_bill_of_a_cluster_that_stays_claims_nothing_about_its_end() -> None:
    told = bill_of(result(formation_seconds=1.5))
    assert "deleting:" not in told
    assert "left behind  not looked for" in told


@pytest.mark.parametrize(
    ("more", "verdict"),
    [
        ({}, "good"),
        ({"problems": ["the end did not come"]}, "the end did not come"),
        ({"left_behind": ["socket x"]}, "something was left behind"),
    ],
)
def test_the_bill_ends_with_the_verdict(more: dict[str, object], verdict: str) -> None:
    assert bill_of(result(**more)).splitlines()[-1] == f"verdict      {verdict}"


async def test_where_there_is_no_terminal_a_show_is_lines_and_does_not_pause() -> None:
    file = io.StringIO()
    with Show(stream=file, pause=3600, acts=["Form"], simulated=["GPUs"]) as show:
        await show.act("Form: two nodes")
        show.tell("it is " + "very " * 40 + "long")
        show.interrupted()
    first, second, third = file.getvalue().splitlines()
    assert first.endswith(" s — Form: two nodes")
    assert second.endswith("very long")
    assert third.endswith(" s   interrupted; taking everything down")


def test_the_example_is_what_its_page_says() -> None:
    documents = [yaml.safe_load(path.read_text()) for path in sorted(example().glob("*.yaml"))]
    assert [document["kind"] for document in documents] == ["ComputeDomain", "Deployment"]
    assert documents[1]["spec"]["replicas"] == 18
