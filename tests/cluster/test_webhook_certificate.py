"""The serving certificate in a whole cluster: two replicas agree, and a renewal fails no call."""

from __future__ import annotations

import asyncio
import base64
import signal
import ssl
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from datetime import timedelta
from pathlib import Path

import pytest_asyncio

from interlace.api import webhook as names
from interlace.api.core import Pod
from interlace.kube.client import Client
from interlace.kube.untyped import untyped
from interlace.manifests import NAMESPACE
from interlace.pods.certificates import authorities, from_secret, make
from interlace.pods.trust import MUTATING, SECRETS, VALIDATING
from testbed.plane import ControlPlane
from tests.holding import hold
from tests.waiting import eventually
from tests.webhooks import (
    WITHIN,
    Clock,
    Webhook,
    bundles,
    called,
    exposed,
    installed,
    register,
    replica,
    samples,
    secret,
    settle,
)

PODS = untyped(Pod.resource)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def admin(real_plane: ControlPlane) -> AsyncIterator[Client]:
    config = real_plane.credentials("admin", groups=["system:masters"])
    async with Client(config, user_agent="test", qps=0) as client:
        await settle(client)
        yield client


async def shown(hook: Webhook) -> bytes:
    """The certificate that a new handshake meets, DER."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    async with asyncio.timeout(WITHIN):
        _, writer = await asyncio.open_connection("127.0.0.1", hook.ports.admission, ssl=context)
    try:
        found = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
    finally:
        writer.close()
    assert isinstance(found, bytes)
    return found


def der(pem: bytes) -> bytes:
    return ssl.PEM_cert_to_DER_cert(pem.decode().split("-----END CERTIFICATE-----")[0] + "-----END CERTIFICATE-----\n")


async def stored(admin: Client) -> tuple[bytes, int]:
    """The certificate in the Secret, DER, and how many authorities are trusted."""
    found = from_secret((await secret(admin))["data"])
    assert found.present is not None
    return der(found.present.chain), len(found.bundle)


async def handshakes(hook: Webhook) -> float:
    return (await samples(hook, "interlace_webhook_handshakes"))[()]


async def test_two_replicas_that_start_together_agree_on_one_certificate(
    real_plane: ControlPlane, admin: Client
) -> None:
    await admin.merge_patch(SECRETS, names.SECRET, {"data": None}, namespace=NAMESPACE)
    async with AsyncExitStack() as stack:
        both = await asyncio.gather(*(stack.enter_async_context(hold(replica(real_plane, admin))) for _ in range(2)))
        first, second = await asyncio.gather(*(shown(hook) for hook in both))
        assert first == second == (await stored(admin))[0]
        await register(admin, both[0].url)
        await called(admin)
        (bundle,) = await bundles(admin)
        assert len(authorities(bundle)) == 1
        for hook in both:
            await eventually(lambda hook=hook: ready(hook), within=WITHIN, what="the replica to be ready")  # type: ignore[misc]


async def ready(hook: Webhook) -> bool:
    code, text = await exposed(hook, "/readyz")
    assert code == 200, text
    return True


MINUTES = timedelta(minutes=1)
STEPS = ((-4.5, -3.4), (8.9, 10.0))
"""Minutes by which the webhook's clock is ahead when the next certificate is due, and when it may be served.

