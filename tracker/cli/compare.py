"""addrtracker compare: what other software would choose on this host, and where it disagrees."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from tracker.cli import options
from tracker.cli.follow import configuration, look
from tracker.cli.host import played_host
from tracker.cli.output import print_json, wants_table
from tracker.model import FAMILIES, Decision
from tracker.profiles.choice import Choice
from tracker.profiles.registry import PROFILES, choose_all, parse_options

if TYPE_CHECKING:
    from tracker.cli.options import Arguments
    from tracker.config import Config
    from tracker.profiles.host import Host

OWN = "addrtracker"

OPTION = options.Option(
    "--option",
    "such as calico.method=can-reach=8.8.8.8; see --list",
    "PROFILE.NAME=VALUE",
    many=True,
)
LIST = options.Option("--list", "every profile and the options that it takes")
OPTIONS = (
    options.CONFIG,
    options.NETNS,
    options.OUTPUT,
    options.LOCAL,
    options.FROM,
    options.SOURCE,
    options.LOADER,
    options.ENGINE,
    OPTION,
    LIST,
)
WORDS = (0, 0, "")


class Comparison(NamedTuple):
    """All answers, our own first."""

    choices: dict[str, Choice]

    def differs(self, name: str, family: str) -> bool:
        """Whether a profile that speaks for a family has another address than we have.

        One that fails differs where we have an answer.
        """
        own, choice = self.choices[OWN], self.choices[name]
        return family in choice.families and choice.get(family) != own.get(family)

    def differing(self, family: str) -> list[str]:
        """The profiles that do."""
        return [name for name in self.choices if self.differs(name, family)]


def run(arguments: Arguments) -> int:
    """0, whether they agree or not."""
    given = parse_options(arguments.values(OPTION.name))
    if arguments.flag(LIST.name):
        _print_options()
        return 0
    config = configuration(arguments)
    if files := arguments.values("--from"):
        from tracker.cli.play import play  # noqa: PLC0415 - only for files

        played = play(files, config, arguments, look=True)
        decision = played.session.decision()
        host = played_host(played)
    else:
        decision, host = _look(arguments, config)
    choices = {OWN: _own(decision), **choose_all(host, given)}
    comparison = Comparison(choices)
    if wants_table(arguments):
        from tracker.cli.compare_table import print_table  # noqa: PLC0415 - JSON needs none

        print_table(comparison)
    else:
        print_json(document(comparison))
    return 0


def document(comparison: Comparison) -> dict[str, Any]:
    """The comparison as JSON."""
    profiles = {
        name: {"ipv4": c.ipv4, "ipv6": c.ipv6, "reason": c.reason or None, "error": c.error}
        for name, c in comparison.choices.items()
    }
    differ = {family: comparison.differing(family) for family in FAMILIES}
    return {"profiles": profiles, "agree": not any(differ.values()), "differ": differ}


def _look(arguments: Arguments, config: Config) -> tuple[Decision, Host]:
    """This host, twice: with our own eyes, and with those of the others."""
    from tracker.profiles.live import Resolver, read  # noqa: PLC0415 - not for files

    resolver = Resolver(config.hostname)
    decision = look(arguments, config).decision()
    return decision, read(config.hostname, resolver)


def _own(decision: Decision) -> Choice:
    choices = decision.choices
    reasons = [f"{choice.family}: {choice.reason}" for choice in choices.values()]
    found = {family: choice.address for family, choice in choices.items()}
    none = not any(found.values())
    said = "; ".join(reasons)
    return Choice(
        found.get(FAMILIES[0]),
        found.get(FAMILIES[1]),
        "" if none else said,
        said if none else None,
        tuple(found),
    )


def _print_options() -> None:
    for name, profile in PROFILES.items():
        print(name)
        for option, text in profile.options.items():
            print(f"  {name}.{option}: {text}")
