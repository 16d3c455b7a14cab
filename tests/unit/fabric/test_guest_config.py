"""What the plugin on a node would say to an environment, before it is asked."""

from __future__ import annotations

from pathlib import Path

import pytest

from interlace.fabric.environment import default_interfaces, environment
from interlace.fabric.family import find
from interlace.fabric.guest_config import GuestConfigError, check, read

DATA = Path(__file__).parents[2] / "data" / "fabric" / "guest_config_2024.txtpb"
OLD = read(DATA.read_text())


def profile(tuple_id: str, name: str = "default") -> dict[str, str]:
    family = find("a3-mega")
    software = family.software(tuple_id)
    found = environment(family, software=software, profile=name, interfaces=default_interfaces(family))
    return {"LD_LIBRARY_PATH": "/usr/local/nvidia/lib64", **{each.name: each.value for each in found.settings}}


def test_the_published_config_is_read_whole() -> None:
    policies = [rule.policy for rule in OLD.rules]
    assert (policies.count("enforced"), policies.count("recommended"), policies.count("required")) == (15, 2, 4)
    assert OLD.keywords == ("NCCL", "FASTRAK", "GPUDIRECTTCPX")
    assert OLD.cpus == "32-63"


def test_the_static_profile_passes_the_config_of_its_time() -> None:
    assert [finding for finding in check(OLD, profile("tcpxo-1.0.5")) if finding.ends] == []


def test_a_profile_marks_as_enforced_what_that_config_enforces() -> None:
    family = find("a3-mega")
    software = family.software("tcpxo-1.0.5")
    marked = {
        variable.name for variable in family.profile("default", of=software).variables if variable.need == "enforced"
    }
    assert marked == {rule.name for rule in OLD.rules if rule.policy == "enforced"}


def test_the_environment_of_a_later_release_would_end_the_job() -> None:
    ending = [finding.why for finding in check(OLD, profile("tcpxo-1.0.15")) if finding.ends]
    assert "NCCL_PROTO is Simple,LL128, and the plugin expects Simple" in ending
    assert "NCCL_ALGO is not set, and the plugin expects Ring,Tree" in ending


def test_a_required_variable_that_is_missing_ends_the_job() -> None:
    values = profile("tcpxo-1.0.5")
    del values["NCCL_FASTRAK_IFNAME"]
    (finding,) = [each for each in check(OLD, values) if each.ends]
    assert finding.why == "NCCL_FASTRAK_IFNAME is not set, and it must be"


def test_a_recommended_value_that_differs_is_a_warning() -> None:
    found = check(OLD, {**profile("tcpxo-1.0.5"), "NCCL_TUNER_PLUGIN": "mine.so"})
    (finding,) = [each for each in found if each.name == "NCCL_TUNER_PLUGIN"]
    assert not finding.ends
    assert finding.why.endswith("expects libnccl-tuner.so")


def test_a_name_that_no_rule_knows_is_a_warning_unless_it_is_ignored() -> None:
    found = check(OLD, {**profile("tcpxo-1.0.5"), "NCCL_MAX_P2P_NCHANNELS": "8", "NCCL_DEBUG": "INFO", "HOME": "/"})
    names = {each.name: each for each in found}
    assert names["NCCL_MAX_P2P_NCHANNELS"].why == "NCCL_MAX_P2P_NCHANNELS is set, and the plugin expects it unset"
    assert not names["NCCL_MAX_P2P_NCHANNELS"].ends
    assert "NCCL_DEBUG" not in names
    assert "HOME" not in names


def test_keywords_may_be_enforced() -> None:
    config = read(
        'env_var { name: "A" check_policy: POLICY_RECOMMENDED value: "1" } '
        'attention_keyword: "NCCL" attention_keyword_check_policy: POLICY_ENFORCED'
    )
    (finding,) = check(config, {"A": "1", "NCCL_X": "1"})
    assert finding.ends


def test_a_rule_without_a_value_wants_the_variable_unset() -> None:
    config = read('env_var { name: "A" check_policy: POLICY_ENFORCED }')
    assert check(config, {}) == ()
    assert check(config, {"A": "1"})[0].ends


def test_any_of_several_values_will_do() -> None:
    config = read('env_var { name: "A" check_policy: POLICY_ENFORCED value: ["1", "2"] }')
    assert check(config, {"A": "2"}) == ()
    assert check(config, {"A": "3"})[0].why == "A is 3, and the plugin expects 1 or 2"


def test_an_unknown_policy_is_said_to_be_unknown_and_never_passed() -> None:
    config = read('env_var { name: "A" check_policy: POLICY_STRANGE value: "1" } env_var { name: "B" value: "1" }')
    assert [rule.policy for rule in config.rules] == ["unknown", "unknown"]
    found = check(config, {"A": "1", "B": "1"})
    assert [finding.name for finding in found] == ["A", "B"]
    assert not any(finding.ends for finding in found)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "has no env_var"),
        ("a: 1", "has no env_var"),
        ("\nenv_var { value: '1' }", "line 2: an env_var has 0 names"),
        ("env_var { }", "an env_var has 0 names"),
        ("env_var { name: 'a' name: 'b' }", "an env_var has 2 names"),
    ],
)
def test_another_message_is_refused(text: str, says: str) -> None:
    with pytest.raises(GuestConfigError, match=says):
        read(text)
