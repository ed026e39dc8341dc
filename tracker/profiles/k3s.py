"""k3s and RKE2: the addresses of a server or agent without --node-ip.

Follows k3s-io/k3s pkg/util/net.go at 0a3f10c15eb38a4cebe0dba95d6a3e2194c2cf7f
(GetHostnameAndIPs).
"""

from __future__ import annotations

from tracker.model import IPV4, IPV6
from tracker.profiles.bind_address import choose_host_interface, order_of
from tracker.profiles.choice import Choice, Options, Profile, ProfileError, chosen
from tracker.profiles.host import Host


def choose(host: Host, options: Options) -> Choice:
    """The kubelet's detection for each family; a host without IPv4 has IPv6 alone."""
    if given := options.addresses("node-ip"):
        return chosen(*given, reason="--node-ip")
    first = choose_host_interface(host, order_of(IPV4))
    if first.ip.version == 6:
        return chosen(first.ip, reason=first.reason)
    try:
        second = choose_host_interface(host, order_of(IPV6))
    except ProfileError:
        return chosen(first.ip, reason=first.reason)
    if second.ip == first.ip:
        return chosen(first.ip, reason=first.reason)
    return chosen(first.ip, second.ip, reason=f"{first.reason}; {second.reason}")


PROFILES = {"k3s": Profile(choose, {"node-ip": "its flag: addresses"})}
