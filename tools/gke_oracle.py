"""What gcloud sends against what the importer reads: ``python -m tools.gke_oracle [--every] [--examples] [CASE ...]``.

gcloud runs without credentials, with a configuration of its own, against a recorder on the loopback interface; nothing
leaves the machine. CASE: part of a name in ``tests/data/gke/golden``; ``--every`` adds the commands of
``flags-recorded.json``, ``--examples`` those of the scripts that the cluster files in ``examples`` are exported as.
Exit code 0: all equal; 1: something differs; 3: gcloud is not installed, nothing was compared.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from interlace.gke.desired import desired
from interlace.gke.errors import Refused
from interlace.gke.export.gcloud import as_script
from interlace.gke.gcloud.interpreting import invocations
from interlace.gke.gcloud.page import read_page
from interlace.gke.importing import requests
from interlace.gke.reading import read_cluster
from tools.gke_recorder import Recorder, recording

ROOT = Path(__file__).parents[1]
DATA = ROOT / "tests" / "data" / "gke"
EXAMPLES = ROOT / "examples"
CREATING = ("cl-", "np-", "net-", "sub-", "fw-", "gp-", "rsv-", "wp-")
PROJECT = "example-project"
SECONDS = 180
"""For one command; a machine that is busy needs many of them to start gcloud."""


def commands(names: list[str], *, every: bool, examples: bool) -> Iterator[tuple[str, list[str]]]:
    """Names and words of the commands to compare."""
    for path in sorted(EXAMPLES.glob("*/cluster.yaml")) if examples else ():
        script = as_script(desired(read_cluster(path)), title=path.parent.name).text
        for each in invocations(read_page(script), known={}, project=PROJECT):
            if "create" in each.words:
                yield f"{path.parent.name} line {each.line}", ["gcloud", *each.words]
    for path in sorted((DATA / "golden").glob("*.json")):
        if path.stem.startswith(CREATING) and (not names or any(name in path.stem for name in names)):
            yield path.stem, json.loads(path.read_text())["argv"]
    if every:
        for case in json.loads((DATA / "flags-recorded.json").read_text())["cases"]:
            yield " ".join(case["argv"][1:]), case["argv"]


def environment(url: str, argv: list[str], *, folder: Path, base: Mapping[str, str]) -> dict[str, str]:
    """Of a gcloud that has no account, asks nothing and knows the recorder alone."""
    version = next((track for track in ("alpha", "beta") if track in argv), "v1")
    return {
        "PATH": base.get("PATH", ""),
        "HOME": str(folder),
        "KUBECONFIG": str(folder / "kubeconfig"),
        "CLOUDSDK_CONFIG": str(folder / "gcloud"),
        "CLOUDSDK_CORE_PROJECT": PROJECT,
        "CLOUDSDK_AUTH_DISABLE_CREDENTIALS": "true",
        "CLOUDSDK_CORE_DISABLE_PROMPTS": "1",
        "CLOUDSDK_CORE_DISABLE_USAGE_REPORTING": "1",
        "CLOUDSDK_CORE_DISABLE_FILE_LOGGING": "1",
        "CLOUDSDK_COMPONENT_MANAGER_DISABLE_UPDATE_CHECK": "1",
        "CLOUDSDK_API_ENDPOINT_OVERRIDES_COMPUTE": f"{url}/compute/{version}/",
        "CLOUDSDK_API_ENDPOINT_OVERRIDES_CONTAINER": f"{url}/",
        "CLOUDSDK_API_ENDPOINT_OVERRIDES_SERVICEUSAGE": f"{url}/",
    }


def compare(argv: list[str], *, gcloud: str, server: Recorder, folder: Path) -> str:
    """What is different; empty if nothing is."""
    server.requests.clear()
    env = environment(server.url, argv, folder=folder, base=os.environ)
    try:
        done = subprocess.run(
            [gcloud, *argv[1:]], env=env, capture_output=True, text=True, timeout=SECONDS, check=False, cwd=folder
        )
    except subprocess.TimeoutExpired:
        return f"gcloud took more than {SECONDS} s"
    if done.returncode:
        return f"gcloud ended with {done.returncode}: {done.stderr.strip()[-300:]}"
    theirs = server.mutations()
    try:
        found, _ = requests(" ".join(shlex.quote(word) for word in argv), project=PROJECT)
    except Refused as error:
        return f"refused: {error}"
    ours: list[dict[str, Any]] = [msgspec.to_builtins(each) for each in found]
    if ours == theirs:
        return ""
    return "\n".join(
        f"  {who}: {json.dumps(sent, sort_keys=True)}" for who, sent in (("gcloud", theirs), ("ours", ours))
    )


def main(arguments: list[str]) -> int:
    """Compare, and print what differs."""
    gcloud = shutil.which("gcloud")
    if gcloud is None:
        print("gcloud is not installed: nothing was compared", file=sys.stderr)
        return 3
    every = "--every" in arguments
    names = [each for each in arguments if not each.startswith("-")]
    equal, refused, different = 0, 0, 0
    with recording() as server, tempfile.TemporaryDirectory() as folder:
        for name, argv in commands(names, every=every, examples="--examples" in arguments):
            difference = compare(argv, gcloud=gcloud, server=server, folder=Path(folder))
            equal += not difference
            refused += difference.startswith("refused: ")
            different += bool(difference) and not difference.startswith("refused: ")
            print(f"{'equal' if not difference else 'differs'}  {name}", flush=True)
            if difference:
                print(difference, flush=True)
    print(f"{equal} equal, {refused} refused, {different} different")
    return 1 if different or (refused and not every) or not equal else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
