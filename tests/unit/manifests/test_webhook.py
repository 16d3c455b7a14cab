"""What installs the webhook: whole, with the least rights, equal to the committed file, and named as it serves."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from interlace.api import webhook as names
from interlace.fabric.devices import allow
from interlace.manifests import NAMESPACE, render
from interlace.manifests.webhook import configurations, webhook_manifests
from interlace.pods.admission import routes
from interlace.pods.settings import WebhookSettings
from interlace.pods.webhook import DEADLINE
from tests.unit.pods.no_injection import NoInjection, no_domain

ROOT = Path(__file__).parents[3]
OBJECTS = webhook_manifests()


def found(kind: str, *, name: str = names.SERVICE, objects: list[dict[str, Any]] = OBJECTS) -> dict[str, Any]:
    (one,) = [obj for obj in objects if obj["kind"] == kind and obj["metadata"]["name"] == name]
    return one


def hooks(objects: list[dict[str, Any]] = OBJECTS) -> list[dict[str, Any]]:
    return [hook for obj in objects for hook in obj.get("webhooks", ())]


def test_the_committed_file_is_what_is_rendered() -> None:
    text = (ROOT / "deploy/webhook.yaml").read_text()
    assert text == render(OBJECTS)
    assert list(yaml.safe_load_all(text)) == OBJECTS


def test_every_path_that_is_called_is_served() -> None:
    served = routes(injecting=NoInjection(), find=no_domain, mode="enforce", allowed=allow())
    assert {hook["clientConfig"]["service"]["path"] for hook in hooks()} == set(served)


def test_names_of_webhooks_are_unique_in_their_configuration() -> None:
    for obj in configurations():
        listed = [hook["name"] for hook in obj["webhooks"]]
        assert len(listed) == len(set(listed))


def test_api_servers_wait_longer_than_a_decision_may_take() -> None:
    assert all(hook["timeoutSeconds"] > DEADLINE for hook in hooks())


def test_pods_are_asked_about_only_if_they_or_their_namespace_ask() -> None:
    for hook in hooks():
        if hook["rules"][0]["resources"] == ["pods"]:
            asks = [
                expression["operator"]
                for selector in ("objectSelector", "namespaceSelector")
                for expression in hook.get(selector, {}).get("matchExpressions", ())
                if expression["key"] == names.FABRIC_LABEL
            ]
            assert "Exists" in asks or hook["matchConditions"]


def test_no_webhook_has_a_side_effect_so_a_dry_run_is_answered_too() -> None:
    assert {hook["sideEffects"] for hook in hooks()} == {"None"}


def test_the_right_to_secrets_is_to_one_and_to_write_is_to_the_own_objects() -> None:
    (rule,) = found("Role")["rules"]
    assert rule == {
        "apiGroups": [""],
        "resources": ["secrets"],
        "verbs": ["get", "list", "watch", "patch"],
        "resourceNames": [names.SECRET],
    }
    reading = {"get", "list", "watch"}
    for rule in found("ClusterRole")["rules"]:
        assert set(rule["verbs"]) <= reading or rule["resourceNames"]
        assert "secrets" not in rule["resources"]


def test_the_secret_comes_empty() -> None:
    assert "data" not in found("Secret", name=names.SECRET)


def test_two_replicas_are_never_down_together_by_plan() -> None:
    spec = found("Deployment")["spec"]
    assert spec["replicas"] == 2
    assert spec["strategy"]["rollingUpdate"]["maxUnavailable"] == 0
    assert found("PodDisruptionBudget")["spec"]["maxUnavailable"] == 1


def test_the_pod_is_unprivileged_and_writes_to_memory_alone() -> None:
    pod = found("Deployment")["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert container["securityContext"]["readOnlyRootFilesystem"] is True
    assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
    assert [volume["emptyDir"]["medium"] for volume in pod["volumes"]] == ["Memory"]


def test_the_environment_is_understood_by_the_webhook() -> None:
    (container,) = found("Deployment")["spec"]["template"]["spec"]["containers"]
    env = {entry["name"]: entry.get("value", NAMESPACE) for entry in container["env"]}
    settings = WebhookSettings.parse([], env)
    ports = {port["name"]: port["containerPort"] for port in container["ports"]}
    assert (settings.port, settings.http_port) == (ports["admission"], ports["http"])
    assert settings.certificate_names[0] == f"{names.SERVICE}.{NAMESPACE}.svc"


@pytest.mark.parametrize(("mode", "policy"), [("enforce", "Fail"), ("warn", "Ignore")])
def test_a_guard_that_enforces_holds_also_while_the_webhook_is_down(mode: str, policy: str) -> None:
    (hook,) = found(
        "ValidatingWebhookConfiguration", name=names.GUARD_CONFIGURATION, objects=configurations(guard=mode)
    )["webhooks"]
    assert hook["failurePolicy"] == policy


def test_without_guard_its_configuration_is_left_out_whole() -> None:
    left = [obj["metadata"]["name"] for obj in configurations(guard="off")]
    assert left == [names.CONFIGURATION, names.CONFIGURATION]
    assert [hook["name"] for hook in hooks(configurations(guard="off"))] == [
        hook["name"] for hook in hooks() if hook["name"] != "devices.interlace.dev"
    ]


def test_namespaces_can_be_exempt_from_the_guard() -> None:
    objects = configurations(exempt=["trusted", "kube-system"])
    (hook,) = found("ValidatingWebhookConfiguration", name=names.GUARD_CONFIGURATION, objects=objects)["webhooks"]
    label, named = hook["namespaceSelector"]["matchExpressions"]
    assert label == {"key": names.GUARD_LABEL, "operator": "NotIn", "values": ["off"]}
    assert named["values"] == ["kube-system", NAMESPACE, "trusted"]
