"""Stand-ins for the namespace and the service account controllers (simulated).

Invariant: a namespace goes only when nothing is left in it; an active one has the account ``default``.
"""

from __future__ import annotations

import asyncio

from interlace.kube.client import Client
from interlace.kube.errors import AlreadyExists, ApiError, Conflict, NotFound
from interlace.kube.log import get_logger
from interlace.kube.queue import WorkQueue, work
from interlace.kube.untyped import Discovery
from interlace.sim.platform.garbage.collector import IGNORED, partial
from interlace.sim.platform.kinds import Namespace, ServiceAccount
from interlace.sim.platform.views import Views

_FINALIZER = "kubernetes"
_LOOK_AGAIN = 0.2
"""Seconds between looks at a namespace that is not empty yet."""
_METHOD_NOT_ALLOWED = 405
_WORKERS = 2

log = get_logger("simulated-namespace-controller")


class Namespaces:
    """Empties namespaces that are deleted and gives the others an account; ``run`` until cancelled."""

    def __init__(self, views: Views, *, client: Client) -> None:
        self._views = views
        self._client = client
        self._discovery = Discovery(client)
        self._dying: WorkQueue[str] = WorkQueue(name="simulated-namespace")
        self._accounts: WorkQueue[str] = WorkQueue(name="simulated-serviceaccount")
        views.namespaces.on_change(self._changed)
        views.accounts.on_change(self._account_changed)

    async def run(self) -> None:
        """Work until cancelled; the views must have synced."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(work(self._dying, self._empty, workers=_WORKERS))
            tasks.create_task(work(self._accounts, self._give_account, workers=_WORKERS))

    def _changed(self, old: Namespace | None, new: Namespace | None) -> None:
        if new is None:
            return
        if new.metadata.deletion_timestamp is not None:
            self._dying.add(new.metadata.name)
        elif old is None:
            self._accounts.add(new.metadata.name)

    def _account_changed(self, old: ServiceAccount | None, new: ServiceAccount | None) -> None:
        if new is None and old is not None and old.metadata.name == "default":
            self._accounts.add(old.metadata.namespace)

    async def _give_account(self, name: str) -> None:
        namespace = self._views.namespaces.get(name)
        if namespace is None or namespace.metadata.deletion_timestamp is not None:
            return
        if self._views.accounts.get("default", name) is not None:
            return
        try:
            await self._client.create(ServiceAccount, {"metadata": {"name": "default"}}, namespace=name)
        except (AlreadyExists, NotFound):
            log.debug("account not made", namespace=name)

    async def _empty(self, name: str) -> float | None:
        namespace = self._views.namespaces.get(name)
        if namespace is None or namespace.metadata.deletion_timestamp is None:
            return None
        if _FINALIZER not in namespace.spec.finalizers:
            return None
        left = 0
        for resource in await self._discovery.listable():
            if not resource.namespaced or resource.plural in IGNORED:
                continue
            kind = partial(resource)
            items = (await self._client.list(kind, namespace=name, metadata_only=True)).items
            left += len(items)
            if any(item.metadata.deletion_timestamp is None for item in items):
                try:
                    await self._client.request("DELETE", resource.path(name))
                except ApiError as error:
                    # A kind that can only be deleted one by one.
                    if error.status != _METHOD_NOT_ALLOWED:
                        raise
                    for item in items:
                        await self._client.delete(kind, item.metadata.name, namespace=name)
        if left:
            return _LOOK_AGAIN
        kept = [entry for entry in namespace.spec.finalizers if entry != _FINALIZER]
        body = {
            "metadata": {"name": name, "uid": namespace.metadata.uid},
            "spec": {"finalizers": kept},
        }
        try:
            await self._client.replace(Namespace, name, body, subresource="finalize")
        except NotFound:
            log.debug("namespace gone", namespace=name)
        except Conflict:
            return _LOOK_AGAIN
        return None
