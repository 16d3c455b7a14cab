"""Reads a page of shell: which gcloud commands stand in it, in which loops, and which variables it sets.

A page may be a script or a document with commands between its paragraphs: a line that is no command of a shell is
passed over. Invariant: whatever the text is, reading gives a ``Page`` or raises ``PageError``; nothing is run.
"""

from __future__ import annotations

import re
from typing import Final

from interlace.gke.gcloud.lexer import Lexer
from interlace.gke.gcloud.refusal import PageError
from interlace.gke.gcloud.statements import Assignment, Command, Loop, Note, Page, Statement
from interlace.gke.gcloud.words import Part, Word

LONGEST: Final = 20_000
"""Characters of a line in which commands are looked for."""

_MATTERS: Final = re.compile(r"gcloud|[={}\\]|--|<<|^(?:for|if|while|until|case|function)\b|\(\)")
"""What stands in every line that may be more than text outside of loops and conditions."""

_PREFIX: Final = r"(?:(?:time|sudo|command|env)\s+)?(?:[A-Za-z_]\w*=(?:\"[^\"\n]*\"|'[^'\n]*'|[^\s\"'();&|]*)\s+)*"
_GCLOUD: Final = re.compile(rf"{_PREFIX}gcloud(?=\s)(?!\s+(?:CLI|SDK|-{{1,2}}\s)\b)")
_ASSIGNS: Final = re.compile(r"(?:(?:export|readonly|declare|local|typeset)\s+(?:-\w+\s+)?)?([A-Za-z_]\w*)=")
_FLAG: Final = re.compile(r"\[?--[a-z]")
_COUNTED: Final = re.compile(
    r"for\s*\(\(\s*(?P<name>\w+)\s*=\s*(?P<first>\d+)\s*;\s*(?P=name)\s*(?P<less><=?)\s*(?P<last>\d+)\s*;"
    r"\s*(?:(?P=name)\s*\+\+|\+\+\s*(?P=name))\s*\)\)\s*;?[ \t]*"
)
_FOR: Final = re.compile(r"for\s+[A-Za-z_]\w*\s+in\b")
_OPENS: Final = re.compile(
    r"(?P<word>if|while|until|elif)\s.*\b(?:then|do)\s*$|(?P<case>case)\s.*\sin\s*$|(?:function\s+)?[\w-]+\s*\(\)\s*\{?\s*$"
)
_UNLESS_THERE: Final = re.compile(r"if\s+!\s+gcloud\s.*\bdescribe\b.*;\s*then\s*$")
_HALF: Final = re.compile(r"(?:if|while|until)\s")
_CLOSES: Final = re.compile(r"(?:fi|esac|\})(?:\s|;|$)")
_HERE: Final = re.compile(r"<<(?P<tabs>-?)\s*(?P<quote>['\"]?)(?P<end>[A-Za-z_]\w*)(?P=quote)")
_MUTATES: Final = re.compile(r"gcloud\s.*\b(?:create|update|delete|resize|upgrade|patch|set|enable|add|remove)\b")
_HARMLESS: Final = ("true", ":", "echo", "exit", "return")
_ENDS: Final = (";", "&", ";;", "&&", "||", "|")


def read_page(text: str) -> Page:
    """The statements of a page. Raises PageError."""
    reader = _Reader(text.replace("\r\n", "\n").replace("\r", "\n"))
    try:
        statements = reader.block(loop=0)
    except RecursionError:
        raise PageError("loops stand in each other too deeply", remedy="Write fewer levels.") from None
    notes = [Note(kind=kind, line=line, text="") for line, kind in reader.lexer.notes] + reader.notes
    return Page(statements=tuple(statements), notes=tuple(sorted(notes, key=lambda note: note.line)))


