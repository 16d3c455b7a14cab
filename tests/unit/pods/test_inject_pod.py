"""One Pod set up for the fabric: what is added, what is kept, and in which order."""

from __future__ import annotations

import copy
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from interlace.fabric.family import families, find
from interlace.fabric.version import gke_version, minor_version
from interlace.pods.errors import InjectError
from interlace.pods.inject import TUPLE, inject
from tests.unit.pods.pods import MACHINE, Json, container, env, mounts, pod

MEGA, HIGH, ULTRA, A4X, GB200 = (find(each) for each in ("a3-mega", "a3-high", "a3-ultra", "a4x", "gb200-nvl72"))
CHANNEL = {"interlace.dev/channel": "cd-channel"}


def test_the_daemon_is_the_first_init_container_and_native() -> None:
    done = inject(pod(initContainers=[{"name": "fetch", "image": "docker.io/library/busybox:1.37"}]), family=MEGA).pod
    first, second = done["spec"]["initContainers"]
    assert (first["name"], first["restartPolicy"], second["name"]) == ("tcpxo-daemon", "Always", "fetch")
    assert "startupProbe" in first
    assert "nvidia.com/gpu" not in json.dumps(first)


def test_the_settings_take_the_names_that_the_annotation_gives() -> None:
    rails = [{"interfaceName": f"rail{index}", "network": f"vpc{index + 1}"} for index in range(8)]
    given_names = json.dumps([{"interfaceName": "net0", "network": "default"}, *reversed(rails)])
    done = inject(pod(annotations={"networking.gke.io/interfaces": given_names}), family=MEGA).pod
    main = env(done["spec"]["containers"][0])
    assert main["NCCL_FASTRAK_IFNAME"] == ",".join(f"rail{index}" for index in range(8))
    assert main["NCCL_SOCKET_IFNAME"] == main["NCCL_FASTRAK_CTRL_DEV"] == "net0"
    assert done["metadata"]["annotations"]["networking.gke.io/interfaces"] == given_names
    assert done["metadata"]["annotations"]["networking.gke.io/default-interface"] == "net0"


def test_missing_interfaces_are_added_beside_those_that_are_there() -> None:
    there = json.dumps([{"interfaceName": "eth1", "network": "storage"}, {"interfaceName": "eth2", "network": "vpc1"}])
    done = inject(pod(annotations={"networking.gke.io/interfaces": there}), family=HIGH).pod
    interfaces = json.loads(done["metadata"]["annotations"]["networking.gke.io/interfaces"])
    assert {each["network"]: each["interfaceName"] for each in interfaces} == {
        "default": "eth0", "storage": "eth1", "vpc1": "eth2", "vpc2": "eth3", "vpc3": "eth4", "vpc4": "eth5",
    }  # fmt: skip
    main = env(done["spec"]["containers"][0])
    assert main["NCCL_GPUDIRECTTCPX_SOCKET_IFNAME"] == "eth2,eth3,eth4,eth5"
    assert main["NCCL_GPUDIRECTTCPX_TX_BINDINGS"].startswith("eth2:8-21,112-125;eth3:")


def test_networks_of_another_name_are_joined_under_that_name() -> None:
    done = inject(pod(), family=HIGH, networks={f"vpc{n}": f"rail{n}" for n in range(1, 5)}).pod
    text = done["metadata"]["annotations"]["networking.gke.io/interfaces"]
    assert [each["network"] for each in json.loads(text)] == ["default", "rail1", "rail2", "rail3", "rail4"]


