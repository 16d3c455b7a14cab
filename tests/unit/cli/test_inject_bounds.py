"""``interlace inject`` as a process, given everything that is no manifest for a fabric: a sentence, in bounds.

Memory is bounded by the kernel and time is that of the processor, so that a busy machine changes nothing.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

MEMORY = 500 * 1024 * 1024
"""Bytes of address space."""
SECONDS = 5.0
"""Of processor time, start of the interpreter included."""
_LIMITED = f"""
import resource, runpy, sys
resource.setrlimit(resource.RLIMIT_AS, ({MEMORY}, {MEMORY}))
sys.argv = ["interlace", *sys.argv[1:]]
runpy.run_module("interlace.cli.main", run_name="__main__")
"""

MAP = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\ndata: {a: 'b'}   # as it was\n"
JOB = """\
apiVersion: batch/v1
kind: Job
metadata:
  name: train
spec:
  template:
    metadata:
      annotations: {a: b}
    spec:
      restartPolicy: Never
      nodeSelector:
        cloud.google.com/gke-accelerator: nvidia-h100-mega-80gb
      containers:
        - name: main
          image: docker.io/library/ubuntu:22.04
          resources: {limits: {nvidia.com/gpu: 8}}
"""
TEMPLATE = "spec.template."
HALF = JOB.replace("gpu: 8", "gpu: 4")
SECOND = "        - {name: b, image: docker.io/library/b:1, resources: {limits: {nvidia.com/gpu: 2}}}\n"
TRAILING = JOB.replace(
    "{a: b}", """{networking.gke.io/interfaces: '[{"interfaceName":"eth0","network":"default"},]'}"""
)
BOMB = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 12)
)
LIST = "apiVersion: v1\nkind: List\nitems:\n" + "".join(
    "".join(f"{'- ' if not index else '  '}{line}\n" for index, line in enumerate(each.splitlines()))
    for each in (MAP, HALF)
)


def selecting(label: str) -> str:
    return JOB.replace("      containers:", f"        {label}\n      containers:")


def volume(name: str) -> str:
    return JOB.replace(
        "      containers:", f"      volumes: [{{name: {name}, hostPath: {{path: /srv}}}}]\n      containers:"
    )


class Ended(NamedTuple):
    code: int
    out: str
    errors: str
    seconds: float


def inject(given: str, folder: Path, *options: str) -> Ended:
    """Run the command over a file, within its bounds."""
    path, out, errors = folder / "given.yaml", folder / "out", folder / "errors"
    path.write_text(given)
    with out.open("wb") as stdout, errors.open("wb") as stderr:
        process = subprocess.Popen(
            [sys.executable, "-c", _LIMITED, "inject", "-f", os.fspath(path), *options],
            stdin=subprocess.DEVNULL,
            stdout=stdout,
            stderr=stderr,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        )
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    said = errors.read_text()
    assert "Traceback" not in said
    assert "MemoryError" not in said
    return Ended(process.returncode, out.read_text(), said, used.ru_utime + used.ru_stime)


@pytest.mark.parametrize(
    ("given", "where", "remedy"),
    [
        pytest.param("", "", "it is empty; give a file with manifests", id="empty file"),
        pytest.param(
            LIST,
            f"document 1 (List, line 1): items[1].{TEMPLATE}spec.containers[0].resources: ",
            "add up to 8",
            id="List",
        ),
        pytest.param(
            JOB.replace("kind: Job", "kind: Fleet"),
            f"document 1 (Fleet train, line 1): {TEMPLATE}spec: ",
            "--pod-path Fleet=spec.template",
            id="unknown kind",
        ),
        pytest.param(
            HALF,
            f"document 1 (Job train, line 1): {TEMPLATE}spec.containers[0].resources: ",
            "set nvidia.com/gpu so that the containers of the Pod add up to 8",
            id="half the GPUs",
        ),
        pytest.param(
            JOB.replace("restartPolicy: Never", "hostNetwork: true"),
            f"{TEMPLATE}spec.hostNetwork: ",
            "remove hostNetwork",
            id="hostNetwork",
        ),
        pytest.param(volume("libraries"), f"{TEMPLATE}spec.volumes[0]: ", "another name", id="volume name taken"),
        pytest.param(
            TRAILING,
            f"{TEMPLATE}metadata.annotations[networking.gke.io/interfaces]: ",
            "no comma before a closing bracket",
            id="trailing comma",
        ),
        pytest.param(
            HALF + SECOND,
            f"{TEMPLATE}spec.containers: nvidia.com/gpu 6 (main, b): ",
            "add up to 8",
            id="two GPU containers that do not add up",
        ),
        pytest.param(
            selecting("cloud.google.com/gke-gpu-partition-size: 1g.10gb"),
            f"{TEMPLATE}spec.nodeSelector[cloud.google.com/gke-gpu-partition-size]: 1g.10gb: ",
            "select nodes without it",
            id="MIG nodes",
        ),
        pytest.param(
            JOB.replace("nvidia.com/gpu: 8", "nvidia.com/gpu: 8, nvidia.com/mig-1g.10gb: 1"),
            f"{TEMPLATE}spec.containers[0].resources.limits[nvidia.com/mig-1g.10gb]: ",
            "use nodes without MIG",
            id="MIG resource",
        ),
        pytest.param(
            selecting("cloud.google.com/gke-gpu-sharing-strategy: time-sharing"),
            f"{TEMPLATE}spec.nodeSelector[cloud.google.com/gke-gpu-sharing-strategy]: time-sharing: ",
            "select nodes without it",
            id="time-sharing",
        ),
        pytest.param(
            selecting("cloud.google.com/gke-gpu-sharing-strategy: mps"),
            f"{TEMPLATE}spec.nodeSelector[cloud.google.com/gke-gpu-sharing-strategy]: mps: ",
            "select nodes without it",
            id="MPS",
        ),
        pytest.param(
            selecting('cloud.google.com/gke-nccl-fastsocket: "true"'),
            f"{TEMPLATE}spec.nodeSelector[cloud.google.com/gke-nccl-fastsocket]: true: ",
            "select nodes without it",
            id="Fast Socket",
        ),
        pytest.param(
            JOB + BOMB,
            "document 1 (line 1): line 21: ",
            "values, aliases written out; write fewer of them in one document",
            id="YAML bomb",
        ),
        pytest.param("[" * 200_000, "document 1 (line 1): line ", "correct it", id="200,000 brackets"),
        pytest.param(JOB + "#" * 10_000_000, "", "no more are read; inject the file in parts", id="10 MB of comment"),
        pytest.param(
            "---\n".join([JOB] * (10_000_000 // len(JOB))), "", "inject the file in parts", id="10 MB of Jobs"
        ),
        pytest.param(
            JOB.replace("{a: b}", f"{{a: {'b' * 7_000_000}}}"), "", "write one of at most 1572864", id="7 MB in one Job"
        ),
    ],
)
def test_bad_input_is_refused_with_place_and_remedy_within_time_and_memory(
    given: str, where: str, remedy: str, tmp_path: Path
) -> None:
    ended = inject(given, tmp_path)
    assert (ended.code, ended.out) == (2, ""), ended
    assert f"given.yaml: {where}" in ended.errors or f": {where}" in ended.errors, ended.errors
    assert remedy in ended.errors
    assert ended.seconds < SECONDS


def test_of_several_documents_only_the_refused_ones_are_left_out(tmp_path: Path) -> None:
    ended = inject(f"{MAP}---\n{HALF}---\n{MAP}---\nkind: [\n---\n{MAP}", tmp_path)
    assert (ended.code, ended.out) == (2, f"{MAP}---\n{MAP}---\n{MAP}")
    assert f"document 2 (Job train, line 5): {TEMPLATE}spec.containers[0].resources: " in ended.errors
    assert "document 4 (line 27): line " in ended.errors
    assert "2 of 5 documents left out" in ended.errors
    assert ended.seconds < SECONDS


def test_two_thousand_refused_documents_are_named_each(tmp_path: Path) -> None:
    ended = inject("---\n".join(HALF.replace("name: train", f"name: half-{n}") for n in range(2000)), tmp_path)
    assert (ended.code, ended.out) == (2, "")
    assert all(f"(Job half-{n}, line {17 * n + (not n)})" in ended.errors for n in range(2000))
    assert ended.seconds < SECONDS
