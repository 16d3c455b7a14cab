"""The file that nccl-tests writes with ``-J``, as it really is: not always JSON, not always finished.

Invariant: nothing of the recorded environment is ever stored but variables of NCCL, CUDA, UCX, libfabric and Open
MPI; a row counts only if its object was closed. Traps (nccl-tests v2.17.3 to v2.19.6): ``inf`` without quotes,
booleans and roots as strings, misspelt keys, one device for each process, files that a crash cut.
"""

from __future__ import annotations

import re
from typing import Any

import msgspec

from interlace.verify import inference
from interlace.verify.conclusion import UNFINISHED, conclude, total
from interlace.verify.layout import SIZES
from interlace.verify.number import printed
from interlace.verify.run import Half, Row, Run
from interlace.verify.table import KEPT

_KEPT_VARIABLES = ("NCCL_", "CUDA_", "UCX_", "FI_", "OMPI_")
_SKIPPED = frozenset({"times_us", "per_process_max_times_us", "out_of_place_per_iter", "in_place_per_iter"})
_TOKEN = re.compile(
    r'\s*(?:([{}\[\],:])|"((?:[^"\\]|\\.)*)"|([A-Za-z]+|-?[\d.][\w.+-]*|-[A-Za-z]+))', re.DOTALL | re.ASCII
)
_ESCAPE = re.compile(r"\\(.)", re.DOTALL | re.ASCII)
_NAME = re.compile(r"(?:.*/)?([a-z_]+)_perf(?:\.\w+)?", re.ASCII)
_DEEPEST = 64
_LONGEST = 1 << 16


class JsonLog:
    """Takes text as it comes; ``closed`` once the outermost object is complete, ``failed`` if it is no JSON."""

    def __init__(self) -> None:
        self.closed = False
        self.failed = False
        self._rest = ""
        self._root: dict[str, Any] = {}
        self._stack: list[tuple[Any, bool]] = []
        """Open objects and lists, and whether what they hold is stored."""
        self._key: str | None = None
        self._left_out = 0
        self._separated = True

    def feed(self, text: str) -> str:
        """What stands behind the end of the document."""
        text = self._rest + text
        at = 0
        while not (self.closed or self.failed):
            match = _TOKEN.match(text, at)
            if match is None or (match.end() == len(text) and match[1] is None):
                if match is None and (len(text) - at > _LONGEST or not _may_go_on(text[at:])):
                    self.failed = True
                break
            at = match.end()
            self._token(match[1], match[2], match[3])
        self._rest = "" if self.closed or self.failed else text[at:]
        return text[at:] if self.closed else ""

    def _token(self, sign: str | None, string: str | None, word: str | None) -> None:
        if sign not in {"}", "]", ",", ":"} and not self._separated:  # two values side by side, such as a row
            self.failed = True
        elif sign in {"{", "["}:
            self._separated = True
            self._open({} if sign == "{" else [])
        elif sign in {"}", "]"}:
            if not self._stack or isinstance(self._stack[-1][0], dict) != (sign == "}"):
                self.failed = True
                return
            self._stack.pop()
            self.closed = not self._stack
            self._separated = False
        elif not self._stack:
            self.failed = True
        elif sign is None:
            self._separated = False
            self._value(_unescaped(string) if string is not None else (word or ""), quoted=string is not None)
        else:
            self._separated = True

    def _open(self, new: dict[str, Any] | list[Any]) -> None:
        if len(self._stack) >= _DEEPEST:
            self.failed = True
        elif not self._stack:
            if isinstance(new, list):
                self.failed = True
                return
            self._root = new
            self._stack.append((new, True))
        else:
            stored = self._stack[-1][1] and self._key not in _SKIPPED
            self._store(new, stored=stored)
            self._stack.append((new, stored))

    def _value(self, value: str, *, quoted: bool) -> None:
        top, stored = self._stack[-1]
        if isinstance(top, dict) and self._key is None:
            if quoted:
                self._key = value
            else:
                self.failed = True
            return
        if top is self._root.get("env") and not value.startswith(_KEPT_VARIABLES):
            return
        self._store(None if value == "null" and not quoted else value[:4096], stored=stored)

    def _store(self, value: Any, *, stored: bool) -> None:
        top = self._stack[-1][0]
        if isinstance(top, dict):
            if stored and self._key is not None:
                top[self._key] = value
            self._key = None
        elif stored and len(top) < KEPT:
            top.append(value)
        else:
            self._left_out += stored and top is self._root.get("results")

    def run(self, *, source: str, line: int) -> Run | None:
        """The run as far as it was read; None if this is no file of nccl-tests."""
        root = self._root
        if not isinstance(root.get("results"), list) or not isinstance(root.get("config"), dict):
            return None
        results = root["results"]
        open_row = not self.closed and len(self._stack) > 2 and bool(results) and self._stack[2][0] is results[-1]
        rows, partial = [], int(open_row)
        for entry in results[: len(results) - open_row]:
            row = _row(entry)
            if row is None:
                partial += 1
            else:
                rows.append(row)
        frame = Run(source=source, line=line, partial_rows=partial, unfinished=not self.closed, left_out=self._left_out)
        return _run(root, tuple(rows), frame)


