from __future__ import annotations

import pytest

from interlace.domains.settings import ControllerSettings


def test_the_environment_of_the_deployment_suffices() -> None:
    env = {"POD_NAME": "interlace-controller-x", "NAMESPACE": "here", "MAX_NODES_PER_IMEX_DOMAIN": "36"}
    settings = ControllerSettings.parse([], {**env, "HTTP_ENDPOINT": ":8443"})
    assert settings.namespace == "here"
    assert settings.max_nodes == 36
    assert (settings.http_host, settings.http_port) == ("0.0.0.0", 8443)
    assert settings.identity.startswith("interlace-controller-x-")


def test_two_replicas_of_one_name_have_different_identities() -> None:
    parse = ControllerSettings.parse
    assert parse([], {"POD_NAME": "same"}).identity != parse([], {"POD_NAME": "same"}).identity


def test_a_flag_wins_over_the_environment() -> None:
    assert ControllerSettings.parse(["--namespace", "flag"], {"NAMESPACE": "env"}).namespace == "flag"


def test_an_ipv6_address_may_be_bound() -> None:
    assert ControllerSettings.parse(["--http-endpoint", "[::]:8080"], {}).http_host == "::"


@pytest.mark.parametrize(
    ("argv", "env", "says"),
    [
        (["--http-endpoint", "8080x"], {}, "give [address]:port"),
        (["--http-endpoint", ":99999"], {}, "give [address]:port"),
        ([], {"MAX_NODES_PER_IMEX_DOMAIN": "many"}, "--max-nodes-per-imex-domain: invalid int value: 'many'"),
        (["--workers", "0"], {}, "must be at least 1"),
        (["--leader-election-lease-duration", "5"], {}, "retry period < renew deadline < lease duration"),
        (["--unknown"], {}, "unrecognized arguments: --unknown"),
    ],
)
def test_bad_input_ends_with_status_2_and_one_sentence(
    argv: list[str], env: dict[str, str], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        ControllerSettings.parse(argv, env)
    assert ended.value.code == 2
    assert says in capsys.readouterr().err
