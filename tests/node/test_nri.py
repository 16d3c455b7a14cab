"""Device injection by the agent under a real kubelet and containerd: who gets devices, who is refused, who waits."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
import pytest_asyncio

from interlace.api.core import ObjectReference
from interlace.api.meta import Resource
from interlace.fabric.devices import allow
from interlace.fabric.family import Family, find
from interlace.kube.meters import Registry
from interlace.kube.untyped import untyped
from interlace.node.nri.injection import Rules
from interlace.node.nri.injector import Injector, InjectorSettings
from interlace.node.nri.metrics import Metrics
from testbed.box import FILES
from testbed.node import Node
from tests.holding import hold
from tests.node import jobs
from tests.node.injection import (
    AGENT,
    FIRST_MINOR,
    HOST_DEV,
    agent,
    asking,
    call_it,
    daemon_of,
    eight_gpus,
    injected,
    make_devices,
    put_back,
    until_injecting,
    write_image,
)
from tests.node.machine import allowed_devices, container_pid
from tests.node.world import NAMESPACE, POD, WITHIN, World, run_namespace
from tests.waiting import eventually

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.timeout(600)]

EVENT = untyped(Resource("", "v1", "events", "Event", True))
JOB = untyped(Resource("batch", "v1", "jobs", "Job", True))
FAMILIES = ("a3-mega", "a3-high")
MEGA = find("a3-mega")
PAUSE = ["helper", "pause"]


def devices(family: Family) -> list[str]:
    """What the family's daemon is given."""
    assert family.pod.sidecar is not None
    return list(family.pod.sidecar.devices)


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def machine(node: World, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Node]:
    """The node, an A3 Mega with an agent that injects devices."""
    (found,) = node.nodes.values()
    image = tmp_path_factory.mktemp("daemon") / "daemon.tar"
    await write_image(image)
    await found.load(image)
    make_devices(found, devices(MEGA), major=node.major)
    await call_it(node, found, MEGA.machines[0])
    await node.apply(agent())
    await until_injecting(node)
    async with hold(eight_gpus(node, found)):
        yield found
    await put_back(node, found)


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def refusals(node: World) -> AsyncIterator[str]:
    """One namespace for all Pods that are refused."""
    async with hold(run_namespace(node)) as name:
        yield name


async def events(world: World, namespace: str) -> list[tuple[str, str, str]]:
    """Name of the object, reason and message."""
    found = (await world.client.list(EVENT, namespace=namespace)).items
    return [(each["involvedObject"]["name"], each.get("reason", ""), each.get("message", "")) for each in found]


async def until_said(world: World, namespace: str, name: str, reason: str, part: str) -> None:
    """Wait for an event about a Pod."""

    async def said() -> bool:
        found = await events(world, namespace)
        assert [each for each in found if each[:2] == (name, reason) and part in each[2]], found
        return True

    await eventually(said, within=WITHIN, every=0.2, what=f"event {reason}")


async def ready(world: World, namespace: str, name: str) -> dict[str, Any]:
    (pod,) = await world.until_ready(namespace, labels=f"job={name}", count=1)
    return pod


async def remove(world: World, namespace: str, name: str) -> None:
    """Delete a Pod and wait for its end: it has all GPUs of the node."""
    await world.client.delete(POD, name, namespace=namespace)
    await world.until_ready(namespace, labels=f"job={name}", count=0)


async def listing(world: World, pod: dict[str, Any]) -> set[str]:
    return set((await world.execute(pod, "helper", "list", "/dev")).splitlines())


@pytest.mark.parametrize("name", FAMILIES)
async def test_the_daemon_of_an_injected_pod_sees_and_may_use_exactly_the_annotated_devices(
    node: World, machine: Node, namespace: str, name: str
) -> None:
    family = find(name)
    await call_it(node, machine, family.machines[0])
    await node.apply(injected("train", namespace, family=family, command=PAUSE))
    pod = await ready(node, namespace, "train")
    daemon = daemon_of(pod)
    # All families' devices, in the order in which they were made.
    numbers = {path: FIRST_MINOR + at for at, path in enumerate(devices(MEGA))}
    plain, own = await listing(node, pod), await listing(node, daemon)
    shown = {f"c {path.removeprefix('/dev/')} {node.major}:{numbers[path]} 666" for path in devices(family)}
    # /dev/shm and the like of the work itself lie there too.
    assert own - plain == shown
    assert allowed_devices(container_pid(daemon)) - allowed_devices(container_pid(pod)) == {
        f"c {node.major}:{numbers[path]} rw" for path in devices(family)
    }
    for path in devices(family):
        assert await node.execute(daemon, "helper", "open", path) == "ENXIO\n"
    disk = FIRST_MINOR + len(devices(MEGA))
    await node.execute(daemon, "helper", "mknod", "/run/disk", str(node.major), str(disk))
    assert await node.execute(daemon, "helper", "open", "/run/disk") == "EPERM\n"
    await remove(node, namespace, "train")
    await call_it(node, machine, MEGA.machines[0])


