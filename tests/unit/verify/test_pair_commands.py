"""``interlace verify run`` and ``verify pairs`` before they reach a cluster: what they print, and what they refuse."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result

from interlace.cli.main import main


def run(*arguments: str, env: dict[str, str] | None = None) -> Result:
    return CliRunner().invoke(main, ["verify", *arguments], env=env)


def objects(ended: Result) -> dict[str, dict[str, Any]]:
    assert ended.exit_code == 0, ended.stderr
    return {each["kind"]: each for each in yaml.safe_load_all(ended.stdout) if each}


def test_a_dry_run_prints_the_manifests_of_the_nodes_and_sizes() -> None:
    found = objects(run("run", "--family", "a3-mega", "--nodes", "x,y,z", "--max", "1G", "--dry-run", "-n", "team"))
    assert set(found) == {"ConfigMap", "Service", "Job"}
    (name,) = {each["metadata"]["name"] for each in found.values()}
    job = found["Job"]["spec"]
    assert (job["completions"], job["suspend"], job["ttlSecondsAfterFinished"]) == (3, True, 600)
    pod = job["template"]["spec"]
    terms = pod["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    assert terms[0]["matchExpressions"][0]["values"] == ["x", "y", "z"]
    assert pod["subdomain"] == name
    test = next(each for each in pod["containers"] if each["name"] == "nccl-test")
    env = {each["name"]: each.get("value") for each in test["env"]}
    assert (env["COLLECTIVE"], env["DATA_MIN"], env["DATA_MAX"]) == ("all_gather", str(1 << 20), str(1 << 30))
    assert f"{name}-$index.{name}" in found["ConfigMap"]["data"]["run.sh"]
    assert all(each["metadata"]["namespace"] == "team" for each in found.values())


def test_a_dry_run_on_nvlink_has_a_domain_and_the_affinity_to_its_clique() -> None:
    found = objects(run("run", "--family", "a4x", "--nodes", "x,y", "--dry-run"))
    domain, pod = found["ComputeDomain"], found["Job"]["spec"]["template"]["spec"]
    template = domain["spec"]["channel"]["resourceClaimTemplate"]["name"]
    assert pod["resourceClaims"][0]["resourceClaimTemplateName"] == template
    assert set(pod["affinity"]) == {"nodeAffinity", "podAffinity"}


def test_two_tests_never_share_a_name() -> None:
    arguments = ("run", "--family", "a4", "--count", "2", "--dry-run")
    names = [objects(run(*arguments))["Job"]["metadata"]["name"] for _ in range(2)]
    assert names[0] != names[1]


def test_a_schedule_is_a_cron_job_with_rights_for_what_it_does() -> None:
    ended = run("run", "--family", "a4x", "--count", "4", "--schedule", "17 3 * * *", "-n", "team")
    found = objects(ended)
    spec = found["CronJob"]["spec"]
    pod = spec["jobTemplate"]["spec"]["template"]["spec"]
    assert (spec["schedule"], spec["concurrencyPolicy"]) == ("17 3 * * *", "Forbid")
    arguments = pod["containers"][0]["args"]
    assert {"--family=a4x", "--count=4", "--namespace=team", "--baseline-map=nccl-baseline-a4x"} <= set(arguments)
    assert pod["serviceAccountName"] == found["ServiceAccount"]["metadata"]["name"]
    may = {(group, what, verb) for rule in found["Role"]["rules"] for group in rule["apiGroups"]
           for what in rule["resources"] for verb in rule["verbs"]}  # fmt: skip
    assert may >= {
        ("", "pods/log", "get"),
        ("batch", "jobs", "create"),
        ("batch", "jobs", "delete"),
        ("resource.nvidia.com", "computedomains", "create"),
        ("", "configmaps", "patch"),
    }
    # What the CronJob runs is a command that this program takes.
    again = CliRunner().invoke(main, [*pod["containers"][0]["command"][1:], *arguments[:-1], "--dry-run"])
    assert again.exit_code == 0, again.stderr


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("run", "--family", "moon", "--count", "2"), "moon"),
        (("run", "--family", "a4", "--nodes", "x"), "at least two"),
        (("run", "--family", "a4", "--nodes", "x,X y"), "cannot be the name of a node"),
        (("run", "--family", "a4", "--nodes", "x,y,x"), "x is given twice"),
        (("run", "--family", "a4", "--nodes", ","), "no node is named"),
        (("run", "--family", "a4"), "either --nodes or --count"),
        (("run", "--family", "a4", "--count", "2", "--nodes", "x,y"), "either --nodes or --count"),
        (("run", "--family", "a4", "--count", "2", "--min", "8G", "--max", "1M"), "more than --max"),
        (("run", "--family", "a4", "--count", "2", "--collective", "gossip"), "'gossip' is not one of"),
        (("run", "--family", "a4", "--count", "2", "--schedule", "at night"), "no schedule of cron"),
        (("run", "--family", "gb200-nvl72", "--count", "2"), "no public image with nccl-tests"),
        (("pairs", "--family", "a4", "--nodes", "x"), "name at least two"),
        (("pairs", "--family", "a4", "--nodes", "x,y", "--count", "3"), "either --nodes or --count"),
        (("pairs", "--family", "gb200-nvl72"), "no public image with nccl-tests"),
    ],
)
def test_what_cannot_be_is_refused_with_a_reason_before_anything_is_done(arguments: tuple[str, ...], says: str) -> None:
    ended = run(*arguments, env={"KUBECONFIG": "/nonexistent"})
    assert (ended.exit_code, ended.stdout) == (2, "")
    assert says in ended.stderr
    assert "Traceback" not in ended.stderr


def test_without_a_cluster_the_missing_kubeconfig_is_named(tmp_path: Path) -> None:
    for verb in (("run", "--count", "2"), ("pairs",)):
        ended = run(*verb, "--family", "a4", "--kubeconfig", str(tmp_path / "none"))
        assert ended.exit_code == 2
        assert str(tmp_path / "none") in ended.stderr
