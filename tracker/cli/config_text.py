"""The effective configuration as a file would say it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from tracker.config import Config
from tracker.model import NANOSECONDS

_DURATIONS = {"settle", "settle_max", "hold", "failback", "audit"}
_NEVER = {"failback": None, "audit": 0}
"""Values that stand for "never"."""
_UNITS = (("s", NANOSECONDS), ("ms", 1_000_000), ("us", 1_000), ("ns", 1))
_SIZES = (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10))


def effective(config: Config) -> dict[str, Any]:
    """Every key with its value, by table, as TOML would be read."""
    found: dict[str, Any] = {}
    for name, value in config._asdict().items():
        if name in {"path", "families_written", "warnings"}:
            continue  # where it came from, and what was said: no keys
        if name == "selections" and not value:
            continue  # there are no tables
        if name == "files":
            found["publish"] = {"files": {"directory": value}}
        elif name == "metrics":
            found["metrics"] = {"listen": "" if value is None else _listen(value)}
        else:
            found[name] = _plain(name, value)
    return found


def to_toml(config: Config) -> str:
    """A file that reads as this configuration.

    Families that nobody wrote stay a comment: written down, they would give publishers leave to
    change the number and order of families.
    """
    values = effective(config)
    lines = [f"# {config.path or 'defaults'}"]
    for name, value in values.items():
        if name == "families" and not config.families_written:
            lines.append(f"# families = {_scalar(value)}")
        elif not isinstance(value, dict):
            lines.append(f"{name} = {_scalar(value)}")
    for name, value in values.items():
        if isinstance(value, dict):
            lines += _table(name, value)
    return "\n".join(lines)


def _table(name: str, values: Mapping[str, Any]) -> list[str]:
    scalars = {key: value for key, value in values.items() if not isinstance(value, dict)}
    lines = ["", f"[{name}]"] if scalars or not values else []
    lines += [f"{_key(key)} = {_scalar(value)}" for key, value in scalars.items()]
    for key, value in values.items():
        if isinstance(value, dict):
            lines += _table(f"{name}.{key}", value)
    return lines


def _key(name: str) -> str:
    """In quotes where it has a dot, as names of clusters may."""
    return _scalar(name) if "." in name else name


def _plain(name: str, value: Any) -> Any:
    if hasattr(value, "_asdict"):
        return {key: _plain(key, inner) for key, inner in value._asdict().items()}
    if isinstance(value, Mapping):
        return {key: _plain(key, inner) for key, inner in value.items()}
    if name in _NEVER and value == _NEVER[name]:
        return "never"
    if name in _DURATIONS:
        return _quantity(value, _UNITS)
    if name == "ring":
        return _quantity(value, _SIZES)
    return list(value) if isinstance(value, tuple) else value


def _quantity(value: int, units: tuple[tuple[str, int], ...]) -> str:
    unit, size = next(pair for pair in units if value % pair[1] == 0)
    return f"{value // size}{unit}"


def _listen(value: Any) -> str:
    host = f"[{value.host}]" if ":" in value.host else value.host
    return f"{host}:{value.port}"


def _scalar(value: Any) -> str:
    """As TOML 1.0: strings, whole numbers, booleans and lists of them are as in JSON."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
