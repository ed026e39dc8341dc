"""Interfaces that are never the node's own, unless the configuration takes one out."""

from __future__ import annotations

DOCKER_BRIDGE = "br-" + "[0-9a-f]" * 12
"""br- and 12 hex digits, as Docker names its networks."""

EXCLUDED_NAMES = (
    "docker*",
    DOCKER_BRIDGE,
    "podman*",
    "nerdctl*",
    "cni*",
    "cali*",
    "flannel*",
    "cilium_*",
    "lxc*",
    "veth*",
    "virbr*",
    "vnet*",
    "lxdbr*",
    "lxcbr*",
    "cbr*",
    "kube-bridge",
    "kube-ipvs*",
    "nodelocaldns*",
    "tunl*",
    "vxlan*",
    "geneve*",
    "genev_sys*",
    "ovn-k8s-*",
    "weave*",
    "antrea-*",
    "egress*",
    "tailscale*",
    "zt*",
    "wg*",
    "ifb*",
    "clat",
    "v4-*",
)
"""fnmatch patterns, judged by the present name of a link."""

EXCLUDED_KINDS = (
    "dummy",
    "vxlan",
    "geneve",
    "gre",
    "ipip",
    "sit",
    "ip6tnl",
    "wireguard",
    "ifb",
    "nlmon",
)
"""IFLA_INFO_KIND. OVS internal ports, bridges with ports, bonds, VLANs, macvlan and ipvlan are
ordinary; veth is excluded by name, or as a bridge port by the engine."""
