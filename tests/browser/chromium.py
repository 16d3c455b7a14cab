"""The distribution's Chromium, driven for one test: what a page asked for, said and shows."""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Literal

from playwright.async_api import BrowserContext, Page, async_playwright

NAMES = ("chromium", "chromium-browser", "google-chrome")
OPTIONS = (
    "--no-sandbox",  # tests run as root in a container
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
)
WITHIN_MS = 30_000.0
"""For each step of the browser."""


def executable() -> str:
    """Where the browser is. AssertionError that names the package if there is none."""
    found = next((path for name in NAMES if (path := shutil.which(name)) is not None), None)
    assert found is not None, f"no browser on PATH ({', '.join(NAMES)}): install the package chromium"
    return found


@asynccontextmanager
async def browsing(profile: Path) -> AsyncIterator[BrowserContext]:
    """A browser with a profile of its own, closed at the end."""
    async with async_playwright() as playwright:
        context = await playwright.chromium.launch_persistent_context(
            profile,
            executable_path=executable(),
            headless=True,
            args=list(OPTIONS),
            viewport={"width": 1100, "height": 800},
        )
        context.set_default_timeout(WITHIN_MS)
        try:
            yield context
        finally:
            await context.close()


class Visit:
    """A page that is open, with everything that happened in it."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.trouble: list[str] = []
        """Errors and warnings of the console, errors of scripts, dialogs."""
        self.requests: list[str] = []
        page.on("console", lambda message: self._said(message.type, message.text))
        page.on("pageerror", lambda error: self.trouble.append(f"error: {error}"))
        page.on("request", lambda request: self.requests.append(request.url))
        page.on("popup", lambda popup: self.trouble.append(f"popup: {popup.url}"))

    def _said(self, kind: str, text: str) -> None:
        if kind in {"error", "warning", "assert"}:
            self.trouble.append(f"{kind}: {text}")


@asynccontextmanager
async def visiting(
    context: BrowserContext, path: Path, *, scheme: Literal["light", "dark"] = "light"
) -> AsyncIterator[Visit]:
    """A new page with a file, loaded; closed at the end."""
    page = await context.new_page()
    try:
        await page.emulate_media(color_scheme=scheme)
        visited = Visit(page)
        await page.goto(path.as_uri(), wait_until="load")
        yield visited
    finally:
        await page.close()
