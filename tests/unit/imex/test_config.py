from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlace.imex.config import ALLOWED, check_extra, config_text, nodes_text
from interlace.imex.reasons import ImexError, Reason
from tests.unit.imex.support import make_order

FOLDER = Path("/run/imex/x")


def text(**config: str) -> str:
    order = make_order(0, {0: "10.0.0.1"}, config=config)
    return config_text(order, bind="10.0.0.1", nodes_file=FOLDER / "nodes.cfg", command_socket=FOLDER / "cmd.sock")


def values(text: str) -> dict[str, str]:
    return dict(line.split("=", 1) for line in text.splitlines())


def test_the_config_binds_the_own_address_and_opens_no_command_port() -> None:
    found = values(text())
    assert found["BIND_INTERFACE_IP"] == "10.0.0.1"
    assert found["SERVER_PORT"] == "50000"
    assert found["IMEX_NODE_CONFIG_FILE"] == "/run/imex/x/nodes.cfg"
    assert found["IMEX_WAIT_FOR_QUORUM"] == "RECOVERY"
    assert found["IMEX_CMD_UNIX_DOMAIN_PATH"] == "/run/imex/x/cmd.sock"
    assert (found["IMEX_CMD_PORT"], found["IMEX_CMD_BIND_INTERFACE_IP"]) == ("", "")
    assert (found["LOG_FILE_NAME"], found["DAEMONIZE"]) == ("", "0")


def test_the_config_does_not_depend_on_the_order_of_keys() -> None:
    assert text(SERVER_PORT="50100", LOG_LEVEL="3") == text(LOG_LEVEL="3", SERVER_PORT="50100")


def test_an_allowed_key_replaces_ours_and_stands_once() -> None:
    changed = text(SERVER_PORT="50100", IMEX_SERVER_KEY="/etc/tls/key.pem")
    assert values(changed)["SERVER_PORT"] == "50100"
    assert values(changed)["IMEX_SERVER_KEY"] == "/etc/tls/key.pem"
    assert changed.count("SERVER_PORT=") == 1


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("DAEMONIZE", "1", "cannot be set by an order"),
        ("IMEX_NODE_CONFIG_FILE", "/etc/shadow", "cannot be set by an order"),
        ("SERVER_PORT", "0", "must be a number from 1 to 65535"),
        ("SERVER_PORT", "50000\nDAEMONIZE=1", "must be a number"),
        ("IMEX_WAIT_FOR_QUORUM", "FULL", "one of NONE, RECOVERY"),
        ("IMEX_SERVER_KEY", "/k\nDAEMONIZE=1", "absolute path"),
        ("IMEX_SECURITY_TARGET_OVERRIDE", "a b", "host name"),
    ],
)
def test_a_key_or_value_outside_the_allow_list_is_refused(key: str, value: str, said: str) -> None:
    with pytest.raises(ImexError, match=said) as caught:
        text(**{key: value})
    assert caught.value.reason is Reason.CONFIG_REFUSED
    assert key in caught.value.message


@given(st.sampled_from(sorted(ALLOWED)), st.text(max_size=30))
def test_no_accepted_value_adds_a_line(key: str, value: str) -> None:
    try:
        check_extra({key: value})
    except ImexError:
        return
    assert set(values(text(**{key: value}))) == set(values(text())) | {key}


def test_a_socket_path_that_no_unix_socket_can_have_is_refused_with_the_remedy() -> None:
    order = make_order(0, {0: "10.0.0.1"})
    with pytest.raises(ImexError, match="choose a shorter run directory"):
        config_text(order, bind="10.0.0.1", nodes_file=FOLDER / "n", command_socket=Path("/" + "x" * 107))


def test_the_nodes_file_holds_all_names_one_a_line() -> None:
    order = make_order(0, {0: "10.0.0.1"})
    assert nodes_text(order).splitlines() == order.names
