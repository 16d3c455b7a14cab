"""The profiles against the values that Google publishes; each difference stands here with its reason.

The lists are facts of the GKE guide (2024) and of the plugin's own profile (release 1.0.17), written as a table.
"""

from __future__ import annotations

import pytest

from interlace.fabric.environment import default_interfaces, environment
from interlace.fabric.family import find

EIGHT = "eth1,eth2,eth3,eth4,eth5,eth6,eth7,eth8"
LIB = "/usr/local/nvidia/lib64"
FASTRAK = {
    "NCCL_FASTRAK_CTRL_DEV": "eth0",
    "NCCL_FASTRAK_IFNAME": EIGHT,
    "NCCL_SOCKET_IFNAME": "eth0",
    "NCCL_CROSS_NIC": "0",
    "NCCL_MIN_NCHANNELS": "4",
    "NCCL_TUNER_PLUGIN": "libnccl-tuner.so",
    "NCCL_TUNER_CONFIG_PATH": f"{LIB}/a3plus_tuner_config.textproto",
    "NCCL_SHIMNET_GUEST_CONFIG_CHECKER_CONFIG_FILE": f"{LIB}/a3plus_guest_config.textproto",
    "NCCL_P2P_NET_CHUNKSIZE": "524288",
    "NCCL_P2P_PCI_CHUNKSIZE": "524288",
    "NCCL_P2P_NVL_CHUNKSIZE": "1048576",
    "NCCL_FASTRAK_NUM_FLOWS": "2",
    "NCCL_FASTRAK_USE_SNAP": "1",
    "NCCL_FASTRAK_PLUGIN_ACCEPT_TIMEOUT_MS": "600000",
    "NCCL_FASTRAK_ENABLE_CONTROL_CHANNEL": "0",
    "NCCL_BUFFSIZE": "8388608",
    "NCCL_NET_GDR_LEVEL": "PIX",
    "NCCL_FASTRAK_ENABLE_HOTPATH_LOGGING": "0",
    "NCCL_FASTRAK_USE_LLCM": "1",
    "CUDA_VISIBLE_DEVICES": "0,1,2,3,4,5,6,7",
    "NCCL_DEBUG": "WARN",
    "NCCL_DEBUG_SUBSYS": "INIT,NET,ENV,COLL,GRAPH",
}
PUBLISHED = {
    ("a3-mega", "tcpxo-1.0.5", "default"): FASTRAK
    | {
        "NCCL_ALGO": "Ring,Tree",
        "NCCL_PROTO": "Simple",
        "NCCL_DYNAMIC_CHUNK_SIZE": "524288",
        "NCCL_NVLS_ENABLE": "0",
    },
    ("a3-mega", "tcpxo-1.0.17", "default"): FASTRAK
    | {"NCCL_PROTO": "Simple,LL128", "NCCL_NVLSTREE_MAX_CHUNKSIZE": "131072"},
    ("a3-mega", "tcpxo-1.0.17", "comma"): FASTRAK
    | {
        "NCCL_PROTO": "Simple,LL128",
        "NCCL_NVLSTREE_MAX_CHUNKSIZE": "131072",
        "NCCL_SHIMNET_GUEST_CONFIG_CHECKER_CONFIG_FILE": f"{LIB}/a3plus_guest_config_comma.textproto",
        "NCCL_NVLS_ENABLE": "1",
        "NCCL_PROFILER_PLUGIN": "comma",
        "NCCL_TELEMETRY_MODE": "4",
    },
    ("a3-mega", "tcpxo-1.0.17", "simple"): FASTRAK
    | {
        "NCCL_ALGO": "Ring,Tree",
        "NCCL_PROTO": "Simple",
        "NCCL_NVLS_ENABLE": "0",
        "NCCL_TUNER_CONFIG_PATH": f"{LIB}/a3plus_tuner_config_simple.textproto",
        "NCCL_SHIMNET_GUEST_CONFIG_CHECKER_CONFIG_FILE": f"{LIB}/a3plus_guest_config_simple.textproto",
    },
    ("a3-high", "tcpx-3.1.9", "default"): {
        "NCCL_SOCKET_IFNAME": "eth0",
        "NCCL_ALGO": "Ring",
        "NCCL_PROTO": "Simple",
        "NCCL_CROSS_NIC": "0",
        "NCCL_NET_GDR_LEVEL": "PIX",
        "NCCL_P2P_PXN_LEVEL": "0",
        "NCCL_GPUDIRECTTCPX_SOCKET_IFNAME": "eth1,eth2,eth3,eth4",
        "NCCL_GPUDIRECTTCPX_CTRL_DEV": "eth0",
        "NCCL_DYNAMIC_CHUNK_SIZE": "524288",
        "NCCL_P2P_NET_CHUNKSIZE": "524288",
        "NCCL_P2P_PCI_CHUNKSIZE": "524288",
        "NCCL_P2P_NVL_CHUNKSIZE": "1048576",
        "NCCL_BUFFSIZE": "4194304",
        "NCCL_NSOCKS_PERTHREAD": "4",
        "NCCL_SOCKET_NTHREADS": "1",
        "NCCL_GPUDIRECTTCPX_TX_BINDINGS": "eth1:8-21,112-125;eth2:8-21,112-125;eth3:60-73,164-177;eth4:60-73,164-177",
        "NCCL_GPUDIRECTTCPX_RX_BINDINGS": "eth1:22-35,126-139;eth2:22-35,126-139;eth3:74-87,178-191;eth4:74-87,178-191",
        "NCCL_GPUDIRECTTCPX_PROGRAM_FLOW_STEERING_WAIT_MICROS": "500000",
        "NCCL_NVLS_ENABLE": "0",
    },
}
OURS = {
    "CUDA_VISIBLE_DEVICES": "launchers with one process for each GPU set it",
    "NCCL_DEBUG": "WARN hides which network was chosen",
    "NCCL_DEBUG_SUBSYS": "with INFO, COLL would print each collective",
    "NCCL_FASTRAK_LLCM_DEVICE_DIRECTORY": "part of the Pod's own list in the guide, not of the environment's",
    "NCCL_GPUDIRECTTCPX_UNIX_CLIENT_PREFIX": "the default would hide the image's /tmp",
}
"""Where we differ on purpose."""


@pytest.mark.parametrize(("family_id", "tuple_id", "profile"), PUBLISHED)
def test_a_profile_differs_from_the_published_values_only_where_it_is_said(
    family_id: str, tuple_id: str, profile: str
) -> None:
    family = find(family_id)
    found = environment(
        family, software=family.software(tuple_id), profile=profile, interfaces=default_interfaces(family)
    )
    values = {setting.name: setting.value for setting in found.settings}
    wanted = PUBLISHED[family_id, tuple_id, profile]
    different = {name for name in {*values, *wanted} if values.get(name) != wanted.get(name)}
    assert different <= set(OURS)


def test_no_image_belongs_to_two_tuples_of_one_family() -> None:
    for id_ in ("a3-high", "a3-mega", "a3-ultra", "a4", "a4x"):
        family = find(id_)
        for part in ("plugin", "daemon", "test"):
            images = [getattr(software, part) for software in family.tuples if getattr(software, part)]
            assert len(images) == len(set(images))
