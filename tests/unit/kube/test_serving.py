from __future__ import annotations

import asyncio

import aiohttp
import pytest

from interlace.kube.serving import LONGEST_REQUEST, REQUEST_TIMEOUT, Serving


def serving(*, why: str | None = None) -> Serving:
    return Serving(host="127.0.0.1", port=0, ready=lambda: why, metrics=lambda: "a 1\n")


async def get(port: int, path: str) -> tuple[int, str]:
    timeout = aiohttp.ClientTimeout(total=20)
    url = f"http://127.0.0.1:{port}{path}"
    async with aiohttp.ClientSession(timeout=timeout) as session, session.get(url) as answer:
        return answer.status, await answer.text()


async def test_a_ready_component_answers_all_three() -> None:
    async with serving() as served:
        assert await get(served.port, "/healthz") == (200, "ok\n")
        assert await get(served.port, "/readyz?verbose") == (200, "ok\n")
        assert await get(served.port, "/metrics") == (200, "a 1\n")
        assert (await get(served.port, "/"))[0] == 404


async def test_a_component_that_is_not_ready_says_why() -> None:
    async with serving(why="ImexInUse: taken") as served:
        assert await get(served.port, "/readyz") == (503, "ImexInUse: taken\n")
        assert (await get(served.port, "/healthz"))[0] == 200


async def test_an_address_that_is_taken_is_an_error() -> None:
    async with serving() as served:
        with pytest.raises(OSError, match="address already in use"):
            async with Serving(host="127.0.0.1", port=served.port, ready=lambda: None, metrics=str):
                pass


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        (b"POST /healthz HTTP/1.1\r\n\r\n", b"405"),
        (b"\x16\x03\x01 tls\r\n\r\n", b"400"),
        (b"GET /" + b"x" * (2 * LONGEST_REQUEST), b"400"),
    ],
    ids=["post", "no http", "too long"],
)
async def test_anything_else_gets_one_answer_and_the_end(request_: bytes, status: bytes) -> None:
    async with serving() as served, asyncio.timeout(20):
        reader, writer = await asyncio.open_connection("127.0.0.1", served.port)
        writer.write(request_)
        answer = await reader.readline()
        assert status in answer.split()
        writer.close()


@pytest.mark.looptime
async def test_a_client_that_says_nothing_is_left_after_a_while() -> None:
    async with serving() as served:
        loop = asyncio.get_running_loop()
        began = loop.time()
        reader, writer = await asyncio.open_connection("127.0.0.1", served.port)
        writer.write(b"GET /healthz HTTP/1.1\r\n")
        assert await reader.read() == b""
        assert REQUEST_TIMEOUT <= loop.time() - began < REQUEST_TIMEOUT + 1
        writer.close()