@pytest.mark.parametrize(
    ("name", "text", "reason", "part"),
    [
        ("disk", "- path: /dev/sda\n", "DeviceNotAllowed", "/dev/sda may not be injected on this node"),
        ("dots", "- path: /dev/nvidia0/../sda\n", "DeviceAnnotationUnreadable", "is no path of a device"),
        ("link", "- path: /dev/nvidia99\n", "NotADevice", "/dev/nvidia99 is a symlink on the node"),
        ("twice", "- path: /dev/nvidia0\n  Path: /dev/sda\n", "DeviceAnnotationUnreadable", "Path is there twice"),
        ("absent", "- path: /dev/nvidia55\n", "DeviceMissingOnNode", "/dev/nvidia55 does not exist on the node"),
    ],
)
async def test_a_device_that_may_not_be_had_keeps_the_container_from_being_made(
    node: World, machine: Node, refusals: str, name: str, text: str, reason: str, part: str
) -> None:
    await node.apply(asking(name, refusals, text))
    await until_said(node, refusals, name, reason, part)
    # Kubelet has it from containerd, which has it from us.
    await until_said(node, refusals, name, "Failed", part)
    (pod,) = await node.pods(refusals, labels=f"job={name}")
    (status,) = pod["status"]["containerStatuses"]
    assert status["state"].get("running") is None
    assert status["restartCount"] == 0
    assert machine.containerd is not None
    assert machine.containerd.running
    await node.client.delete(POD, name, namespace=refusals)


async def test_a_job_with_an_injected_daemon_completes(node: World, machine: Node, namespace: str) -> None:
    pod = injected("once", namespace, family=MEGA, command=["helper", "exit", "0"])
    template = {"metadata": {key: pod["metadata"][key] for key in ("labels", "annotations")}, "spec": pod["spec"]}
    await node.apply(
        {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": {"name": "once", "namespace": namespace},
            "spec": {"backoffLimit": 0, "template": template},
        }
    )

    async def complete() -> bool:
        (job,) = (await node.client.list(JOB, namespace=namespace)).items
        conditions = {each["type"]: each["status"] for each in job.get("status", {}).get("conditions", [])}
        assert conditions.get("Complete") == "True", (conditions, (await events(node, namespace))[-5:])
        return True

    await eventually(complete, within=WITHIN, every=0.2, what="the end of the Job")
    assert machine.name in node.nodes


async def test_after_a_restart_of_containerd_the_next_pod_is_injected_and_the_running_one_goes_on(
    node: World, machine: Node, namespace: str
) -> None:
    text = "- path: /dev/nvidia0\n"
    await node.apply(asking("first", namespace, text))
    first = await ready(node, namespace, "first")
    await machine.stop_containerd(kill=True)
    await machine.start_containerd()
    await node.apply(asking("second", namespace, text))
    second = await ready(node, namespace, "second")
    assert await node.execute(second, "helper", "open", "/dev/nvidia0") == "ENXIO\n"
    again = await ready(node, namespace, "first")
    assert container_ids(again) == container_ids(first)
    assert await node.execute(again, "helper", "open", "/dev/nvidia0") == "ENXIO\n"
    await until_injecting(node)


async def test_an_agent_that_is_replaced_leaves_running_pods_alone_and_injects_the_next(
    node: World, machine: Node, namespace: str
) -> None:
    text = "- path: /dev/nvidia0\n"
    await node.apply(asking("first", namespace, text))
    first = await ready(node, namespace, "first")
    (before,) = await node.pods(NAMESPACE, labels=AGENT)
    await node.client.delete(POD, before["metadata"]["name"], namespace=NAMESPACE)

    async def replaced() -> bool:
        return bool((await until_injecting(node))["metadata"]["uid"] != before["metadata"]["uid"])

    await eventually(replaced, within=WITHIN, every=0.2, what="another agent")
    await node.apply(asking("second", namespace, text))
    second = await ready(node, namespace, "second")
    assert await node.execute(second, "helper", "open", "/dev/nvidia0") == "ENXIO\n"
    assert container_ids(await ready(node, namespace, "first")) == container_ids(first)
    assert machine.name in node.nodes


