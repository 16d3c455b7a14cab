"""Read logs of nccl-tests in one pass: runs come out as they end, all other lines as events.

Invariant: one line costs next to nothing unless it can matter to a table or is the first of its kind; memory does
not grow with the log; no input raises.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from interlace.verify import layout, marks
from interlace.verify.blocks import Lines, Unpacker
from interlace.verify.envelope import unwrapped
from interlace.verify.events import EACH, LogEvent
from interlace.verify.facts import WORDS, Facts
from interlace.verify.jsonlog import JsonLog
from interlace.verify.plainrow import plain_row, right_rows
from interlace.verify.prefix import cleaned, strip
from interlace.verify.run import Half, Run
from interlace.verify.table import Table
from interlace.verify.teller import LONG, NCCL, Teller

BLOCK = 1 << 18
_SHAPES = 20_000
_SILENT = 50_000
_TABLES = 256
_KNOWN = 1024
_DIGITS = b"0123456789"
_HEX = b"0123456789abcdef"
_TABULAR = -1
_WITHIN = frozenset({layout.Cells, marks.Values, marks.Bounds, marks.Average, marks.Trouble})
"""Marks that never stand above a table."""
_TOLD = frozenset({marks.Trouble, marks.Note, marks.Command})
"""Marks that are events as well."""


class Reader:
    """Takes blocks of bytes, cut anywhere, and gives the runs that have ended."""

    def __init__(
        self, *, source: str = "-", events: Callable[[LogEvent], None] | None = None, begun: bool = False
    ) -> None:
        """``events`` gets the lines beside the tables; ``begun``: give runs that measured nothing as well."""
        self._source = source
        self._events = events
        self._begun = begun
        self._unpacker = Unpacker()
        self._lines = Lines()
        self._number = 0
        self._known: dict[bytes, tuple[marks.Mark, str | None]] = {}
        """Marks of lines that come again and again: headers, titles, footers."""
        self._shapes: dict[bytes, int] = {}
        self._each = EACH if events is not None else 1
        self._quiet: set[bytes] = set()
        """Shapes that say nothing new any more."""
        self._silent: set[bytes] = {b""}
        """Of those, what is left of whole lines without the digits of hexadecimal numbers."""
        self._channels: dict[bytes, int] = {}
        self._factual: set[bytes] = set()
        """Shapes of lines that state facts, which each run needs once."""
        self._stated: set[bytes] = set()
        self._facts = Facts()
        self._tables: dict[str | None, Table] = {}
        self._current: Table | None = None
        self._teller = Teller(events, source=source)
        self._rccl = False
        self._json: JsonLog | None = None
        self._json_line = 0
        self._json_prefixed = False
        self._waiting = False
        """A row or a header is incomplete, so lines of numbers matter."""
        self._done: list[Run] = []

    def feed(self, block: bytes) -> list[Run]:
        """The runs that end in ``block``."""
        for piece in self._unpacker.feed(block):
            self._pass(self._lines.feed(piece))
        return self._take()

    def close(self) -> list[Run]:
        """The runs that the end of the log ends."""
        rest = self._unpacker.end()
        if rest:
            self._pass(self._lines.feed(rest))
        lines, last = self._lines.end()
        self._pass(lines)
        if last:
            self._number += 1
            self._slow(last, cut=True)
        if self._json is not None:
            self._end_json(self._json)
        for table in sorted(self._tables.values(), key=lambda one: one.line):
            self._end(table)
        self._tables.clear()
        return self._take()

    def _take(self) -> list[Run]:
        done, self._done = self._done, []
        return done

    def _pass(self, text: bytes | None) -> None:
        """The loop that every line goes through; its common ways call nothing of ours.

        The shapes of all lines of a block are made at once, and a line whose shape is silent costs one look-up.
        """
        if text is None:
            return
        text = self._without_right_rows(unwrapped(text))
        number, quiet, silent, known = self._number, self._quiet, self._silent, self._known
        for line, rough in zip(text.split(b"\n"), text.translate(None, _HEX).split(b"\n"), strict=True):
            number += 1
            if rough in silent and not self._waiting:
                continue
            if line in known and self._json is None:
                self._number = number
                self._put(known[line][0], line, tag=known[line][1], cut=False)
                continue
            at = line.find(b" NCCL INFO ")
            if at >= 0 and (line.find(b"  ", 0, at) < 0 or _is_prefix(line[:at])):
                via = line.rfind(b" via ", at)
                shape = line[via:] if via > 0 else line[at:].translate(None, _HEX)
                if shape not in quiet:
                    self._number = number
                    self._state(line, at, shape)
                elif via > 0:
                    self._pass_channel(rough)
                elif shape not in self._factual:
                    self._silence(rough)
                continue
            shape = line.translate(None, _DIGITS)
            if shape in quiet and not self._waiting:
                self._silence(rough)
            elif line:
                self._number = number
                self._look(line, shape)
        self._number = number

    def _without_right_rows(self, text: bytes) -> bytes:
        """What is left once a full table has counted the sound rows that ``text`` begins with."""
        table = self._current
        if table is None or not table.is_full or not table.takes_plain_rows or self._json is not None:
            return text
        end = right_rows(text)
        number = text.count(b"\n", 0, end)
        table.left_out += number
        self._number += number
        return text[end:]

    def _pass_channel(self, rough: bytes) -> None:
        """One more channel of a known path. Paths that differ in digits alone are told apart only for a while."""
        seen = self._channels.get(rough, 0) + 1
        if seen < 2 * EACH:
            if len(self._channels) >= _SHAPES:
                self._channels.clear()
            self._channels[rough] = seen
        else:
            self._silence(rough)

    def _silence(self, rough: bytes) -> None:
        if len(self._silent) >= _SILENT:
            self._silent.clear()
        self._silent.add(rough)

    def _look(self, line: bytes, shape: bytes) -> None:
        """A line that is not known to say nothing new."""
        seen = self._shapes.get(shape, 0)
        if seen == 0 and _is_tabular(line):
            self._count(shape, _TABULAR)
            seen = _TABULAR
        if seen >= 0 and not self._waiting:
            self._count(shape, seen + 1)
            if seen + 1 >= self._each:
                self._quiet.add(shape)
            if self._events is not None:
                self._teller.say(line, number=self._number)
            return
        table = self._current
        if table is not None and table.takes_plain_rows and self._json is None:
            row = plain_row(line, number=self._number)
            if row is not None:
                table.take_plain(row, unchecked=(_unchecked(row.oop), _unchecked(row.ip)))
                return
        self._slow(line)

    def _count(self, shape: bytes, number: int) -> None:
        if len(self._shapes) >= _SHAPES:
            for known in (self._shapes, self._factual, self._quiet, self._silent):
                known.clear()
        self._shapes[shape] = number

    def _state(self, line: bytes, at: int, shape: bytes) -> None:
        """A line of NCCL that is one of the first of its shape, or states a fact that this run does not have yet."""
        seen = self._shapes.get(shape, 0)
        if seen == 0 and any(word in line for word in WORDS):
            self._factual.add(shape)
        self._count(shape, seen + 1)
        factual = shape in self._factual
        if factual and shape not in self._stated:
            self._stated.add(shape)
            self._facts.see(line[at:LONG].decode("utf-8", "replace"))
        if seen + 1 >= self._each:
            self._quiet.add(shape)
        if self._events is not None and seen < EACH:
            self._teller.say(line, number=self._number)

    def _slow(self, line: bytes, *, cut: bool = False) -> None:
        """A line that may matter to a table."""
        known = self._known.get(line)
        if known is not None and self._json is None and not cut:
            self._put(known[0], line, tag=known[1], cut=False)
            return
        text = line[:LONG].decode("utf-8", "replace")
        if self._json is not None and self._in_json(line):
            return
        stripped = strip(text, hosts=True)
        if self._json is None and _opens_json(stripped.text):
            self._json, self._json_line = JsonLog(), self._number
            self._json_prefixed = not line.lstrip().startswith(b"{")
            self._waiting = True
            self._in_json(line)
            return
        body = stripped.text
        match = NCCL.search(body) if "NCCL " in body else None
        if match is not None:
            body = body[: match.start()]
            if match[1]:
                body += self._unglued(match[1])
            self._facts.see(stripped.text[match.start() :])
            if self._events is not None:
                self._teller.say(line, number=self._number)
        mark = marks.recognise(cleaned(body), line=self._number, cut=cut and match is None)
        if mark is None:
            if match is None and self._events is not None:
                self._teller.say(line, number=self._number)
            return
        if match is None and not isinstance(mark, layout.Cells | marks.Values) and len(self._known) < _KNOWN:
            self._known[line] = mark, stripped.tag
        self._put(mark, line, tag=stripped.tag, cut=cut and match is None)
        if isinstance(mark, layout.Cells) and mark.tail and (also := marks.trouble(" ".join(mark.tail))):
            self._put(also, line, tag=stripped.tag, cut=False)

    def _in_json(self, line: bytes) -> bool:
        """Give a line to the JSON document that is open; whether it belonged there."""
        document = self._json
        assert document is not None  # noqa: S101  the caller looked
        text = line.decode("utf-8", "replace")
        if self._json_prefixed:
            text = strip(text, hosts=True).text
        document.feed(text + "\n")
        if document.closed or document.failed:
            self._end_json(document)
        return not document.failed

    def _end_json(self, document: JsonLog) -> None:
        self._json = None
        self._wait()
        run = document.run(source=self._source, line=self._json_line)
        if run is not None and (self._begun or run.rows or run.partial_rows):
            self._done.append(run)

    def _unglued(self, word: str) -> str:
        """The part of a row that stands before a host name without a blank between."""
        for host in self._teller.hosts:
            if word.endswith(host):
                return word[: -len(host)]
        row = layout.Cells(size=0, count=0, type="", values=[], line=0)
        layout.extend(row, [word])
        return row.values[0] if row.values and row.values[0] != word else ""

    def _put(self, mark: marks.Mark, line: bytes, *, tag: str | None, cut: bool) -> None:
        kind = type(mark)
        table = self._tables.get(tag) if tag is not None else self._current
        if table is None and (
            self._current is None or (kind not in _WITHIN and tag is not None and tag not in self._tables)
        ):
            table = self._open(tag)
        elif table is None:
            table = self._current
        assert table is not None  # noqa: S101  one of the two branches made it
        if table.begins(mark):
            self._end(table)
            table = self._open(next((key for key, one in self._tables.items() if one is table), tag))
        self._current = table
        table.take(mark, cut=cut)
        if kind in _TOLD and self._events is not None:
            self._teller.say(line, number=self._number)
        if self._waiting or table.pending is not None or table.unfinished_names is not None:
            self._wait()
        if isinstance(mark, marks.Rank):
            self._teller.learn(mark.host, mark.pid, mark.device, rank=mark.rank)
        elif isinstance(mark, marks.Version):
            self._rccl = mark.text.startswith("rccl")
        elif isinstance(mark, marks.Concluded):
            self._end(table)
            self._forget(table)

    def _wait(self) -> None:
        tables = self._tables.values()
        self._waiting = self._json is not None or any(one.pending or one.unfinished_names for one in tables)

    def _open(self, tag: str | None) -> Table:
        if len(self._tables) >= _TABLES:
            oldest = min(self._tables.values(), key=lambda one: one.line)
            self._end(oldest)
            self._forget(oldest)
        table = self._tables[tag] = Table(source=self._source, line=self._number)
        return table

    def _forget(self, table: Table) -> None:
        self._tables = {key: one for key, one in self._tables.items() if one is not table}
        if self._current is table:
            self._current = None

    def _end(self, table: Table) -> None:
        run = table.close(self._facts, rccl=self._rccl)
        self._facts = Facts()
        self._stated.clear()
        self._quiet -= self._factual
        self._silent.difference_update(self._channels)
        if run is not None and (self._begun or run.rows or run.partial_rows):
            self._done.append(run)


def read(
    blocks: Iterable[bytes],
    *,
    source: str = "-",
    events: Callable[[LogEvent], None] | None = None,
    begun: bool = False,
) -> Iterator[Run]:
    """The runs in ``blocks``, which may be cut anywhere (lines, blocks of a file, pieces of a stream).

    ``events`` is called for each line beside the tables, in the order of the log, bounded as ``events`` says.
    """
    reader = Reader(source=source, events=events, begun=begun)
    for block in blocks:
        yield from reader.feed(block)
    yield from reader.close()


def read_log(path: Path, *, events: Callable[[LogEvent], None] | None = None, begun: bool = False) -> Iterator[Run]:
    """The runs in a file. Raises OSError."""
    with path.open("rb") as file:
        yield from read(iter(lambda: file.read(BLOCK), b""), source=str(path), events=events, begun=begun)


def read_text(text: str, *, events: Callable[[LogEvent], None] | None = None, begun: bool = False) -> list[Run]:
    """The runs in a text."""
    return list(read([text.encode("utf-8", "surrogatepass")], events=events, begun=begun))


def _is_prefix(head: bytes) -> bool:
    """Whether what stands before a line of NCCL is only a prefix and no part of a row."""
    return b"  " not in head.strip() and b"\t" not in head


def _is_tabular(line: bytes) -> bool:
    if not marks.ANCHORS.isdisjoint(line.split()):
        return True
    if line.startswith(b'{"') and line.rstrip().endswith(b"}") and b'"results"' not in line:  # a structured log
        return False
    return any(fragment in line for fragment in marks.FRAGMENTS)


def _unchecked(half: Half | None) -> bool:
    return half is None or half.wrong is None


def _opens_json(text: str) -> bool:
    return text.lstrip()[:1] == "{" and text.lstrip()[1:].lstrip()[:1] in {"", '"'}
