"""What a profile answers, and the options that it takes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from ipaddress import ip_address, ip_network
from typing import NamedTuple

from tracker.errors import UsageError
from tracker.model import FAMILIES, IPV4, IPV6
from tracker.printable import quoted
from tracker.profiles.host import IP, Host, covers, family_of


class Choice(NamedTuple):
    """The addresses that a system would use, and why, in its own terms."""

    ipv4: str | None = None
    ipv6: str | None = None
    reason: str = ""
    error: str | None = None
    """Why it would use none at all."""
    families: tuple[str, ...] = FAMILIES
    """Those that it says anything about; the kubelet publishes one family unless told more."""

    def get(self, family: str) -> str | None:
        """The address of a family."""
        return self.ipv4 if family == IPV4 else self.ipv6


class ProfileError(Exception):
    """A system would fail on this host; the text is in its terms."""


def chosen(
    *ips: IP | None, reason: str, error: str = "no address found", only_given: bool = False
) -> Choice:
    """The first address of each family among `ips`; a failure where there is none.

    `only_given`: it speaks for the families of these addresses alone.
    """
    found: dict[str, str] = {}
    for ip in ips:
        if ip is not None:
            found.setdefault(family_of(ip), str(ip))
    if not found:
        return Choice(error=error)
    families = tuple(f for f in FAMILIES if f in found) if only_given else FAMILIES
    return Choice(found.get(IPV4), found.get(IPV6), reason, families=families)


class Options:
    """The options of one profile, as given."""

    def __init__(self, profile: str, given: Mapping[str, str]) -> None:
        self._profile = profile
        self._given = given

    def __contains__(self, name: str) -> bool:
        return name in self._given

    def text(self, name: str, default: str = "") -> str:
        """The value."""
        return self._given.get(name, default)

    def items(self, name: str, default: str = "") -> list[str]:
        """The items of a list with commas."""
        value = self.text(name, default)
        return [item.strip() for item in value.split(",") if item.strip()]

    def one_of(self, name: str, *allowed: str) -> str:
        """One of a few words; the first is the default."""
        value = self.text(name, allowed[0])
        if value not in allowed:
            raise self.error(name, ", ".join(allowed))
        return value

    def flag(self, name: str) -> bool:
        """true or false."""
        return self.one_of(name, "false", "true") == "true"

    def number(self, name: str, default: int, most: int) -> int:
        """A number from 0."""
        value = self.text(name, str(default))
        if not value.isascii() or not value.isdigit() or int(value) > most:
            raise self.error(name, f"0 to {most}")
        return int(value)

    def addresses(self, name: str) -> list[IP]:
        """A list of addresses."""
        try:
            return [ip_address(item) for item in self.items(name)]
        except ValueError:
            raise self.error(name, "addresses, with commas between them") from None

    def address(self, name: str) -> IP:
        """One address."""
        found = self.addresses(name)
        if len(found) != 1:
            raise self.error(name, "one address")
        return found[0]

    def networks(self, name: str, default: str = "") -> list[Subnet]:
        """A list of networks; an address is a network of its own."""
        try:
            return [subnet(item) for item in self.items(name, default)]
        except ValueError:
            raise self.error(name, "networks, with commas between them") from None

    def error(self, name: str, allowed: str) -> UsageError:
        """For raising: what is wrong with an option, and what is allowed."""
        given = f"{self._profile}.{name}={quoted(self.text(name))}"
        return UsageError(f"compare: --option {given}; allowed: {allowed}")


class Subnet(NamedTuple):
    """A network, or (with `!`, as Talos has it) the exclusion of one."""

    prefix: IP
    prefixlen: int
    negative: bool = False

    def __contains__(self, ip: object) -> bool:
        return isinstance(ip, IP) and covers(self.prefix, self.prefixlen, ip)


def subnet(text: str) -> Subnet:
    """ "10.0.0.0/8", "10.0.0.1" or "!10.0.0.0/8"; raises ValueError."""
    network = ip_network(text.removeprefix("!"), strict=False)
    return Subnet(network.network_address, network.prefixlen, text.startswith("!"))


class Profile(NamedTuple):
    """One row of `compare`."""

    choose: Callable[[Host, Options], Choice]
    options: Mapping[str, str]
    """By name, with what they are."""


def stack(host: Host, options: Options) -> tuple[str, ...]:
    """The families of the cluster: option `stack`, else those that have a default route."""
    word = options.one_of("stack", "auto", IPV4, IPV6, "dual")
    if word in FAMILIES:
        return (word,)
    if word == "dual":
        return FAMILIES
    routed = {route.family for route in host.routes if route.default and route.main}
    return tuple(family for family in FAMILIES if family in routed) or (IPV4,)


STACK = {"stack": "auto (the default), ipv4, ipv6, dual: the families of the cluster"}
