"""Flags and environment under the existing driver's names."""

from __future__ import annotations

from pathlib import Path

import pytest

from interlace.node.errors import SettingsError
from interlace.node.settings import AgentSettings


def test_the_environment_of_the_existing_driver_is_understood() -> None:
    found = AgentSettings.parse(
        [],
        {
            "NODE_NAME": "tray-1",
            "NAMESPACE": "interlace-system",
            "CDI_ROOT": "/var/run/cdi",
            "NVIDIA_DRIVER_ROOT": "/run/nvidia/driver",
            "DRIVER_ROOT_CTR_PATH": "/driver-root",
            "KUBELET_REGISTRAR_DIRECTORY_PATH": "/k/reg",
            "KUBELET_PLUGINS_DIRECTORY_PATH": "/k/plugins",
            "ALT_PROC_DEVICES_PATH": "/alt/devices",
            "HEALTHCHECK_PORT": "51515",
            "MAX_NODES_PER_IMEX_DOMAIN": "9",
            "INTERLACE_IMEX_SOCKET": "/run/x.sock",
            "KUBECONFIG": "/etc/kubeconfig",
        },
    )
    assert found.node_name == "tray-1"
    assert found.namespace == "interlace-system"
    assert found.driver_root == Path("/driver-root")
    assert found.home == Path("/k/plugins/compute-domain.nvidia.com")
    assert found.registrar_dir == Path("/k/reg")
    assert found.proc_devices == Path("/alt/devices")
    assert (found.http_port, found.max_nodes) == (51515, 9)
    assert found.imex_socket == Path("/run/x.sock")
    assert found.kubeconfig == Path("/etc/kubeconfig")


def test_a_flag_wins_over_the_environment() -> None:
    found = AgentSettings.parse(["--node-name=b", "--http-endpoint", "127.0.0.1:0"], {"NODE_NAME": "a"})
    assert (found.node_name, found.http_host, found.http_port) == ("b", "127.0.0.1", 0)
    assert AgentSettings.parse(["--http-endpoint", ":81"], {"NODE_NAME": "a"}).http_port == 81
    assert AgentSettings.parse([], {"NODE_NAME": "a", "NVIDIA_DRIVER_ROOT": "/d"}).driver_root == Path("/d")


def test_agents_of_two_pods_have_sockets_of_their_own_that_last_as_long_as_the_pod() -> None:
    pods = ("6b1c0f9e-0000-4000-8000-000000000001", "6b1c0f9e-0000-4000-8000-000000000002")
    one, two, again = (AgentSettings.parse([], {"NODE_NAME": "a", "POD_UID": uid}) for uid in (*pods, pods[0]))
    assert (one.endpoint, one.registration) == (again.endpoint, again.registration)
    assert not {one.endpoint, one.registration} & {two.endpoint, two.registration}
    alone = AgentSettings.parse([], {"NODE_NAME": "a"})
    assert (alone.endpoint.name, alone.registration.name) == ("dra.sock", "compute-domain.nvidia.com-reg.sock")


def test_kubelet_can_be_offered_one_version_alone() -> None:
    assert AgentSettings.parse([], {"NODE_NAME": "a"}).dra_versions == ("v1", "v1beta1")
    found = AgentSettings.parse([], {"NODE_NAME": "a", "INTERLACE_DRA_VERSIONS": "v1beta1"})
    assert found.dra_versions == ("v1beta1",)


@pytest.mark.parametrize(
    ("argv", "env", "words"),
    [
        ([], {}, "--node-name is missing: give it, or set NODE_NAME"),
        ([], {"NODE_NAME": ""}, "--node-name is missing"),
        ([], {"NODE_NAME": "Not A Name"}, "NODE_NAME is 'Not A Name': it has to be a Kubernetes name"),
        (["--cdi-root", "relative"], {"NODE_NAME": "a"}, "--cdi-root is 'relative': it has to be an absolute path"),
        ([], {"NODE_NAME": "a", "HEALTHCHECK_PORT": "http"}, "HEALTHCHECK_PORT is 'http': it has to be a whole number"),
        ([], {"NODE_NAME": "a", "MAX_NODES_PER_IMEX_DOMAIN": "0"}, "from 1 to 4096"),
        ([], {"NODE_NAME": "a", "INTERLACE_DRA_VERSIONS": "v1,v2"}, "one or more of v1,v1beta1, separated by commas"),
        (["--http-endpoint", "81"], {"NODE_NAME": "a"}, "HOST:PORT"),
        (["--no-such-flag"], {"NODE_NAME": "a"}, "no-such-flag"),
    ],
)
def test_a_bad_value_is_one_sentence_that_names_it(argv: list[str], env: dict[str, str], words: str) -> None:
    with pytest.raises(SettingsError) as caught:
        AgentSettings.parse(argv, env)
    assert words in str(caught.value)
    assert str(caught.value).endswith(".")
