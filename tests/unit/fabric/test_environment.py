"""Interface names are filled in from what the caller knows."""

from __future__ import annotations

import pytest

from interlace.fabric.environment import Interfaces, default_interfaces, environment, fill
from interlace.fabric.family import find

RAILS = Interfaces(control="ens4", data=("r0", "r1", "r2"))


@pytest.mark.parametrize(
    ("text", "filled"),
    [
        ("{control}", "ens4"),
        ("{data}", "r0,r1,r2"),
        ("{data[2]}:1-2;{data[0]}:3", "r2:1-2;r0:3"),
        ("{lib}/x.so", "/lib64/x.so"),
        ("plain {other} {data[x]}", "plain {other} {data[x]}"),
        ("", ""),
    ],
)
def test_places_are_filled_and_other_braces_left(text: str, filled: str) -> None:
    assert fill(text, interfaces=RAILS, lib="/lib64") == filled


def test_a_place_for_an_interface_that_is_not_there_is_an_error() -> None:
    with pytest.raises(ValueError, match="needs 4 interfaces for traffic of GPUs, and there are 3: r0, r1, r2"):
        fill("{data[3]}", interfaces=RAILS, lib="")


def test_the_names_of_the_cluster_reach_every_variable() -> None:
    family = find("a3-high")
    names = Interfaces(control="ctl", data=("w", "x", "y", "z"))
    found = environment(family, software=family.software_for(None), profile="default", interfaces=names)
    values = {setting.name: setting.value for setting in found.settings}
    assert values["NCCL_GPUDIRECTTCPX_SOCKET_IFNAME"] == "w,x,y,z"
    assert values["NCCL_SOCKET_IFNAME"] == "ctl"
    assert values["NCCL_GPUDIRECTTCPX_RX_BINDINGS"].startswith("w:22-35,126-139;x:")
    assert "eth" not in "".join(values.values())


def test_a_family_without_networks_has_only_the_pod_network() -> None:
    assert default_interfaces(find("gb200-nvl72")) == Interfaces(control="eth0", data=())


def test_variables_of_the_pod_contract_come_first_and_the_script_is_named() -> None:
    family = find("a3-mega")
    software = family.software("tcpxo-1.0.15")
    found = environment(family, software=software, profile="simple", interfaces=default_interfaces(family))
    assert found.settings[0].name == "NCCL_FASTRAK_LLCM_DEVICE_DIRECTORY"
    assert found.script == "/usr/local/nvidia/lib64/nccl-env-profile-simple.sh"
    assert found.library_path == ("/usr/local/nvidia/lib64",)
