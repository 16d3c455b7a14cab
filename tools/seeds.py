"""Take the two manifests out of the seed page: ``python -m tools.seeds PAGE FOLDER``.

The stored page has lost its line breaks and indentation. The shape below gives them back and adds
nothing: each of its lines must stand in the page, in this order, with only comments between, or the
run ends with the line that was not found.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

SHAPES = {
    "computedomain.yaml": """\
apiVersion: resource.nvidia.com/v1beta1
kind: ComputeDomain
metadata:
  name: compute-domain-0
spec:
  numNodes: 0
  channel:
    resourceClaimTemplate:
      name: compute-domain-0-rct
""",
    "deployment.yaml": """\
apiVersion: apps/v1
kind: Deployment
metadata:
  name: example-mnnvl-workload
spec:
  replicas: 18
  selector:
    matchLabels:
      job: ex1
  template:
    metadata:
      labels:
        job: ex1
    spec:
      resourceClaims:
      - name: cd-0
        resourceClaimTemplateName: compute-domain-0-rct
      affinity:
        podAffinity:
          requiredDuringSchedulingIgnoredDuringExecution:
          - labelSelector:
              matchExpressions:
              - key: job
                operator: In
                values:
                - ex1
            topologyKey: nvidia.com/gpu.clique
      containers:
      - name: ctr
        image: ubuntu:22.04
        command: [mnnvl-workload]
        resources:
          claims:
          - name: cd-0
          limits:
            nvidia.com/gpu: 4
""",
}


def restore(page: str, shape: str) -> str:
    """The manifest of ``shape`` as it stands in ``page``. Raises ValueError naming the line that does not."""
    lines = [re.sub(r"\s", "", line) for line in shape.splitlines()]
    text = re.sub(r"\s", "", page)
    for start in (match.start() for match in re.finditer(re.escape(lines[0]), text)):
        position = start
        for number, line in enumerate(lines):  # noqa: B007  it tells where the loop stopped
            found = text.find(line, position)
            between = text[position:found] if found >= 0 else "x"
            if found < 0 or (between and not between.startswith("#")):
                break
            position = found + len(line)
        else:
            return shape
        if number > 1:  # it was the right place, and something in it differs
            raise ValueError(f"the page does not go on with {lines[number]!r} after {lines[number - 1]!r}")
    raise ValueError(f"the page holds no manifest that begins with {lines[0]!r} and {lines[1]!r}")


def main() -> int:
    """Entry point: exit 0, or 2 with one sentence."""
    if len(sys.argv) != 3:
        print("usage: python -m tools.seeds PAGE FOLDER", file=sys.stderr)
        return 2
    page, folder = Path(sys.argv[1]), Path(sys.argv[2])
    try:
        text = page.read_text()
        manifests = {name: restore(text, shape) for name, shape in SHAPES.items()}
    except (OSError, ValueError) as error:
        print(f"interlace: {page}: {error}", file=sys.stderr)
        return 2
    folder.mkdir(parents=True, exist_ok=True)
    for name, manifest in manifests.items():
        (folder / name).write_text(manifest)
    return 0


if __name__ == "__main__":
    sys.exit(main())
