"""A server that pretends to be Google Cloud for gcloud alone: it invents every object and writes down what is sent.

It listens on the loopback interface, has no memory, and answers a mutation with a running operation and every poll with
a finished one. What it gives back is made up; only what gcloud sends to it is worth anything.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, urlsplit

HOST = "https://compute.googleapis.com"
"""What references to the recorder itself become in what is written down."""

_COMPUTE = re.compile(r"/compute/\w+/projects/[^/]+/(?:global|(?P<kind>regions|zones)/[^/]+)/")
_CONTAINER = re.compile(r"/(?P<version>\w+)/projects/[^/]+/locations/(?P<place>[^/]+)/(?P<rest>.*)")


class Recorder(ThreadingHTTPServer):
    """``requests``: what was sent since ``clear``."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.requests: list[dict[str, Any]] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def mutations(self) -> list[dict[str, Any]]:
        """Requests that change something, with the names of Google's hosts."""
        sent = [each for each in self.requests if each["method"] != "GET" and not each["path"].endswith("/wait")]
        found: list[dict[str, Any]] = json.loads(json.dumps(sent).replace(self.url, HOST))
        return found


@contextmanager
def recording() -> Iterator[Recorder]:
    """A recorder that serves until the end of the block."""
    server = Recorder()
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join(timeout=10)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Recorder

    def log_message(self, format: str, *args: Any) -> None:
        del format, args

    def _answer(self) -> None:
        length = int(self.headers.get("Content-Length") or 0)
        raw = self.rfile.read(length)
        parts = urlsplit(self.path)
        body = json.loads(raw) if raw else None
        sent = {
            "service": _service(parts.path),
            "method": self.command,
            "path": parts.path,
            "query": dict(parse_qsl(parts.query)),
            "body": body,
        }
        self.server.requests.append(sent)
        data = json.dumps(_invented(self.server.url, sent)).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _answer  # noqa: N815  names of http.server


def _service(path: str) -> str:
    if path.startswith("/compute/"):
        return "compute"
    return "serviceusage" if "/services/" in path else "container"


def _invented(url: str, sent: dict[str, Any]) -> dict[str, Any]:
    path, name = sent["path"], sent["path"].rpartition("/")[2]
    mutation = sent["method"] != "GET" and not path.endswith("/wait")
    compute, container = _COMPUTE.match(path), _CONTAINER.match(path)
    status = "RUNNING" if mutation else "DONE"
    operation = {"name": "operation-1", "operationType": "insert", "status": status, "targetLink": url + path}
    if compute:
        scope = compute[0].rstrip("/")
        operation["selfLink"] = f"{url}{scope}/operations/operation-1"
        if compute["kind"]:
            operation[compute["kind"][:-1]] = url + scope
        return operation if mutation or "/operations/" in path else {"name": name, "selfLink": url + path, "id": "1"}
    if not container:
        return {"name": path, "state": "ENABLED", "status": "DONE"}
    if mutation or container["rest"].startswith("operations"):
        link = f"{url}/{container['version']}/projects/1/locations/{container['place']}/operations/operation-1"
        return operation | {"zone": container["place"], "selfLink": link}
    certificate = {"masterAuth": {"clusterCaCertificate": "AAAA"}, "endpoint": "192.0.2.1"}
    return {"name": name, "status": "RUNNING", "selfLink": url + path, "zone": container["place"]} | certificate
