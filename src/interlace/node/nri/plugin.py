"""NRI's Plugin service: what the runtime asks of the injector on one connection.

Only containers that are made are of interest; on runtimes that know it (NRI 0.10 and later) the injector also sees
what all plugins together made of a container, and who they are. Invariants: an unreadable or forbidden wish fails the
container, never the connection; whoever is not asked for devices costs nothing but the reading of the request.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final, Protocol

from interlace.kube.log import get_logger
from interlace.node.nri.errors import Reason, Refused
from interlace.node.nri.injection import Decision, Injected, Present, Rules, asked, decide
from interlace.node.nri.proto import nri_pb2 as pb
from interlace.node.nri.ttrpc import FAILED_PRECONDITION, INVALID_ARGUMENT, PERMISSION_DENIED, Handler, Status

PACKAGE: Final = "nri.pkg.api.v1alpha1"
SERVICE: Final = f"{PACKAGE}.Plugin"
CREATE: Final = 1 << 3
"""Event mask: containers that are made."""
VALIDATE: Final = 1 << 13
"""Event mask: what all plugins made of a container; older runtimes hang up on it."""
OTHER_INJECTORS: Final = frozenset({"device_injector_nri"})
"""Plugins that read the same annotations; the first is GKE's."""
KEPT: Final = 10_000
"""Containers of which is remembered, while the runtime tells its state, that they may lack devices."""

_CODES: Final = {Reason.BAD_ANNOTATION: INVALID_ARGUMENT, Reason.NOT_ALLOWED: PERMISSION_DENIED}
log = get_logger(__name__)


class Witness(Protocol):
    """Who is told what happens; nothing of it may wait."""

    def synchronized(self) -> None:
        """The runtime calls us for every container from now on."""

    def injected(self, pod: pb.PodSandbox, container: str, decision: Decision) -> None:
        """A container got its devices."""

    def refused(self, pod: pb.PodSandbox, refused: Refused) -> None:
        """A container is not made."""

    def bare(self, pod: pb.PodSandbox, container: str, paths: Iterable[str]) -> None:
        """A container runs without devices that it asks for."""

    def other(self, name: str, index: str, *, later: bool) -> None:
        """Another injector is on this node; ``later``: it is called after us."""


class Plugin:
    """The service on one connection. ``events``: the mask that is subscribed to; ``name``, ``index``: as registered."""

    def __init__(self, *, events: int, name: str, index: str, rules: Rules, witness: Witness) -> None:
        self._events = events
        self._name = name
        self._index = index
        self._rules = rules
        self._witness = witness
        self._later: str = ""
        self._pods: dict[str, pb.PodSandbox] = {}
        self._containers: list[pb.Container] = []
        self.configured = False
        self.synchronized = False
        self.runtime = ""
        """Name and version, once it told them."""

    def services(self) -> Mapping[str, Mapping[str, Handler]]:
        """For `ttrpc.Server`. State changes that have a call of their own are left to StateChange."""
        handlers: dict[str, Callable[[bytes], bytes]] = {
            "Configure": self._configure,
            "Synchronize": self._synchronize,
            "Shutdown": _empty,
            "CreateContainer": self._create,
            "ValidateContainerAdjustment": self._validate,
            "StateChange": _empty,
        }
        return {SERVICE: handlers}

    def _configure(self, payload: bytes) -> bytes:
        request = pb.ConfigureRequest.FromString(payload)
        self.configured = True
        self.runtime = f"{request.runtime_name} {request.runtime_version}".strip()
        return pb.ConfigureResponse(events=self._events).SerializeToString()

    def _synchronize(self, payload: bytes) -> bytes:
        request = pb.SynchronizeRequest.FromString(payload)
        room = KEPT - len(self._pods)
        self._pods |= {pod.id: pod for pod in list(request.pods)[: max(0, room)] if pod.annotations}
        living = (pb.CONTAINER_CREATED, pb.CONTAINER_RUNNING)
        self._containers += [each for each in request.containers if each.state in living][
            : max(0, KEPT - len(self._containers))
        ]
        if not request.more:
            self._look_for_bare()
            self.synchronized = True
            self._witness.synchronized()
        return pb.SynchronizeResponse(more=request.more).SerializeToString()

    def _look_for_bare(self) -> None:
        for container in self._containers:
            pod = self._pods.get(container.pod_sandbox_id)
            if pod is not None:
                wanted = asked(pod.annotations, container=container.name, rules=self._rules)
                missing = sorted(wanted - set(_present(container.linux.devices)))
                if missing:
                    self._witness.bare(pod, container.name, missing)
        self._pods.clear()
        self._containers.clear()

    def _create(self, payload: bytes) -> bytes:
        request = pb.CreateContainerRequest.FromString(payload)
        pod, container = request.pod, request.container
        try:
            present = _present(container.linux.devices)
            decision = decide(pod.annotations, container=container.name, present=present, rules=self._rules)
        except Refused as refused:
            self._witness.refused(pod, refused)
            raise Status(_CODES.get(refused.reason, FAILED_PRECONDITION), refused.message) from None
        if self._later and decision.add:
            log.info(
                "left to another injector", plugin=self._later, namespace=pod.namespace, pod=pod.name,
                container=container.name,
            )  # fmt: skip
            return b""
        if decision.add or decision.there:
            self._witness.injected(pod, container.name, decision)
        return _response(decision.add)

    def _validate(self, payload: bytes) -> bytes:
        """See who else is there, and refuse a container that was left to another injector and lacks devices."""
        request = pb.ValidateContainerAdjustmentRequest.FromString(payload)
        self._later = ""
        for plugin in request.plugins:
            own = (plugin.name, plugin.index) == (self._name, self._index)
            if plugin.name in OTHER_INJECTORS and not own:
                # Plugins with the same index are called in no defined order.
                later = plugin.index >= self._index
                self._later = plugin.name if later else self._later
                self._witness.other(plugin.name, plugin.index, later=later)
        pod, container = request.pod, request.container
        wanted = asked(pod.annotations, container=container.name, rules=self._rules)
        if not wanted:
            return b""
        given = {*_present(container.linux.devices), *_present(request.adjust.linux.devices)}
        missing = sorted(wanted - given)
        if not missing:
            return b""
        refused = Refused(
            Reason.NOT_INJECTED,
            f"container {container.name}: {', '.join(missing)} was injected by no plugin; it is tried again",
        )
        self._witness.refused(pod, refused)
        return pb.ValidateContainerAdjustmentResponse(reject=True, reason=refused.message).SerializeToString()


def _empty(_: bytes) -> bytes:
    return b""


def _present(devices: Iterable[pb.LinuxDevice]) -> Present:
    return {device.path: (device.type, device.major, device.minor) for device in devices}


def _response(devices: Iterable[Injected]) -> bytes:
    response = pb.CreateContainerResponse()
    for device in devices:
        wish, host = device.asked, device.host
        added = response.adjust.linux.devices.add(path=wish.path, type=host.kind, major=host.major, minor=host.minor)
        if wish.file_mode:
            added.file_mode.value = wish.file_mode
        if wish.uid:
            added.uid.value = wish.uid
        if wish.gid:
            added.gid.value = wish.gid
    return response.SerializeToString()
