"""Command lines, with one line for what is wrong with one.

Not argparse, because importing it and building a parser takes a tenth of what `show` may take.
"""

from __future__ import annotations

from collections.abc import Iterable

from tracker.errors import UsageError
from tracker.printable import QUOTED_MOST, quoted


class Option:
    """One option of a command."""

    __slots__ = ("choices", "many", "metavar", "name", "text")

    def __init__(
        self,
        name: str,
        text: str,
        metavar: str = "",
        choices: tuple[str, ...] = (),
        *,
        many: bool = False,
    ) -> None:
        """`metavar` names its value, "" = it has none; `many`: it takes all that follows."""
        self.name = name
        self.text = text
        self.metavar = "|".join(choices) or metavar
        self.choices = choices
        self.many = many

    @property
    def shown(self) -> str:
        """The option and its value, as help and usage have it."""
        value = f" {self.metavar}" if self.metavar else ""
        return f"{self.name}{value}{'...' if self.many else ''}"


class Arguments:
    """What was given."""

    def __init__(self) -> None:
        self.words: list[str] = []
        """What is no option."""
        self._given: dict[str, list[str]] = {}

    def add(self, option: Option, values: list[str]) -> None:
        """Note an option."""
        known = self._given.setdefault(option.name, [])
        if option.many:
            known += values
        else:
            known[:] = values

    def flag(self, name: str) -> bool:
        """Whether the option was given."""
        return name in self._given

    def value(self, name: str, default: str = "") -> str:
        """The value of an option."""
        return (self._given.get(name) or [default])[0]

    def values(self, name: str) -> list[str]:
        """The values of an option that takes many."""
        return self._given.get(name, [])


HELP = Option("--help", "say this")
CONFIG = Option("--config", "configuration (default: /etc/addrtracker.toml, if there)", "FILE")
NETNS = Option("--netns", "look into this network namespace", "NAME")
OUTPUT = Option("--output", "a table (default on a terminal) or JSON", choices=("table", "json"))
LOCAL = Option("--local", "look for itself, never ask a daemon; today that is always so")
FROM = Option(
    "--from",
    "a snapshot, case, recording or `ip -json` output; - is a pipe",
    "FILE",
    many=True,
)
SOURCE = Option(
    "--source", "where changes come from", choices=("auto", "bpf", "netlink", "pyroute2")
)
LOADER = Option("--loader", "what loads the source bpf", choices=("auto", "libbpf", "bcc"))
ENGINE = Option("--engine", "what ranks them", choices=("auto", "native", "reference"))


def parse(
    command: str, options: Iterable[Option], words: tuple[int, int, str], argv: list[str]
) -> Arguments:
    """The arguments of one command.

    `words`: how many that are no option are needed and allowed, and what they are. Raises
    UsageError.
    """
    known = {option.name: option for option in (*options, HELP)}
    found = Arguments()
    rest = list(argv)
    while rest:
        word = rest.pop(0)
        if word == "--":
            found.words += rest
            break
        if word == "-h":
            word = "--help"
        if not word.startswith("-") or word == "-":
            found.words.append(word)
            continue
        name, equals, value = word.partition("=")
        option = known.get(name)
        if option is None:
            raise UsageError(f"{command}: {quoted(name)}: unknown option{nearest(name, known)}")
        found.add(option, _values(command, option, [value] if equals else None, rest))
    least, most, what = words
    if not least <= len(found.words) <= most and not found.flag("--help"):
        if len(found.words) > most:
            extra = quoted(found.words[most])
            allowed = f"at most {most}: {what}" if most else "options only"
            raise UsageError(f"{command}: {extra}: too much; allowed: {allowed}")
        raise UsageError(f"{command}: {what} is missing")
    return found


def _values(command: str, option: Option, given: list[str] | None, rest: list[str]) -> list[str]:
    if not option.metavar:
        if given is not None:
            raise UsageError(f"{command}: {option.name}: takes no value")
        return []
    if given is None:
        given = []
        while rest and not rest[0].startswith("--") and (option.many or not given):
            given.append(rest.pop(0))
    if not given or not all(given):
        raise UsageError(f"{command}: {option.name}: {option.metavar} is missing")
    for value in given:
        if option.choices and value not in option.choices:
            allowed = ", ".join(option.choices)
            raise UsageError(f"{command}: {option.name} {quoted(value)}; allowed: {allowed}")
    return given


def nearest(name: str, known: Iterable[str]) -> str:
    """What was probably meant, else what is allowed, for the end of a message."""
    import difflib  # noqa: PLC0415 - only for the message

    near = difflib.get_close_matches(name[:QUOTED_MOST], list(known), 1, 0.6)
    return f"; the nearest is {near[0]}" if near else f"; allowed: {', '.join(known)}"


def usage(command: str, summary: str, options: Iterable[Option], words: str) -> str:
    """The help of one command."""
    shown = [(option.shown, option.text) for option in (*options, HELP)]
    width = max(len(name) for name, _ in shown)
    lines = [f"usage: addrtracker {command}{' ' + words if words else ''} [options]", "", summary]
    lines += ["", *(f"  {name:<{width}}  {text}" for name, text in shown)]
    return "\n".join(lines)
