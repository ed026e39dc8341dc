"""Names that iproute2 prints for numbers of the kernel, in lower case."""

from __future__ import annotations

LINK_FLAGS = {
    "up": 0x1,
    "broadcast": 0x2,
    "debug": 0x4,
    "loopback": 0x8,
    "pointopoint": 0x10,
    "notrailers": 0x20,
    "running": 0x40,
    "noarp": 0x80,
    "promisc": 0x100,
    "allmulti": 0x200,
    "master": 0x400,
    "slave": 0x800,
    "multicast": 0x1000,
    "portsel": 0x2000,
    "automedia": 0x4000,
    "dynamic": 0x8000,
    "lower_up": 0x10000,
    "dormant": 0x20000,
    "echo": 0x40000,
    # Not a flag: up, but not running.
    "no-carrier": 0,
    # Not a flag: the link below (of a VLAN, a macvlan) is down.
    "m-down": 0,
}
IFF_UP = LINK_FLAGS["up"]
IFF_LOOPBACK = LINK_FLAGS["loopback"]
IFF_RUNNING = LINK_FLAGS["running"]
IFF_LOWER_UP = LINK_FLAGS["lower_up"]

OPERSTATES = {
    "unknown": 0,
    "notpresent": 1,
    "down": 2,
    "lowerlayerdown": 3,
    "testing": 4,
    "dormant": 5,
    "up": 6,
}

LINK_TYPES = {
    "ether": 1,
    "infiniband": 32,
    "ppp": 512,
    "ipip": 768,
    "tunnel6": 769,
    "loopback": 772,
    "sit": 776,
    "gre": 778,
    "gre6": 823,
    "none": 0xFFFE,
    "void": 0xFFFF,
}

ADDRESS_FLAGS = {
    # One bit: IPv4 calls it secondary, IPv6 temporary.
    "secondary": 0x01,
    "temporary": 0x01,
    "nodad": 0x02,
    "optimistic": 0x04,
    "dadfailed": 0x08,
    "home": 0x10,
    "deprecated": 0x20,
    "tentative": 0x40,
    "permanent": 0x80,
    "mngtmpaddr": 0x100,
    "noprefixroute": 0x200,
    "autojoin": 0x400,
    "stable-privacy": 0x800,
    # Not a flag: not permanent.
    "dynamic": 0,
}
IFA_F_SECONDARY = ADDRESS_FLAGS["secondary"]
IFA_F_NODAD = ADDRESS_FLAGS["nodad"]
IFA_F_DEPRECATED = ADDRESS_FLAGS["deprecated"]
IFA_F_TENTATIVE = ADDRESS_FLAGS["tentative"]
IFA_F_PERMANENT = ADDRESS_FLAGS["permanent"]
IFA_F_NOPREFIXROUTE = ADDRESS_FLAGS["noprefixroute"]

ADDRESS_PROTOCOLS = {"kernel_lo": 1, "kernel_ra": 2, "kernel_ll": 3}

SCOPES = {"global": 0, "site": 200, "link": 253, "host": 254, "nowhere": 255}
SCOPE_GLOBAL = SCOPES["global"]
SCOPE_LINK = SCOPES["link"]
SCOPE_HOST = SCOPES["host"]

TABLES = {"default": 253, "main": 254, "local": 255}
TABLE_MAIN = TABLES["main"]
TABLE_LOCAL = TABLES["local"]

ROUTE_TYPES = {
    "unicast": 1,
    "local": 2,
    "broadcast": 3,
    "anycast": 4,
    "multicast": 5,
    "blackhole": 6,
    "unreachable": 7,
    "prohibit": 8,
    "throw": 9,
    "nat": 10,
}
RTN_UNICAST = ROUTE_TYPES["unicast"]
RTN_LOCAL = ROUTE_TYPES["local"]

ROUTE_PROTOCOLS = {
    "unspec": 0,
    "redirect": 1,
    "kernel": 2,
    "boot": 3,
    "static": 4,
    "gated": 8,
    "ra": 9,
    "mrt": 10,
    "zebra": 11,
    "bird": 12,
    "dnrouted": 13,
    "xorp": 14,
    "ntk": 15,
    "dhcp": 16,
    "mrouted": 17,
    "keepalived": 18,
    "babel": 42,
    "ovn": 84,
    "openr": 99,
    "bgp": 186,
    "isis": 187,
    "ospf": 188,
    "rip": 189,
    "eigrp": 192,
}
RTPROT_KERNEL = ROUTE_PROTOCOLS["kernel"]
RTPROT_BOOT = ROUTE_PROTOCOLS["boot"]
RTPROT_RA = ROUTE_PROTOCOLS["ra"]

ROUTE_FLAGS = {
    "dead": 0x1,
    "pervasive": 0x2,
    "onlink": 0x4,
    "offload": 0x8,
    "linkdown": 0x10,
    "unresolved": 0x20,
    "trap": 0x40,
    "notify": 0x100,
    "cloned": 0x200,
    "equalize": 0x400,
    "prefix": 0x800,
    "rt_offload": 0x4000,
    "rt_trap": 0x8000,
    "rt_offload_failed": 0x20000000,
}
RTNH_F_DEAD = ROUTE_FLAGS["dead"]
RTNH_F_ONLINK = ROUTE_FLAGS["onlink"]
RTNH_F_LINKDOWN = ROUTE_FLAGS["linkdown"]
RTNH_FLAGS = 0xFF
"""Those of a nexthop; the others are RTM_F_*."""

PREFERENCES = {"medium": 0, "high": 1, "low": 3}
FAMILIES = {"inet": 2, "inet6": 10, "ipv4": 2, "ipv6": 10}