def test_the_libraries_of_the_node_come_before_those_of_the_image() -> None:
    plain, own, imaged = container(), container("own"), container("imaged")
    own["env"] = [{"name": "LD_LIBRARY_PATH", "value": "/opt/lib:/usr/local/nvidia/lib64"}]
    del imaged["command"]
    for each, count in ((plain, 4), (own, 4), (imaged, 0)):
        each["resources"]["limits"]["nvidia.com/gpu"] = count
    done = inject(pod(plain, own), family=MEGA).pod["spec"]["containers"]
    assert done[0]["command"] == [
        "/bin/sh", "-c",
        'export LD_LIBRARY_PATH="/usr/local/nvidia/lib64${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"; exec "$@"',
        "interlace", "train",
    ]  # fmt: skip
    assert "LD_LIBRARY_PATH" not in env(done[0])
    assert env(done[1])["LD_LIBRARY_PATH"] == "/usr/local/nvidia/lib64:/opt/lib"
    assert done[1]["command"] == ["train"]
    imaged["resources"]["limits"]["nvidia.com/gpu"] = 8
    injection = inject(pod(imaged), family=MEGA)
    assert env(injection.pod["spec"]["containers"][0])["LD_LIBRARY_PATH"] == "/usr/local/nvidia/lib64"
    assert "hides the value that the image may set" in injection.warnings[0]


@pytest.mark.parametrize("mark", ["${LD_LIBRARY_PATH}", "$LD_LIBRARY_PATH", "$(LD_LIBRARY_PATH)"])
def test_a_path_that_kubernetes_does_not_expand_is_named_and_mended(mark: str) -> None:
    main = container(env=[{"name": "LD_LIBRARY_PATH", "value": f"{mark}:/usr/local/tcpx/lib64"}])
    done = inject(pod(main), family=MEGA)
    assert env(done.pod["spec"]["containers"][0])["LD_LIBRARY_PATH"] == "/usr/local/nvidia/lib64:/usr/local/tcpx/lib64"
    assert [change.action for change in done.changes if ".containers[0].env[LD_" in change.path] == ["mended"]
    assert any("Kubernetes does not expand" in change.reason for change in done.changes)
    assert any("nothing is ever mounted at" in warning for warning in done.warnings)


def test_quote_marks_that_came_along_with_a_copied_value_are_taken_off() -> None:
    main = container(env=[{"name": "NCCL_SOCKET_IFNAME", "value": '"eth0"'}, {"name": "A", "value": '"kept"'}])
    done = inject(pod(main), family=HIGH)
    assert env(done.pod["spec"]["containers"][0])["NCCL_SOCKET_IFNAME"] == "eth0"
    assert env(done.pod["spec"]["containers"][0])["A"] == '"kept"'
    assert any("the quote marks were part of the value" in change.reason for change in done.changes)


def test_values_that_agree_or_are_only_recommended_stay() -> None:
    main = container(env=[{"name": "NCCL_DEBUG", "value": "WARN"}, {"name": "NCCL_CROSS_NIC", "value": "0"}])
    done = inject(pod(main), family=MEGA).pod["spec"]["containers"][0]
    assert done["env"][:2] == main["env"]
    assert [each["name"] for each in done["env"]].count("NCCL_CROSS_NIC") == 1


def test_a_value_that_differs_is_refused_with_both() -> None:
    main = container(env=[{"name": "NCCL_PROTO", "value": "Simple"}])
    with pytest.raises(InjectError, match=r"env\[NCCL_PROTO\]: Simple: the fabric enforces Simple,LL128 .*; remove it"):
        inject(pod(main), family=MEGA)
    assert inject(pod(main), family=MEGA, profile="simple").software == "tcpxo-1.0.15"


def test_a_value_from_elsewhere_is_left_and_said_to_be_unknown() -> None:
    source = {"configMapKeyRef": {"name": "nccl", "key": "proto"}}
    done = inject(pod(container(env=[{"name": "NCCL_PROTO", "valueFrom": source}])), family=MEGA)
    assert any("was not compared; it must be Simple,LL128" in warning for warning in done.warnings)


def test_volumes_are_known_by_what_they_hold() -> None:
    volumes = [{"name": "nv", "hostPath": {"path": "/home/kubernetes/bin/nvidia/"}}]
    done = inject(pod(volumes=volumes), family=MEGA).pod
    assert mounts(done["spec"]["containers"][0])["/usr/local/nvidia"] == "nv"
    assert [each["name"] for each in done["spec"]["volumes"]].count("libraries") == 0


