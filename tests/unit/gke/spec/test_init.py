"""``interlace gke init``, ``validate`` and ``export`` as a person types them."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from datetime import date
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from interlace.cli.main import main
from interlace.fabric.family import find
from interlace.gke.defaults import Defaults, configured
from interlace.gke.errors import Refused
from interlace.gke.reading import parse
from interlace.gke.start import start
from tests.unit.gke.spec.clusters import FAMILIES

TODAY = date(2026, 12, 1)


def written(folder: Path, *, active: str = "default", **files: str) -> dict[str, str]:
    """A gcloud configuration folder, and the environment that leads to it."""
    (folder / "configurations").mkdir(parents=True)
    (folder / "active_config").write_text(active)
    for name, content in files.items():
        (folder / "configurations" / f"config_{name}").write_text(content)
    return {"CLOUDSDK_CONFIG": str(folder)}


CORE = "[core]\nproject = my-project\naccount = me@example.com\n"


@pytest.mark.parametrize(
    ("content", "found"),
    [
        (f"{CORE}[compute]\nzone = us-central1-a\nregion = us-central1\n", ("my-project", "us-central1-a")),
        (f"{CORE}[compute]\nregion = us-central1\n", ("my-project", "us-central1")),
        (CORE, ("my-project", "")),
        ("[compute]\nzone = us-central1-a\n", ("", "us-central1-a")),
        ("", ("", "")),
        ("no section = 1\n", ("", "")),
        ("[core]\nproject = Not A Project\n[compute]\nzone\n", ("", "")),
        ("[core]\nproject = a\nproject = my-project\n", ("my-project", "")),
    ],
)
def test_project_and_location_are_those_of_gclouds_configuration(
    tmp_path: Path, content: str, found: tuple[str, str]
) -> None:
    defaults = configured(written(tmp_path / "gcloud", default=content), home=tmp_path)
    assert (defaults.project, defaults.location) == found


def test_the_active_configuration_counts_and_the_environment_more(tmp_path: Path) -> None:
    environment = written(tmp_path / "gcloud", active="work", default=CORE, work="[core]\nproject = work-project\n")
    assert configured(environment, home=tmp_path).project == "work-project"
    assert configured(environment, home=tmp_path).source == "gcloud configuration work"
    more = {"CLOUDSDK_CORE_PROJECT": "other-project", "CLOUDSDK_COMPUTE_ZONE": "us-east1-b"}
    assert configured(environment | more, home=tmp_path).location == "us-east1-b"
    named = {"CLOUDSDK_ACTIVE_CONFIG_NAME": "default"}
    assert configured(environment | named, home=tmp_path).project == "my-project"


def test_no_configuration_means_no_defaults(tmp_path: Path) -> None:
    assert configured({}, home=tmp_path) == Defaults()
    assert configured({"CLOUDSDK_ACTIVE_CONFIG_NAME": "../../etc/passwd"}, home=tmp_path) == Defaults()
    (tmp_path / ".config" / "gcloud" / "active_config").mkdir(parents=True)
    assert configured({}, home=tmp_path) == Defaults()


@pytest.mark.parametrize("family", FAMILIES)
def test_a_start_is_valid_as_soon_as_project_and_location_are_in_it(family: str) -> None:
    text = start(find(family), name="train", project="my-project", location="us-central1-a", today=TODAY)
    found = parse(text).cluster
    assert (found.family.id, found.name) == (family, "train")
    assert found.spec.upgrades.hold is not None
    assert found.spec.upgrades.hold.start == "2026-12-01T00:00:00Z"


@pytest.mark.parametrize("family", FAMILIES)
def test_every_key_of_a_start_that_is_commented_out_is_taken_without_the_comment(family: str) -> None:
    text = start(find(family), name="train", project="my-project", location="us-central1-a", today=TODAY)
    lines = text.splitlines()
    begins = [index for index, line in enumerate(lines) if re.match(r" +# [a-zA-Z]+:( |$)", line)]
    assert len(begins) > 10
    for index in begins:
        end = index + 1
        while end < len(lines) and lines[end].lstrip().startswith("#   "):
            end += 1
        parse("\n".join([*lines[:index], *(line.replace("# ", "", 1) for line in lines[index:end]), *lines[end:]]))


def test_placeholders_are_refused_until_they_are_replaced() -> None:
    with pytest.raises(Refused, match="PROJECT_ID"):
        parse(start(find("a3-mega"), name="train", project="", location="us-central1-a", today=TODAY))


@pytest.mark.parametrize(("word", "value"), [("name", "a: b"), ("project", "x\ny"), ("location", "here")])
def test_values_that_no_file_could_have_are_refused_at_once(word: str, value: str) -> None:
    values = {"name": "train", "project": "my-project", "location": "us-central1-a"} | {word: value}
    with pytest.raises(Refused, match=f"no {word} of a cluster"):
        start(find("a3-mega"), today=TODAY, **values)


def call(*words: str, file: str = "", environment: Mapping[str, str] | None = None) -> Result:
    found = {"CLOUDSDK_CONFIG": "/nowhere", "CLOUDSDK_CORE_PROJECT": "", "CLOUDSDK_COMPUTE_ZONE": ""}
    return CliRunner(env=found | dict(environment or {})).invoke(main, ["gke", *words], input=file)


def test_init_writes_a_file_that_validate_and_export_take(tmp_path: Path) -> None:
    environment = written(tmp_path / "gcloud", default=f"{CORE}[compute]\nzone = us-central1-a\n")
    begun = call("init", "--family", "a3-mega", environment=environment)
    assert begun.exit_code == 0
    assert "project and location taken from gcloud configuration default" in begun.stderr
    good = call("validate", "-f", "-", file=begun.stdout)
    assert good.exit_code == 0
    assert "16 GPUs" in good.stdout
    assert "a3-mega-net-8" in good.stdout
    for form in ("gcloud", "terraform", "requests"):
        exported = call("export", "-f", "-", "--as", form, file=begun.stdout)
        assert exported.exit_code == 0
        assert "a3-mega-net-8" in exported.stdout
    assert "terraform validate was not run" in call("export", "-f", "-", "--as", "terraform", file=begun.stdout).stderr


def test_init_without_a_configuration_says_what_is_to_be_written() -> None:
    begun = call("init", "--family", "a3-megagpu-8g")
    assert begun.exit_code == 0
    assert "write your project and location into the file" in begun.stderr
    refused = call("validate", "-f", "-", file=begun.stdout)
    assert refused.exit_code == 2
    assert "<stdin>:9:12: /spec/project (PROJECT_ID)" in refused.stderr


@pytest.mark.parametrize("family", ["nope", "gb200-nvl72", "a3-highgpu-1g"])
def test_init_refuses_a_family_that_gke_has_not(family: str) -> None:
    refused = call("init", "--family", family, "--project", "my-project", "--location", "us-central1-a")
    assert (refused.exit_code, refused.stdout) == (2, "")
    assert family in refused.stderr


GOOD = (Path(__file__).parents[4] / "examples" / "a3-mega" / "cluster.yaml").read_text()


@pytest.mark.parametrize(
    ("before", "after", "says"),
    [
        ("1.30.4-gke.1129000", "1.30.1-gke.1000", "<stdin>:14:12: /spec/version: "),
        ("pools:", "pols:", "did you mean 'pools'?"),
        ("    prefix: example", "    mtu: 9000\n    prefix: example", "/spec/network/mtu (9000)"),
        ("location: us-central1-a", "# nowhere", "/spec/location: the key 'location' is missing"),
    ],
)
@pytest.mark.parametrize("verb", [["validate"], ["export", "--as", "requests"]])
def test_bad_input_ends_with_2_and_its_place(before: str, after: str, says: str, verb: list[str]) -> None:
    refused = call(*verb, "-f", "-", file=GOOD.replace(before, after, 1))
    assert refused.exit_code == 2
    assert says.lower() in (refused.stderr + refused.stdout).lower()
    if verb[0] == "export":
        assert refused.stdout == ""


def test_findings_are_json_for_programs() -> None:
    found = call("validate", "-f", "-", "--json", file=GOOD)
    assert found.exit_code == 0
    assert {"rule", "severity", "pointer", "text", "remedy"} == set(json.loads(found.stdout)[0])


def test_a_file_that_is_not_there_is_named() -> None:
    refused = call("export", "--as", "gcloud", "-f", "no-such-file.yaml")
    assert refused.exit_code == 2
    assert "no-such-file.yaml cannot be read" in refused.stderr
