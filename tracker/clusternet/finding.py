"""What a check found: a severity, a stable code, a line for people, fields for programs."""

from __future__ import annotations

import enum
from typing import Any, NamedTuple


class Severity(enum.StrEnum):
    """How bad it is."""

    ERROR = "error"
    """It does not work, or will not when the address ranges are used."""
    WARNING = "warning"
    """It works, and not as somebody who wrote this would expect."""
    NOTE = "note"
    """Worth knowing."""


class Finding(NamedTuple):
    """One thing that was found."""

    severity: Severity
    code: str
    """Stable: programs may depend on it."""
    text: str
    """What, where, and what to do."""
    data: dict[str, Any]
    """The values that the text speaks of, fit for JSON."""


def error(code: str, text: str, **data: Any) -> Finding:
    """A finding of severity error."""
    return Finding(Severity.ERROR, code, text, data)


def warning(code: str, text: str, **data: Any) -> Finding:
    """A finding of severity warning."""
    return Finding(Severity.WARNING, code, text, data)


def note(code: str, text: str, **data: Any) -> Finding:
    """A finding of severity note."""
    return Finding(Severity.NOTE, code, text, data)


def ordered(findings: list[Finding]) -> list[Finding]:
    """Errors first; otherwise as they were found, each once."""
    rank = {severity: position for position, severity in enumerate(Severity)}
    unique = {(finding.code, finding.text): finding for finding in findings}
    return sorted(unique.values(), key=lambda finding: rank[finding.severity])
