"""Globs for names of interfaces that fnmatch(3) and fnmatchcase() read alike."""

from __future__ import annotations

import re

from tracker.model import PATTERN_MOST

# A class "[:", symbol "[." or equivalent "[=" inside a bracket is none to fnmatchcase(). A "]" that
# comes first is a member.
_POSIX_CLASS = re.compile(r"\[!?\]?[^\]]*\[[:.=]")


def is_pattern(text: str) -> bool:
    """Whether this is a glob that a name of an interface can match.

    1 to PATTERN_MOST bytes, without what no name has (space, "/") and without what the engines
    would read in different ways: escapes, "[^", and POSIX classes such as "[[:digit:]]".
    """
    if not 0 < len(text.encode("utf-8", "surrogateescape")) <= PATTERN_MOST:
        return False
    if any(c.isspace() or c in "/\\" or not c.isprintable() for c in text):
        return False
    return "[^" not in text and _POSIX_CLASS.search(text) is None


def is_literal(pattern: str) -> bool:
    """Whether a pattern is a name: it matches itself alone."""
    return not any(c in pattern for c in "*?[")