class _Reader:
    def __init__(self, text: str) -> None:
        self.lexer = Lexer(text)
        self.notes: list[Note] = []
        self.open: list[str] = []
        """Conditions and functions around the current line."""

    def block(self, *, loop: int) -> list[Statement]:
        """Statements up to the ``done`` of the loop that began in line ``loop``, or to the end of the page."""
        lexer = self.lexer
        found: list[Statement] = []
        while not lexer.ended:
            lexer.skip_blanks()
            rest = lexer.rest_of_line()
            if not loop and not self.open and not _MATTERS.search(rest):
                lexer.skip_line()
            elif len(rest) > LONGEST:
                self._long(rest)
            elif re.match(r"\$\s+\S", rest):
                lexer.skip(1)
            elif not rest.strip() or rest[0] == "#" or rest.startswith("```"):
                lexer.skip_line()
            elif loop and re.match(r"done(?![\w-])", rest) and not self._ends_other():
                lexer.skip(4)
                self._after_loop()
                return found
            elif _FLAG.match(rest):
                self._stray()
            elif self._is_loop(rest):
                found.append(self._loop())
            elif self._is_counted(rest):
                found.append(self._counted())
            elif _GCLOUD.match(rest):
                found += self._gcloud()
            elif (assigned := self._assignments()) is not None:
                found += assigned
            elif not self._control(rest):
                self._foreign(rest, inside=bool(loop))
        if loop:
            raise PageError("the loop has no end", line=loop, remedy="Write done after its last command.")
        return found

    def _long(self, rest: str) -> None:
        """Pass over a line that nobody wrote by hand, unless it may hold a command."""
        if "gcloud" in rest:
            raise PageError(f"the line is longer than {LONGEST} characters", line=self.lexer.line)
        self.lexer.skip_line()

    def _stray(self) -> None:
        line, start = self.lexer.line, self.lexer.at
        words: list[str] = []
        try:
            while (word := self.lexer.word()) is not None:
                words.append(word.literal)
        except PageError:
            pass
        self.lexer.skip_line()
        text = " ".join(words) or self.lexer.text[start : self.lexer.at].strip()
        self.notes.append(Note(kind="stray-flag", line=line, text=text))

    def _is_loop(self, rest: str) -> bool:
        follows = self.lexer.next_line().strip()
        return bool(_FOR.match(rest)) and (
            bool(re.search(r"(;|\s)\s*do(\s|;|$)", rest)) or follows.split()[:1] == ["do"]
        )

    def _is_counted(self, rest: str) -> bool:
        return bool(re.match(r"for\s*\(\(", rest))

    def _loop(self) -> Loop:
        line = self.lexer.line
        self.lexer.word()
        name = self.lexer.word()
        self.lexer.word()
        words: list[Word] = []
        while (word := self.lexer.word()) is not None and word.operator != ";":
            if word.operator:
                self._odd(word)
            words.append(word)
        return Loop(name=name.literal if name else "", words=tuple(words), body=self._body(line), line=line)

    def _counted(self) -> Loop:
        line = self.lexer.line
        match = _COUNTED.match(self.lexer.rest_of_line())
        if match is None:
            raise PageError(
                f"the loop {self.lexer.rest_of_line().strip()} is not taken",
                line=line,
                remedy="Write for NAME in and the values.",
            )
        self.lexer.skip(match.end())
        last = int(match["last"]) - (match["less"] == "<")
        text = f"{{{match['first']}..{last}}}" if last >= int(match["first"]) else ""
        words = (Word((Part("text", text),), line),) if text else ()
        return Loop(name=match["name"], words=words, body=self._body(line), line=line)

    def _body(self, line: int) -> tuple[Statement, ...]:
        lexer = self.lexer
        while not lexer.ended:
            lexer.skip_blanks()
            rest = lexer.rest_of_line()
            if re.match(r"do(\s|$)", rest):
                lexer.skip(2)
                return tuple(self.block(loop=line))
            if rest.strip() and not rest.startswith("#"):
                break
            lexer.skip_line()
        raise PageError("the loop has no do", line=line, remedy="Write do before its first command.")

    def _after_loop(self) -> None:
        """What may stand behind ``done``: an end of the statement, else the rest of the line is passed over."""
        self.lexer.skip_blanks()
        rest = self.lexer.rest_of_line()
        match = re.match(r"(;|&&|&)", rest)
        if match:
            self.lexer.skip(match.end())
        elif _MUTATES.search(rest):
            raise PageError(f"{rest.strip()} behind a loop is not taken", line=self.lexer.line)
        else:
            self.lexer.skip_line()

    def _gcloud(self) -> list[Statement]:
        line = self.lexer.line
        words, operator = self._words()
        before: list[tuple[str, Word]] = []
        while words and (not words[0].parts or words[0].literal != "gcloud"):
            match = _ASSIGNS.match(words[0].literal)
            if match and words[0].parts:
                before.append((match[1], _behind(words[0], match.end())))
            words = words[1:]
        if not words:
            return []
        last = self.lexer.line
        return [
            Command(
                words=tuple(words[1:]),
                line=line,
                last=last,
                before=tuple(before),
                inside=self._inside(),
            ),
            *self._next(operator, words[1:]),
        ]

    def _words(self) -> tuple[list[Word], str]:
        """Words up to the operator that ends the command, without redirections of what it prints."""
        words: list[Word] = []
        end = -1
        while True:
            gap = end
            word = self.lexer.word()
            if word is None:
                return words, ""
            if word.operator in _ENDS:
                return words, word.operator
            if word.operator in {">", ">>", "&>", ">&"}:
                if words and words[-1].literal in {"1", "2"} and gap == self.lexer.at - len(word.operator):
                    words.pop()
                self.lexer.word()
            elif word.operator:
                self._odd(word)
            else:
                words.append(word)
            end = self.lexer.at

    def _odd(self, word: Word) -> None:
        hole = re.match(r"([A-Za-z][\w .-]{0,60})>", self.lexer.rest_of_line())
        if word.operator == "<" and hole:
            raise PageError(
                f"<{hole[1]}> is a word to be replaced, not a value",
                line=word.line,
                remedy="Write the value.",
            )
        cause = "What it would read is not known." if word.operator.startswith("<") else "A shell gives it a meaning."
        raise PageError(
            f"{word.operator} in a command is not taken",
            line=word.line,
            cause=cause,
            remedy="Put a value that holds it in quotes.",
        )

    def _next(self, operator: str, before: list[Word]) -> list[Statement]:
        """What stands behind ``||`` or ``|``: commands that make what the one before it did not find.

        Refused is what else runs only if a gcloud command fails, or reads what it prints, if it is gcloud itself.
        """
        if operator not in {"||", "|"}:
            return []
        line = self.lexer.line
        self.lexer.skip_blanks()
        if operator == "||" and _GCLOUD.match(self.lexer.rest_of_line()) and "describe" in map(_literal, before):
            self.notes.append(Note(kind="unless-there", line=line, text=""))
            return self._gcloud()
        words, following = self._words()
        names = [word.literal for word in words]
        if "gcloud" in names or (operator == "||" and names[:1] and names[0] not in _HARMLESS and names[0] != "{"):
            raise PageError(
                f"{operator} {' '.join(names[:4])} is not taken",
                line=line,
                cause="Whether it runs depends on what the command before it gives.",
                remedy="Write the commands that are to run, one a line.",
            )
        return self._next(following, [])

    def _assignments(self) -> list[Statement] | None:
        """The assignments of this line, or None if it begins with something else; then nothing was passed."""
        lexer = self.lexer
        if not _ASSIGNS.match(lexer.rest_of_line()):
            return None
        mark = lexer.mark()
        try:
            words, _ = self._words()
        except PageError:
            lexer.reset(mark)
            match = _ASSIGNS.match(lexer.rest_of_line())
            name = match[1] if match else ""
            lexer.skip_line()
            return [Assignment(name=name, word=None, line=mark[1], inside=self._inside())]
        if words and words[0].literal in {"export", "readonly", "declare", "local", "typeset"}:
            words = [word for word in words[1:] if not word.literal.startswith("-")]
        matches = [(_ASSIGNS.match(word.literal), word) for word in words]
        if any(match is None for match, _ in matches):  # FOO=bar some command: set for that alone
            return []
        return [
            Assignment(name=match[1], word=_behind(word, match.end()), line=word.line, inside=self._inside())
            for match, word in matches
            if match
        ]

    def _inside(self) -> str:
        """The innermost condition around the current line; empty if there is none."""
        return next((each for each in reversed(self.open) if each), "")

    def _ends_other(self) -> bool:
        """Whether this ``done`` ends a loop that is not taken."""
        if self.open and self.open[-1] in {"while", "until"}:
            self.open.pop()
            self.lexer.skip_line()
            return True
        return False

    def _control(self, rest: str) -> bool:
        """Keep count of conditions and functions; whether the line was one."""
        stripped = rest.strip()
        follows = self.lexer.next_line().strip().split()[:1]
        opens = _OPENS.match(stripped)
        half = bool(_HALF.match(stripped)) and follows in (["then"], ["do"])
        single = re.match(r"(if|while|until)\s.*;\s*(then|do)\s+.*;\s*(fi|done)\b", stripped)
        if (opens or half or single) and _MUTATES.search(stripped):
            raise PageError(
                "a command in a condition is not taken",
                line=self.lexer.line,
                cause="Whether it runs is known only where the page is run.",
                remedy="Write the command alone.",
            )
        if single:
            pass
        elif _UNLESS_THERE.match(stripped):
            self.notes.append(Note(kind="unless-there", line=self.lexer.line, text=""))
            self.open.append("")
        elif opens or half:
            self.open.append("function" if opens and not (opens["word"] or opens["case"]) else stripped.split()[0])
            if self.open[-1] == "elif":
                self.open.pop()
        elif self.open and _CLOSES.match(stripped):
            self.open.pop()
        elif self.open and stripped in {"then", "do", "else", "{"}:
            pass
        elif self.open and re.match(r"done(\s|;|$)", stripped) and self.open[-1] in {"while", "until"}:
            self.open.pop()
        else:
            return False
        self.lexer.skip_line()
        return True

    def _foreign(self, rest: str, *, inside: bool) -> None:
        """Pass over what is no gcloud command: a line of text, or another program with its here-document."""
        here = _HERE.search(rest)
        if here and not rest.startswith("gcloud"):
            self._here_document(here)
            return
        if inside and re.match(r"(break|continue|exit|return)\b", rest):
            raise PageError(f"{rest.strip()} in a loop is not taken", line=self.lexer.line)
        if inside or re.search(r"(;|&&|\|\|)\s*gcloud\s", rest):
            mark = self.lexer.mark()
            try:
                words, operator = self._words()
            except PageError:
                self.lexer.reset(mark)
                self.lexer.skip_line()
                return
            first = words[0].literal if words else ""
            if operator in {"&&", "||"} and _MUTATES.search(self.lexer.rest_of_line()):
                if operator == "||" or first in {"[", "[[", "test", "!"}:
                    raise PageError(
                        "a command behind a condition is not taken",
                        line=mark[1],
                        cause="Whether it runs is known only where the page is run.",
                        remedy="Write the command alone.",
                    )
            elif operator == "":
                self.lexer.skip_line()
            return
        while self.lexer.skip_line().rstrip().endswith("\\") and not self.lexer.ended:
            pass

    def _here_document(self, here: re.Match[str]) -> None:
        line = self.lexer.line
        self.lexer.skip_line()
        while not self.lexer.ended:
            text = self.lexer.skip_line()
            if (text.lstrip("\t") if here["tabs"] else text).rstrip() == here["end"]:
                return
        raise PageError(f"the text that ends with {here['end']} has no end", line=line)


def _literal(word: Word) -> str:
    return word.literal


def _behind(word: Word, count: int) -> Word:
    """The word without its first ``count`` characters, which are plain text."""
    parts = list(word.parts)
    while count and parts:
        first = parts.pop(0)
        if len(first.text) > count or first.kind != "text":
            parts.insert(0, Part(first.kind, first.text[count:], first.quoted, first.other))
            break
        count -= len(first.text)
    return Word(tuple(parts), word.line)
