"""The Pods of the GKE guide against what injection makes of the bare ones."""

from __future__ import annotations

from fnmatch import fnmatchcase

import pytest

from interlace.fabric.family import find
from interlace.pods.errors import InjectError
from interlace.pods.inject import inject
from tests.unit.pods.seed_pods import TABLES, bare, fields, rows_of, whole

DIFFERENCES = [
    line.split("\t")
    for line in (TABLES / "gpudirect-differences.tsv").read_text().splitlines()
    if not line.startswith("#")
]


def literal(pattern: str) -> str:
    """Brackets are no sets of characters here."""
    return pattern.replace("[", "[[]")


@pytest.mark.parametrize("family", ["a3-mega", "a3-high"])
def test_every_difference_from_the_guide_is_listed_with_the_fault_it_mends(family: str) -> None:
    ours = fields(inject(bare(family), family=find(family)).pod)
    guide = dict(rows_of(family))
    different = {field for field in ours.keys() | guide.keys() if ours.get(field) != guide.get(field)}
    patterns = [row[1] for row in DIFFERENCES if row[0] == family]
    unlisted = {field for field in different if not any(fnmatchcase(field, literal(each)) for each in patterns)}
    stale = {each for each in patterns if not any(fnmatchcase(field, literal(each)) for field in different)}
    assert (unlisted, stale) == (set(), set())


def test_every_listed_fault_is_one_of_the_known_ones() -> None:
    assert {row[2] for row in DIFFERENCES} <= {f"S{number}" for number in range(1, 29)}
    assert {row[0] for row in DIFFERENCES} == {"a3-mega", "a3-high"}


@pytest.mark.parametrize(
    ("family", "image", "software"),
    [
        ("a3-mega", "us-docker.pkg.dev/gce-ai-infra/gpudirect-tcpxo/tcpgpudmarxd-dev:v1.0.11", "tcpxo-1.0.5"),
        ("a3-mega", "mirror.example/tcpgpudmarxd-dev:v1.0.21@sha256:0123", "tcpxo-1.0.15"),
        ("a3-high", "us-docker.pkg.dev/gce-ai-infra/gpudirect-tcpx/tcpgpudmarxd-dev:v2.0.12", "tcpx-3.1.9"),
    ],
)
def test_a_pod_wired_as_the_guide_says_is_kept_and_completed(family: str, image: str, software: str) -> None:
    pod = whole(family, image=image)
    done = inject(pod, family=find(family))
    assert done.software == software
    daemon, main = done.pod["spec"]["containers"]
    for key, value in pod["spec"]["containers"][0].items():
        assert daemon[key] == value or key == "env"
    assert [each for each in main["volumeMounts"] if each in pod["spec"]["containers"][1]["volumeMounts"]]
    assert {each["name"] for each in main["env"]} >= {"NCCL_CROSS_NIC", "NCCL_PROTO"}
    again = inject(done.pod, family=find(family))
    assert (again.pod, again.changes) == (done.pod, ())


def test_the_guides_own_release_of_the_other_daemon_is_refused_by_name() -> None:
    image = dict(rows_of("a3-high"))["daemon.image"]
    with pytest.raises(InjectError, match=r"v2\.0\.11.*no known software tuple.*v2\.0\.12") as refused:
        inject(whole("a3-high", image=image), family=find("a3-high"))
    assert refused.value.path == "spec.containers[0].image"


def test_a_placeholder_for_the_image_is_refused() -> None:
    with pytest.raises(InjectError, match=r"TCPXO_DAEMON_IMAGE.*without a release"):
        inject(whole("a3-mega", image="TCPXO_DAEMON_IMAGE"), family=find("a3-mega"))
