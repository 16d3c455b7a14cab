"""An API server that knows the Pods of one Job and their logs: real HTTP on loopback, nothing else."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml
from aiohttp import web

JSON = dict[str, Any]


@dataclass(slots=True)
class JobServer:
    """Pods by name with their labels, status and the logs of their containers."""

    port: int = 0
    pods: list[JSON] = field(default_factory=list)
    logs: dict[tuple[str, str], str] = field(default_factory=dict)
    events: list[JSON] = field(default_factory=list)
    forbidden: set[str] = field(default_factory=set)
    """Resources that may not be read: ``events``, ``log``."""
    asked: list[str] = field(default_factory=list)
    reading: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when a log was asked for."""
    answering: asyncio.Event = field(default_factory=asyncio.Event)
    """Logs are sent once it is set; it is, unless a test clears it."""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def add(self, name: str, logs: dict[str, str], *, job: str = "nccl", status: JSON | None = None) -> None:
        """A Pod of a Job; a container whose log is empty has not started."""
        labels = {"batch.kubernetes.io/job-name": job}
        meta = {
            "name": name,
            "namespace": "default",
            "uid": f"uid-{name}",
            "labels": labels,
            "creationTimestamp": "2026-05-04T09:59:00Z",
        }
        spec = {"containers": [{"name": container} for container in logs]}
        self.pods.append({"metadata": meta, "spec": spec, "status": status or {"phase": "Running"}})
        self.logs |= {(name, container): text for container, text in logs.items() if text}

    def tell(self, pod: str, reason: str, message: str) -> None:
        """A warning about a Pod."""
        self.events.append(
            {
                "metadata": {"name": f"{pod}.{len(self.events)}", "namespace": "default"},
                "involvedObject": {"kind": "Pod", "name": pod, "namespace": "default"},
                "type": "Warning",
                "reason": reason,
                "message": message,
                "firstTimestamp": "2026-05-04T09:59:30Z",
            }
        )

    def kubeconfig(self, folder: Path) -> Path:
        """A file that leads here."""
        path = folder / "kubeconfig"
        document = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "test",
            "clusters": [{"name": "test", "cluster": {"server": self.url}}],
            "users": [{"name": "test", "user": {"token": "none"}}],
            "contexts": [{"name": "test", "context": {"cluster": "test", "user": "test"}}],
        }
        path.write_text(yaml.safe_dump(document))
        return path

    async def _list_pods(self, request: web.Request) -> web.Response:
        self.asked.append(request.path_qs)
        key, _, value = request.query.get("labelSelector", "").partition("=")
        items = [pod for pod in self.pods if pod["metadata"]["labels"].get(key) == value]
        return web.json_response({"kind": "PodList", "apiVersion": "v1", "metadata": {}, "items": items})

    async def _list_events(self, _: web.Request) -> web.Response:
        if "events" in self.forbidden:
            return _refusal(403, "Forbidden")
        return web.json_response({"kind": "EventList", "apiVersion": "v1", "metadata": {}, "items": self.events})

    async def _log(self, request: web.Request) -> web.Response:
        self.asked.append(request.path_qs)
        self.reading.set()
        await self.answering.wait()
        if "log" in self.forbidden:
            return _refusal(403, "Forbidden")
        text = self.logs.get((request.match_info["name"], request.query["container"]))
        if text is None:
            return _refusal(400, "BadRequest")
        return web.Response(body=text.encode()[: int(request.query["limitBytes"])])


def _refusal(code: int, reason: str) -> web.Response:
    body = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": "no", "reason": reason, "code": code}
    return web.json_response(body, status=code)


def stamped(lines: list[str], *, second: int = 0) -> str:
    """Lines as ``kubectl logs --timestamps`` gives them, a millisecond apart."""
    return "".join(
        f"2026-05-04T10:00:{second + at // 1000:02d}.{at % 1000:03d}000001Z {each}\n" for at, each in enumerate(lines)
    )


@asynccontextmanager
async def job_server() -> AsyncIterator[JobServer]:
    """A server without Pods, to be given some."""
    server = JobServer()
    server.answering.set()
    app = web.Application()
    app.router.add_get("/api/v1/namespaces/{namespace}/pods", server._list_pods)
    app.router.add_get("/api/v1/namespaces/{namespace}/events", server._list_events)
    app.router.add_get("/api/v1/namespaces/{namespace}/pods/{name}/log", server._log)
    runner = web.AppRunner(app)
    await runner.setup()
    try:
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        server.port = runner.addresses[0][1]
        yield server
    finally:
        server.answering.set()
        await runner.cleanup()
