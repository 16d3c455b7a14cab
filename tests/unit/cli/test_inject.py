"""``interlace inject``: bytes in, bytes out, and every kind of bad input."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from interlace.cli.main import main

JOB = """\
# the job
apiVersion: batch/v1
kind: Job
metadata:
  name: train
spec:
  template:
    spec:
      restartPolicy: Never
      nodeSelector:
        cloud.google.com/gke-accelerator: nvidia-h100-mega-80gb   # A3 Mega
      containers:
        - name: main
          image: docker.io/library/ubuntu:22.04
          resources: {limits: {nvidia.com/gpu: 8}}
"""
MAP = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\ndata: {a: 'b'}   # as it was\n"
HALF = JOB.replace("gpu: 8", "gpu: 4").replace("name: train", "name: half")


def run(*args: str, given: str | bytes = JOB) -> Result:
    return CliRunner().invoke(main, ["inject", *args], input=given)


def injected(given: str | bytes, *args: str) -> str:
    result = run("-f", "-", *args, given=given)
    assert result.exit_code == 0, result.stderr
    return result.stdout_bytes.decode()


def test_documents_come_out_in_their_order_and_the_others_byte_for_byte() -> None:
    made = injected(f"{MAP}---\n{JOB}---\n{MAP}")
    first, job, last = made.split("---\n")
    assert (first, last) == (MAP, MAP)
    assert "tcpxo-daemon" in job
    kept = iter(job.splitlines())
    assert all(line in kept for line in JOB.splitlines())


def test_injecting_the_output_gives_the_same_bytes() -> None:
    made = injected(JOB)
    assert injected(made) == made


def test_a_file_is_read_and_not_written(tmp_path: Path) -> None:
    path = tmp_path / "job.yaml"
    path.write_text(JOB)
    assert run("-f", str(path)).stdout_bytes.decode() == injected(JOB)
    assert path.read_text() == JOB


def test_a_refused_document_is_left_out_and_the_others_are_printed() -> None:
    result = run("-f", "-", given=f"{MAP}---\n{HALF}---\n{JOB}")
    assert result.exit_code == 2
    assert result.stdout == f"{MAP}---\n{injected(JOB)}"
    assert (
        "standard input: document 2 (Job half, line 5): spec.template.spec.containers[0].resources: " in result.stderr
    )
    assert "set nvidia.com/gpu so that the containers of the Pod add up to 8" in result.stderr
    assert "1 of 3 documents left out" in result.stderr


def test_line_ends_of_windows_and_the_mark_at_the_start_stay() -> None:
    made = injected("\ufeff" + JOB.replace("\n", "\r\n"))
    assert made.startswith("\ufeff# the job\r\n")
    assert made.count("\r\n") == made.count("\n")
    assert made.replace("\r\n", "\n") == "\ufeff" + injected(JOB)


@pytest.mark.parametrize("indent", [None, 2, 4])
def test_json_stays_json_with_its_indentation(indent: int | None) -> None:
    template = {"spec": {"nodeSelector": {"node.kubernetes.io/instance-type": "a3-megagpu-8g"}, "containers": [
        {"name": "main", "image": "x", "resources": {"limits": {"nvidia.com/gpu": 8}}}
    ]}}  # fmt: skip
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "é"}, "spec": {"template": template}}
    given = json.dumps(job, indent=indent, ensure_ascii=False) + "\n"
    made = injected(given)
    assert json.loads(made)["spec"]["template"]["spec"]["initContainers"]
    assert made == json.dumps(json.loads(made), indent=indent, ensure_ascii=False) + "\n"
    assert injected(made) == made
    other = '{"kind": "ConfigMap",   "apiVersion": "v1"}\n'
    assert injected(other + given).startswith(other)


def test_json_prints_changes_with_reasons_and_refusals_in_parts() -> None:
    result = run("-f", "-", "--json", given=f"{JOB}---\n{HALF}")
    assert result.exit_code == 2
    document = json.loads(result.stdout)
    job, half = document["documents"]
    assert (job["result"], job["families"], job["tuples"]) == ("injected", ["a3-mega"], ["tcpxo-1.0.15"])
    assert all(change["reason"] and change["path"].startswith("spec.template.") for change in job["changes"])
    assert half["refusal"].keys() == {"path", "value", "cause", "remedy"}
    assert document["output"] == injected(JOB)


def test_a_diff_says_what_would_change() -> None:
    result = run("-f", "-", "--diff")
    assert result.exit_code == 1
    assert "+++ standard input (injected)" in result.stdout
    assert not [line for line in result.stdout.splitlines()[2:] if line.startswith("-")]
    assert run("-f", "-", "--diff", given=injected(JOB)).exit_code == 0
    assert run("-f", "-", "--diff", "--json").exit_code == 2


def test_a_diff_has_the_lines_of_the_file() -> None:
    made = run("-f", "-", "--diff", given=JOB.replace("ubuntu:22.04", "ubuntu:22.04   # a\u2028# b"))
    assert made.exit_code == 1
    assert "ubuntu:22.04   # a\u2028# b\n" in made.stdout
    assert {line[:1] for line in made.stdout.split("\n")} <= set(" +-@") | {""}


def test_networks_of_the_cluster_are_joined_by_their_names() -> None:
    pairs = ",".join(f"vpc{number}=rail{number}" for number in range(1, 9))
    assert '"network":"rail8"' in injected(JOB, "--network-map", pairs)


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["--family", "a5"], "unknown hardware family 'a5'"),
        (["--tuple", "x"], "unknown software tuple 'x'"),
        (["--family", "a3-high", "--tuple", "tcpxo-1.0.15"], "has no software tuple"),
        (["--tuple", "tcpx-3.1.9"], "--tuple: tcpx-3.1.9: family a3-mega has no software tuple"),
        (["--profile", "fast"], "has no profile 'fast'"),
        (["--cluster-version", "soon"], "'soon' is not"),
        (["--cluster-version", "1.29.1-gke.1"], "1.29.4-gke.1542000"),
        (["--cluster-version", "1.x"], "--cluster-version: '1.x' is not a minor version"),
        (["--network-map", "vpc1"], "'vpc1' is not NAME=OTHER"),
        (["--network-map", "vpc1="], "'' cannot be the name"),
        (["--network-map", "vpc1=Rail_1"], "'Rail_1' cannot be the name"),
        (["--network-map", "vpc1=default"], "'default' is the Pod network"),
        (["--network-map", "a=b"], "no family has a network 'a'; there are vpc1,"),
        (["--family", "a3-mega", "--network-map", "rdma-0=b"], "a3-mega has no network 'rdma-0'"),
        (["--network-map", "vpc1=a,vpc2=a"], "two networks have the name a"),
        (["--network-map", "vpc1=vpc2"], "two networks have the name vpc2"),
        (["--pod-path", "Foo=a b"], "no path to a Pod template"),
    ],
)
def test_an_option_that_cannot_be_is_refused_before_anything_is_printed(args: list[str], said: str) -> None:
    result = run("-f", "-", *args)
    assert (result.exit_code, result.stdout) == (2, "")
    assert said in result.stderr
    assert "Traceback" not in result.stderr


BOMB = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 12)
)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        pytest.param("", "it is empty; give a file with manifests", id="empty"),
        pytest.param(" \n\t\n", "it is empty", id="blank"),
        pytest.param(b"kind: \xff\n", "byte 6 is no UTF-8", id="not UTF-8"),
        pytest.param(JOB + "#" * (10 * 1024 * 1024), "no more are read", id="10 MB"),
        pytest.param(JOB.replace("# the job", "#" * (2 * 1024 * 1024)), "no API server stores", id="one of 2 MB"),
        pytest.param(JOB + BOMB, "values, aliases written out", id="bomb"),
        pytest.param("[" * 200_000, "nesting depth", id="deep YAML"),
        pytest.param('{"a":' * 200_000, "is nested more than", id="deep JSON"),
        pytest.param('{"kind": "Job", "x": ' + "[" * 900 + "]" * 900 + "}", "nested more than 200 deep", id="900 deep"),
        pytest.param("- 1\n- 2\n", "a manifest is a mapping", id="a list of numbers"),
        pytest.param("just text\n", "a manifest is a mapping", id="a word"),
        pytest.param("a: 1\n", "kind: nothing: a manifest says what kind", id="no kind"),
        pytest.param(
            JOB.replace("name: train", "name: train\n  name: b"), "the key name is there twice", id="a key twice"
        ),
        pytest.param(JOB.replace("kind: Job", "kind: Job\n\tx: 1"), "line 4: x: 1: it is no YAML", id="a tab"),
        pytest.param("kind: {{ .Values.kind }}\n", "a template that was not rendered ({{ .Values.kind }})", id="Helm"),
        pytest.param(
            JOB.replace("name: train", 'name: "{{ .Release.Name }}"'), "was not rendered", id="Helm in quotes"
        ),
        pytest.param(JOB.replace("ubuntu:22.04", "${IMAGE}"), "was not rendered", id="envsubst"),
        pytest.param(
            '{"kind": "Job", "x": "\\ud800"}', "half of a character, '\\ud800'", id="JSON with half a character"
        ),
        pytest.param('{"kind": "Job", "x": NaN}', "NaN is no value of JSON", id="JSON with NaN"),
        pytest.param('{"kind": "Job", "kind": "Job"}', "the key kind is there twice", id="JSON key twice"),
        pytest.param(
            JOB.replace("nvidia-h100-mega-80gb", "nvidia-h100-80gb").replace("gpu: 8", "gpu: 2"),
            "2 (main)",
            id="two GPUs",
        ),
        pytest.param(
            JOB.replace("containers:", "volumes: {}\n      containers:"), "must be a list", id="volumes no list"
        ),
        pytest.param(
            JOB.replace("    spec:\n      restart", "    spec: [1]\n    x:\n      restart"),
            "has a spec",
            id="spec no mapping",
        ),
    ],
)
def test_bad_input_ends_with_a_sentence_and_nothing_on_stdout(given: str | bytes, said: str) -> None:
    result = run("-f", "-", given=given)
    assert result.exit_code == 2
    assert result.stdout == ""
    assert said in result.stderr
    assert "Traceback" not in result.stderr


def test_a_file_that_is_not_there_is_said(tmp_path: Path) -> None:
    result = run("-f", str(tmp_path / "none.yaml"))
    assert result.exit_code == 2
    assert "none.yaml: No such file" in result.stderr
    assert run("-f", str(tmp_path)).exit_code == 2


def test_templates_in_texts_that_nobody_here_reads_pass() -> None:
    given = MAP.replace("'b'", "'{{ $labels.instance }}'")
    assert injected(given) == given


def test_comments_and_empty_documents_pass() -> None:
    given = f"# head\n---\n---\n# nothing\n---\n{MAP}...\n---\n"
    assert injected(given) == given


def test_a_warning_goes_to_stderr_with_the_document_it_is_about() -> None:
    result = run("-f", "-", given=JOB.replace("nvidia-h100-mega-80gb", "nvidia-l4"))
    assert result.exit_code == 0
    assert result.stdout == JOB.replace("nvidia-h100-mega-80gb", "nvidia-l4")
    assert "document 1 (Job train, line 1): warning: spec.template: left as it is: spec.nodeSelector" in result.stderr
