"""How each kind of conformance case is answered, by the name of its profile.

Each function takes a case's `input` and returns what its `expected` should be.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from ipaddress import ip_address
from typing import Any

from tests.cases.profile_host import (
    Raw,
    cilium_addresses,
    default_rows,
    host,
    outcome,
    prefixes,
    subnets,
)
from tracker.model import FAMILIES
from tracker.nodeip.addresses import (
    NoAddressError,
    NodeAddress,
    host_ips,
    preferred_address,
    status_patch,
)
from tracker.nodeip.arguments import NodeIPError, parse_annotation, parse_argument
from tracker.nodeip.provider import merge
from tracker.profiles import (
    bind_address,
    calico,
    cilium,
    kep1664,
    kube_vip,
    kubelet,
    openshift,
    ovn_kubernetes,
    procnet,
    talos,
)
from tracker.profiles.choice import Choice, ProfileError
from tracker.profiles.registry import choose

Check = Callable[[Raw], Any]
CHECKS: dict[str, Check] = {}


def check(profile: str) -> Callable[[Check], Check]:
    def keep(function: Check) -> Check:
        CHECKS[profile] = function
        return function

    return keep


def texts(ips: Any) -> list[str]:
    return [str(ip) for ip in ips]


def node_addresses(listed: list[Raw]) -> list[NodeAddress]:
    return [NodeAddress(entry["type"], entry["address"]) for entry in listed]


def plain(addresses: list[NodeAddress]) -> list[Raw]:
    return [{"type": entry.type, "address": entry.address} for entry in addresses]


# The kubelet.


@check("kubelet-legacy-route")
def _(given: Raw) -> Any:
    order = bind_address.order_of(given.get("config", {}).get("prefer", "ipv4"))
    rows = default_rows(given)
    return outcome(lambda: bind_address.from_routes(host(given), rows, order).ip)


@check("kubelet-legacy-hostifaces")
def _(given: Raw) -> Any:
    order = bind_address.order_of(given["config"]["prefer"])
    return outcome(lambda: bind_address.from_interfaces(host(given), order).ip)


@check("kubelet-procnet")
def _(given: Raw) -> Any:
    read = procnet.read_ipv4 if given["family"] == 4 else procnet.read_ipv6
    try:
        rows = read(given["lines"])
    except ProfileError as error:
        # The column follows.
        return {"default_routes": None, "error": str(error)[: len("invalid address")]}
    shown = [{"interface": row.interface, "gw": str(row.gateway)} for row in rows]
    return {"default_routes": shown, "error": None}


@check("kubelet-nodeip-flag")
def _(given: Raw) -> Any:
    try:
        found = parse_argument(given["value"], given["cloud_provider"])
    except NodeIPError as error:
        return {"ips": None, "invalid": [], "error": error.rule}
    return {"ips": list(found.ips), "invalid": list(found.invalid), "error": None}


@check("kubelet-nodeip-annotation")
def _(given: Raw) -> Any:
    try:
        return {"ips": list(parse_annotation(given["value"])), "error": None}
    except NodeIPError as error:
        return {"ips": None, "error": error.rule}


@check("kubelet-setter")
def _(given: Raw) -> Any:
    def nothing_to_detect() -> bind_address.Found:
        raise AssertionError("an address is given")

    status = kubelet.node_status(
        given["node_ips"],
        "" if given["cloud"] == "none" else given["cloud"],
        given["hostname"],
        nothing_to_detect,
        existing=node_addresses(given["existing"]),
        annotations=given["annotations"],
    )
    return {"addresses": plain(status.addresses), "annotations": status.annotations}


@check("ccm-node-addresses")
def _(given: Raw) -> Any:
    listed = node_addresses(given["cloud_addresses"])
    try:
        return {"addresses": plain(merge(given["provided_node_ip"], listed)), "error": False}
    except NoAddressError:
        return {"addresses": None, "error": True}


@check("node-host-ips")
def _(given: Raw) -> Any:
    try:
        return {"ips": list(host_ips(node_addresses(given["addresses"]))), "error": False}
    except NoAddressError:
        return {"ips": None, "error": True}


@check("apiserver-preferred-address")
def _(given: Raw) -> Any:
    addresses = node_addresses(given["addresses"])
    return {"address": preferred_address(addresses, given["preferences"]), "error": False}


@check("status-patch")
def _(given: Raw) -> Any:
    return status_patch(node_addresses(given["addresses"]))


@check("kep1664-default")
def _(given: Raw) -> Any:
    found = (kep1664.detect(host(given), family) for family in FAMILIES)
    return {"ips": [str(answer.ip) for answer in found if answer]}


# OpenShift.


@check("openshift-runtimecfg-default")
def _(given: Raw) -> Any:
    config = given.get("config", {})
    ovn = config.get("network_type") == openshift.OVN_KUBERNETES
    usable = openshift.valid_on_ovn if ovn else openshift.valid
    prefer_ipv6 = config.get("prefer_ipv6", False)
    found = openshift.on_default_route(host(given), usable, prefer_ipv6=prefer_ipv6)
    return {"ips": texts(found.ips)}


@check("openshift-runtimecfg-vip")
def _(given: Raw) -> Any:
    config = given["config"]
    vips = [ip_address(vip) for vip in config["vips"]]
    found = openshift.on_subnet_of(host(given), vips, prefer_ipv6=config["prefer_ipv6"])
    return {"ips": texts(found.ips)}


# Calico.


@check("calico")
def _(given: Raw) -> Any:
    config = given["config"]
    answer: Raw = {}
    if config["method"] == "first-found":
        kept = calico.interfaces(host(given), (), calico.DEFAULT_EXCLUDE)
        answer["interfaces_kept"] = [link.name for link in kept]
    if "version" in config:
        family = f"ipv{config['version']}"
        internal = [ip_address(ip) for ip in config.get("node_internal_ips", ())]
        found = calico.detect(host(given), config["method"], family, internal)
        answer["cidr"] = str(found.address)
    return answer


# Talos.


@check("talos-sort")
def _(given: Raw) -> Any:
    listed = prefixes(given["prefixes"])
    return {algorithm: texts(talos.sort(listed, algorithm)) for algorithm in ("v1", "v2")}


@check("talos-compare")
def _(given: Raw) -> Any:
    return {"v2": [talos.compare_v2(*prefixes(pair)) for pair in given["pairs"]]}


@check("talos-filterips")
def _(given: Raw) -> Any:
    ips = [ip_address(ip) for ip in given["ips"]]
    return {"ips": texts(talos.filter_ips(ips, subnets(given["cidrs"])))}


@check("talos-nodeip")
def _(given: Raw) -> Any:
    found = talos.node_ips(
        prefixes(given["routed"]),
        subnets(given["valid_subnets"]),
        subnets(given["exclude_subnets"]),
        [ip_address(ip) for ip in given["previous"] or ()],
    )
    return {"ips": texts(found)}


@check("talos-nodeaddress")
def _(given: Raw) -> Any:
    config = given["config"]
    found = talos.node_addresses(
        host(given),
        config["sort"],
        prefixes(given["external"]),
        siderolink=subnets([config["siderolink"]])[0],
        host_dns=ip_address(config["hostdns"]),
    )
    filtered = {}
    for name, rule in config["filters"].items():
        kept = found.routed
        if "include" in rule:
            kept = talos.within(kept, subnets(rule["include"]))
        filtered[f"routed-{name}"] = texts(talos.without(kept, subnets(rule.get("exclude", []))))
    return {
        "default": str(found.default),
        "current": texts(found.current),
        "routed": texts(found.routed),
        "accumulative": texts(found.accumulative),
        "filtered": filtered,
    }


@check("talos-nodeaddress-sequence")
def _(given: Raw) -> Any:
    found: talos.NodeAddresses | None = None
    present: list[str] = []
    defaults = []
    for step in given["steps"]:
        present += step.get("add", [])
        present = [text for text in present if text not in step.get("remove", ())]
        ifindex = given["links"][0]["ifindex"]
        addresses = [{"ifindex": ifindex, "addr": text, "flags": []} for text in present]
        now = host({**given, "addresses": addresses})
        found = talos.node_addresses(now, given["config"]["sort"], previous=found)
        defaults.append(str(found.default))
    assert found is not None
    return {"default_after_step": defaults, "accumulative_final": texts(found.accumulative)}


# Cilium.


@check("cilium-sort")
def _(given: Raw) -> Any:
    addresses = cilium_addresses(given["addresses_any_order"])
    forward = [str(address.ip) for address in cilium.sorted_addresses(addresses)]
    assert forward == [str(a.ip) for a in cilium.sorted_addresses(addresses[::-1])]
    return {"order": forward}


@check("cilium-nodeaddress")
def _(given: Raw) -> Any:
    values, config = given["device"], given["config"]
    device = cilium.Device(
        1,
        values["name"],
        tuple(cilium_addresses(given["addresses"])),
        values["up"],
        values["type"],
        values["selected"],
    )
    node_ips = [ip_address(ip) for ip in config["k8s_node_ips"]]
    networks = subnets(config["nodeport_cidrs"])
    picked = cilium.pick(device, node_ips, networks, config["scope_max"])
    return {"primary": texts(picked.primary), "nodeport": texts(picked.nodeport)}


@check("cilium-fallback")
def _(given: Raw) -> Any:
    @dataclass
    class Seen:
        devices: list[cilium.Device] = field(default_factory=list)

        def update(self, values: Raw) -> list[str]:
            ifindex = values["ifindex"]
            addresses = tuple(cilium_addresses(values["addresses"], ifindex))
            self.devices.append(cilium.Device(ifindex, f"dev{ifindex}", addresses))
            return texts(cilium.fallback(self.devices))

    seen = Seen()
    answers = [seen.update(values) for values in given["updates"]]
    ipv6 = [ip for ip in answers[-1] if ":" in ip]
    return {"ipv4_after": [ips[0] for ips in answers], "ipv6_final": ipv6[0]}


# All at once.


def chosen(profile: str, given: Raw, **values: str) -> Any:
    choice = choose(profile, host(given), values)
    return "error" if choice.error else _ips(choice)


def _ips(choice: Choice) -> list[str]:
    return [ip for ip in (choice.ipv4, choice.ipv6) if ip]


def _kube_vip(given: Raw) -> Any:
    return [kube_vip.default_interface(host(given)).name]


def _ovn_kubernetes(given: Raw) -> Any:
    link = ovn_kubernetes.gateway_interface(host(given), "ipv4")
    return [link.name] if link else []


def _legacy_route(given: Raw) -> Any:
    by_rows = CHECKS["kubelet-legacy-route"](given)["ip"]
    found = bind_address.choose_host_interface(host(given), FAMILIES)
    assert str(found.ip) == by_rows, "routes show the same rows as /proc/net"
    return [by_rows]


CROSS: dict[str, Check] = {
    "kubelet-legacy-route": _legacy_route,
    "kep1664-default": lambda given: CHECKS["kep1664-default"](given)["ips"],
    "openshift-runtimecfg-default": lambda g: CHECKS["openshift-runtimecfg-default"](g)["ips"],
    "calico-first-found": lambda given: chosen("calico", given),
    "talos-nodeip-v1": lambda given: chosen("talos-v1", given),
    "talos-nodeip-v2": lambda given: chosen("talos-v2", given),
    "cilium-fallback": lambda given: chosen("cilium-fallback", given, devices="eth+"),
    "flannel-default": lambda given: chosen("flannel", given),
    "kube-vip-default-nic": _kube_vip,
    "ovn-kubernetes-gateway-nic": _ovn_kubernetes,
}
