"""What the seed pages say: ``python -m tools.seeds PAGE FOLDER`` and ``python -m tools.seeds --tables PAGE FOLDER``.

The first takes the two manifests of the page on ComputeDomains. The stored page has lost its line breaks and
indentation. The shape below gives them back and adds nothing: each of its lines must stand in the page, in this
order, with only comments between, or the run ends with the line that was not found.

The second compares the tables in FOLDER with the page on GPUDirect. ``gpudirect-*.tsv`` (field, value) have the whole
Pod specs: the values of the table are the values of the spec, all of them and in this order. ``settings-*.tsv`` (name,
value) have the lists of NCCL settings, quote marks and all.
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
MEASUREMENTS = Path(__file__).parents[1] / "tests" / "data" / "seeds"


def missing(measurement: str, pages: str) -> str | None:
    """The first line of a measurement (tab-separated, as tests hold it) that ``pages`` lack, in its order."""
    rows = [line.split() for line in pages.splitlines()]
    lines = [line.split("\t") for line in measurement.splitlines() if not line.startswith("#")]
    at = 0
    for line in lines:
        wanted = ["#", "Avg", "bus", "bandwidth", ":", line[1]] if line[0] == "average" else line
        try:
            at = rows.index(wanted, at) + 1
        except ValueError:
            return " ".join(line)
    return None


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


PODS = {"gpudirect-tcpxo.tsv": "a3plus-workloads", "gpudirect-tcpx.tsv": "a3-gpu-workloads-example"}
"""Table to the name of the Pod whose spec it holds."""

SETTINGS = {"settings-tcpxo.tsv": 0, "settings-tcpx.tsv": 1}
"""Table to the place of its list on the page."""

_SETTINGS = ("Usa la configuración de NCCL necesaria", "\nGPUDirect-TCPX\n", "Agrega GPUDirect a tus manifiestos")
"""Where the lists begin, where the second one does, and where they end."""
_SETTING = re.compile(r'^"([A-Z0-9_]+)=(.*)",?$', re.MULTILINE)
_INTERFACE = re.compile(r'\{"interfaceName":"([^"]*)","network":"([^"]*)"\},?\Z')


def pod_spec(page: str, name: str) -> list[str]:
    """The lines of the Pod of that name, to the end of its volumes. Raises ValueError if there is none."""
    start = page.find(f"apiVersion: v1\nkind: Pod\nmetadata:\n  name: {name}\n")
    if start < 0:
        raise ValueError(f"the page holds no Pod {name}")
    return re.split(r"\n\n(?=[^\s])", page[start:], maxsplit=1)[0].splitlines()


def values(lines: list[str]) -> list[str]:
    """All single values of a manifest in their order, an empty one for a key with nothing behind it.

    Line by line, since one of the two specs is no YAML: a value is what stands behind a colon or a dash, a line of a
    text of several lines, or ``interface=network``.
    """
    kept = [line for line in lines if line.strip() not in ("", "...", "[", "]")]
    found: list[str] = []
    for line, following in zip(kept, [*kept[1:], ""], strict=True):
        text = re.sub(r"^(- )+", "", line.strip())
        interface = _INTERFACE.match(text)
        key, colon, rest = text.partition(": ")
        if interface:
            found.append(f"{interface[1]}={interface[2]}")
        elif text.endswith(":"):
            if not _below(line, following):
                found.append("")
        elif colon and re.fullmatch(r"[\w./-]+", key):
            if rest.rstrip("+-") != "|":
                found.append(rest.strip("'\""))
        elif text != "|":
            found.append(text)
    return found


def _below(line: str, following: str) -> bool:
    """Whether the next line belongs under this one."""
    indent = len(line) - len(re.sub(r"^[ ]*(- )*", "", line))
    below = len(following) - len(following.lstrip())
    return below > indent or (below == indent and following.lstrip().startswith("- "))


def printed_settings(page: str) -> list[list[tuple[str, str]]]:
    """Both lists of settings as they are printed. Raises ValueError if the page has none."""
    begin, middle, end = _SETTINGS
    if begin not in page or end not in page:
        raise ValueError("the page has no lists of settings")
    part = page[page.index(begin) : page.index(end)]
    return [_SETTING.findall(each) for each in part.split(middle)]


def table(text: str) -> list[tuple[str, str]]:
    """Field and value of each row of a table."""
    rows = [line.split("\t") for line in text.splitlines() if line and not line.startswith("#")]
    return [(field, value) for field, value in rows]


def compare(page: str, folder: Path) -> None:
    """Compare all tables with the page. Raises ValueError with the first row that differs."""
    for name, pod in PODS.items():
        rows = table((folder / name).read_text())
        spec = values(pod_spec(page, pod))
        for (field, value), said in zip(rows, spec, strict=False):
            if value != said:
                raise ValueError(f"{name}: {field} is {value!r}, and the page has {said!r} in this place")
        if len(rows) != len(spec):
            raise ValueError(f"{name} has {len(rows)} rows, and the page {len(spec)} values")
    for name, place in SETTINGS.items():
        if table((folder / name).read_text()) != printed_settings(page)[place]:
            raise ValueError(f"{name} is not the list of settings that the page prints")


def main() -> int:
    """Entry point: exit 0, or 2 with one sentence."""
    if len(sys.argv) == 4 and sys.argv[1] == "--tables":
        try:
            compare(Path(sys.argv[2]).read_text(), Path(sys.argv[3]))
        except (OSError, ValueError) as error:
            print(f"interlace: {sys.argv[2]}: {error}", file=sys.stderr)
            return 2
        return 0
    if len(sys.argv) != 3:
        print("usage: python -m tools.seeds [--tables] PAGE FOLDER", file=sys.stderr)
        return 2
    page, folder = Path(sys.argv[1]), Path(sys.argv[2])
    try:
        text = page.read_text()
        manifests = {name: restore(text, shape) for name, shape in SHAPES.items()}
        pages = "\n".join(one.read_text() for one in sorted(page.parent.glob("*.txt")))
        for held in sorted(MEASUREMENTS.glob("nccl-*.tsv")):
            if (line := missing(held.read_text(), pages)) is not None:
                raise ValueError(f"no page beside it has {line!r} of {held.name}")
    except (OSError, ValueError) as error:
        print(f"interlace: {page}: {error}", file=sys.stderr)
        return 2
    folder.mkdir(parents=True, exist_ok=True)
    for name, manifest in manifests.items():
        (folder / name).write_text(manifest)
    return 0


if __name__ == "__main__":
    sys.exit(main())
