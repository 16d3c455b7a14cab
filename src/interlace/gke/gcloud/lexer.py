"""Cuts a page of shell into words: quotes, backslashes, comments, operators, and lines that a backslash joins.

Invariant: reading goes forward only and raises ``PageError`` and nothing else; what it passes is text, never run.
"""

from __future__ import annotations

import re
from typing import Final, NoReturn

from interlace.gke.gcloud.refusal import PageError
from interlace.gke.gcloud.words import Part, Word

OPERATORS: Final = ("&&", "||", ";;", "<<<", "<<", ">>", "&>", ">&", "<&", ";", "|", "&", ">", "<", "(", ")")

_OPERATOR_STARTS: Final = frozenset("&|;<>()")
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_BRACED: Final = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)(?:(:?[-=])(.*))?\Z", re.DOTALL)
_CURRENT_PROJECT: Final = re.compile(
    r"\s*gcloud\s+config\s+(?:get-value|get|list\s+--format\S*)\s+(?:core/)?project\b[^;&|]*\Z"
)
_LINE_END: Final = re.compile(r"\\[ \t]*(?:\n|\Z)")
_COMMAND: Final = re.compile(r"(\$\s+)?(gcloud|kubectl)\s|```")
_FOREIGN: Final = "\u201c\u201d\u2018\u2019\u00a0"
_PLAIN_ENDS: Final = " \t\n\\'\"$`&|;<>()" + _FOREIGN