async def test_without_an_agent_the_work_does_not_start_and_with_one_again_it_does(
    node: World, machine: Node, namespace: str
) -> None:
    async with no_agent(node):
        await node.apply(injected("train", namespace, family=MEGA, command=PAUSE))
        await until_said(node, namespace, "train", "Unhealthy", "/dev/nvidia0 is missing: no device injector was")
        (pod,) = await node.pods(namespace, labels="job=train")
        assert [status["state"].get("running") for status in pod["status"]["containerStatuses"]] == [None]
    await until_said(node, namespace, "train", "DevicesMissing", "runs without /dev/dmabuf_import_helper")
    # Kubelet starts the daemon again once its probe has failed often enough; the end of its process comes sooner.
    os.kill(container_pid(daemon_of(pod)), signal.SIGKILL)
    pod = await ready(node, namespace, "train")
    assert await node.execute(daemon_of(pod), "helper", "open", "/dev/nvidia0") == "ENXIO\n"
    await remove(node, namespace, "train")
    assert machine.name in node.nodes


async def test_where_the_runtime_requires_the_injector_the_daemon_is_not_even_made_without_it(
    node: World, machine: Node, namespace: str
) -> None:
    """The default validator of containerd 2.2, which is off unless somebody switches it on."""
    config = machine.box.path(f"{FILES}/containerd.toml")
    before = config.read_text()
    config.write_text(f'{before}\n  [plugins."io.containerd.nri.v1.nri".default_validator]\n    enable = true\n')
    await machine.stop_containerd()
    await machine.start_containerd()
    pod = injected("train", namespace, family=MEGA, command=PAUSE, required_plugin="interlace")
    async with no_agent(node):
        await node.apply(pod)
        await until_said(node, namespace, "train", "Failed", 'required plugin "interlace" not present')
    await ready(node, namespace, "train")
    await remove(node, namespace, "train")
    config.write_text(before)
    await machine.stop_containerd()
    await machine.start_containerd()


@pytest.mark.parametrize("index", ["10", "90"])
async def test_beside_another_injector_each_device_is_injected_once_and_the_node_says_who_does(
    node: World, machine: Node, namespace: str, index: str
) -> None:
    """The other is a second one of ours under the name of GKE's, before ours in the chain and after it."""
    rules = Rules(allowed=allow(), dev=machine.box.path(HOST_DEV))
    settings = InjectorSettings(
        socket=machine.box.path("/run/nri/nri.sock"), name="device_injector_nri", index=index, rules=rules
    )
    text = "- path: /dev/nvidia0\n"
    said = Said()
    other = Injector(settings, node=machine.name, events=said, metrics=Metrics(Registry()))
    async with asyncio.TaskGroup() as group:
        task = group.create_task(other.run())
        await eventually(lambda: other.problem is None, within=WITHIN, what="the other injector")
        # Any container tells ours who else is there.
        await node.apply(jobs.plain_pod(namespace, machine.name))
        await node.until_ready(namespace, labels="job=plain", count=1)
        await node.apply(asking("train", namespace, text))
        pod = await ready(node, namespace, "train")
        assert await node.execute(pod, "helper", "open", "/dev/nvidia0") == "ENXIO\n"
        await node.apply(asking("disk", namespace, "- path: /dev/sda\n"))
        await until_said(node, namespace, "disk", "Failed", "/dev/sda may not be injected")
        task.cancel()
    await until_said(node, "default", machine.name, "OtherDeviceInjector", f"device_injector_nri with index {index}")


class Said:
    """The other's events go nowhere."""

    def event(self, about: ObjectReference, *, reason: str, message: str, warning: bool = False) -> None: ...


@asynccontextmanager
async def no_agent(world: World) -> AsyncIterator[None]:
    """Take the agents away, and bring them back."""
    daemons = agent()
    selector = daemons["spec"]["template"]["spec"]["nodeSelector"]
    selector["interlace.dev/nowhere"] = "true"
    await world.apply(daemons)
    await world.until_ready(NAMESPACE, labels=AGENT, count=0)
    yield
    selector.pop("interlace.dev/nowhere")
    await world.apply(daemons)
    await until_injecting(world)


def container_ids(pod: dict[str, Any]) -> list[str]:
    return [status["containerID"] for status in pod["status"]["containerStatuses"]]
