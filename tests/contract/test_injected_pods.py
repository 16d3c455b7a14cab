"""What injection makes of Pods, created with strict validation: the server knows every field and changes none.

Workloads go to the real server alone: the embedded one serves fewer kinds.
"""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from interlace.fabric.family import IDS, find
from interlace.fabric.version import minor_version
from interlace.pods.bundle import inject_text
from interlace.pods.inject import inject
from interlace.pods.workloads import Options
from interlace.sim.plane import Plane
from tests.contract.space import Space
from tests.contract.wire import Json, admin

EXAMPLES = Path(__file__).parents[2] / "examples"
FORMS: dict[str, dict[str, Any]] = {
    "native": {},
    "older cluster": {"version": minor_version("1.28")},
    "host network": {"host_network": True},
}
CASES = [(family, "native") for family in IDS] + [
    (family, form) for family in ("a3-high", "a3-mega") for form in ("older cluster", "host network")
]


def bare(family: str, **fields: Any) -> Json:
    """A Pod that nobody schedules."""
    amount = find(family).node.gpus
    container = {
        "name": "main",
        "image": "docker.io/library/busybox:1.37",
        "command": ["train"],
        "resources": {"limits": {"nvidia.com/gpu": amount}},
        **fields,
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "one"},
        "spec": {"schedulerName": "nobody", "restartPolicy": "Never", "containers": [container]},
    }


def injected(family: str, form: str, pod: Json) -> Json:
    channel = "channel" if find(family).node.mnnvl else ""
    return inject(pod, family=find(family), channel=channel, **FORMS[form]).pod


@pytest.mark.parametrize(("family", "form"), CASES)
async def test_an_injected_pod_is_accepted_and_injecting_what_was_stored_changes_nothing(
    space: Space, family: str, form: str
) -> None:
    made = injected(family, form, bare(family))
    reply = await space.wire("POST", space.path("pods"), made, fieldValidation="Strict")
    assert reply.code == 201, reply.message
    assert "warning" not in {name.lower() for name in reply.headers}
    stored = reply.body
    assert injected(family, form, stored) == stored
    await space.wire("DELETE", space.path("pods") + "/one", {"gracePeriodSeconds": 0})


async def test_a_field_that_the_server_does_not_know_would_have_been_refused(space: Space) -> None:
    made = injected("a3-mega", "native", bare("a3-mega"))
    made["spec"]["initContainers"][0]["startupProb"] = made["spec"]["initContainers"][0].pop("startupProbe")
    reply = await space.wire("POST", space.path("pods"), made, fieldValidation="Strict")
    assert reply.code == 400
    assert "startupProb" in reply.message


LABELS = {"app": "one"}


def workloads() -> list[tuple[str, str, Json]]:
    """Path of the API, plural, and the object before injection."""
    pod = bare("a3-mega")
    template: Json = {"metadata": {"labels": LABELS}, "spec": pod["spec"]}
    template["spec"]["nodeSelector"] = {"node.kubernetes.io/instance-type": "a3-megagpu-8g"}
    forever = copy.deepcopy(template)
    forever["spec"]["restartPolicy"] = "Always"
    selected: Json = {"selector": {"matchLabels": LABELS}, "template": forever}
    job: Json = {"suspend": True, "template": template}
    cron: Json = {"schedule": "0 0 1 1 *", "suspend": True, "jobTemplate": {"spec": job}}
    found = [
        ("/apis/batch/v1", "jobs", "Job", {"spec": job}),
        ("/apis/batch/v1", "cronjobs", "CronJob", {"spec": cron}),
        ("/apis/apps/v1", "deployments", "Deployment", {"spec": {**selected, "replicas": 0, "paused": True}}),
        ("/apis/apps/v1", "statefulsets", "StatefulSet", {"spec": {**selected, "replicas": 0, "serviceName": "one"}}),
        ("/apis/apps/v1", "replicasets", "ReplicaSet", {"spec": {**selected, "replicas": 0}}),
        ("/apis/apps/v1", "daemonsets", "DaemonSet", {"spec": selected}),
        ("/api/v1", "podtemplates", "PodTemplate", {"template": forever}),
    ]
    return [
        (api, plural, {"apiVersion": api.removeprefix("/apis/").removeprefix("/api/"), "kind": kind, **body})
        for api, plural, kind, body in found
    ]


@pytest.mark.parametrize(("api", "plural", "before"), workloads(), ids=[plural for _, plural, _ in workloads()])
async def test_injected_workloads_are_accepted_whole(real_plane: Plane, api: str, plural: str, before: Json) -> None:
    (outcome,) = inject_text(json.dumps({**before, "metadata": {"name": "one"}}), options=Options())
    assert outcome.result == "injected"
    path = f"{api}/namespaces/default/{plural}"
    async with admin(real_plane) as wire:
        reply = await wire("POST", path, json.loads(outcome.text), fieldValidation="Strict", dryRun="All")
    assert reply.code == 201, reply.message
    (again,) = inject_text(json.dumps(reply.body), options=Options())
    assert again.result == "unchanged"


@pytest.mark.parametrize("family", IDS)
async def test_the_jobs_among_the_examples_are_accepted(real_plane: Plane, family: str) -> None:
    text = (EXAMPLES / family / "injected" / "job.yaml").read_text(encoding="utf-8")
    collections = {"Service": "/api/v1/namespaces/default/services", "Job": "/apis/batch/v1/namespaces/default/jobs"}
    objects = [each for each in yaml.safe_load_all(text) if each["kind"] in collections]
    assert [each["kind"] for each in objects] == ["Service", "Job"]
    async with admin(real_plane) as wire:
        for each in objects:
            reply = await wire("POST", collections[each["kind"]], each, fieldValidation="Strict", dryRun="All")
            assert reply.code == 201, reply.message
