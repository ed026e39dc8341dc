"""Node documents of hosts with real routes."""

from __future__ import annotations

import json
import subprocess
from typing import TYPE_CHECKING, Any

import pytest

from tests.netns.daemon import COMMAND, QUICK
from tests.netns.namespace import connect

if TYPE_CHECKING:
    from tests.netns.conftest import StartDaemon
    from tests.netns.daemon import Daemon
    from tests.netns.namespace import Namespace

FIRST, SECOND = "10.1.0.5", "10.2.0.5"
"""On eth2 and on eth3, which has the higher ifindex."""


@pytest.fixture
def node(host: Namespace, router: Namespace) -> Namespace:
    """A host with one default route over two uplinks."""
    for link, net in (("eth2", "10.1.0"), ("eth3", "10.2.0")):
        connect(host, link, router, f"peer-{link}")
        host.ip(f"addr add {net}.5/24 dev {link}")
    host.ip("route add default nexthop via 10.2.0.1 dev eth3 nexthop via 10.1.0.1 dev eth2")
    return host


def call(
    namespace: Namespace, *arguments: str, given: str | None = None
) -> subprocess.CompletedProcess[str]:
    name, *rest = arguments
    command = [COMMAND, name, "--netns", namespace.name, "--output", "json", *rest]
    return subprocess.run(
        command, input=given, capture_output=True, text=True, check=False, timeout=60
    )


def answer(namespace: Namespace, *arguments: str, given: str | None = None) -> Any:
    done = call(namespace, *arguments, given=given)
    assert (done.returncode, done.stderr) == (0, "")
    return json.loads(done.stdout)


def test_the_kubelets_form_is_what_its_profile_says(node: Namespace) -> None:
    own, kubelet = answer(node, "show"), answer(node, "show", "--as", "kubelet")
    compared = answer(node, "compare")["profiles"]["kubelet"]
    assert own["primary"]["ipv4"] == FIRST
    assert kubelet["primary"]["ipv4"] == compared["ipv4"] == SECOND
    assert kubelet["ips"][0]["interface"] == "eth3"
    assert [entry["type"] for entry in kubelet["addresses"]] == ["InternalIP", "Hostname"]


def test_a_providers_list_is_put_into_our_order(node: Namespace) -> None:
    listed = [
        {"type": "InternalIP", "address": SECOND},
        {"type": "InternalIP", "address": FIRST},
        {"type": "ExternalIP", "address": "203.0.113.7"},
    ]
    given = json.dumps(listed)
    document = answer(node, "show", "--provider-addresses", "-", given=given)
    assert document["addresses"] == [listed[1], listed[2]]
    refused = call(node, "show", "--provider-addresses", "-", given=json.dumps(listed[:1]))
    assert (refused.returncode, refused.stdout) == (1, "")
    assert f"node IP {FIRST} is not among" in refused.stderr


def test_explain_says_what_decided(node: Namespace) -> None:
    rows = answer(node, "explain")["families"]["ipv4"]["candidates"]
    decided = {row["address"]: row["decided_by"] for row in rows if row["eligible"]}
    assert decided == {FIRST: None, SECOND: "ifindex"}


def files_of(daemon: Daemon, selection: str) -> dict[str, str]:
    directory = daemon.files / "selections" / selection
    return {path.name: path.read_text() for path in directory.iterdir()}


WITH_SELECTIONS = f"""{QUICK}
[select]
extra = 1
[selections.storage]
mode = "cidr"
cidrs = ["10.2.0.0/16"]
extra = 1
"""


def test_a_selection_follows_its_own_network_in_document_and_files(
    node: Namespace, start_daemon: StartDaemon
) -> None:
    daemon = start_daemon(node, WITH_SELECTIONS)
    document = daemon.wait(
        lambda document: document["selections"]["storage"]["primary"]["ipv4"] == SECOND,
        "an address for storage",
    )
    assert document["primary"]["ipv4"] == FIRST
    assert files_of(daemon, "storage") == {"ipv4": SECOND, "primary-ip": SECOND}
    node.ip("addr add 10.2.7.6/24 dev eth3")
    document = daemon.wait(
        lambda document: len(document["selections"]["storage"]["ips"]) == 2, "one more for storage"
    )
    assert [(ip["ip"], ip["primary"]) for ip in document["selections"]["storage"]["ips"]] == [
        (SECOND, True),
        ("10.2.7.6", False),
    ]
    node.ip(f"addr del {SECOND}/24 dev eth3")
    document = daemon.wait(
        lambda document: document["selections"]["storage"]["primary"]["ipv4"] == "10.2.7.6",
        "another address for storage",
    )
    assert files_of(daemon, "storage") == {"ipv4": "10.2.7.6", "primary-ip": "10.2.7.6"}
    # The node's own answer had nothing to do with it.
    assert document["primary"]["ipv4"] == FIRST
    assert (daemon.files / "ipv4").read_text() == FIRST


def test_an_extra_address_does_not_outlive_its_answer(
    node: Namespace, start_daemon: StartDaemon
) -> None:
    node.ip("addr add 10.2.0.6/24 dev eth3")
    daemon = start_daemon(node, WITH_SELECTIONS)
    daemon.wait(lambda document: len(document["selections"]["storage"]["ips"]) == 2, "two")
    # With a primary address the kernel removes the secondary ones of its subnet.
    node.ip(f"addr del {SECOND}/24 dev eth3")
    document = daemon.wait(
        lambda document: document["selections"]["storage"]["state"]["ipv4"] == "lost", "lost"
    )
    assert [ip["ip"] for ip in document["selections"]["storage"]["ips"]] == [SECOND]
