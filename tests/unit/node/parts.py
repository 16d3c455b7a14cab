"""Values and stand-ins for the agent's neighbours: an API server's claims, an imex-host that can be made ready."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import msgspec

from interlace.api.computedomain import API_VERSION, DOMAIN_LABEL, DRIVER
from interlace.api.core import ObjectReference
from interlace.api.meta import ObjectMeta
from interlace.api.resource import (
    AllocationResult,
    DeviceAllocationResult,
    DeviceConfiguration,
    DeviceRequestAllocationResult,
    OpaqueDeviceConfiguration,
    ResourceClaim,
    ResourceClaimConsumerReference,
    ResourceClaimStatus,
)
from interlace.imex.order import Order, State
from interlace.imex.order import Refusal as HostRefusal
from interlace.kube.client import Client
from interlace.kube.errors import NotFound
from interlace.node.checkpoint import Checkpoint
from interlace.node.demand import ClaimRef
from interlace.node.fabric import Fabric
from interlace.node.files import write_whole
from interlace.node.membership import Membership, Row
from interlace.node.prepare import Preparer
from interlace.node.report import Reporter
from interlace.node.settings import AgentSettings
from interlace.node.state import NodeState

NODE = "tray-1"
CLUSTER = "8d9b8a9e-0b63-4c2f-9d34-3e5f7f1f0a11"
CLIQUE = f"{CLUSTER}.3"
DOMAIN = "c0ffee00-1111-4222-8333-444455556666"
OTHER = "decade00-1111-4222-8333-444455556666"


def parameters(domain: str = DOMAIN, **more: Any) -> bytes:
    """Opaque parameters of a channel, as our templates have them."""
    body = {"apiVersion": API_VERSION, "domainID": domain, "kind": "ComputeDomainChannelConfig", **more}
    return json.dumps(body, sort_keys=True, separators=(",", ":")).encode()


def configuration(
    content: bytes, *, source: str = "FromClaim", requests: list[str] | None = None
) -> DeviceConfiguration:
    return DeviceConfiguration(
        requests=requests or [],
        source=source,
        opaque=OpaqueDeviceConfiguration(driver=DRIVER, parameters=msgspec.Raw(content)),
    )


def ref(number: int = 1, *, namespace: str = "team") -> ClaimRef:
    return ClaimRef(namespace=namespace, name=f"worker-{number}", uid=f"uid-{number}")


def a_claim(
    number: int = 1,
    *,
    domain: str = DOMAIN,
    namespace: str = "team",
    labels: dict[str, str] | None = None,
    config: list[DeviceConfiguration] | None = None,
    node: str = NODE,
    device: str = "channel-0",
    **more: Any,
) -> ResourceClaim:
    """An allocated and reserved claim; ``more`` goes into the opaque parameters."""
    return ResourceClaim(
        metadata=ObjectMeta(
            name=f"worker-{number}",
            namespace=namespace,
            uid=f"uid-{number}",
            labels={DOMAIN_LABEL: domain} if labels is None else labels,
        ),
        status=ResourceClaimStatus(
            allocation=AllocationResult(
                devices=DeviceAllocationResult(
                    results=[DeviceRequestAllocationResult(request="channel", driver=DRIVER, pool=node, device=device)],
                    config=[configuration(parameters(domain, **more))] if config is None else config,
                )
            ),
            reserved_for=[
                ResourceClaimConsumerReference(resource="pods", name=f"pod-{number}", uid=f"pod-uid-{number}")
            ],
        ),
    )


def a_membership(
    domain: str = DOMAIN, *, index: int | None = 0, others: int = 1, namespace: str = "team", created: str = ""
) -> Membership:
    """A domain in which this node has ``index``, beside so many others; None: it is not in it."""
    own = Row(node=NODE, index=index, address="10.0.0.1") if index is not None else None
    free = [number for number in range(18) if number != index]
    rows = [Row(node=f"other-{free[i]}", index=free[i], address=f"10.0.1.{i + 1}") for i in range(others)]
    return Membership(
        domain=domain,
        name="dom",
        namespace=namespace,
        created=created,
        rows=tuple(rows + ([own] if own else [])),
        own=own,
    )


class FakeLink:
    """An imex-host that records what is wanted; with ``prompt`` it is ready for it at once."""

    def __init__(self, *, prompt: bool = True) -> None:
        self.state: State | None = State()
        self.refusal: HostRefusal | None = None
        self.prompt = prompt
        self.wanted: list[Order | str] = []
        self.handlers: list[Callable[[State | None], None]] = []
        self._telling = False

    def order(self, order: Order) -> None:
        if self.wanted[-1:] != [order]:
            self.wanted.append(order)
            if self.prompt:
                self.ready(order.domain, index=order.index)

    def release(self, domain: str) -> None:
        if self.wanted[-1:] != [domain]:
            self.wanted.append(domain)
            if self.prompt and self.state is not None and self.state.domain == domain:
                self.say(State())

    def on_state(self, handler: Callable[[State | None], None]) -> None:
        self.handlers.append(handler)

    def say(self, state: State | None) -> None:
        self.state = state
        # As in the real link, news comes on a step of the loop of its own.
        asyncio.get_running_loop().call_soon(lambda: [handler(state) for handler in self.handlers])

    def ready(self, domain: str, *, index: int = 0) -> None:
        self.say(State(domain=domain, index=index, phase="Ready"))

    def obey(self) -> None:
        """Become ready for what is wanted."""
        last = self.wanted[-1]
        if isinstance(last, Order):
            self.ready(last.domain, index=last.index)
        else:
            self.say(State())


class FakeApi:
    """Claims to get, and the status writes that came."""

    def __init__(self) -> None:
        self.claims: dict[tuple[str, str], ResourceClaim] = {}
        self.gets: list[str] = []
        self.applied: list[dict[str, Any]] = []
        self.failures: list[Exception] = []
        self.apply_failures: list[Exception] = []
        self.hold_get: asyncio.Event | None = None
        self.hold_apply: asyncio.Event | None = None
        self.keeps_reports = True
        """Whether status.devices of claims is stored; not so on Kubernetes 1.32."""

    def add(self, *claims: ResourceClaim) -> None:
        for claim in claims:
            self.claims[claim.metadata.namespace, claim.metadata.name] = claim

    async def get(self, kind: type[Any], name: str, *, namespace: str | None = None) -> ResourceClaim:
        self.gets.append(name)
        if self.hold_get is not None:
            await self.hold_get.wait()
        if self.failures:
            raise self.failures.pop(0)
        found = self.claims.get((namespace or "", name))
        if found is None:
            raise NotFound("not found", status=404, method="GET", path=name)
        return found

    async def apply(self, kind: type[Any], body: dict[str, Any], **more: Any) -> Any:
        if self.hold_apply is not None:
            await self.hold_apply.wait()
        if self.apply_failures:
            raise self.apply_failures.pop(0)
        self.applied.append(json.loads(msgspec.json.encode(body)))
        if kind is not ResourceClaim or self.keeps_reports:
            return msgspec.json.decode(msgspec.json.encode(body), type=kind)
        return msgspec.json.decode(msgspec.json.encode({**body, "status": {}}), type=kind)

    def conditions(self, write: int = -1) -> dict[str, tuple[str, str]]:
        """Status and reason by type of one write."""
        entry = self.applied[write]["status"]["devices"][0]
        return {c["type"]: (c["status"], c["reason"]) for c in entry["conditions"]}


class FakeEvents:
    """Events that were recorded."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, str, str]] = []

    def event(self, about: ObjectReference, *, reason: str, message: str, warning: bool = False) -> None:
        self.seen.append((f"{about.kind}/{about.namespace}/{about.name}", reason, message))


