"""``pods/log``: the API server keeps no logs, it asks the kubelet of the Pod's node and passes the answer on.

Invariant: as on a real server without an authority for kubelets, whoever answers at the node's address is believed.
"""

from __future__ import annotations

import aiohttp
from aiohttp import web

from interlace.sim.apiserver import errors
from interlace.sim.apiserver.calls import Call
from interlace.sim.apiserver.objects import Json, get
from interlace.sim.apiserver.store import Store

_PASSED = ("follow", "limitBytes", "previous", "sinceSeconds", "sinceTime", "tailLines", "timestamps")
_CONNECT = aiohttp.ClientTimeout(total=None, sock_connect=5.0)


async def send_log(request: web.BaseRequest, call: Call, store: Store) -> web.StreamResponse:
    """Pass the log of a container on. Raises ApiFault if there is none to be had."""
    pod = store.get("pods.", call.key)
    if pod is None:
        raise errors.not_found("", "pods", call.target.name)
    container = _container(pod, call.query.get("container", ""))
    node = get(pod, "spec", "nodeName")
    if not node:
        return web.Response(status=204)
    waits = [
        get(each, "state", "waiting", "reason")
        for each in get(pod, "status", "containerStatuses") or ()
        if each["name"] == container
    ]
    if not waits or waits[0]:
        reason = waits[0] if waits else "ContainerCreating"
        name = call.target.name
        raise errors.bad_request(f'container "{container}" in pod "{name}" is waiting to start: {reason}')
    url = f"https://{_address(store, node)}/containerLogs/{call.target.namespace}/{call.target.name}/{container}"
    query = {name: call.query[name] for name in _PASSED if name in call.query}
    try:
        async with (
            aiohttp.ClientSession(timeout=_CONNECT) as session,
            session.get(url, params=query, ssl=False) as answer,
        ):
            response = web.StreamResponse(status=answer.status, headers={"Content-Type": "text/plain"})
            response.enable_chunked_encoding()
            await response.prepare(request)
            async for part in answer.content.iter_any():
                await response.write(part)
            await response.write_eof()
            return response
    except aiohttp.ClientConnectorError as error:
        raise errors.internal(f'Get "{url}": {error.os_error}') from None


def _container(pod: Json, asked: str) -> str:
    names: list[str] = [each["name"] for each in get(pod, "spec", "containers") or ()]
    if asked in names:
        return asked
    where = f"pod {pod['metadata']['name']}"
    if asked:
        raise errors.bad_request(f"container {asked} is not valid for {where}")
    if len(names) != 1:
        raise errors.bad_request(f"a container name must be specified for {where}, choose one of: [{' '.join(names)}]")
    return names[0]


def _address(store: Store, name: str) -> str:
    node = store.get("nodes.", ("", name)) or {}
    port = get(node, "status", "daemonEndpoints", "kubeletEndpoint", "Port") or 10250
    found = [each["address"] for each in get(node, "status", "addresses") or () if each["type"] == "InternalIP"]
    if not found:
        raise errors.internal(f'no preferred addresses found for node "{name}"')
    return f"{found[0]}:{port}"
