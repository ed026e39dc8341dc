"""Text from elsewhere, made fit for one line of a terminal or a log."""

from __future__ import annotations

QUOTED_MOST = 60
"""Characters that a message quotes of what somebody wrote."""

_SURROGATE = 0xDC00
"""What surrogateescape (PEP 383) adds to a byte."""


def printable(text: str) -> str:
    """The text with an escape for each character that is none to look at, and for each byte that
    was no text (surrogateescape): names of interfaces may hold any byte but a slash and a blank.
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else _escaped(ord(c)) for c in text)


def quoted(text: str, most: int = QUOTED_MOST) -> str:
    """What somebody wrote, as a message quotes it: printable, and cut where it fills a screen."""
    # Escapes make it longer, never shorter: what is beyond them would be cut anyway.
    line = printable(text[: most + 1])
    return line if len(line) <= most else line[: most - 3] + "..."


def _escaped(code: int) -> str:
    byte = code - _SURROGATE if 0x80 <= code - _SURROGATE <= 0xFF else code
    return f"\\x{byte:02x}" if byte <= 0xFF else f"\\u{byte:04x}"