def test_a_folder_of_the_libraries_mounted_one_below_counts() -> None:
    volumes = [{"name": "lib", "hostPath": {"path": "/home/kubernetes/bin/nvidia/lib64"}}]
    main = container(volumeMounts=[{"name": "lib", "mountPath": "/usr/local/nvidia/lib64"}])
    done = inject(pod(main, volumes=volumes), family=MEGA).pod["spec"]["containers"][0]
    assert "/usr/local/nvidia" not in mounts(done)
    up = [{"name": "all", "hostPath": {"path": "/home/kubernetes/bin/nvidia"}}]
    main = container(volumeMounts=[{"name": "all", "mountPath": "/usr/local/nvidia"}])
    done = inject(pod(main, volumes=up), family=HIGH).pod["spec"]["containers"][0]
    assert "/usr/local/nvidia/lib64" not in mounts(done)


def test_shared_memory_of_the_users_own_stays() -> None:
    main = container(volumeMounts=[{"name": "mine", "mountPath": "/dev/shm"}])
    done = inject(pod(main, volumes=[{"name": "mine", "emptyDir": {"medium": "Memory"}}]), family=MEGA).pod
    assert [each["name"] for each in done["spec"]["volumes"]].count("shared-memory") == 0


def test_an_older_cluster_gets_a_daemon_that_ends_with_the_work() -> None:
    done = inject(pod(), family=MEGA, version=minor_version("1.28")).pod["spec"]
    daemon = done["containers"][0]
    assert daemon["name"] == "tcpxo-daemon"
    assert done["shareProcessNamespace"] is True
    assert daemon["command"][:2] == ["/bin/sh", "-c"]
    assert daemon["command"][4:] == [
        "/bin/sh",
        "-c",
        *inject(pod(), family=MEGA).pod["spec"]["initContainers"][0]["args"],
    ]
    forever = inject(pod(restartPolicy="Always"), family=MEGA, version=minor_version("1.28")).pod["spec"]
    assert "shareProcessNamespace" not in forever
    for spec in ({"shareProcessNamespace": False}, {"hostPID": True}):
        with pytest.raises(InjectError, match="native sidecars"):
            inject({**pod(), "spec": {**pod()["spec"], **spec}}, family=MEGA, version=minor_version("1.28"))
    with pytest.raises(InjectError, match="write Never"):
        inject(pod(restartPolicy="OnFailure"), family=MEGA, version=minor_version("1.28"))


def test_a_cluster_below_the_least_version_is_refused() -> None:
    with pytest.raises(InjectError, match=r"1\.34\.5-gke\.1153000"):
        inject(pod(), family=HIGH, version=gke_version("1.34.1-gke.1"))
    assert inject(pod(), family=HIGH, version=gke_version("1.33.5-gke.1308000")).software == "tcpx-3.1.9"
    assert inject(pod(), family=HIGH, version=gke_version("1.34.5-gke.1153000")).software == "tcpx-3.1.12"


def test_the_form_without_annotations_is_rendered_only_when_asked_for() -> None:
    with pytest.raises(InjectError, match="--host-network"):
        inject(pod(hostNetwork=True), family=MEGA)
    done = inject(pod(), family=MEGA, host_network=True)
    spec = done.pod["spec"]
    assert (spec["hostNetwork"], spec["dnsPolicy"]) == (True, "ClusterFirstWithHostNet")
    assert spec["containers"][0]["securityContext"]["privileged"] is True
    assert spec["initContainers"][0]["securityContext"]["privileged"] is True
    assert [key for key in done.pod["metadata"]["annotations"] if key != TUPLE] == []
    assert "owns the node" in done.warnings[0]
    again = inject(done.pod, family=MEGA, host_network=True)
    assert (again.pod, again.changes) == (done.pod, ())


def test_the_machine_type_is_selected_where_the_accelerator_does_not_tell() -> None:
    label = {"cloud.google.com/gke-accelerator": "nvidia-h100-80gb"}
    assert inject(pod(nodeSelector=label), family=HIGH).pod["spec"]["nodeSelector"] == {
        **label,
        MACHINE: "a3-highgpu-8g",
    }
    mega = {"cloud.google.com/gke-accelerator": "nvidia-h100-mega-80gb"}
    assert inject(pod(nodeSelector=mega), family=MEGA).pod["spec"]["nodeSelector"] == mega


