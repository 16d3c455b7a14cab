"""One table of nccl-tests while it is being read: takes marks, one after the other, and becomes a Run.

Invariant: a row is kept once all its values are there; what a crash, a paste or other output cut is counted and
never completed by guessing. Memory is bounded by ``KEPT`` rows.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import assert_never

import msgspec

from interlace.verify import arithmetic, inference, layout, marks
from interlace.verify.conclusion import CUT, conclude, total
from interlace.verify.facts import Facts
from interlace.verify.number import printed
from interlace.verify.run import Half, Row, Run, is_reversed

KEPT = 20_000
"""Rows of one run; a sweep that repeats for ever (``-N 0``) has more."""
_RANKS = 65_536
_REDUCED = re.compile(r"Reducing maxBytes to (\d{1,19}) ", re.ASCII)
_DEVIATION = re.compile(r"0(?:\.0*)?e[+-]\d\d|\d(?:\.\d+)?e-\d\d")
"""Forms that only a largest deviation has where the header is lost."""


class Table:
    """Mutable; ``begins`` says whether a mark belongs to a table of its own."""

    def __init__(self, *, source: str, line: int) -> None:
        self.source = source
        self.line = line
        self.columns: layout.Columns | None = None
        self.rows: list[Row] = []
        self.pending: layout.Cells | None = None
        self.unfinished_names: list[str] | None = None
        self.foreign = False
        """The header is of a table that nccl-tests never printed."""
        self.ranks: dict[tuple[int, str], str] = {}
        self._name: str | None = None
        self._command: str | None = None
        self._program: str | None = None
        self._jobs = 0
        self._ranks_cut = False
        self._gaps = False
        self._rank_zero = 0
        self._header = False
        self._plain = False
        self._partial = 0
        self.left_out = 0
        self._left_wrong = 0
        """Wrong elements of rows that are left out."""
        self._misfits = 0
        self._deviates = False
        self._na = [True, True]
        self._config = marks.Config(None)
        self._bounds: int | None = None
        self._average: str | None = None
        self._low = False
        self._doubts: list[str] = []
        self._errors: list[str] = []

    @property
    def takes_plain_rows(self) -> bool:
        """Whether a row in the layout of v2.13 and later, whole and without a prefix, belongs here."""
        return self._plain and self._average is None and self.pending is None

    @property
    def is_full(self) -> bool:
        """More rows are only counted."""
        return len(self.rows) >= KEPT

    def take_plain(self, row: Row, *, unchecked: tuple[bool, bool]) -> None:
        """Take a row that was read elsewhere; ``unchecked``: which halves say N/A."""
        if not self._append(row):
            return
        self._na[0] &= unchecked[0]
        self._na[1] &= unchecked[1]

    @property
    def evident(self) -> bool:
        """A title, ranks or a header of nccl-tests stand above the rows."""
        return bool(self._name or self._program or self._jobs or self.ranks or (self._header and not self.foreign))

    @property
    def ended(self) -> bool:
        """The footer was there."""
        return self._average is not None

    @property
    def _measured(self) -> bool:
        return bool(self.rows or self._partial or self.pending or self.ended or self._bounds is not None)

    def begins(self, mark: marks.Mark) -> bool:
        """Whether ``mark`` is the beginning of another table."""
        if isinstance(mark, marks.Rank):  # first, since most marks are ranks
            return self._measured
        if isinstance(mark, marks.Version):
            return self._measured or self._header or self._jobs > 0 or self._name is not None
        if isinstance(mark, marks.Start):
            return self._measured or self._header or self._jobs > 0
        if isinstance(mark, marks.Config):
            return self._measured or self._header or bool(self._jobs and self._errors)
        if isinstance(mark, marks.Command):
            return self._measured and (self.ended or mark.name != self._command)
        if isinstance(mark, marks.Names):
            return mark.header is not None and self._measured
        return isinstance(mark, layout.Cells) and self.ended

    def take(self, mark: marks.Mark, *, cut: bool = False) -> None:
        """Take a mark that belongs here. ``cut``: the log ends in this line, without its end."""
        if isinstance(mark, marks.Rank):
            self._give_up()
            self._give_up_names()
            self._rank(mark)
            return
        if isinstance(mark, layout.Cells | marks.Values):
            self._give_up_names()
            self._row(mark, cut=cut)
            return
        if isinstance(mark, marks.Names):
            self._names(mark)
            return
        if not isinstance(mark, marks.Command | marks.Trouble | marks.Omission | marks.Note):
            self._give_up()
        self._give_up_names()
        self._other(mark, cut=cut)

    def _other(
        self,
        mark: marks.Version | marks.Start | marks.Concluded | marks.Command | marks.Config | marks.Omission
        | marks.Bounds | marks.Average | marks.Trouble | marks.Note,
        *,
        cut: bool,
    ) -> None:  # fmt: skip
        match mark:
            case marks.Version(text):
                self._program = text
            case marks.Start(name) | marks.Concluded(name):
                self._name = self._name or (None if cut else name)
            case marks.Command(name):
                self._command = name
            case marks.Config():
                self._jobs += 1
                self._config = mark
            case marks.Omission():
                self._ranks_cut |= bool(self.ranks) and not self._header
                self._gaps |= bool(self.rows)
            case marks.Bounds(count, _):
                self._bounds = None if cut else count
            case marks.Average(text, okay):
                self._average, self._low = text, not okay
                self._cut_average = cut
            case marks.Trouble(text):
                if len(self._errors) < 8:
                    self._errors.append(text[:300])
            case marks.Note(text):
                if reduced := _REDUCED.match(text):
                    self._config = replace(self._config, largest=int(reduced[1]))
                if text[:300] not in self._doubts:
                    self._doubts.append(text[:300])
            case _:
                assert_never(mark)

    _cut_average = False

    def _rank(self, mark: marks.Rank) -> None:
        if len(self.ranks) < _RANKS:
            self._rank_zero += mark.rank == 0
            self.ranks[mark.rank, mark.host] = mark.product

    def _names(self, mark: marks.Names) -> None:
        tokens, header = mark.tokens, mark.header
        if self.unfinished_names is not None and (header is None or header.columns is None):
            tokens = [*self.unfinished_names, *tokens]
            header = layout.header(tokens)
        if header is None:
            return
        self._give_up()
        self.unfinished_names = tokens if header.begun else None
        if header.columns is not None:
            self._header, self.foreign, self.columns = True, False, header.columns
            self._plain = header.columns == layout.UNIFORM
        elif not header.begun:
            self._mangled()

    def _give_up_names(self) -> None:
        if self.unfinished_names is not None:
            self.unfinished_names = None
            self._mangled()

    def _mangled(self) -> None:
        self.foreign = not self.evident
        self._header, self.columns, self._plain = True, None, False

    def _row(self, mark: layout.Cells | marks.Values, *, cut: bool) -> None:
        if self.foreign:
            return
        if isinstance(mark, layout.Cells):
            self._give_up()
            self.pending = mark
        elif self.pending is None:
            return
        elif not self.pending.tail:
            layout.extend(self.pending, mark.tokens)
        row = self.pending
        if cut and not self.ended:  # the last number may lack digits
            self._give_up()
            return
        if layout.lacks(row, self.columns):
            return
        self.pending = None
        found = layout.complete(row, self.columns)
        if found is None:
            self._misfits += self.evident
        else:
            self._append(self._kept(found))

    def _append(self, row: Row) -> bool:
        """Keep the row; of those beyond ``KEPT`` only their number and their wrong elements are kept."""
        if self.is_full:
            self.left_out += 1
            self._left_wrong += total((row,)) or 0
            return False
        self.rows.append(row)
        return True

    def _kept(self, found: layout.Found) -> Row:
        root = found.root
        if root is not None and root.startswith("-") and root != "-1" and len(self._doubts) < arithmetic.MOST:
            self._doubts.append(
                f"row {len(self.rows) + 1} (size {found.cells.size}, line {found.cells.line}): there is no root {root}"
            )
        return Row(
            size=found.cells.size,
            count=found.cells.count,
            type=found.cells.type,
            redop=found.redop,
            root=None if root is None else int(root),
            oop=self._half(found.oop, 0),
            ip=self._half(found.ip, 1),
            line=found.cells.line,
        )

    def _half(self, half: layout.Reading, place: int) -> Half:
        scale = 1e3 if self.columns is not None and self.columns.milliseconds else 1.0
        wrong: int | None = None
        if half.wrong != "N/A":
            self._na[place] = False
            if self.columns is None:
                self._deviates |= bool(_DEVIATION.fullmatch(half.wrong))
            value = printed(half.wrong)
            if value is not None and value[0] < 1e300 and not (self.columns is not None and self.columns.deviation):
                wrong = int(value[0])
        return Half(
            time_us=half.time[0] * scale,
            algbw=half.algbw[0],
            busbw=half.busbw[0],
            wrong=wrong,
            units=(half.time[1] * scale, half.algbw[1], half.busbw[1]),
        )

    def _give_up(self) -> None:
        if self.pending is not None:
            self.pending = None
            self._partial += self.evident or bool(self.rows)

    def close(self, facts: Facts, *, rccl: bool = False) -> Run | None:
        """The run; None if this was no table of nccl-tests."""
        self._give_up_names()
        self._give_up()
        if not (self.rows or self.evident):
            return None
        if self._deviates:
            self.rows = [_without_counts(row) for row in self.rows]
        return self._finish(facts, rccl=rccl)

    def _finish(self, facts: Facts, *, rccl: bool) -> Run:
        rows = tuple(self.rows)
        ranks, ranks_from = self._counted()
        unchecked = (self._na[0] and bool(rows), self._na[1] and bool(rows))
        has_redop = self.columns.redop and self.columns.root if self.columns else any(row.redop for row in rows)
        found = inference.Inference()
        if ranks is None or self._name not in inference.UNVARYING:
            found = inference.infer(rows, ranks=ranks, unchecked=unchecked, has_redop=has_redop, rccl=rccl)
        if ranks is None:
            ranks, ranks_from = found.ranks, found.ranks_from
        if ranks is None and facts.ranks:
            ranks, ranks_from = facts.ranks, "NCCL"
        collective, origin = self._collective(found)
        deviates = self._deviates or (self.columns is not None and self.columns.deviation)
        asked = self._config.validation
        checked = asked > 0 if asked is not None else False if unchecked == (True, True) else None
        checked = True if checked is None and rows and not deviates else checked
        hosts = tuple(dict.fromkeys(host for _, host in self.ranks))
        run = Run(
            collective=collective,
            collective_from=origin,
            ranks=ranks,
            ranks_from=ranks_from,
            nodes=self._nodes(hosts) or facts.nodes or None,
            rows=rows,
            partial_rows=self._partial,
            out_of_bounds=None if checked is False else self._bounds,
            wrong_total=(total(rows) or 0) + self._left_wrong if self._left_wrong else total(rows),
            transport=facts.transport,
            source=self.source,
            line=self.line,
            hosts=hosts,
            checked=checked,
            cpu_time=self.columns is not None and self.columns.cpu_time,
            old_formula=found.old_formula,
            below_minimum=self._low,
            unfinished=self._is_unfinished(),
            left_out=self.left_out,
            gaps=self._gaps,
            program=self._program,
            device=next(iter(self.ranks.values()), None),
            errors=tuple(self._errors),
        )
        return conclude(run, average=self._average, cut=self._cut_average, doubts=self._warnings(run))

    def _is_unfinished(self) -> bool:
        if self.ended or self._bounds is not None:
            return False
        return self._config.goes_on(max((row.size for row in self.rows), default=0))

    def _counted(self) -> tuple[int | None, str | None]:
        numbers = {rank for rank, _ in self.ranks}
        if not numbers or self._ranks_cut or len(numbers) != max(numbers) + 1:
            return None, None
        return len(numbers), "rank lines"

    def _nodes(self, hosts: tuple[str, ...]) -> int | None:
        if self._counted()[0] is None:
            return None
        return max(1, len(hosts) // max(1, self._rank_zero)) if self._rank_zero > 1 else len(hosts)

    def _collective(self, found: inference.Inference) -> tuple[str | None, str | None]:
        if self._name is not None:
            return self._name, "name"
        if self._command is not None and found.collective in {None, self._command}:
            return self._command, "args"
        return found.collective, None if found.collective is None else "inferred"

    def _warnings(self, run: Run) -> list[str]:
        told = list(self._doubts[: arithmetic.MOST])
        if run.unfinished and run.rows:
            told.append(CUT)
        if is_reversed(run.rows):
            told.append("sizes fall from row to row: the lines of this log come newest first")
        if self._rank_zero > 1 or self._jobs > 1:
            times = max(self._rank_zero, self._jobs)
            told.append(
                f"not one job: {times} copies ran side by side, each with its own rank 0, "
                "as a program built without MPI does"
            )
        if self._command is not None and run.collective not in {None, self._command}:
            told.append(f"a command line names {self._command}, the table is of {run.collective}")
        if self._gaps:
            told.append("rows are left out where the paste says `...`, so that the average cannot be checked")
        if self._ranks_cut:
            told.append("the list of ranks is cut")
        if self._misfits:
            told.append(f"{self._misfits} lines look like rows and do not fit the columns; they are left out")
        return told


def _without_counts(row: Row) -> Row:
    def plain(half: Half | None) -> Half | None:
        return None if half is None else msgspec.structs.replace(half, wrong=None)

    return msgspec.structs.replace(row, oop=plain(row.oop), ip=plain(row.ip))
