"""What is installed: whole, with the least rights, and equal to the committed file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from interlace.manifests import manifests, render

ROOT = Path(__file__).parents[2]
OBJECTS = manifests()
CLUSTER_SCOPED = {"Namespace", "CustomResourceDefinition", "DeviceClass", "ClusterRole", "ClusterRoleBinding"}


def found(kind: str, name: str) -> dict[str, Any]:
    (one,) = [obj for obj in OBJECTS if obj["kind"] == kind and obj["metadata"]["name"] == name]
    return one


def pod(kind: str, name: str) -> dict[str, Any]:
    spec = found(kind, name)["spec"]["template"]["spec"]
    assert isinstance(spec, dict)
    return spec


def rights(kind: str, name: str) -> set[tuple[str, str, str]]:
    """(group/resource, verb, names) of a role."""
    return {
        (f"{group}/{resource}", verb, ",".join(rule.get("resourceNames", ())))
        for rule in found(kind, name)["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }


def test_the_committed_file_is_what_is_rendered() -> None:
    assert (ROOT / "deploy/interlace.yaml").read_text() == render(manifests())


def test_the_rendered_file_reads_back_as_the_same_objects() -> None:
    assert list(yaml.safe_load_all(render(OBJECTS))) == json.loads(json.dumps(OBJECTS))


@pytest.mark.parametrize("obj", OBJECTS, ids=lambda obj: f"{obj['kind']}-{obj['metadata']['name']}")
def test_each_object_can_be_applied_by_its_own(obj: dict[str, Any]) -> None:
    assert obj["apiVersion"]
    assert obj["metadata"]["name"]
    assert not {"uid", "resourceVersion", "managedFields", "status"} & {*obj["metadata"], *obj}
    assert ("namespace" in obj["metadata"]) == (obj["kind"] not in CLUSTER_SCOPED)


def test_no_object_stands_there_twice() -> None:
    keys = [(o["apiVersion"], o["kind"], o["metadata"].get("namespace"), o["metadata"]["name"]) for o in OBJECTS]
    assert len(keys) == len(set(keys))


def test_what_others_need_comes_first() -> None:
    kinds = [obj["kind"] for obj in OBJECTS]
    assert kinds[0] == "Namespace"
    assert max(kinds.index(k) for k in ("CustomResourceDefinition", "DeviceClass")) < kinds.index("Deployment")
    last_account = max(i for i, kind in enumerate(kinds) if kind == "ServiceAccount")
    assert last_account < min(kinds.index("DaemonSet"), kinds.index("Deployment"))


@pytest.mark.parametrize(("kind", "role"), [("ClusterRole", "ClusterRoleBinding"), ("Role", "RoleBinding")])
@pytest.mark.parametrize("name", ["interlace-controller", "interlace-agent"])
def test_each_role_is_bound_to_its_component_alone(kind: str, role: str, name: str) -> None:
    binding = found(role, name)
    assert binding["roleRef"] == {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": name}
    assert binding["subjects"] == [{"kind": "ServiceAccount", "name": name, "namespace": "interlace-system"}]


def test_the_agent_may_do_exactly_this() -> None:
    slices = "resource.k8s.io/resourceslices"
    assert rights("ClusterRole", "interlace-agent") == {
        ("resource.k8s.io/resourceclaims", "get", ""),
        ("resource.k8s.io/resourceclaims/status", "patch", ""),
        ("resource.k8s.io/resourceclaims/driver", "associated-node:patch", "compute-domain.nvidia.com"),
        *((slices, verb, "") for verb in ("get", "list", "watch", "create", "patch")),
        ("/events", "create", ""),
        ("/events", "patch", ""),
    }
    cliques = "resource.nvidia.com/computedomaincliques"
    assert rights("Role", "interlace-agent") == {(cliques, verb, "") for verb in ("list", "watch")}


def test_the_controller_may_do_exactly_this() -> None:
    templates = "resource.k8s.io/resourceclaimtemplates"
    assert rights("ClusterRole", "interlace-controller") == {
        *(("resource.nvidia.com/computedomains", verb, "") for verb in ("list", "watch", "patch")),
        ("resource.nvidia.com/computedomains/status", "patch", ""),
        *((templates, verb, "") for verb in ("list", "watch", "create", "patch", "delete")),
        *(
            (f"resource.k8s.io/{resource}", verb, "")
            for resource in ("resourceclaims", "resourceslices")
            for verb in ("list", "watch")
        ),
        ("/pods", "get", ""),
        ("/pods", "patch", ""),
        ("/pods/eviction", "create", ""),
        ("/events", "create", ""),
        ("/events", "patch", ""),
    }
    cliques = "resource.nvidia.com/computedomaincliques"
    assert rights("Role", "interlace-controller") == {
        *((cliques, verb, "") for verb in ("list", "watch", "create", "update", "delete")),
        *(("/pods", verb, "") for verb in ("list", "watch", "delete")),
        *(("apps/controllerrevisions", verb, "") for verb in ("list", "watch")),
        *(("coordination.k8s.io/leases", verb, "") for verb in ("get", "create", "patch")),
    }


def test_the_imex_host_has_no_rights_and_no_token() -> None:
    roles = [obj for obj in OBJECTS if obj["kind"].endswith("Binding")]
    assert not [s for role in roles for s in role["subjects"] if s["name"] == "interlace-imex-host"]
    assert found("ServiceAccount", "interlace-imex-host")["automountServiceAccountToken"] is False
    assert pod("DaemonSet", "interlace-imex-host")["automountServiceAccountToken"] is False


def test_nothing_that_the_probes_do_can_end_the_imex_of_a_running_job() -> None:
    (container,) = pod("DaemonSet", "interlace-imex-host")["containers"]
    assert "livenessProbe" not in container
    assert "startupProbe" not in container
    assert found("DaemonSet", "interlace-imex-host")["spec"]["updateStrategy"] == {"type": "OnDelete"}


def test_the_imex_host_is_guaranteed_its_resources() -> None:
    (container,) = pod("DaemonSet", "interlace-imex-host")["containers"]
    assert container["resources"]["requests"] == container["resources"]["limits"]
    assert container["resources"]["limits"].keys() == {"cpu", "memory"}
    assert pod("DaemonSet", "interlace-imex-host")["priorityClassName"] == "system-node-critical"


def test_only_imex_hosts_reach_the_imex_port() -> None:
    policy = found("NetworkPolicy", "interlace-imex-host")["spec"]
    labels = found("DaemonSet", "interlace-imex-host")["spec"]["selector"]
    assert policy["podSelector"] == labels
    (rule,) = [rule for rule in policy["ingress"] if any(port["port"] == 50000 for port in rule["ports"])]
    assert rule["from"] == [{"podSelector": labels}]


def test_the_controller_runs_without_privileges() -> None:
    spec = pod("Deployment", "interlace-controller")
    (container,) = spec["containers"]
    assert spec["securityContext"]["runAsNonRoot"] is True
    assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
        "readOnlyRootFilesystem": True,
    }


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("Deployment", "interlace-controller"),
        ("DaemonSet", "interlace-agent"),
        ("DaemonSet", "interlace-imex-host"),
    ],
)
def test_pods_match_their_selector_and_start_their_component(kind: str, name: str) -> None:
    spec = found(kind, name)["spec"]
    component = name.removeprefix("interlace-")
    assert spec["selector"]["matchLabels"].items() <= spec["template"]["metadata"]["labels"].items()
    assert spec["template"]["metadata"]["labels"]["app.kubernetes.io/component"] == component
    (container,) = spec["template"]["spec"]["containers"]
    assert container["command"] == ["interlace", "serve", component]
    assert {"NODE_NAME", "POD_NAME", "POD_UID", "POD_IP", "NAMESPACE"} <= {entry["name"] for entry in container["env"]}
    names = {volume["name"] for volume in spec["template"]["spec"].get("volumes", ())}
    assert {mount["name"] for mount in container.get("volumeMounts", ())} == names


@pytest.mark.parametrize("name", ["interlace-agent", "interlace-imex-host"])
def test_agent_and_imex_host_run_on_gpu_nodes_whatever_their_taints(name: str) -> None:
    spec = pod("DaemonSet", name)
    assert spec["nodeSelector"] == {"nvidia.com/gpu.present": "true"}
    assert spec["tolerations"] == [{"operator": "Exists"}]


def test_agent_and_imex_host_share_the_socket_at_one_path() -> None:
    paths = []
    for name in ("interlace-agent", "interlace-imex-host"):
        (container,) = pod("DaemonSet", name)["containers"]
        env = {entry["name"]: entry.get("value") for entry in container["env"]}
        mount = next(mount["mountPath"] for mount in container["volumeMounts"] if mount["name"] == "imex")
        assert env["INTERLACE_IMEX_SOCKET"] == f"{mount}/host.sock"
        volume = next(volume for volume in pod("DaemonSet", name)["volumes"] if volume["name"] == "imex")
        paths.append((mount, volume["hostPath"]["path"]))
    assert paths == [("/run/interlace/imex", "/run/interlace/imex")] * 2


def test_the_device_classes_are_those_of_the_existing_api() -> None:
    channel = found("DeviceClass", "compute-domain-default-channel.nvidia.com")
    assert channel["apiVersion"] == "resource.k8s.io/v1"
    (selector,) = channel["spec"]["selectors"]
    assert selector["cel"]["expression"] == (
        'device.driver == "compute-domain.nvidia.com"'
        ' && device.attributes["compute-domain.nvidia.com"].type == "channel"'
        ' && device.attributes["compute-domain.nvidia.com"].id == 0'
    )
    assert found("DeviceClass", "compute-domain-daemon.nvidia.com")


def test_options_reach_the_places_they_are_for() -> None:
    objects = manifests(
        namespace="elsewhere", image="registry.example/interlace:1", replicas=3, driver_root="/run/nvidia/driver"
    )
    workloads = {obj["metadata"]["name"]: obj for obj in objects if obj["kind"] in {"Deployment", "DaemonSet"}}
    assert all(obj["metadata"]["namespace"] == "elsewhere" for obj in workloads.values())
    assert workloads["interlace-controller"]["spec"]["replicas"] == 3
    images = {c["image"] for obj in workloads.values() for c in obj["spec"]["template"]["spec"]["containers"]}
    assert images == {"registry.example/interlace:1"}
    volumes = workloads["interlace-agent"]["spec"]["template"]["spec"]["volumes"]
    assert {"path": "/run/nvidia/driver", "type": "DirectoryOrCreate"} in [v["hostPath"] for v in volumes]
    subjects = [s for obj in objects if obj["kind"].endswith("Binding") for s in obj["subjects"]]
    assert {s["namespace"] for s in subjects} == {"elsewhere"}


def test_the_example_is_a_domain_and_the_pods_that_use_it() -> None:
    folder = ROOT / "examples/gb200-nvl72"
    domain = yaml.safe_load((folder / "computedomain.yaml").read_text())
    deployment = yaml.safe_load((folder / "deployment.yaml").read_text())
    spec = deployment["spec"]["template"]["spec"]
    assert domain["spec"]["numNodes"] == 0
    assert spec["resourceClaims"] == [
        {"name": "cd-0", "resourceClaimTemplateName": domain["spec"]["channel"]["resourceClaimTemplate"]["name"]}
    ]
    assert spec["containers"][0]["resources"] == {"claims": [{"name": "cd-0"}], "limits": {"nvidia.com/gpu": 4}}
    assert deployment["spec"]["replicas"] * 4 == 72
    (term,) = spec["affinity"]["podAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    assert term["topologyKey"] == "nvidia.com/gpu.clique"