def test_rdma_needs_no_daemon_and_sources_its_settings() -> None:
    done = inject(pod(), family=ULTRA).pod
    main = done["spec"]["containers"][0]
    assert "initContainers" not in done["spec"]
    assert main["command"][2].startswith(". /usr/local/gib/scripts/set_nccl_env.sh; export LD_LIBRARY_PATH=")
    assert "NCCL_NET" not in env(main)
    assert env(main)["NCCL_SOCKET_IFNAME"] == "eth0"
    del (bare := container())["command"]
    assert env(inject(pod(bare), family=ULTRA).pod["spec"]["containers"][0])["NCCL_NET"] == "gIB"


def test_nics_by_claim_take_the_place_of_the_annotations_and_allow_a_part_of_a_node() -> None:
    claims = {"nics": ("mrdma.google.com",), "gpus": ("gpu.nvidia.com",)}
    main = container(gpus=0, resources={"claims": [{"name": "g"}, {"name": "n"}]})
    spec: Json = {"resourceClaims": [
        {"name": "g", "resourceClaimTemplateName": "gpus"}, {"name": "n", "resourceClaimTemplateName": "nics"}
    ]}  # fmt: skip
    done = inject(pod(main, **spec), family=ULTRA, claims=claims).pod
    assert list(done["metadata"]["annotations"]) == [TUPLE]
    alone = pod(main, resourceClaims=[{"name": "g", "resourceClaimTemplateName": "gpus"}])
    alone["spec"]["containers"][0]["resources"]["claims"] = [{"name": "g"}]
    warned = inject(alone, family=ULTRA, claims=claims)
    assert list(warned.pod["metadata"]["annotations"]) == [TUPLE]
    assert "no NICs do" in warned.warnings[0]
    half = container(gpus=4, resources={"limits": {"nvidia.com/gpu": 4}, "claims": [{"name": "n"}]})
    assert inject(pod(half, **spec), family=ULTRA, claims=claims).changes
    with pytest.raises(InjectError, match="not by both"):
        inject(pod(half, **spec, annotations={"networking.gke.io/interfaces": "[]"}), family=ULTRA, claims=claims)


def test_nvlink_gives_each_gpu_container_the_channel_and_keeps_the_pods_in_one_clique() -> None:
    done = inject(pod(container(gpus=4)), family=GB200, channel="cd-channel").pod
    assert done["spec"]["resourceClaims"] == [{"name": "imex-channel", "resourceClaimTemplateName": "cd-channel"}]
    assert done["spec"]["containers"][0]["resources"]["claims"] == [{"name": "imex-channel"}]
    assert done["metadata"]["labels"] == CHANNEL
    terms = done["spec"]["affinity"]["podAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    assert terms == [{"labelSelector": {"matchLabels": CHANNEL}, "topologyKey": "nvidia.com/gpu.clique"}]


def test_nvlink_without_a_domain_is_refused() -> None:
    with pytest.raises(InjectError, match="--compute-domain"):
        inject(pod(container(gpus=4)), family=GB200)


@pytest.mark.parametrize(
    "placed",
    [
        {"annotations": {"kueue.x-k8s.io/podset-required-topology": "cloud.google.com/gce-topology-block"}},
        {"schedulingGates": [{"name": "kueue.x-k8s.io/topology"}]},
        {"affinity": {"podAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [
            {"weight": 1, "podAffinityTerm": {"topologyKey": "nvidia.com/gpu.clique"}}
        ]}}},
    ],
)  # fmt: skip
def test_pods_that_are_placed_together_already_get_no_affinity(placed: Json) -> None:
    before = pod(container(gpus=4), **placed)
    done = inject(before, family=GB200, channel="cd-channel").pod
    assert done["spec"].get("affinity") == before["spec"].get("affinity")
    assert done["spec"]["resourceClaims"]


