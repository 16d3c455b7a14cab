"""How a daemon in an ordinary container ends when the work is done, on clusters without native sidecars.

The containers of the Pod share their process namespace, and a loop beside the daemon looks whether a process of
another container is left. It needs no help from the user's command, so a container that was killed counts like one
that ended. Each container has a control group of its own, and every process may read that of the others.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

SCRIPT: Final = """\
others() {
  for process in ${PROC:-/proc}/[0-9]*; do
    [ "${process##*/}" = 1 ] && continue
    group=$(cat "$process/cgroup" 2>/dev/null) || continue
    [ "$group" = "$own" ] || return 0
  done
  return 1
}
own=$(cat "${PROC:-/proc}/self/cgroup")
"$@" &
daemon=$!
trap 'kill -TERM $daemon 2>/dev/null' TERM INT
looks=0
until others || [ $looks -ge ${LOOKS:-18000} ]; do
  kill -0 $daemon 2>/dev/null || { wait $daemon; exit; }
  looks=$((looks + 1))
  sleep ${PAUSE:-0.1}
done
while others; do kill -0 $daemon 2>/dev/null || { wait $daemon; exit; }; sleep ${PAUSE:-1}; done
kill -TERM $daemon 2>/dev/null
wait $daemon || true
exit 0
"""
"""Starts its arguments and ends them once other containers have had processes and have none any more, or have shown
none for half an hour: work that ended within a tenth of a second may never be seen. Process 1 is the Pod's own. The
daemon's own end is the container's end."""


def command(daemon: Sequence[str]) -> list[str]:
    """The command of a daemon that ends with the Pod's work."""
    return ["/bin/sh", "-c", SCRIPT, "interlace", *daemon]
