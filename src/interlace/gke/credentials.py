"""Google credentials without standing still: google-auth blocks, so it runs in a thread.

Invariant: nothing waits longer than ``LIMIT`` for a token, nor for the thread once it was told to stop; no token stands
in an error.
"""

from __future__ import annotations

import asyncio
import importlib
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import Any, Final, Protocol, TypeVar

from interlace.gke.failures import CredentialsError

SCOPE: Final = "https://www.googleapis.com/auth/cloud-platform"
LIMIT: Final = 60.0
"""Seconds for finding or refreshing credentials."""

_T = TypeVar("_T")
_LOGIN: Final = "Log in with `gcloud auth application-default login`, or point GOOGLE_APPLICATION_CREDENTIALS at a key"


async def _aside(work: Callable[[], _T]) -> _T:
    """``work`` in a thread that nobody waits for once this is cancelled, not even the end of the process."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[_T] = loop.create_future()

    def tell(settle: Callable[[Any], None], value: Any) -> None:
        with suppress(RuntimeError):  # the loop is closed
            loop.call_soon_threadsafe(lambda: None if future.done() else settle(value))

    def run() -> None:
        try:
            result = work()
        except Exception as error:  # noqa: BLE001  raised where it is waited for
            tell(future.set_exception, error)
        else:
            tell(future.set_result, result)

    threading.Thread(target=run, name="google-auth", daemon=True).start()
    return await future


class Authorizer(Protocol):
    """Gives the headers that a request needs."""

    async def headers(self, *, refused: str = "") -> Mapping[str, str]:
        """Headers; ``refused``: the authorization that was not taken, if one was. Raises CredentialsError."""
        ...


class Anonymous:
    """For a simulation: no credentials leave this machine."""

    async def headers(self, *, refused: str = "") -> Mapping[str, str]:  # noqa: ARG002  the protocol's signature
        return {}


class GoogleCredentials:
    """Application default credentials, as gcloud, a workload identity or the metadata server give them."""

    def __init__(self) -> None:
        self._lock = asyncio.Lock()
        self._credentials: Any = None

    async def headers(self, *, refused: str = "") -> Mapping[str, str]:
        """Headers with a token that is valid and not the refused one. Raises CredentialsError."""
        async with self._lock:
            try:
                async with asyncio.timeout(LIMIT):
                    return await _aside(partial(self._headers, refused=refused))
            except TimeoutError:
                raise CredentialsError(
                    f"Google credentials: none within {LIMIT:.0f} s", remedy=f"Check the network. {_LOGIN}"
                ) from None

    def _headers(self, *, refused: str) -> dict[str, str]:
        try:
            auth = importlib.import_module("google.auth")
            errors = importlib.import_module("google.auth.exceptions")
            transport = importlib.import_module("google.auth.transport.requests")
        except ImportError:
            raise CredentialsError(
                "Google credentials: the package google-auth is not installed",
                remedy="Install it with this project's extra `gke`",
            ) from None
        try:
            if self._credentials is None:
                self._credentials, _ = auth.default(scopes=[SCOPE])
            if not self._credentials.valid or refused == f"Bearer {self._credentials.token}":
                self._credentials.refresh(transport.Request())
        except errors.DefaultCredentialsError:
            raise CredentialsError("Google credentials: none were found", remedy=_LOGIN) from None
        except errors.GoogleAuthError as error:
            said = str(error.args[0] if error.args else error).partition("\n")[0][:300]
            raise CredentialsError("Google credentials: they cannot be refreshed", cause=said, remedy=_LOGIN) from None
        headers = {"authorization": f"Bearer {self._credentials.token}"}
        if quota := getattr(self._credentials, "quota_project_id", None):
            headers["x-goog-user-project"] = quota
        return headers
