"""The primary IPv4 and IPv6 address of this node, followed as the kernel changes."""

__version__ = "0.1.0"
