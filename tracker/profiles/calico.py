"""Calico: IP autodetection of calico-node, each family by itself.

Follows projectcalico/calico node/pkg/lifecycle/startup/autodetection/{interfaces,filtered,
reachaddr,autodetection_methods}.go at 87c15906.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from ipaddress import ip_address
from typing import NamedTuple

from tracker.model import FAMILIES, IPV4
from tracker.profiles.choice import Choice, Options, Profile, ProfileError, Subnet, subnet
from tracker.profiles.go_regexp import GoRegexpError, compiled
from tracker.profiles.host import IP, Address, Host, Link, family_of, global_unicast
from tracker.profiles.reach import source_towards

DEFAULT_EXCLUDE = (
    r"^docker.*",
    r"^cbr.*",
    r"^dummy.*",
    r"^podman.*",
    r"^virbr.*",
    r"^lxcbr.*",
    r"^veth.*",
    r"^lo",
    r"^br-.*",
    r"^cali.*",
    r"^tunl.*",
    r"^flannel.*",
    r"^kube-ipvs.*",
    r"^cni.*",
    r"^vxlan\.calico.*",
    r"^vxlan-v6\.calico.*",
    r"^wireguard\.cali.*",
    r"^wg-v6\.cali.*",
    r"^nodelocaldns.*",
)
_METHODS = (
    "first-found, interface=REGEX,..., skip-interface=REGEX,..., cidr=NETWORK,..., "
    "can-reach=ADDRESS, kubernetes-internal-ip"
)


class Detected(NamedTuple):
    """An address with its prefix length, and how it was found."""

    address: Address
    reason: str


def interfaces(host: Host, include: Sequence[str], exclude: Sequence[str]) -> list[Link]:
    """What is looked at, in that order: the last link of the kernel's list first."""
    wanted, unwanted = _pattern(include), _pattern(exclude)
    return [
        link
        for link in reversed(host.links)
        if (wanted is None or wanted.search(link.name))
        and not (unwanted is not None and unwanted.search(link.name))
    ]


def _pattern(texts: Sequence[str]) -> re.Pattern[str] | None:
    if not texts:
        return None
    try:
        return compiled("|".join(f"({text})" for text in texts))
    except GoRegexpError as error:
        raise ProfileError(f"invalid interface regex: {error}") from None


def detect(host: Host, method: str, family: str, internal_ips: Sequence[IP] = ()) -> Detected:
    """One method (IP_AUTODETECTION_METHOD) for one family. Raises ProfileError, ValueError."""
    name, _, value = method.partition("=")
    items = [item.strip() for item in value.split(",") if item.strip()]
    if method in ("", "first-found"):
        return _first(host, interfaces(host, (), DEFAULT_EXCLUDE), family, "first-found")
    if name == "interface" and items:
        return _first(host, interfaces(host, items, ()), family, method)
    if name == "skip-interface" and items:
        kept = interfaces(host, (), (*DEFAULT_EXCLUDE, *items))
        return _first(host, kept, family, method)
    if name == "cidr" and items:
        networks = [subnet(item) for item in items]
        return _first(host, interfaces(host, (), ()), family, method, networks)
    if name == "can-reach" and value:
        return _can_reach(host, ip_address(value), family)
    if method == "kubernetes-internal-ip":
        return _internal_ip(host, internal_ips, family)
    raise ValueError(method)


def _first(
    host: Host, links: Sequence[Link], family: str, method: str, networks: Sequence[Subnet] = ()
) -> Detected:
    if not links:
        raise ProfileError("no valid host interfaces found")
    for link in links:
        for address in host.on(link, family):
            if not global_unicast(address.ip):
                continue
            if networks and not any(address.ip in network for network in networks):
                continue
            return Detected(address, f"{method}: {link.name}, the last of the links that fit")
    raise ProfileError(f"no valid {_version(family)} addresses found on the host interfaces")


def _can_reach(host: Host, target: IP, family: str) -> Detected:
    if family_of(target) != family:
        raise ProfileError(f"can-reach: {target} is not {_version(family)}")
    ip = source_towards(host, target)
    address = host.holds(ip)
    if address is None:
        raise ProfileError(f"can-reach: no interface has {ip}")
    name = host.name(address.ifindex)
    return Detected(address, f"can-reach: source towards {target}, on {name}")


def _internal_ip(host: Host, ips: Sequence[IP], family: str) -> Detected:
    for ip in ips:
        if family_of(ip) == family:
            address = host.holds(ip)
            if address is None:
                raise ProfileError(f"no interface has the node's InternalIP {ip}")
            return Detected(address, "kubernetes-internal-ip: first InternalIP of the node")
    raise ProfileError(f"the node has no {_version(family)} InternalIP")


def _version(family: str) -> str:
    return "IPv4" if family == IPV4 else "IPv6"


def choose(host: Host, options: Options) -> Choice:
    """Both families; one that fails alone has no address, and nothing else."""
    answers: dict[str, Detected] = {}
    failures = []
    wanted = dict(zip(FAMILIES, ("method", "method6"), strict=True))
    method = options.text("method")
    if method.startswith("can-reach=") and "method6" not in options:
        # A target has one family.
        del wanted[FAMILIES[0] if ":" in method else FAMILIES[1]]
    for family, option in wanted.items():
        used = option if option in options else "method"
        try:
            answers[family] = detect(
                host, options.text(used), family, options.addresses("internal-ips")
            )
        except ProfileError as error:
            failures.append(str(error))
        except ValueError:
            raise options.error(used, _METHODS) from None
    if not answers:
        return Choice(error="; ".join(dict.fromkeys(failures)), families=tuple(wanted))
    ips = {family: str(found.address.ip) for family, found in answers.items()}
    reason = "; ".join(dict.fromkeys(found.reason for found in answers.values()))
    return Choice(**ips, reason=reason, families=tuple(wanted))


PROFILES = {
    "calico": Profile(
        choose,
        {
            "method": f"IP_AUTODETECTION_METHOD: {_METHODS}",
            "method6": "IP6_AUTODETECTION_METHOD (default: as method)",
            "internal-ips": "the node's InternalIPs, for kubernetes-internal-ip",
        },
    )
}
