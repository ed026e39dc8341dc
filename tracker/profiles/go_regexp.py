"""Regular expressions as Go reads them, made into ones that Python runs.

Follows the syntax of Go's package regexp/syntax (RE2). What Go refuses fails here in Go's words,
above all what Perl and Python have beyond it: lookaround, backreferences, possessive repetitions.
"""

from __future__ import annotations

import re
import warnings
from typing import NoReturn

from tracker.printable import quoted

REPEAT_MOST = 1000

_ESCAPE = r"[pP](?:\{[^}]*\}|.)|x\{[0-9A-Fa-f]+\}|x[0-9A-Fa-f]{2}|0[0-7]{0,2}|[1-7][0-7]{1,2}|."
_TOKEN = re.compile(
    rf"""
    \\Q(?P<literal>.*?)(?:\\E|\Z)
    | \\(?P<escape>{_ESCAPE})
    | (?P<set>\[\^?\]?(?:\[:\^?[a-z]+:\]|\\.|[^]\\])*\])
    | \(\?(?P<group>P?<[A-Za-z_]\w*>|[a-zA-Z-]*[:)])
    | (?P<perl>\(\?.?[=!<]?)
    | (?P<repeat>(?:[*+?]|\{{(?P<least>\d+)(?:,(?P<most>\d*))?\}})\??)
    | (?P<other>.)
    """,
    re.VERBOSE | re.DOTALL,
)
_SET_TOKEN = re.compile(rf"\[:(\^?)([a-z]+):\]|\\({_ESCAPE})|(.)", re.DOTALL)
_CLASSES = {
    "alnum": "0-9A-Za-z",
    "alpha": "A-Za-z",
    "ascii": r"\x00-\x7f",
    "blank": r"\t ",
    "cntrl": r"\x00-\x1f\x7f",
    "digit": "0-9",
    "graph": "!-~",
    "lower": "a-z",
    "print": " -~",
    "punct": r"!-/:-@\[-`{-~",
    "space": r"\t\n\v\f\r ",
    "upper": "A-Z",
    "word": "0-9A-Za-z_",
    "xdigit": "0-9A-Fa-f",
}
_ESCAPES = frozenset("dDsSwWaftnrv")
_ASSERTIONS = {"A": r"\A", "b": r"\b", "B": r"\B", "z": r"\Z"}


class GoRegexpError(Exception):
    """Go refuses it; the text is Go's."""


class UntranslatedError(Exception):
    """Go may take it, and there is no way to say the same in Python."""


def compiled(text: str) -> re.Pattern[str]:
    """The expression. Raises GoRegexpError, UntranslatedError."""
    pattern = _Reading(text).translated()
    try:
        with warnings.catch_warnings():  # about sets that mean nothing else in Go
            warnings.simplefilter("ignore")
            return re.compile(pattern, re.ASCII)
    except re.error as error:
        if error.msg.startswith("bad character range"):
            _refuse("invalid character class range", error.msg.split()[3])
        raise UntranslatedError(f'the expression "{quoted(text)}" is not known here') from None


