"""Numbers as people read them."""

from __future__ import annotations

import math

_STEPS = {
    "s": ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns")),
    "bytes": ((1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1.0, "bytes")),
}


def quantity(value: float, unit: str) -> str:
    """Three digits and the fitting unit: "1.25 ms", "34.2 MB"."""
    for factor, name in _STEPS[unit]:
        if abs(value) >= factor:
            return f"{three_digits(value / factor)} {name}"
    if not value:
        return f"0 {unit}"
    factor, name = _STEPS[unit][-1]
    return f"{three_digits(value / factor)} {name}"


def three_digits(value: float) -> str:
    """Of a number that is not 0, without an exponent: "0.0123", "12.3", "1,230"."""
    digits = max(0, 2 - math.floor(math.log10(abs(value))))
    return f"{value:,.{digits}f}"


def number(value: float) -> str:
    """A count: "100,000"."""
    return f"{value:,.0f}"
