"""Simulated ``nvidia-imex`` and ``nvidia-imex-ctl`` for a driver root.

Real processes and real TCP connections with the documented behaviour; what is behind
them (GPU memory, NVLink) is not there. Every line that they log says "simulated". Faults are set
in a JSON file that running programs notice within a second:

``blocked``
    List of pairs that cannot connect to each other.
``hang_health``, ``crash_at_start``, ``never_ready``
    True, or a list of the nodes that it strikes.
``start_delay``
    Seconds more until READY, or an object from node to seconds.

A node is named by its index (as a string where it is a key), its IMEX name or its address.
"""

from __future__ import annotations

import fcntl
import os
import py_compile
import shlex
import sys
from pathlib import Path

_QUICK = """\
if [ "$1" = -c ] && [ "$3" = -q ]; then
    path=
    while IFS='= ' read -r key value; do
        [ "$key" = IMEX_CMD_UNIX_DOMAIN_PATH ] && path=$value
    done < "$2"
    if [ -S "$path" ] && read -r pid state 2>/dev/null < "$path.state" && kill -0 "$pid" 2>/dev/null; then
        echo "$state"
        exit
    fi
fi
"""
"""The local state as the daemon has noted it: every start of a node asks for it, and to start a Python for that would
cost more than the daemon itself. Whatever is unusual goes to the Python, which asks over the socket."""
_PROGRAMS = {"nvidia-imex": "daemon", "nvidia-imex-ctl": "ctl"}


def install(
    driver_root: Path,
    *,
    hosts_file: Path,
    faults: Path,
    start_delay: float,
    interpreter: str = sys.executable,
    seen: Path | None = None,
    session: Path | None = None,
) -> None:
    """Write ``usr/bin/nvidia-imex`` and ``usr/bin/nvidia-imex-ctl`` below ``driver_root``.

    One driver root is one simulated node: it has one IMEX session. ``start_delay`` is the time to
    READY in seconds. ``faults`` need not exist. Installing again replaces the wrappers in one step.
    Where they run in a container: its ``interpreter`` (of the same Python version), the driver root as it is
    ``seen`` there, and a file for the ``session`` that can be written there.
    """
    binaries = driver_root / "usr/bin"
    library = driver_root / "usr/lib/interlace-simulated"
    shared = library / __name__.replace(".", "/")
    for folder in (binaries, shared, driver_root / "run"):
        folder.mkdir(parents=True, exist_ok=True)
    _compile("files", shared / "files.pyc")
    for name, module in _PROGRAMS.items():
        program = library / f"{module}.pyc"
        _compile(module, program)
        # Compiled, and without site-packages: a third of the start-up of an ordinary Python.
        inside = program if seen is None else seen / program.relative_to(driver_root)
        words = [interpreter, "-E", "-s", "-S", str(inside)]
        if module == "daemon":
            words += ["--hosts", str(hosts_file), "--faults", str(faults)]
            words += ["--lock", str(session or _session(driver_root)), "--delay", repr(float(start_delay))]
        new = binaries / f".{name}.new"
        quick = _QUICK if module == "ctl" else ""
        new.write_text(f'#!/bin/sh\n# Simulated {name}: no GPU behind it.\n{quick}exec {shlex.join(words)} "$@"\n')
        new.chmod(0o755)
        new.replace(binaries / name)


def session_held(driver_root: Path) -> bool:
    """Whether a simulated ``nvidia-imex`` of this driver root runs, in other words holds the node's session."""
    try:
        lock = os.open(_session(driver_root), os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    else:
        return False
    finally:
        os.close(lock)


def _compile(module: str, target: Path) -> None:
    py_compile.compile(str(Path(__file__).with_name(f"{module}.py")), cfile=str(target), doraise=True)


def _session(driver_root: Path) -> Path:
    return driver_root / "run/imex-session"
