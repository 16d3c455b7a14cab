"""Every kind of object that makes Pods, one test each, and those that are not known."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest

from interlace.api.webhook import FABRIC_LABEL
from interlace.pods.bundle import Outcome, inject_text, text_of
from interlace.pods.kinds import PATHS, group_and_kind, places, steps
from interlace.pods.workloads import Options
from interlace.pods.yamlnode import parse
from interlace.pods.yamltext import block
from tests.unit.pods.pods import MACHINE, Json, container, pod

TEMPLATE: Json = {
    "metadata": {"labels": {"app": "x"}},
    "spec": {"restartPolicy": "Never", "nodeSelector": {MACHINE: "a3-megagpu-8g"}, "containers": [container()]},
}
HEAD: Json = {"spec": {"containers": [container("head", gpus=0)]}}
JOBS = [{"name": "w", "replicas": 2, "template": {"spec": {"template": TEMPLATE}}}]
RAY: Json = {"headGroupSpec": {"template": HEAD}, "workerGroupSpecs": [{"groupName": "g", "template": TEMPLATE}]}

OBJECTS: dict[tuple[str, str, str], Json] = {
    ("v1", "Pod", ""): {**TEMPLATE},
    ("v1", "PodTemplate", "template"): {"template": TEMPLATE},
    ("v1", "ReplicationController", "spec.template"): {"spec": {"template": TEMPLATE}},
    ("batch/v1", "Job", "spec.template"): {"spec": {"template": TEMPLATE}},
    ("batch/v1", "CronJob", "spec.jobTemplate.spec.template"): {
        "spec": {"jobTemplate": {"spec": {"template": TEMPLATE}}}
    },
    ("apps/v1", "Deployment", "spec.template"): {"spec": {"replicas": 1, "template": TEMPLATE}},
    ("apps/v1", "StatefulSet", "spec.template"): {"spec": {"template": TEMPLATE}},
    ("apps/v1", "DaemonSet", "spec.template"): {"spec": {"template": TEMPLATE}},
    ("apps/v1", "ReplicaSet", "spec.template"): {"spec": {"template": TEMPLATE}},
    ("jobset.x-k8s.io/v1alpha2", "JobSet", "spec.replicatedJobs[0].template.spec.template"): {
        "spec": {"replicatedJobs": JOBS}
    },
    ("kubeflow.org/v2beta1", "MPIJob", "spec.mpiReplicaSpecs.Worker.template"): {
        "spec": {"mpiReplicaSpecs": {"Launcher": {"template": HEAD}, "Worker": {"replicas": 2, "template": TEMPLATE}}}
    },
    ("kubeflow.org/v1", "PyTorchJob", "spec.pytorchReplicaSpecs.Worker.template"): {
        "spec": {"pytorchReplicaSpecs": {"Worker": {"replicas": 2, "template": TEMPLATE}}}
    },
    ("kubeflow.org/v1", "TFJob", "spec.tfReplicaSpecs.Worker.template"): {
        "spec": {"tfReplicaSpecs": {"Worker": {"template": TEMPLATE}}}
    },
    ("kubeflow.org/v1", "JAXJob", "spec.jaxReplicaSpecs.Worker.template"): {
        "spec": {"jaxReplicaSpecs": {"Worker": {"template": TEMPLATE}}}
    },
    ("ray.io/v1", "RayCluster", "spec.workerGroupSpecs[0].template"): {"spec": RAY},
    ("ray.io/v1", "RayJob", "spec.rayClusterSpec.workerGroupSpecs[0].template"): {"spec": {"rayClusterSpec": RAY}},
    ("ray.io/v1", "RayService", "spec.rayClusterConfig.workerGroupSpecs[0].template"): {
        "spec": {"rayClusterConfig": RAY}
    },
    ("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet", "spec.leaderWorkerTemplate.workerTemplate"): {
        "spec": {"leaderWorkerTemplate": {"size": 2, "leaderTemplate": HEAD, "workerTemplate": TEMPLATE}}
    },
    (
        "trainer.kubeflow.org/v1alpha1",
        "TrainingRuntime",
        "spec.template.spec.replicatedJobs[0].template.spec.template",
    ): {"spec": {"template": {"spec": {"replicatedJobs": JOBS}}}},
    (
        "trainer.kubeflow.org/v1alpha1",
        "ClusterTrainingRuntime",
        "spec.template.spec.replicatedJobs[0].template.spec.template",
    ): {"spec": {"template": {"spec": {"replicatedJobs": JOBS}}}},
    ("batch.volcano.sh/v1alpha1", "Job", "spec.tasks[1].template"): {
        "spec": {"tasks": [{"name": "m", "template": HEAD}, {"name": "w", "template": TEMPLATE}]}
    },
}


def manifest(api: str, kind: str, body: Json, **metadata: Any) -> Json:
    own = {**body.get("metadata", {}), "name": "one", **metadata}
    return copy.deepcopy({"apiVersion": api, "kind": kind, **body, "metadata": own})


def text(*objects: Json) -> str:
    return "---\n".join("\n".join([*block(each, column=0, dash=2), ""]) for each in objects)


def value(text: str) -> Any:
    root = parse(text)
    assert root is not None
    return root.value()


def one(source: str, **options: Any) -> Outcome:
    (outcome,) = inject_text(source, options=Options(**options))
    return outcome


@pytest.mark.parametrize(("api", "kind", "where"), list(OBJECTS), ids=lambda each: each.partition("/")[2] or each)
def test_each_kind_gets_the_fabric_in_its_templates(api: str, kind: str, where: str) -> None:
    before = manifest(api, kind, OBJECTS[api, kind, where])
    outcome = one(text(before))
    assert (outcome.result, outcome.families, outcome.kind) == ("injected", ("a3-mega",), kind)
    after = value(outcome.text)
    made = {at: template for path in PATHS[group_and_kind(after)] for at, template in places(after, path)}
    assert made[where]["spec"]["initContainers"][0]["name"] == "tcpxo-daemon"
    for at, template in made.items():
        if at != where:
            assert template == HEAD
    assert one(outcome.text).text == outcome.text
    assert all(change.path.startswith(where) for change in outcome.changes)


def test_every_known_kind_is_tested_here() -> None:
    tested = {group_and_kind({"apiVersion": api, "kind": kind}) for api, kind, _ in OBJECTS}
    assert tested == PATHS.keys() - {("trainer.kubeflow.org", "TrainJob")}


TRAIN_JOB = manifest(
    "trainer.kubeflow.org/v1alpha1",
    "TrainJob",
    {"spec": {"runtimeRef": {"name": "rt"}, "trainer": {"resourcesPerNode": {"limits": {"nvidia.com/gpu": 8}}}}},
)


def runtime() -> Json:
    template = {"spec": {"nodeSelector": {MACHINE: "a3-megagpu-8g"}, "containers": [container("node", gpus=0)]}}
    job = {
        "metadata": {"labels": {"trainer.kubeflow.org/trainjob-ancestor-step": "trainer"}},
        "spec": {"template": template},
    }
    body = {"spec": {"template": {"spec": {"replicatedJobs": [{"name": "node", "template": job}]}}}}
    return manifest("trainer.kubeflow.org/v1alpha1", "ClusterTrainingRuntime", body, name="rt")


def test_a_train_job_needs_its_runtime_in_the_same_file() -> None:
    refused = one(text(TRAIN_JOB)).refusal
    assert refused is not None
    assert (refused.path, refused.value) == ("spec.runtimeRef", "rt")
    assert "put the runtime into the same file" in refused.remedy
    job, made = inject_text(text(TRAIN_JOB, runtime()), options=Options())
    assert (job.result, made.result) == ("unchanged", "injected")
    assert "tcpxo-daemon" in made.text


def test_an_unknown_kind_with_gpus_is_refused_until_its_path_is_given() -> None:
    before = text(manifest("example.com/v1", "Foo", {"spec": {"workers": [{"pod": TEMPLATE}]}}))
    refused = one(before).refusal
    assert refused is not None
    assert refused.remedy == "say where its templates are: --pod-path Foo=spec.workers[*].pod"
    for paths in ({"Foo": "spec.workers[*].pod"}, {"*": "spec.workers[*].pod"}):
        outcome = one(before, pod_paths=paths)
        assert outcome.result == "injected"
        assert outcome.changes[0].path.startswith("spec.workers[0].pod.")


def test_a_kind_that_is_itself_a_pod_is_named_by_the_empty_path() -> None:
    before = text(manifest("example.com/v1", "Fleet", TEMPLATE))
    refused = one(before).refusal
    assert refused is not None
    assert refused.remedy == "say where its templates are: --pod-path Fleet="
    assert one(before, pod_paths={"Fleet": ""}).result == "injected"


def test_a_pod_spec_that_cannot_take_annotations_is_left_to_the_webhook() -> None:
    before = manifest("serving.kserve.io/v1beta1", "InferenceService", {"spec": {"predictor": TEMPLATE["spec"]}})
    refused = one(text(before)).refusal
    assert refused is not None
    assert (refused.path, "webhook" in refused.remedy) == ("spec.predictor", True)
    before["metadata"] = {"name": "x", "labels": {FABRIC_LABEL: "auto"}}
    left = one(text(before))
    assert (left.result, left.text, left.warnings) == ("unchanged", text(before), ())


def test_gpus_outside_of_any_pod_template_are_said_and_left() -> None:
    workflow = {"spec": {"templates": [{"name": "main", "container": container()}]}}
    before = manifest("argoproj.io/v1alpha1", "Workflow", workflow)
    left = one(text(before))
    assert (left.result, left.text) == ("unchanged", text(before))
    (warning,) = left.warnings
    assert warning.startswith("spec.templates[0].container.resources: left as it is: GPUs are asked for here")
    assert "leave them to the webhook" in warning
    before["spec"]["podMetadata"] = {"labels": {FABRIC_LABEL: "a3-mega"}}
    assert one(text(before)).warnings == ()


@pytest.mark.parametrize("kind", ["Job", "*"])
def test_a_path_where_no_template_is_hides_no_gpus(kind: str) -> None:
    job = {"apiVersion": "batch/v1" if kind == "Job" else "x/v1", "kind": "Job", "spec": {"template": TEMPLATE}}
    (outcome,) = inject_text(json.dumps(job), options=Options(pod_paths={kind: "spec.elsewhere"}))
    assert outcome.result == "refused"
    assert "none is at spec.elsewhere; say where its templates are: --pod-path Job=" in str(outcome.refusal)


def test_an_unknown_kind_without_gpus_passes() -> None:
    before = text(manifest("example.com/v1", "Foo", {"spec": {"pod": HEAD}}))
    assert one(before).text == before


def test_a_list_is_injected_whole_or_refused_whole() -> None:
    job = manifest("batch/v1", "Job", {"spec": {"template": TEMPLATE}})
    other = manifest("v1", "ConfigMap", {"data": {"a": "b"}})
    before = {"apiVersion": "v1", "kind": "List", "items": [other, job]}
    outcome = one(text(before))
    after = value(outcome.text)["items"]
    assert after[0] == other
    assert after[1]["spec"]["template"]["spec"]["initContainers"]
    assert outcome.changes[0].path.startswith("items[1].spec.template.")
    half = one(text({**before, "items": [job, pod(container(gpus=3))]}))
    assert half.refusal is not None
    assert (half.text, half.refusal.path) == ("", "items[1].spec.nodeSelector")


def test_network_objects_of_the_file_give_the_names() -> None:
    networks = [
        manifest("networking.gke.io/v1", "Network", {"spec": {"type": "Device"}}, name=f"rail{number}")
        for number in (10, 9, 8, 7, 6, 5, 4, 3)
    ]
    job = manifest("batch/v1", "Job", {"spec": {"template": TEMPLATE}})
    made = inject_text(text(*networks, job), options=Options())[-1]
    assert '{"interfaceName":"eth1","network":"rail3"}' in made.text
    assert '{"interfaceName":"eth8","network":"rail10"}' in made.text
    refused = inject_text(text(*networks[1:], job), options=Options())[-1].refusal
    assert refused is not None
    assert "joins 8 networks, and the file has 7" in refused.cause


def nvlink(**spec: Any) -> Json:
    template = {"spec": {"containers": [container(gpus=4)], **spec}}
    return manifest("batch/v1", "Job", {"spec": {"template": template}}, namespace="team")


def test_a_compute_domain_is_emitted_where_it_is_asked_for_and_only_once() -> None:
    refused = one(text(nvlink()), family="gb200-nvl72").refusal
    assert refused is not None
    assert "--compute-domain" in refused.remedy
    options = Options(family="gb200-nvl72", compute_domain=True)
    (outcome,) = inject_text(text(nvlink()), options=options)
    _, domain = outcome.text.split("---\n")
    assert value(domain) == {
        "apiVersion": "resource.nvidia.com/v1beta1",
        "kind": "ComputeDomain",
        "metadata": {"name": "one", "namespace": "team"},
        "spec": {"numNodes": 0, "channel": {"resourceClaimTemplate": {"name": "one-channel"}}},
    }
    assert text_of(inject_text(outcome.text, options=options)) == outcome.text


def test_a_compute_domain_never_runs_into_the_next_document() -> None:
    options = Options(family="gb200-nvl72", compute_domain=True)
    other = text(manifest("v1", "ConfigMap", {"data": {"a": "b"}}))
    for between in ("---\n", "...\n", "...\n---\n"):
        made = text_of(inject_text(text(nvlink()) + between + other, options=options))
        kinds = [outcome.kind for outcome in inject_text(made, options=options) if outcome.kind]
        assert kinds == ["Job", "ComputeDomain"]
        assert made.endswith(other)
        assert text_of(inject_text(made, options=options)) == made
    job = json.dumps(nvlink())
    made = text_of(inject_text(job, options=options))
    assert [json.loads(line)["kind"] for line in made.splitlines()] == ["Job", "ComputeDomain"]
    assert text_of(inject_text(made, options=options)) == made


def test_the_compute_domain_of_the_file_is_referred_to() -> None:
    body = {"spec": {"numNodes": 0, "channel": {"resourceClaimTemplate": {"name": "rct"}}}}
    domain = manifest("resource.nvidia.com/v1beta1", "ComputeDomain", body, name="cd")
    made = inject_text(text(domain, nvlink()), options=Options(family="gb200-nvl72"))
    assert "resourceClaimTemplateName: rct" in made[1].text
    hand = nvlink(resourceClaims=[{"name": "cd-0", "resourceClaimTemplateName": "rct"}])
    made = inject_text(text(domain, hand), options=Options(family="gb200-nvl72"))
    assert made[1].text.count("resourceClaimTemplateName") == 1


def test_the_label_on_the_object_names_the_family() -> None:
    before = manifest("batch/v1", "Job", {"spec": {"template": {"spec": {"containers": [container()]}}}})
    before["metadata"]["labels"] = {"interlace.dev/fabric": "a3-ultra"}
    assert one(text(before)).families == ("a3-ultra",)


@pytest.mark.parametrize("path", ["spec..template", "spec.a[1]", "spec.a[*", "spec/template", "a b"])
def test_a_path_that_is_none_is_refused(path: str) -> None:
    with pytest.raises(ValueError, match="no path to a Pod template"):
        steps(path)


def test_a_job_set_that_places_its_jobs_together_gets_no_affinity() -> None:
    jobs = [{"name": "w", "template": {"spec": {"template": nvlink()["spec"]["template"]}}}]
    before = manifest("jobset.x-k8s.io/v1alpha2", "JobSet", {"spec": {"replicatedJobs": jobs}})
    assert "podAffinity" in one(text(before), family="gb200-nvl72", compute_domain=True).text
    for place in (before, before["spec"]["replicatedJobs"][0]["template"]):
        placed = copy.deepcopy(before)
        where = placed if place is before else placed["spec"]["replicatedJobs"][0]["template"]
        annotations = {"alpha.jobset.sigs.k8s.io/exclusive-topology": "nvidia.com/gpu.clique"}
        where["metadata"] = {**where.get("metadata", {}), "annotations": annotations}
        outcome = one(text(placed), family="gb200-nvl72", compute_domain=True)
        assert outcome.result == "injected"
        assert "podAffinity" not in outcome.text