class _Reading:
    """One expression, from left to right."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._out: list[str] = []
        self._closing: list[str] = []
        """What closes each group that is open."""
        self._repeatable = False
        self._begins = True
        """Nothing of this group has been read yet."""
        self._last_repeat = ""

    def translated(self) -> str:
        """The same for Python."""
        opened = ""
        if flags := re.match(r"\(\?([ims]+)\)", self._text):
            # For the whole of it; within a group they would end with it.
            opened, self._text = f"(?{flags[1]}:", self._text[flags.end() :]
        for token in _TOKEN.finditer(self._text):
            self._take(token)
        if self._closing:
            _refuse("missing closing )", self._text)
        return f"{opened}{''.join(self._out)}{')' if opened else ''}"

    def _take(self, token: re.Match[str]) -> None:
        kind, text = token.lastgroup, token[0]
        if kind == "repeat":
            self._repeat(token)
            return
        self._last_repeat = ""
        begins, self._begins = self._begins, False
        self._repeatable = True
        if kind == "literal":
            self._out.append(re.escape(token["literal"]))
        elif kind == "escape":
            self._out.append(_escape(token["escape"]))
        elif kind == "set":
            self._out.append(_set(text))
        elif kind == "group":
            self._group(token["group"], begins=begins)
        elif kind == "perl":
            _refuse("invalid or unsupported Perl syntax", text)
        else:
            self._other(text)

    def _other(self, char: str) -> None:
        if char == "\\":
            _refuse("trailing backslash at end of expression", "")
        if char == "[":
            _refuse("missing closing ]", self._text[self._text.rindex("[") :])
        if char == "(":
            self._open("(", ")")
        elif char == ")":
            if not self._closing:
                _refuse("unexpected )", self._text)
            self._out.append(self._closing.pop())
        else:
            self._repeatable = char != "|"
            self._out.append("\\{" if char == "{" else char)

    def _open(self, opening: str, closing: str) -> None:
        self._out.append(opening)
        self._closing.append(closing)
        self._repeatable, self._begins = False, True

    def _group(self, what: str, *, begins: bool) -> None:
        if what.endswith(">"):
            self._open(f"(?P{what.removeprefix('P')}", ")")
            return
        flags, end = what[:-1], what[-1]
        if not re.fullmatch(r"[imsU]*(-[imsU]+)?", flags):
            _refuse("invalid or unsupported Perl syntax", f"(?{what[:1]}")
        if "U" in flags:
            raise UntranslatedError(f"flag U of the group (?{what} is not known here")
        if end == ":":
            self._open(f"(?{flags}:", ")")
        elif not flags:
            self._begins, self._repeatable = begins, False
        elif begins and self._closing:
            # For the rest of the group, which it is the whole of.
            self._out.append(f"(?{flags}:")
            self._closing[-1] += ")"
            self._repeatable, self._begins = False, True
        else:
            raise UntranslatedError(f"flags in the middle, (?{what}, are not known here")

    def _repeat(self, token: re.Match[str]) -> None:
        text = token["repeat"]
        if self._last_repeat:
            _refuse("invalid nested repetition operator", self._last_repeat + text)
        if not self._repeatable:
            _refuse("missing argument to repetition operator", text)
        if token["least"] is not None:
            least = _count(token["least"])
            most = _count(token["most"]) if token["most"] else least
            if max(least, most) > REPEAT_MOST or most < least:
                _refuse("invalid repeat count", text)
        self._last_repeat = text
        self._out.append(text)


def _count(digits: str) -> int:
    """Python refuses to read a number of thousands of digits."""
    return int(digits[: len(str(REPEAT_MOST)) + 1])


def _escape(what: str) -> str:
    first = what[0]
    if what in _ASSERTIONS:
        return _ASSERTIONS[what]
    if first in "01234567" and (first == "0" or len(what) > 1):
        return re.escape(chr(int(what, 8)))
    if first == "x" and len(what) > 1:
        code = int(what[1:].strip("{}"), 16)
        if code > 0x10FFFF:
            _refuse("invalid escape sequence", f"\\{what}")
        return re.escape(chr(code))
    if first in "pPC":
        raise UntranslatedError(f"\\{what} is not known here")
    if what not in _ESCAPES and (not first.isascii() or first.isalnum()):
        _refuse("invalid escape sequence", f"\\{first}")
    return f"\\{what}"


def _set(text: str) -> str:
    inner = text[1:-1]
    start = "[^" if inner.startswith("^") else "["
    out = []
    for negative, name, escaped, char in _SET_TOKEN.findall(inner.removeprefix("^")):
        if name:
            if name not in _CLASSES:
                _refuse("invalid character class range", f"[:{negative}{name}:]")
            if negative:
                raise UntranslatedError(f"[:^{name}:] is not known here")
            out.append(_CLASSES[name])
        elif escaped:
            if escaped in _ASSERTIONS:
                _refuse("invalid escape sequence", f"\\{escaped}")
            out.append(_escape(escaped))
        else:
            out.append("\\" + char if char in "[]" else char)
    return f"{start}{''.join(out)}]"


def _refuse(what: str, where: str) -> NoReturn:
    raise GoRegexpError(f"error parsing regexp: {what}: `{quoted(where)}`")
