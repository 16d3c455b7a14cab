"""A site's own baseline: earlier runs of the same sweep on the same hardware, in place of published bands.

Invariant: each size is held against the same size of the baseline, with the noise of its repeats; what the baseline
does not have is not judged by it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from statistics import median
from typing import Final

import msgspec

from interlace.verify.arithmetic import contradictions
from interlace.verify.comparison import Change, compare, tolerance
from interlace.verify.conclusion import CUT, ERROR, UNFINISHED
from interlace.verify.curve import LARGE, MIB, size_name
from interlace.verify.run import Half, Row, Run
from interlace.verify.verdict import Verdict

_LEAST_TOLERANCE: Final = 0.05
_FAIL_SHARE: Final = 0.8125
"""0.65 of 0.80: as far below what is expected as the bands' lower edge is below their upper one."""


class Standing(msgspec.Struct, frozen=True, kw_only=True):
    """How a run stands against the baseline."""

    verdict: Verdict
    text: str
    """A clause with the figures that decided."""
    changes: tuple[Change, ...] = ()


class _Document(msgspec.Struct, frozen=True):
    runs: list[Run]


def decode(data: bytes, *, source: str = "-") -> tuple[Run, ...] | None:
    """Runs of a document that ``verify parse`` printed, or None if it is none (a log, for instance)."""
    try:
        runs = msgspec.json.decode(data, type=_Document).runs
    except (msgspec.DecodeError, msgspec.ValidationError):
        return None
    return tuple(_restored(run, source=source) for run in runs)


def _restored(run: Run, *, source: str) -> Run:
    """The run with what a document says in other words: how it ended, and the worth of last places."""
    return msgspec.structs.replace(
        run,
        source=source,
        rows=tuple(map(_placed, run.rows)),
        errors=tuple(each.removeprefix(ERROR) for each in run.warnings if each.startswith(ERROR)),
        unfinished=CUT in run.warnings or UNFINISHED in run.warnings,
    )


def _placed(row: Row) -> Row:
    """The row with the worth of last places, as far as its numbers show them: a document has no trailing zeros."""
    halves = {name: half and msgspec.structs.replace(half, units=_units(half)) for name, half in _named(row)}
    return msgspec.structs.replace(row, **halves)


def _named(row: Row) -> tuple[tuple[str, Half | None], ...]:
    return ("oop", row.oop), ("ip", row.ip)


def _units(half: Half) -> tuple[float, float, float]:
    time, algbw, busbw = (_last_place(value) for value in (half.time_us, half.algbw, half.busbw))
    return time, algbw, busbw


def _last_place(value: float) -> float:
    whole, _, decimals = f"{value:.9f}".rstrip("0").partition(".")
    return 10.0 ** -len(decimals) if whole else 1.0


def stand(run: Run, baseline: Iterable[Run], *, noise: float) -> Standing | None:
    """Judge the run by the baseline; None if it has nothing of the same collective, ranks and sizes.

    ``noise`` is assumed where the baseline repeats a size less than three times. The largest common size decides;
    the smaller ones together can make a run degraded, not failed. Runs with wrong data, or with numbers that
    contradict each other, are no measure for others.
    """
    sound = [each for each in baseline if not (each.wrong_total or each.out_of_bounds or contradictions(each))]
    changes = compare(sound, [run], assumed=noise)
    if not changes:
        return None
    size = max(change.size for change in changes)
    first = next((each for each in changes if each.size == size and each.place == "out-of-place"), None)
    largest = first if first is not None else next(each for each in changes if each.size == size)
    verdict = _grade(largest.change, largest.noise)
    text = (
        f"{largest.after:.4g} GB/s at {size_name(size)} where the baseline has {largest.before:.4g}"
        f" ({largest.change:+.0%}, noise {largest.noise:.0%} {'measured' if largest.noise_measured else 'assumed'})"
    )
    if verdict != "pass":
        return Standing(verdict=verdict, text=text, changes=changes)
    for name, group in _groups(changes):
        change, spread = median(each.change for each in group), max(each.noise for each in group)
        if _grade(change, spread) != "pass":
            text = f"{name} the run is {-change:.0%} slower than the baseline (noise {spread:.0%})"
            return Standing(verdict="degraded", text=text, changes=changes)
    return Standing(verdict="pass", text=text, changes=changes)


def _groups(changes: Sequence[Change]) -> Iterable[tuple[str, list[Change]]]:
    groups = (
        ("up to 1 MiB", [each for each in changes if each.size <= MIB]),
        ("between 1 MiB and 256 MiB", [each for each in changes if MIB < each.size < LARGE]),
        ("from 256 MiB on", [each for each in changes if each.size >= LARGE]),
    )
    return ((name, group) for name, group in groups if group)


def _grade(change: float, noise: float) -> Verdict:
    room = max(_LEAST_TOLERANCE, tolerance(noise))
    if change >= -room:
        return "pass"
    return "degraded" if 1 + change >= min(_FAIL_SHARE, 1 - 2 * room) else "fail"
