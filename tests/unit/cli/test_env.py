"""``interlace env``: each form gives the same variables, and a check says what the plugin would say."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result

from interlace.cli.main import main
from interlace.fabric.family import IDS, find

CONFIG = Path(__file__).parents[2] / "data" / "fabric" / "guest_config_2024.txtpb"
CASES = [
    (family, software.id, profile)
    for family in IDS
    for software in find(family).tuples[-2:]
    for profile in software.profiles
]


def run(*arguments: str, stdin: str | None = None) -> Result:
    return CliRunner().invoke(main, ["env", *arguments], input=stdin)


def values(*arguments: str) -> dict[str, str]:
    told = run(*arguments, "--format", "json")
    assert told.exit_code == 0, told.output
    return {each["name"]: each["value"] for each in json.loads(told.stdout)["variables"]}


@pytest.mark.parametrize(("family", "software", "profile"), CASES)
def test_every_form_holds_the_same_variables(family: str, software: str, profile: str) -> None:
    chosen = ("--family", family, "--tuple", software, "--profile", profile)
    wanted = values(*chosen)
    document = json.loads(run(*chosen, "--format", "json").stdout)
    path = ":".join(document["libraryPath"])

    shell = run(*chosen, "--format", "sh", "--explain").stdout
    printed = subprocess.run(
        ["/bin/sh", "-euc", shell + "env"], env={}, capture_output=True, text=True, check=True
    ).stdout.splitlines()
    found = dict(line.split("=", 1) for line in printed if line.startswith(("NCCL_", "LD_")))
    assert found.pop("LD_LIBRARY_PATH", "") == path
    assert found == wanted

    dotenv = run(*chosen, "--format", "dotenv").stdout.splitlines()
    found = dict(line.split("=", 1) for line in dotenv if not line.startswith("#"))
    assert found.pop("LD_LIBRARY_PATH", "") == path
    assert found == wanted

    objects = yaml.safe_load(run(*chosen, "--format", "k8s", "--explain").stdout)["env"]
    found = {each["name"]: each["value"] for each in objects}
    assert found.pop("LD_LIBRARY_PATH", "") == path
    assert found == wanted


def test_the_shell_form_goes_before_what_the_image_has() -> None:
    shell = run("--family", "a3-mega").stdout
    script = f"export LD_LIBRARY_PATH=/image\n{shell}\necho $LD_LIBRARY_PATH"
    printed = subprocess.run(["/bin/sh", "-euc", script], env={}, capture_output=True, text=True, check=True).stdout
    assert printed == "/usr/local/nvidia/lib64:/image\n"


def test_an_explanation_says_what_each_variable_does_and_what_is_left_out() -> None:
    out = run("--family", "a3-mega", "--explain").stdout
    lines = out.splitlines()
    place = lines.index("export NCCL_BUFFSIZE=8388608")
    assert lines[place - 1].startswith("# enforced by the plugin: buffer between GPU and NIC")
    assert "# left out: CUDA_VISIBLE_DEVICES=0,1,2,3,4,5,6,7: launchers with one process" in out
    assert "# left out" not in run("--family", "a3-mega").stdout


def test_interfaces_are_those_of_the_cluster() -> None:
    found = values("--family", "a3-high", "--interfaces", "r0,r1,r2,r3", "--control", "ens4")
    assert found["NCCL_GPUDIRECTTCPX_SOCKET_IFNAME"] == "r0,r1,r2,r3"
    assert found["NCCL_SOCKET_IFNAME"] == "ens4"
    assert found["NCCL_GPUDIRECTTCPX_TX_BINDINGS"].startswith("r0:8-21,112-125;r1:")


def test_the_version_of_the_cluster_picks_the_tuple() -> None:
    old = json.loads(run("--family", "a3-high", "--cluster-version", "1.33", "--format", "json").stdout)
    assert old == json.loads(run("--family", "a3-high", "--cluster-version", "1.33.5-gke.1", "--format", "json").stdout)
    assert old["software"] == "tcpx-3.1.9"


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--family", "a5"], "unknown hardware family 'a5'"),
        (["--family", "a4", "--profile", "fast"], "has no profile 'fast'; it has: default"),
        (["--family", "a4", "--tuple", "gib-9"], "has no software tuple 'gib-9'; it has: gib-1.1.0, gib-1.1.1"),
        (["--family", "a4", "--cluster-version", "x"], "--cluster-version: 'x' is not a GKE version"),
        (["--family", "a3-high", "--cluster-version", "1.34.1-gke.1"], "a3-high needs 1.34.5-gke.1153000 or newer"),
        (
            ["--family", "a3-high", "--tuple", "tcpx-3.1.9", "--cluster-version", "1.35.0-gke.1"],
            "software tuple tcpx-3.1.9 is for GKE from 1.27 and below 1.34, and the cluster has 1.35.0-gke.1",
        ),
        (["--family", "a3-high", "--interfaces", "eth1,eth2"], "has 4 NICs for traffic of GPUs and a Pod uses all"),
        (["--family", "a3-high", "--interfaces", "a,b,c,c"], "an interface is named twice: eth0, a, b, c, c"),
        (["--family", "a3-high", "--interfaces", "a,b,c,eth0"], "an interface is named twice"),
        (["--family", "a3-high", "--interfaces", "a,b,c,"], "'' is not the name of a network interface"),
        (["--family", "a3-high", "--interfaces", "a,b,c,x;y"], "'x;y' is not the name of a network interface"),
        (["--family", "a3-high", "--control", "a" * 16], "is not the name of a network interface"),
        (["--family", "a3-mega", "--env-file", "x"], "name one with --check FILE"),
        (["--family", "a3-mega", "--check", "-", "--env-file", "-"], "standard input can be read once"),
        (["--family", "a3-mega", "--check", "/nowhere/x"], "/nowhere/x: No such file or directory"),
        (["--family", "a3-mega", "--format", "xml"], "'xml' is not one of"),
        ([], "Missing option '--family'"),
    ],
)
def test_bad_input_is_refused_with_a_sentence(arguments: list[str], says: str) -> None:
    told = run(*arguments)
    assert told.exit_code == 2
    assert told.stdout == ""
    assert says in told.stderr


def test_a_job_that_the_plugin_would_end_is_told_before(tmp_path: Path) -> None:
    told = run("--family", "a3-mega", "--check", str(CONFIG))
    assert told.exit_code == 1
    assert "error: NCCL_PROTO is Simple,LL128, and the plugin expects Simple; the plugin ends the job\n" in told.stdout
    assert "not checked here: processes should be bound to CPUs 32-63" in told.stdout


def test_an_environment_that_the_plugin_accepts_passes() -> None:
    told = run("--family", "a3-mega", "--tuple", "tcpxo-1.0.5", "--check", str(CONFIG))
    assert told.exit_code == 0
    assert "19 settings are enforced, 0 of them differ" in told.stdout
    assert "error:" not in told.stdout


def test_the_config_may_come_from_stdin_and_the_answer_be_a_document() -> None:
    told = run("--family", "a3-mega", "--check", "-", "--format", "json", stdin=CONFIG.read_text())
    assert told.exit_code == 1
    found: Any = json.loads(told.stdout)
    assert {finding["name"] for finding in found["findings"] if finding["ends"]} >= {"NCCL_PROTO", "NCCL_ALGO"}
    assert found["cpus"] == "32-63"


def test_an_environment_of_ones_own_is_checked(tmp_path: Path) -> None:
    mine = tmp_path / "mine.env"
    lines = run("--family", "a3-mega", "--tuple", "tcpxo-1.0.5").stdout
    mine.write_text(f"# mine\n\n{lines}\nexport NCCL_BUFFSIZE='4194304'\n")
    told = run("--family", "a3-mega", "--check", str(CONFIG), "--env-file", str(mine))
    assert told.exit_code == 1
    assert "error: NCCL_BUFFSIZE is 4194304, and the plugin expects 8388608" in told.stdout


def test_where_a_script_sets_the_environment_the_check_says_what_it_cannot_see(tmp_path: Path) -> None:
    config = tmp_path / "guest_config.txtpb"
    config.write_text('env_var { name: "NCCL_P2P_NVL_CHUNKSIZE" check_policy: POLICY_ENFORCED value: "262144" }')
    told = run("--family", "a4", "--check", str(config))
    assert told.exit_code == 1
    assert "set_nccl_env.sh on the node may set more than is known here" in told.stderr
    assert "may set more" not in run("--family", "a3-mega", "--check", str(CONFIG)).stderr


def test_what_the_config_says_and_is_not_known_leaves_the_answer_open(tmp_path: Path) -> None:
    config = tmp_path / "config.txtpb"
    config.write_text('env_var { name: "NCCL_PROTO" check_policy: POLICY_MAYBE value: "Simple" }')
    told = run("--family", "a3-mega", "--check", str(config))
    assert told.exit_code == 3
    assert "treats NCCL_PROTO in a way that is not known here" in told.stdout


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "has no env_var, so it is not a guest config"),
        (b"env_var {", "line 1: a message is not closed"),
        (b"\xff\xfe", "it is not text in UTF-8"),
        (b"a: 1\n" * 300_000, "it is larger than 1 MiB"),
        (b"root:x:0:0:/root:/bin/sh", "is not"),
    ],
)
def test_a_file_that_is_no_guest_config_is_refused(tmp_path: Path, content: bytes, says: str) -> None:
    config = tmp_path / "config.txtpb"
    config.write_bytes(content)
    told = run("--family", "a3-mega", "--check", str(config))
    assert told.exit_code == 2
    assert told.stdout == ""
    assert told.stderr.startswith(f"interlace: {config}: ")
    assert says in told.stderr


def test_a_line_that_sets_nothing_is_named(tmp_path: Path) -> None:
    mine = tmp_path / "mine.env"
    mine.write_text("NCCL_PROTO=Simple\nthis is no line\n")
    told = run("--family", "a3-mega", "--check", str(CONFIG), "--env-file", str(mine))
    assert told.exit_code == 2
    assert f"{mine}: line 2 is not NAME=value: this is no line" in told.stderr
