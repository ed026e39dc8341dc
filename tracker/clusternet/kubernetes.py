"""Findings about sizes and numbers of ranges that Kubernetes refuses."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from tracker.clusternet.families import NAMES
from tracker.clusternet.finding import Finding, error, note, warning
from tracker.clusternet.ranges import IPNetwork, family_of
from tracker.model import IPV4, IPV6

NODE_MASK = {IPV4: 24, IPV6: 64}
"""Defaults of --node-cidr-mask-size-ipv4 and -ipv6 of kube-controller-manager."""

SERVICE_BITS = 20
"""Host bits of a service range: maxCIDRBits in kube-apiserver
(pkg/controlplane/apiserver/options/validation.go), MaximumBitsForServiceSubnet in kubeadm. Since
1.34 kube-apiserver takes larger ones (MultiCIDRServiceAllocator with DisableAllocatorDualWrite),
kubeadm does not."""
SERVICE_LEAST = 10
"""Addresses: MinimumAddressesInServiceSubnet in kubeadm."""
NODE_MASK_BITS = 16
"""Between the pod range and a node's share of it: clusterSubnetMaxDiff in kube-controller-manager
(pkg/controller/nodeipam/ipam/cidrset/cidr_set.go), which refuses more for IPv6;
PodSubnetNodeMaskMaxDiff in kubeadm, which refuses more for both."""


def service_findings(services: Iterable[IPNetwork]) -> list[Finding]:
    """Service ranges that are too large or too small."""
    found = []
    for network in services:
        bits = network.max_prefixlen - network.prefixlen
        least = network.max_prefixlen - SERVICE_BITS
        data = {"network": str(network), "family": family_of(network)}
        if bits > SERVICE_BITS:
            text = (
                f"services {network}: kubeadm, and kube-apiserver before 1.34, refuse a range of "
                f"{NAMES[family_of(network)]} larger than /{least}; use /{least} or a smaller one"
            )
            found.append(error("service-range-too-large", text, longest=least, **data))
        elif 1 << bits < SERVICE_LEAST:
            text = (
                f"services {network}: kubeadm refuses less than {SERVICE_LEAST} addresses; use "
                f"/{network.max_prefixlen - 4} or a larger one"
            )
            found.append(error("service-range-too-small", text, addresses=1 << bits, **data))
    return found


def pod_findings(pods: Iterable[IPNetwork], masks: Mapping[str, int]) -> list[Finding]:
    """Pod ranges that cannot be shared out to nodes.

    `masks`: prefix length of a node's share by family, as it was given. The defaults stand in for
    a family without one; then whoever shares out by other means (Calico, Cilium) is not concerned,
    so it is a warning.
    """
    found = []
    for network in pods:
        family = family_of(network)
        mask = masks.get(family, NODE_MASK[family])
        given = family in masks
        make = error if given else warning
        default = "" if given else ", the default of kube-controller-manager"
        data = {"network": str(network), "family": family, "node_mask": mask}
        spare = mask - network.prefixlen
        if spare < 0:
            text = (
                f"pods {network}: too small for a /{mask} for each node{default}; use a larger "
                f"range, or --node-cidr-mask-size-{family}={min(network.prefixlen + 4, 128)}"
            )
            found.append(make("pod-range-too-small", text, **data))
        elif spare > NODE_MASK_BITS:
            refuses = "kube-controller-manager refuses" if family == IPV6 else "kubeadm refuses"
            text = (
                f"pods {network}: {refuses} more than {NODE_MASK_BITS} bits between the range and "
                f"a node's /{mask}{default}; use /{mask - NODE_MASK_BITS}, or "
                f"--node-cidr-mask-size-{family}={network.prefixlen + NODE_MASK_BITS}"
            )
            found.append(make("pod-range-too-large", text, **data))
        elif given:
            text = f"pods {network}: room for {1 << spare} nodes with a /{mask} each"
            found.append(note("pod-range-nodes", text, nodes=1 << spare, **data))
    return found


def count_findings(use: str, networks: Iterable[IPNetwork]) -> list[Finding]:
    """More than one range for a family: --service-cluster-ip-range and --cluster-cidr take one."""
    by_family: dict[str, list[str]] = {}
    for network in networks:
        by_family.setdefault(family_of(network), []).append(str(network))
    more = (
        "further ones have to be ServiceCIDR objects (Kubernetes 1.33)"
        if use == "services"
        else "further ones need a network plugin that shares them out itself"
    )
    return [
        note(
            f"{use}-several",
            f"{use} have {len(texts)} ranges of {NAMES[family]} ({', '.join(texts)}): the control "
            f"plane takes one by its options; {more}",
            family=family,
            networks=texts,
        )
        for family, texts in by_family.items()
        if len(texts) > 1
    ]
