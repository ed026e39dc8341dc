"""Reads fields of JSON input and says exactly where one is wrong."""

from __future__ import annotations

import codecs
import json
import sys

# The C part of socket alone: `socket` doubles the time in which Python starts.
from _socket import inet_pton
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any

from tracker.errors import InputError
from tracker.model import AF_INET, AF_INET6

U8 = 0xFF
U16 = 0xFFFF
U32 = 0xFFFFFFFF

MOST_BYTES = 256 << 20
"""A full table of a million routes as ip prints it is half of that."""

_PIECE_BYTES = 1 << 20

MOST_SECONDS = 7 * 24 * 3600
"""How long a case may take: each minute of it has an audit."""


def read_bytes(path: str) -> bytes:
    """A file, read once from its beginning to its end: it may be a pipe; "-" is standard input.

    InputError if it cannot be read or is larger than MOST_BYTES.
    """
    try:
        with open(sys.stdin.fileno() if path == "-" else path, "rb", closefd=path != "-") as file:
            # In pieces: to read at most so many bytes takes room for all of them at once.
            pieces = iter(lambda: file.read(_PIECE_BYTES), b"")
            raw = b"".join(islice(pieces, MOST_BYTES // _PIECE_BYTES + 1))
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}; allowed: a file that can be read") from None
    if len(raw) > MOST_BYTES:
        raise InputError(f"{path}: too large; allowed: {MOST_BYTES >> 20} MiB")
    return raw


def as_text(raw: bytes) -> str:
    """The bytes of a file as text. ip prints names as the kernel has them, so not all of it need
    be UTF-8; what comes from Windows begins with a mark.
    """
    return raw.removeprefix(codecs.BOM_UTF8).decode("utf-8", "surrogateescape")


def json_values(text: str, path: str) -> list[Any]:
    """The JSON values of a file, one or several after each other."""
    decoder = json.JSONDecoder()
    values: list[Any] = []
    at = 0
    while True:
        while at < len(text) and text[at] in " \t\r\n":
            at += 1
        if at == len(text):
            break
        try:
            value, at = decoder.raw_decode(text, at)
        except json.JSONDecodeError as error:
            place = f"line {error.lineno} column {error.colno}"
            raise InputError(f"{path}: {place}: not JSON; allowed: JSON or a recording") from None
        except (RecursionError, ValueError) as error:
            # Python refuses to read a number of thousands of digits.
            what = "a number is too long" if isinstance(error, ValueError) else "nested too deeply"
            raise InputError(f"{path}: {what}; allowed: JSON or a recording") from None
        values.append(value)
    if not values:
        raise InputError(f"{path}: the file is empty; allowed: JSON or a recording")
    return values


class Fields:
    """A JSON object and the place where it stands.

    Every reader raises InputError with one line: file, place, what is wrong, what is allowed.
    Fields that nobody asks for are ignored: inputs carry notes.
    """

    __slots__ = ("file", "values", "where")

    def __init__(self, values: object, file: str, where: str = "") -> None:
        self.file = file
        self.where = where
        if not isinstance(values, dict):
            raise InputError(f"{self._place('')}{_show(values)}; allowed: an object")
        self.values: dict[str, object] = values

    def __contains__(self, name: str) -> bool:
        return self.values.get(name) is not None

    def _place(self, name: str) -> str:
        place = ".".join(part for part in (self.where, name) if part)
        return f"{self.file}: {place}: " if place else f"{self.file}: "

    def error(self, name: str, allowed: str) -> InputError:
        """For raising: the field is missing, or has a value that is not allowed."""
        value = self.values.get(name)
        said = "missing" if value is None else _show(value)
        return InputError(f"{self._place(name)}{said}; allowed: {allowed}")

    def nested(self, name: str) -> Fields:
        """A nested object; an empty one if the field is not there."""
        value = self.values.get(name)
        if value is None:
            value = {}
        elif not isinstance(value, dict):
            raise self.error(name, "an object")
        return Fields(value, self.file, f"{self.where}.{name}" if self.where else name)

    def items(self, name: str, *, required: bool = False) -> list[Any]:
        """A list; an empty one if the field is not there."""
        value = self.values.get(name)
        if value is None and not required:
            return []
        if not isinstance(value, list):
            raise self.error(name, "a list")
        return value

    def objects(self, name: str, *, required: bool = False) -> Iterator[Fields]:
        """The objects of a list."""
        place = f"{self.where}.{name}" if self.where else name
        for index, value in enumerate(self.items(name, required=required)):
            yield Fields(value, self.file, f"{place}[{index}]")

    def strings(self, name: str) -> list[str]:
        """A list of strings; a single string counts as a list of one."""
        value = self.values.get(name)
        values = [value] if isinstance(value, str) else self.items(name)
        for index, entry in enumerate(values):
            if not isinstance(entry, str):
                where = self._place(f"{name}[{index}]")
                raise InputError(f"{where}{_show(entry)}; allowed: a string")
        return [str(entry) for entry in values]

    def integer(
        self, name: str, least: int = 0, most: int = U32, default: int | None = None
    ) -> int:
        """A whole number from `least` to `most`; required without a default."""
        value = self.values.get(name)
        if value is None and default is not None:
            return default
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            raise self.error(name, f"{least} to {most}")
        return value

    def seconds(self, name: str) -> float | None:
        """Seconds, from zero to a week; None if the field is not there."""
        value = self.values.get(name)
        if value is None:
            return None
        allowed = f"seconds since start, 0 to {MOST_SECONDS}"
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise self.error(name, allowed)
        if not 0 <= value <= MOST_SECONDS:
            raise self.error(name, allowed)
        return float(value)

    def string(self, name: str, default: str | None = None) -> str:
        """A string; required without a default."""
        value = self.values.get(name)
        if value is None and default is not None:
            return default
        if not isinstance(value, str) or (not value and default is None):
            raise self.error(name, "a string")
        return value

    def name(self, name: str) -> str:
        """The name of a link, 1 to 15 bytes."""
        value = self.string(name)
        try:
            fits = len(value.encode("utf-8", "surrogateescape")) <= 15
        except UnicodeEncodeError:  # half a surrogate pair stands for no byte
            fits = False
        if not fits or "\0" in value:
            raise self.error(name, "a link's name, 1 to 15 bytes")
        return value

    def boolean(self, name: str, *, default: bool) -> bool:
        """true or false."""
        value = self.values.get(name)
        if value is None:
            return default
        if not isinstance(value, bool):
            raise self.error(name, "true, false")
        return value

    def address(self, name: str, family: int = 0) -> bytes:
        """An address as packed bytes; `family` 0 takes both."""
        value = self.values.get(name)
        packed = pack(value) if isinstance(value, str) else None
        if packed is None or (family and len(packed) != (4 if family == AF_INET else 16)):
            what = {AF_INET: "an IPv4 address", AF_INET6: "an IPv6 address"}
            raise self.error(name, what.get(family, "an IPv4 or IPv6 address"))
        return packed

    def code(self, name: str, names: Mapping[str, int], most: int, default: int | None) -> int:
        """A number that has a name: either, also a number as a string; required without default."""
        value = self.values.get(name)
        if value is None and default is not None:
            return default
        number = _code(value, names)
        if number is None or not 0 <= number <= most:
            raise self.error(name, f"{', '.join(names)} or 0 to {most}")
        return number

    def bits(self, name: str, names: Mapping[str, int]) -> int:
        """A list of flag names (or hexadecimal numbers, as iproute2 prints unknown ones)."""
        flags = 0
        for index, value in enumerate(self.strings(name)):
            bit = names.get(value.lower())
            if bit is None:
                try:
                    bit = int(value, 16)
                except ValueError:
                    allowed = ", ".join(names)
                    where = self._place(f"{name}[{index}]")
                    raise InputError(f"{where}{_show(value)}; allowed: {allowed}") from None
            flags |= bit
        return flags


def pack(text: str) -> bytes | None:
    """An address as packed bytes, None if it is none."""
    for family in (AF_INET, AF_INET6):
        try:
            return inet_pton(family, text)
        except (OSError, ValueError):
            continue
    return None


def _code(value: object, names: Mapping[str, int]) -> int | None:
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value
    if isinstance(value, str):
        found = names.get(value.lower())
        if found is None and value.isascii() and value.isdigit():
            found = int(value)
        return found
    return None


def _show(value: object) -> str:
    """A value in one short line."""
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 60 else text[:57] + "..."
