"""Command lines of the components."""

from pathlib import Path

import pytest

from testbed import flags

STATE = Path("/state")
PORTS = flags.Ports(etcd=1, etcd_peer=2, apiserver=3, scheduler=4, controller_manager=5)


def arguments(component: str, **settings: object) -> list[str]:
    chosen = flags.Settings(**settings)  # type: ignore[arg-type]
    return flags.arguments(component, state=STATE, ports=PORTS, settings=chosen)


@pytest.mark.parametrize("component", flags.COMPONENTS)
def test_every_component_listens_on_loopback_only(component: str) -> None:
    text = " ".join(arguments(component))
    assert "127.0.0.1" in text
    assert "0.0.0.0" not in text


@pytest.mark.parametrize("component", flags.COMPONENTS)
def test_every_file_is_below_the_state_folder(component: str) -> None:
    values = [argument.partition("=")[2] for argument in arguments(component)]
    assert all(value.startswith("/state/") for value in values if value.startswith("/"))


def test_client_rates_are_the_platforms_own_unless_asked_for() -> None:
    assert not any("kube-api-qps" in argument for argument in arguments("kube-controller-manager"))
    assert set(flags.scheduler_configuration(STATE, flags.Settings())["clientConnection"]) == {"kubeconfig"}
    assert {"--kube-api-qps=500", "--kube-api-burst=1000"} <= set(arguments("kube-controller-manager", client_qps=500))
    connection = flags.scheduler_configuration(STATE, flags.Settings(client_qps=500))["clientConnection"]
    assert (connection["qps"], connection["burst"]) == (500, 1000)


def test_a_short_grace_period_is_looked_at_several_times() -> None:
    assert {"--node-monitor-grace-period=4s", "--node-monitor-period=1s"} <= set(
        arguments("kube-controller-manager", node_monitor_grace_period=4)
    )
    assert "--node-monitor-period=5s" in arguments("kube-controller-manager", node_monitor_grace_period=50.0)


def test_tolerations_cover_nodes_not_ready_and_unreachable() -> None:
    assert {"--default-not-ready-toleration-seconds=2", "--default-unreachable-toleration-seconds=2"} <= set(
        arguments("kube-apiserver", toleration_seconds=2)
    )


def test_gates_reach_all_three_and_api_versions_the_server() -> None:
    gates = {"DRAAdminAccess": True, "DRAPartitionableDevices": False}
    for component in ("kube-apiserver", "kube-scheduler", "kube-controller-manager"):
        assert "--feature-gates=DRAAdminAccess=true,DRAPartitionableDevices=false" in arguments(
            component, feature_gates=gates
        )
    assert "--runtime-config=resource.k8s.io/v1beta1=true" in arguments(
        "kube-apiserver", runtime_config={"resource.k8s.io/v1beta1": True}
    )


def test_without_a_controller_manager_pods_need_no_service_account() -> None:
    assert "--disable-admission-plugins=ServiceAccount" in arguments("kube-apiserver", controller_manager=False)
    assert flags.Settings(scheduler=False, controller_manager=False).components == ("etcd", "kube-apiserver")


def test_the_node_authorizer_is_on() -> None:
    assert "--authorization-mode=Node,RBAC" in arguments("kube-apiserver")


def test_our_own_probing_is_not_audited() -> None:
    first, *rest = flags.AUDIT_POLICY["rules"]
    assert first == {"level": "None", "users": [flags.PROBE]}
    assert rest == [{"level": "Metadata"}]
