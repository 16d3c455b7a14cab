"""Admission on the embedded server: built-in checks of definitions, then the webhooks that are configured.

Invariant: without a configuration no connection is made.
"""

from __future__ import annotations

import aiohttp

from interlace.sim.apiserver import admission, definitions
from interlace.sim.apiserver.admission import Operation
from interlace.sim.apiserver.calls import Call
from interlace.sim.apiserver.objects import Json, get
from interlace.sim.apiserver.selectors import by_label_selector
from interlace.sim.apiserver.store import Key, Store

_CONFIGURATIONS = ("mutatingwebhookconfigurations", "validatingwebhookconfigurations")


class Webhooks:
    """Asks on behalf of the writer. Async context manager: it holds the connections to the webhooks."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> None:
        self._session = aiohttp.ClientSession()

    async def __aexit__(self, *_: object) -> None:
        if self._session is not None:
            await self._session.close()

    async def ask(
        self, call: Call, operation: Operation, key: Key, *, new: Json | None, old: Json | None, dry_run: bool
    ) -> Json | None:
        """The object as the webhooks left it. Raises ApiFault if one refuses."""
        if operation != "DELETE" and call.kind.storage == definitions.STORAGE and new is not None:
            definitions.check(new)
        configs = [
            obj
            for plural in _CONFIGURATIONS
            for obj in self._store.collection(f"{plural}.admissionregistration.k8s.io").objects.values()
        ]
        if not configs or self._session is None:
            return new
        namespace = self._store.get("namespaces.", ("", key[0])) if key[0] else None
        admitted = await admission.admit(
            configs,
            operation=operation,
            kind=call.kind,
            subresource=call.target.subresource,
            namespace=key[0],
            name=key[1],
            obj=new,
            old=old,
            user=call.user,
            dry_run=dry_run,
            session=self._session,
            resolve=self._resolve,
            namespace_labels=get(namespace, "metadata", "labels") or {},
        )
        call.warnings.extend(admitted.warnings)
        return admitted.obj

    def _resolve(self, namespace: str, name: str, port: int) -> tuple[str, int] | None:
        """Address of a ready pod behind a service."""
        service = self._store.get("services.", (namespace, name))
        entry = next((p for p in get(service, "spec", "ports") or () if p.get("port") == port), None)
        if service is None or entry is None:
            return None
        chosen = by_label_selector({"matchLabels": get(service, "spec", "selector") or {}})
        for (space, _), pod in self._store.collection("pods.").objects.items():
            if space == namespace and chosen(pod) and _is_ready(pod):
                target = _port(pod, entry.get("targetPort", port))
                if target is not None:
                    return pod["status"]["podIP"], target
        return None


def _is_ready(pod: Json) -> bool:
    conditions = get(pod, "status", "conditions") or ()
    ready = any(c["type"] == "Ready" and c["status"] == "True" for c in conditions)
    return ready and bool(get(pod, "status", "podIP"))


def _port(pod: Json, target: int | str) -> int | None:
    if isinstance(target, int):
        return target
    ports = [port for container in pod["spec"]["containers"] for port in container.get("ports") or ()]
    return next((int(port["containerPort"]) for port in ports if port.get("name") == target), None)