A life of 20 minutes from -18 on: all certificates are valid by the API server's own clock too.
"""


async def test_a_renewal_under_load_fails_no_call(real_plane: ControlPlane, admin: Client) -> None:
    await admin.merge_patch(SECRETS, names.SECRET, {"data": None}, namespace=NAMESPACE)
    clock = Clock(-18 * MINUTES)
    async with hold(installed(real_plane, admin, clock=clock, life=20 * MINUTES, grace=MINUTES)) as hook:
        done, stop = 0, asyncio.Event()

        async def load() -> None:
            nonlocal done
            pod = {
                "metadata": {"generateName": "load-", "labels": {names.FABRIC_LABEL: "a3-mega"}},
                "spec": {"containers": [{"name": "main", "image": "docker.io/library/busybox:1.37"}]},
            }
            while not stop.is_set():
                await admin.create(PODS, pod, namespace="default", dry_run=True)  # raises if a call failed
                done += 1

        async def look() -> None:
            await admin.merge_patch(
                SECRETS,
                names.SECRET,
                {"metadata": {"annotations": {"looked": clock().isoformat()}}},
                namespace=NAMESPACE,
            )

        async def more(calls: int) -> None:
            wanted = done + calls
            await eventually(lambda: done >= wanted, within=WITHIN, what="further calls")

        async with asyncio.TaskGroup() as group:
            group.create_task(load())
            group.create_task(load())
            for due, served in STEPS:
                before, connected = await shown(hook), await handshakes(hook)
                known = authorities(*await bundles(admin))
                clock.ahead = due * MINUTES
                await look()

                async def both(known: list[bytes] = known) -> bool:
                    found = await bundles(admin)
                    return len(found) == 1 and len(authorities(*found)) == 2 and authorities(*found)[-1] not in known

                await eventually(both, within=WITHIN, what="the next authority in every webhook")
                assert await shown(hook) == before, "the next certificate is not served before its time"

                async def heard(connected: float = connected) -> bool:
                    return await handshakes(hook) > connected + 1  # ours was one of them

                await eventually(heard, within=WITHIN, what="the API server to connect with the new bundle")
                await more(20)
                clock.ahead = served * MINUTES
                await look()

                async def renewed(before: bytes = before) -> bool:
                    return await shown(hook) != before

                await eventually(renewed, within=WITHIN, what="the next certificate to be served")
                assert await shown(hook) == (await stored(admin))[0]
                await more(20)
            stop.set()
        assert done >= 80


async def test_a_secret_that_is_gone_is_said_and_filled_again_when_it_is_back(
    real_plane: ControlPlane, admin: Client
) -> None:
    async with hold(installed(real_plane, admin)) as hook:
        before = await shown(hook)
        await admin.delete(SECRETS, names.SECRET, namespace=NAMESPACE)

        async def told() -> bool:
            code, text = await exposed(hook, "/readyz")
            return code == 503 and f"Secret {NAMESPACE}/{names.SECRET} is missing" in text

        await eventually(told, within=WITHIN, what="the replica to miss its Secret")
        assert await shown(hook) == before, "what it has is served on"
        await settle(admin)

        async def filled() -> bool:
            return bool((await secret(admin)).get("data")) and await ready(hook)

        await eventually(filled, within=WITHIN, what="the Secret to be filled again")
        await called(admin)


async def test_a_bundle_that_somebody_overwrote_is_written_again(real_plane: ControlPlane, admin: Client) -> None:
    async with hold(installed(real_plane, admin)) as hook:
        (before,) = await bundles(admin)
        other = base64.b64encode(make(["other"], now=hook.clock()).authority).decode()
        change = {"op": "replace", "path": "/webhooks/0/clientConfig/caBundle", "value": other}
        for kind in (MUTATING, VALIDATING):
            await admin.json_patch(kind, names.CONFIGURATION, [change])

        async def mended() -> bool:
            return await bundles(admin) == {before}

        await eventually(mended, within=WITHIN, what="the bundle to be written again")
        await called(admin)


async def test_applying_the_manifests_again_keeps_the_certificate_and_the_bundle(
    real_plane: ControlPlane, admin: Client
) -> None:
    async with hold(installed(real_plane, admin)) as hook:
        before, present = await bundles(admin), (await secret(admin))["data"]
        await settle(admin)
        await register(admin, hook.url)
        assert await bundles(admin) == before
        assert (await secret(admin))["data"] == present
        assert base64.b64decode(present["ca.crt"]).count(b"BEGIN CERTIFICATE") == 1


async def test_the_command_serves_until_it_is_told_to_end(
    real_plane: ControlPlane, admin: Client, tmp_path: Path
) -> None:
    log = tmp_path / "log"
    command = [str(Path(sys.executable).with_name("interlace")), "serve", "webhook"]
    flags = ["--listen=127.0.0.1:0", "--http-endpoint=127.0.0.1:0", f"--kubeconfig={real_plane.kubeconfig}"]
    with log.open("wb") as out:
        process = await asyncio.create_subprocess_exec(*command, *flags, stdout=out, stderr=out)
    try:
        await eventually(lambda: b'"listening"' in log.read_bytes(), within=WITHIN, what="the webhook to listen")
        process.send_signal(signal.SIGTERM)
        async with asyncio.timeout(WITHIN):
            assert await process.wait() == 0, log.read_text()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
