"""Finding another driver of our name on this node before it is too late.

Two drivers of one name would answer kubelet in turn and delete each other's slices.
"""

from __future__ import annotations

import contextlib
import re
import socket
import stat
from collections.abc import Iterable
from pathlib import Path

from interlace.api.computedomain import DRIVER
from interlace.kube.log import get_logger
from interlace.node.errors import RivalDriver
from interlace.node.proto import registration_pb2
from interlace.node.rpc import ask

GET_INFO = "/pluginregistration.Registration/GetInfo"
ANSWER_TIMEOUT = 2.0
log = get_logger(__name__)


async def refuse_rivals(registrar_dir: Path, *, home: Path) -> None:
    """Ask every registration socket who it is.

    Raises ``RivalDriver`` if one says our name and is not an agent of ours that this one may take over from, whose
    endpoint is in ``home``.
    """
    for path in sorted(registrar_dir.glob("*.sock")):
        with contextlib.suppress(OSError):
            if not stat.S_ISSOCK(path.stat().st_mode):
                continue
        info = await ask(
            path,
            GET_INFO,
            registration_pb2.InfoRequest(),
            response=registration_pb2.PluginInfo,
            timeout=ANSWER_TIMEOUT,
        )
        if info is not None and info.name == DRIVER and not _is_ours(Path(info.endpoint), home):
            raise RivalDriver(
                f"another driver named {DRIVER} answers on {path} (its endpoint is {info.endpoint}); remove that "
                "driver from the node, then start this agent."
            )


def _is_ours(endpoint: Path, home: Path) -> bool:
    # The known driver's are dra.sock, or carry a whole uid.
    return endpoint.parent == home and re.fullmatch(r"dra-[0-9a-f]{8}\.sock", endpoint.name) is not None


def remove_dead(folders: Iterable[Path]) -> None:
    """Remove sockets of earlier agents of this node that nobody listens on. Never raises.

    Kubelet would go on calling a plugin whose registration socket is still there.
    """
    for folder in folders:
        for path in (*folder.glob("dra-*.sock"), *folder.glob(f"{DRIVER}-*reg.sock")):
            with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX) as probe:
                if not stat.S_ISSOCK(path.lstat().st_mode):
                    continue
                probe.setblocking(False)
                try:
                    probe.connect(str(path))
                except ConnectionRefusedError:
                    path.unlink()
                    log.info("removed a socket that nobody listens on", path=str(path))