def _run(root: dict[str, Any], rows: tuple[Row, ...], frame: Run) -> Run:
    """``frame``: where the document stands, and what it lacks."""
    config = root["config"]
    hosts = tuple(dict.fromkeys(_texts(config.get("devices"), "hostname")))
    ranks = _ranks(config)
    checked = None if (validation := _int(config.get("validation"))) is None else validation > 0
    na = tuple(bool(rows) and all(_unchecked(row, place) for row in rows) for place in (0, 1))
    found = inference.infer(rows, ranks=ranks, unchecked=(na[0], na[1]), has_redop=True)
    args = root.get("args")
    match = _NAME.fullmatch(str(args[0])) if isinstance(args, list) and args else None
    footer = root.get("average_bus_bandwidth") or root.get("average_bus_bandwidith") or {}
    footer = footer if isinstance(footer, dict) else {}
    bounds = root.get("out_of_bounds")
    run = msgspec.structs.replace(
        frame,
        collective=match[1] if match else found.collective,
        collective_from="args" if match else "inferred" if found.collective else None,
        ranks=ranks or found.ranks,
        ranks_from="devices" if ranks else found.ranks_from,
        nodes=len(hosts) or None,
        rows=rows,
        out_of_bounds=None if checked is False or not isinstance(bounds, dict) else _int(bounds.get("count")),
        wrong_total=total(rows),
        hosts=hosts,
        checked=checked,
        cpu_time=any("cpu_time" in (entry.get("out_of_place") or {}) for entry in _objects(root["results"])),
        old_formula=found.old_formula,
        below_minimum=footer.get("okay") == "false",
        device=next(iter(_texts(config.get("devices"), "device_info")), None),
        errors=tuple(text[:300] for text in root.get("errors") or () if isinstance(text, str) and text)[:8],
        environment=tuple(text for text in root.get("env") or () if isinstance(text, str)),
    )
    doubts = [UNFINISHED] if frame.unfinished else []
    average = footer.get("bandwidth", footer.get("bandwidith"))
    return conclude(run, average=average if isinstance(average, str) else None, doubts=doubts)


def _row(entry: Any) -> Row | None:
    if not isinstance(entry, dict):
        return None
    size, count, kind = _int(entry.get("size")), _int(entry.get("count")), entry.get("type")
    oop, ip = _half(entry.get("out_of_place")), _half(entry.get("in_place"))
    if size is None or count is None or kind not in SIZES or oop is None or ip is None:
        return None
    redop = entry.get("redop")
    redop = redop if isinstance(redop, str) else None
    return Row(size=size, count=count, type=kind, redop=redop, root=_int(entry.get("root")), oop=oop, ip=ip)


def _half(entry: Any) -> Half | None:
    if not isinstance(entry, dict):
        return None
    found = [
        printed(str(text))
        for text in (entry.get("time", entry.get("cpu_time")), entry.get("alg_bw"), entry.get("bus_bw"))
    ]
    time, algbw, busbw = found
    if time is None or algbw is None or busbw is None:
        return None
    return Half(
        time_us=time[0],
        algbw=algbw[0],
        busbw=busbw[0],
        wrong=_int(entry.get("nwrong")),
        units=(time[1], algbw[1], busbw[1]),
    )


def _ranks(config: dict[str, Any]) -> int | None:
    """Each process has one entry, however many GPUs it drives."""
    numbers = [_int(text) for text in _texts(config.get("devices"), "rank")]
    each = (_int(config.get("ngpus")) or 1) * (_int(config.get("nthreads")) or 1)
    if not numbers:
        return None
    if len(numbers) > 1 and numbers == list(range(len(numbers))):
        return len(numbers)
    return len(numbers) * each


def _unchecked(row: Row, place: int) -> bool:
    half = (row.oop, row.ip)[place]
    return half is not None and half.wrong is None


def _texts(entries: Any, key: str) -> list[str]:
    return [entry[key] for entry in _objects(entries) if isinstance(entry.get(key), str)]


def _objects(entries: Any) -> list[dict[str, Any]]:
    return [entry for entry in entries if isinstance(entry, dict)] if isinstance(entries, list) else []


def _int(value: Any) -> int | None:
    """A whole number, also of a string with blanks or of ``0.0``."""
    text = value.strip() if isinstance(value, str) else ""
    sign, text = (-1, text[1:]) if text.startswith("-") else (1, text)
    number = printed(text)
    return sign * int(number[0]) if number is not None and abs(number[0]) < 1e300 else None


def _unescaped(text: str) -> str:
    return _ESCAPE.sub(r"\1", text) if "\\" in text else text


def _may_go_on(text: str) -> bool:
    """Whether more text can make a token of this beginning."""
    text = text.lstrip()
    return not text or text[0] in '"-' or text[0].isalnum()