class Lexer:
    """Cuts a page into words, from any position; keeps the line numbers.

    ``notes``: what was odd about line ends, as (line, kind): ``trailing-backslash`` where a backslash joins nothing,
    ``swallowed-command`` where it joins the next command, ``space-after-backslash`` where it joins nothing because a
    space follows it.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.line = 1
        self.notes: list[tuple[int, str]] = []

    @property
    def ended(self) -> bool:
        return self.at >= len(self.text)

    def rest_of_line(self) -> str:
        """What is left of the physical line."""
        end = self.text.find("\n", self.at)
        return self.text[self.at :] if end < 0 else self.text[self.at : end]

    def next_line(self) -> str:
        """The physical line after this one."""
        start = self.text.find("\n", self.at)
        if start < 0:
            return ""
        end = self.text.find("\n", start + 1)
        return self.text[start + 1 :] if end < 0 else self.text[start + 1 : end]

    def mark(self) -> tuple[int, int, int]:
        """Where reading stands, to come back to."""
        return self.at, self.line, len(self.notes)

    def reset(self, mark: tuple[int, int, int]) -> None:
        self.at, self.line = mark[:2]
        del self.notes[mark[2] :]

    def skip(self, count: int) -> None:
        """Pass characters."""
        self._step(count)

    def skip_line(self) -> str:
        """Go past the physical line; returns it."""
        line = self.rest_of_line()
        self._step(len(line) + 1)
        return line

    def skip_blanks(self) -> None:
        while not self.ended and self.text[self.at] in " \t":
            self._step(1)

    def word(self) -> Word | None:
        """The next word or operator; None at the end of the command's line, which is not passed. Raises PageError."""
        while not self.ended:
            char = self.text[self.at]
            if char in " \t":
                self._step(1)
            elif char == "\\" and self._continues():
                if not self._continue():
                    return None
            elif char == "#":
                self._step(len(self.rest_of_line()))
                return None
            elif char == "\n":
                return None
            else:
                break
        if self.ended:
            return None
        line = self.line
        if self.text[self.at] in _OPERATOR_STARTS:
            operator = next(each for each in OPERATORS if self.text.startswith(each, self.at))
            self._step(len(operator))
            return Word((), line, operator)
        return Word(tuple(self._parts()), line)

    def _continues(self) -> bool:
        """Whether the backslash here ends the line."""
        return _LINE_END.match(self.text, self.at) is not None

    def _continue(self) -> bool:
        """Pass a backslash at the end of a line; whether the command goes on in the next one."""
        following = self.next_line().strip()
        if self.rest_of_line() != "\\":
            self.notes.append((self.line, "space-after-backslash"))
        if not following or following.startswith("```"):
            self.notes.append((self.line, "trailing-backslash"))
            self._step(len(self.rest_of_line()))
            return False
        if _COMMAND.match(following):
            self.notes.append((self.line, "swallowed-command"))
            self._step(len(self.rest_of_line()))
            return False
        self._step(len(self.rest_of_line()) + 1)
        return True

    def _joins(self) -> bool:
        """Whether the backslash here joins this word with the one that begins the next line."""
        if not self.text.startswith("\\\n", self.at):
            return False
        following = self.next_line()
        return following[:1].strip() != "" and not _COMMAND.match(following)

    def _step(self, count: int) -> None:
        self.line += self.text.count("\n", self.at, self.at + count)
        self.at = min(self.at + count, len(self.text))

    def _parts(self) -> list[Part]:
        parts: list[Part] = []
        while not self.ended:
            char = self.text[self.at]
            if char == "\\" and parts and self._joins():
                self._step(2)
                continue
            if char in " \t\n" or (char == "\\" and self._continues()):
                break
            if char in _OPERATOR_STARTS:
                break
            if char == "\\":
                parts.append(Part("text", self.text[self.at + 1 : self.at + 2], quoted=True))
                self._step(2)
            elif char == "'":
                parts.append(self._single())
            elif char == '"':
                parts += self._double()
            elif char in "$`":
                parts.append(self._dollar(quoted=False))
            elif char in _FOREIGN:
                raise PageError(
                    f"the character {char!r} stands in a command",
                    line=self.line,
                    cause="It comes from a text program and means nothing to a shell.",
                    remedy="Write a plain quote mark or space.",
                )
            else:
                end = self.at + 1
                while (
                    end < len(self.text) and self.text[end] not in " \t\n\\'\"$`&|;<>()\u201c\u201d\u2018\u2019\u00a0"
                ):
                    end += 1
                parts.append(Part("text", self.text[self.at : end]))
                self._step(end - self.at)
        return parts

    def _single(self) -> Part:
        end = self.text.find("'", self.at + 1)
        if end < 0:
            self._open("'")
        text = self.text[self.at + 1 : end]
        self._step(end + 1 - self.at)
        return Part("text", text, quoted=True)

    def _double(self) -> list[Part]:
        start = self.line
        self._step(1)
        parts: list[Part] = [Part("text", "", quoted=True)]
        while self.text[self.at : self.at + 1] != '"':
            if self.ended:
                self.line = start
                self._open('"')
            char = self.text[self.at]
            if char == "\\":
                following = self.text[self.at + 1 : self.at + 2]
                if following != "\n":
                    parts.append(Part("text", following if following in '$`"\\' else "\\" + following, quoted=True))
                self._step(2)
            elif char in "$`":
                parts.append(self._dollar(quoted=True))
            else:
                end = self.at
                while end < len(self.text) and self.text[end] not in '"\\$`':
                    end += 1
                parts.append(Part("text", self.text[self.at : end], quoted=True))
                self._step(end - self.at)
        self._step(1)
        return parts

    def _open(self, quote: str) -> NoReturn:
        raise PageError(f"the quote {quote} is not closed", line=self.line, remedy="Close it where the value ends.")

    def _dollar(self, *, quoted: bool) -> Part:
        text, at = self.text, self.at
        if text[at] == "`":
            return self._substitution("`", "`", quoted=quoted)
        if text.startswith("$((", at):
            end = text.find("))", at)
            if end < 0:
                raise PageError("$(( is not closed", line=self.line, remedy="Close it with )).")
            self._step(end + 2 - at)
            return Part("sum", text[at + 3 : end], quoted=quoted)
        if text.startswith("$(", at):
            return self._substitution("$(", ")", quoted=quoted)
        if text.startswith("${", at):
            end = text.find("}", at)
            if end < 0:
                raise PageError("${ is not closed", line=self.line, remedy="Close it with }.")
            self._step(end + 1 - at)
            match = _BRACED.match(text[at + 2 : end])
            if match is None or "$" in (match[3] or ""):
                return Part("other", text[at : end + 1], quoted=quoted)
            return Part("variable", match[1], quoted=quoted, other=_unquoted(match[3]) if match[2] else None)
        match = _NAME.match(text, at + 1)
        if match:
            self._step(match.end() - at)
            return Part("variable", match[0], quoted=quoted)
        if text[at + 1 : at + 2] in {"'", '"'} or re.match(r"[0-9@*#?$!-]", text[at + 1 : at + 2]):
            self._step(2)
            return Part("other", text[at : at + 2], quoted=quoted)
        self._step(1)
        return Part("text", "$", quoted=quoted)

    def _substitution(self, opening: str, closing: str, *, quoted: bool) -> Part:
        depth, end = 1, self.at + len(opening)
        while end < len(self.text) and depth:
            if self.text[end] == "(" and closing == ")":
                depth += 1
            elif self.text[end] == closing:
                depth -= 1
            end += 1
        if depth:
            raise PageError(f"{opening} is not closed", line=self.line, remedy=f"Close it with {closing}.")
        text = self.text[self.at : end]
        self._step(end - self.at)
        inner = text[len(opening) : -1]
        if _CURRENT_PROJECT.match(inner):
            return Part("project", text, quoted=quoted)
        if inner.split()[:1] == ["seq"]:
            return Part("seq", inner.strip()[3:].strip(), quoted=quoted)
        return Part("other", text, quoted=quoted)


def _unquoted(text: str) -> str:
    return text[1:-1] if len(text) > 1 and text[0] == text[-1] and text[0] in "'\"" else text
