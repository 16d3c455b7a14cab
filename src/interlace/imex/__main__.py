"""``python -m interlace.imex``: imex-host as a process of its own, with as few imports as possible.

It idles on every fabric node within a budget of 30 MB, so TLS (which asyncio would import), the
command line framework and the log framework of the other components stay out. Log lines go to stdout,
those of nvidia-imex among them.
"""

from __future__ import annotations

import logging
import os
import sys

# asyncio works without it, and nothing here speaks TLS: 4 MB.
sys.modules.setdefault("ssl", None)  # type: ignore[arg-type]

import asyncio  # noqa: E402
import contextlib  # noqa: E402
import signal  # noqa: E402

from interlace.imex.host import HostError, HostSettings, SettingsError, serve  # noqa: E402


async def run(settings: HostSettings) -> None:
    """Serve until SIGTERM or SIGINT."""
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    assert task is not None  # noqa: S101  a coroutine runs in a task
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, task.cancel)
    with contextlib.suppress(asyncio.CancelledError):
        await serve(settings)


def main(argv: list[str]) -> int:
    """Exit status: 0 told to stop, 2 bad settings, 4 cannot serve."""
    logging.basicConfig(stream=sys.stdout, level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    try:
        settings = HostSettings.parse(argv, os.environ)
    except SettingsError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    try:
        asyncio.run(run(settings))
    except HostError as error:
        sys.stderr.write(f"{error}\n")
        return 4
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
