"""The few facts that the driver shows as text files: the major number of channels, and how many there are."""

from __future__ import annotations

from pathlib import Path

from interlace.node.errors import Reason, Refusal

CHANNELS = "nvidia-caps-imex-channels"
DEFAULT_CHANNEL_COUNT = 2048


def channel_major(text: str) -> int | None:
    """Major number of the channel devices from the text of ``/proc/devices``; None: not there.

    Only an exact name in the part ``Character devices`` counts: ``nvidia-caps`` begins the same way.
    """
    character = False
    for line in text.splitlines():
        if line.endswith(":"):
            character = line.strip() == "Character devices:"
            continue
        fields = line.split()
        if character and len(fields) == 2 and fields[1] == CHANNELS and fields[0].isascii() and fields[0].isdigit():
            return int(fields[0])
    return None


def channel_count(text: str) -> int:
    """How many channels the driver has, from the text of ``/proc/driver/nvidia/params``; 2048 if it does not say."""
    for line in text.splitlines():
        name, separator, value = line.partition(":")
        number = value.strip()
        if separator and name.strip() == "ImexChannelCount" and number.isascii() and number.isdigit() and int(number):
            return int(number)
    return DEFAULT_CHANNEL_COUNT


def read_channel_major(devices: Path) -> int:
    """Read ``/proc/devices``. Raises a ``Refusal`` that waiting may cure: the module may still be loaded."""
    try:
        major = channel_major(devices.read_text(encoding="utf-8", errors="replace"))
    except OSError as error:
        raise Refusal(
            Reason.NO_CHANNEL_DEVICE, f"{devices} cannot be read: {error.strerror}.", permanent=False
        ) from error
    if major is None:
        raise Refusal(
            Reason.NO_CHANNEL_DEVICE,
            f"{devices} lists no character device {CHANNELS}; the NVIDIA driver of this node has no IMEX channels "
            "(load nvidia-modprobe's capabilities, or update the driver).",
            permanent=False,
        )
    return major


def read_channel_count(params: Path) -> int:
    """Read the driver's parameters; a missing file means the default count."""
    try:
        return channel_count(params.read_text(encoding="utf-8", errors="replace"))
    except OSError:
        return DEFAULT_CHANNEL_COUNT