class InlineCheckpoint(Checkpoint):
    """Writes at once instead of in a thread: virtual time would run away while a thread works."""

    async def _commit(self) -> None:
        from interlace.node.checkpoint import encode

        write_whole(self.path, encode(list(self), boot_id="boot"), sync=False)


class Bench:
    """A preparer with its neighbours."""

    def __init__(self, root: Path, *, prompt: bool = True, fabric: Fabric | None = None, **settings: Any) -> None:
        for name in ("home", "cdi", "proc"):
            (root / name).mkdir(exist_ok=True)
        (root / "proc" / "devices").write_text("Character devices:\n235 nvidia-caps-imex-channels\n")
        self.settings = AgentSettings(
            node_name=NODE,
            cdi_root=root / "cdi",
            plugins_dir=root / "home",
            registrar_dir=root / "registrar",
            proc_devices=root / "proc" / "devices",
            proc_params=root / "proc" / "params",
            **settings,
        )
        self.settings.home.mkdir(exist_ok=True)
        self.api = FakeApi()
        self.link = FakeLink(prompt=prompt)
        self.events = FakeEvents()
        self.checkpoint = InlineCheckpoint(self.settings.home, boot_id="boot")
        self.state = NodeState(node=NODE, slots=18, link=self.link, checkpoint=self.checkpoint)
        self.state.fabric = fabric or Fabric(clique=CLIQUE)
        self.state.synced = True
        self.reporter = Reporter(cast("Client", self.api))
        self.preparer = Preparer(
            self.settings,
            client=cast("Client", self.api),
            checkpoint=self.checkpoint,
            state=self.state,
            reporter=self.reporter,
            events=self.events,
        )

    def join(self, domain: str = DOMAIN, **more: Any) -> None:
        """The controller writes this node's row."""
        self.state.memberships[domain] = a_membership(domain, **more)
        self.state.poke()

    def leave(self, domain: str = DOMAIN) -> None:
        """The controller removes the clique."""
        self.state.memberships.pop(domain, None)
        self.state.poke()

    def specs(self) -> list[str]:
        """Names of the CDI specs, and of anything else that lies there."""
        return sorted(path.name for path in self.settings.cdi_root.iterdir())