def test_a_hand_written_claim_of_a_channel_is_kept() -> None:
    main = container(gpus=4, resources={"limits": {"nvidia.com/gpu": 4}, "claims": [{"name": "cd-0"}]})
    claims = {"rct": ("compute-domain-default-channel.nvidia.com",)}
    before = pod(main, resourceClaims=[{"name": "cd-0", "resourceClaimTemplateName": "rct"}])
    done = inject(before, family=GB200, claims=claims).pod
    assert done["spec"]["resourceClaims"] == before["spec"]["resourceClaims"]
    assert done["metadata"]["labels"] == {"interlace.dev/channel": "rct"}


def test_outside_gke_the_host_network_is_the_sites_own_choice() -> None:
    done = inject(pod(container(gpus=4), hostNetwork=True), family=GB200, channel="cd-channel")
    assert "NCCL_SOCKET_IFNAME" not in env(done.pod["spec"]["containers"][0])
    assert done.warnings == ()


def test_a_pod_without_gpus_comes_back_as_it_is() -> None:
    before = pod(container(gpus=0))
    done = inject(before, family=MEGA)
    assert (done.pod, done.changes, done.software) == (before, (), "")


def test_what_is_not_known_survives() -> None:
    before = pod(container(futureField={"a": [1]}), futureSpec=True)
    done = inject(before, family=MEGA).pod
    assert done["spec"]["futureSpec"] is True
    assert done["spec"]["containers"][0]["futureField"] == {"a": [1]}


CONTAINERS = st.builds(
    lambda extra, own, command: {
        **container(env=own, **extra), **({"command": command} if command else {"command": []}),
    },
    st.fixed_dictionaries({}, optional={
        "volumeMounts": st.just([{"name": "data", "mountPath": "/data"}]),
        "securityContext": st.sampled_from([None, {}, {"runAsUser": 0}, {"capabilities": {"add": ["IPC_LOCK"]}}]),
        "args": st.lists(st.text(max_size=5), max_size=2),
    }),
    st.lists(st.sampled_from([
        {"name": "LD_LIBRARY_PATH", "value": "${LD_LIBRARY_PATH}:/a"}, {"name": "NCCL_DEBUG", "value": "WARN"},
        {"name": "A", "value": ""}, {"name": "B"}, {"name": "NCCL_CROSS_NIC", "value": '"0"'},
    ]), max_size=3, unique_by=lambda each: each["name"]),
    st.lists(st.text(max_size=5), max_size=2),
)  # fmt: skip
PODS = st.builds(
    lambda main, spec, labels: pod(main, labels={**labels, **CHANNEL}, **spec),
    CONTAINERS,
    st.fixed_dictionaries({}, optional={
        "volumes": st.just([{"name": "data", "emptyDir": None}]),
        "initContainers": st.just([{"name": "fetch", "image": "x"}]),
        "tolerations": st.sampled_from([[], [{"operator": "Exists"}], [{"key": "a", "effect": "NoSchedule"}]]),
        "affinity": st.sampled_from([None, {}, {"podAffinity": None}]),
        "restartPolicy": st.sampled_from(["Always", "Never"]),
        "resourceClaims": st.just([]),
    }),
    st.dictionaries(st.sampled_from(["app", "job"]), st.just("x"), max_size=2),
)  # fmt: skip


@given(PODS, st.sampled_from([family.id for family in families()]), st.sampled_from([None, "1.28", "1.33", "1.35"]))
@settings(max_examples=120, deadline=None)
def test_injecting_twice_changes_nothing(before: Json, name: str, minor: str | None) -> None:
    family = find(name)
    version = minor_version(minor) if minor and (family.pod.sidecar or minor != "1.28") else None
    before["spec"]["containers"][0]["resources"]["limits"]["nvidia.com/gpu"] = family.node.gpus
    kept = copy.deepcopy(before)
    done = inject(before, family=family, version=version)
    assert before == kept
    assert done.changes
    again = inject(done.pod, family=family, version=version)
    assert (again.pod, again.changes) == (done.pod, ())
