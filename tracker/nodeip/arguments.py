"""The kubelet's --node-ip, and the annotation that it makes of it.

Follows kubernetes/component-helpers node/util/ips.go at 1961876b9c5704173fa79ed20e27a0710ce169fd.
"""

from __future__ import annotations

from typing import NamedTuple

from tracker.address import family_of, parse, text
from tracker.errors import TrackerError
from tracker.printable import quoted

UNSPECIFIED = ("0.0.0.0", "::")  # noqa: S104 - nobody binds to them here
_DUAL_STACK_PROVIDERS = ("", "external")


class NodeIPError(TrackerError):
    """A value of --node-ip or of the annotation is refused; one line says by which rule."""

    exit_status = 2

    def __init__(self, rule: str, message: str) -> None:
        super().__init__(message)
        self.rule = rule
        """"parse", "need-single-or-dual", "dual-stack-not-supported", "unspecified-in-pair"."""


class NodeIPs(NamedTuple):
    """What --node-ip asks for."""

    ips: tuple[str, ...]
    """None, one, or one of each family, in canonical text and in the order given."""
    invalid: tuple[str, ...] = ()
    """Items that are no addresses; the kubelet warns of them and goes on."""


def parse_argument(value: str, cloud_provider: str = "") -> NodeIPs:
    """The flag: blanks and leading zeros are taken, items that are no addresses are left out.

    `cloud_provider` as the kubelet's flag of that name has it. Raises NodeIPError.
    """
    ips, invalid = [], []
    for item in (part.strip() for part in value.split(",")) if value else ():
        ip = sloppy_ip(item)
        if ip is None:
            invalid.append(item)
        else:
            ips.append(ip)
    _check(ips, value, dual=cloud_provider in _DUAL_STACK_PROVIDERS)
    return NodeIPs(tuple(ips), tuple(invalid))


def parse_annotation(value: str) -> tuple[str, ...]:
    """alpha.kubernetes.io/provided-node-ip: every item has to be an address. Raises NodeIPError."""
    ips = []
    for item in value.split(","):
        ip = sloppy_ip(item)
        if ip is None:
            raise NodeIPError(
                "parse", f'"{quoted(item)}" is not an IP address; allowed: one, or a pair'
            )
        ips.append(ip)
    _check(ips, value, dual=True)
    return tuple(ips)


def _check(ips: list[str], given: str, *, dual: bool) -> None:
    value = quoted(given)
    if len(ips) > 2:
        raise NodeIPError(
            "need-single-or-dual",
            f'"{value}" has {len(ips)} addresses; allowed: one, or one of each family',
        )
    if len(ips) < 2:
        return
    if family_of(ips[0]) == family_of(ips[1]):
        raise NodeIPError(
            "need-single-or-dual",
            f'"{value}" has two {family_of(ips[0])} addresses; allowed: one, or one of each family',
        )
    if not dual:
        raise NodeIPError(
            "dual-stack-not-supported",
            f'"{value}" is a pair; allowed with a provider in the tree: one address',
        )
    for ip in ips:
        if ip in UNSPECIFIED:
            raise NodeIPError(
                "unspecified-in-pair",
                f'"{value}" has {ip} in a pair; allowed: two addresses of this host, or {ip} alone',
            )


def sloppy_ip(item: str) -> str | None:
    """An address in canonical text, None if it is none.

    As Go's ParseIPSloppy: octets may have leading zeros, and an IPv4-mapped IPv6 address is the
    IPv4 address that it maps.
    """
    head, colon, tail = item.rpartition(":")
    octets = tail.split(".")
    if len(octets) == 4 and all(octet.isascii() and octet.isdigit() for octet in octets):
        tail = ".".join(octet.lstrip("0") or "0" for octet in octets)
    try:
        return text(parse(f"{head}{colon}{tail}"))
    except ValueError:
        return None
