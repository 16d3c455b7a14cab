"""Flags of the device injector."""

from __future__ import annotations

from pathlib import Path

import pytest

from interlace.node.errors import SettingsError
from interlace.node.settings import AgentSettings


def parse(*flags: str, **env: str) -> AgentSettings:
    return AgentSettings.parse(["--node-name=a", *flags], env)


def test_it_is_off_unless_flag_or_environment_say_on() -> None:
    assert not parse().nri
    assert parse("--nri=on").nri
    assert parse(INTERLACE_NRI="on").nri
    assert not parse("--nri=off", INTERLACE_NRI="on").nri


def test_name_index_sockets_and_devices_reach_the_injector() -> None:
    found = parse(
        "--nri-plugin-name=mine",
        "--nri-plugin-index=07",
        "--nri-socket=/run/nri.sock",
        "--host-dev=/host-dev",
        "--allow-device=/dev/one, /dev/two*",
        "--nri-node-resource=on",
    ).injector
    assert (found.name, found.index, found.socket) == ("mine", "07", Path("/run/nri.sock"))
    assert (found.rules.dev, found.rules.node_resource) == (Path("/host-dev"), True)
    assert "/dev/two7" in found.rules.allowed
    assert "/dev/nvidia0" in found.rules.allowed
    assert "/dev/sda" not in found.rules.allowed


def test_the_command_that_restarts_the_runtime_is_split_as_a_shell_does() -> None:
    found = parse("--enable-nri=/etc/containerd/conf.d/nri.toml", "--restart-runtime=systemctl restart 'a b'")
    assert found.enable_nri == Path("/etc/containerd/conf.d/nri.toml")
    assert found.restart_runtime == ("systemctl", "restart", "a b")


@pytest.mark.parametrize(
    ("flag", "said"),
    [
        ("--nri=yes", "--nri is 'yes': it has to be on or off"),
        ("--nri-plugin-index=5", "it has to be two digits"),
        ("--nri-plugin-name=a/b", "it has to be letters, digits and"),
        ("--allow-device=/etc/x", "'/etc/x' is no device path"),
        ("--restart-runtime='", "No closing quotation"),
        ("--restart-runtime= ", "it has to be a command"),
    ],
)
def test_a_bad_value_is_one_sentence(flag: str, said: str) -> None:
    with pytest.raises(SettingsError, match=said):
        parse(flag)
