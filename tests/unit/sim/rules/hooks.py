"""An admission webhook server on loopback that answers as it is told and remembers what it was asked."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from aiohttp import web

from interlace.sim.apiserver import certificates

PODS = {"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"]}


def _yes(_request: dict[str, Any]) -> Any:
    return {"allowed": True}


class Hooks:
    """A webhook server: what it was asked, and what it answers, by path."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, dict[str, Any]]] = []
        self.answers: dict[str, Callable[[dict[str, Any]], Any]] = {}
        self.ca = ""
        self.port = 0
        self.hold = asyncio.Event()

    async def serve(self, request: web.Request) -> web.Response:
        review = await request.json()
        self.asked.append((request.path, review["request"]))
        answer = self.answers.get(request.path, _yes)(review["request"])
        if answer == "hold":
            await self.hold.wait()
        if isinstance(answer, web.Response):
            return answer
        response = {"uid": review["request"]["uid"]} | (answer if isinstance(answer, dict) else {"allowed": True})
        return web.json_response({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response})

    def paths(self) -> list[str]:
        return [path for path, _ in self.asked]

    def config(self, path: str, *, mutating: bool = True, name: str = "config", **hook: Any) -> dict[str, Any]:
        client = {"url": f"https://localhost:{self.port}{path}", "caBundle": self.ca}
        found = {
            "name": f"{path.strip('/')}.example.com",
            "clientConfig": client,
            "rules": [PODS],
            "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
        }
        return {
            "kind": "MutatingWebhookConfiguration" if mutating else "ValidatingWebhookConfiguration",
            "metadata": {"name": name},
            "webhooks": [found | hook],
        }


def patch(operations: list[dict[str, Any]]) -> dict[str, Any]:
    encoded = base64.b64encode(json.dumps(operations).encode()).decode()
    return {"allowed": True, "patchType": "JSONPatch", "patch": encoded}


@asynccontextmanager
async def serving(folder: Path) -> AsyncIterator[Hooks]:
    """Hooks that listen, with their certificate in ``folder``."""
    found = Hooks()
    context, pem = certificates.make(folder)
    found.ca = base64.b64encode(pem).decode()
    app = web.Application()
    app.router.add_post("/{path:.*}", found.serve)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context)
    await site.start()
    found.port = runner.addresses[0][1]
    try:
        yield found
    finally:
        found.hold.set()
        await runner.cleanup()
