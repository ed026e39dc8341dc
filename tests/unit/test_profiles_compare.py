"""addrtracker compare, from files."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.unit.command import ENGINE, HOST, ROOT, Answer, address, default, link, run, write
from tracker.capture.record import Addr, Header, Record, encode
from tracker.cli.main import COMMANDS
from tracker.profiles.records import from_snapshot


@pytest.fixture
def compare(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Any:
    def compared(host: Any, *arguments: str) -> Answer:
        path = write(tmp_path, host)
        return run(capsys, "compare", "--from", path, *ENGINE, *arguments)

    return compared


def uplink(**values: Any) -> dict[str, Any]:
    """A host on which all agree."""
    host = {
        "hostname": "n1",
        "links": [link(1, "lo"), link(2, "eth0", operstate="up")],
        "addresses": [address(1, "127.0.0.1/8", scope="host"), address(2, "192.0.2.10/24")],
        "routes": [default(2, "192.0.2.1")],
    }
    return {**host, **values}


def test_our_own_answer_comes_first(compare: Any) -> None:
    answer = compare(HOST, "--output", "json")
    assert (answer.status, answer.err) == (0, "")
    profiles = answer.json["profiles"]
    assert next(iter(profiles)) == "addrtracker"
    assert profiles["addrtracker"]["ipv4"] == "192.0.2.10"
    assert "default-route metric 100" in profiles["addrtracker"]["reason"]
    assert {tuple(profile) for profile in profiles.values()} == {
        ("ipv4", "ipv6", "reason", "error")
    }


def test_who_has_another_address_is_named(compare: Any) -> None:
    found = compare(HOST).json
    assert found["agree"] is False
    # The highest ifindex that is not excluded.
    assert found["profiles"]["calico"]["ipv4"] == "198.51.100.10"
    assert "calico" in found["differ"]["ipv4"]
    # It publishes IPv4 alone, which is no opinion about IPv6.
    assert found["profiles"]["kubelet"]["ipv6"] is None
    assert "kubelet" not in found["differ"]["ipv6"]


def test_a_host_on_which_all_agree(compare: Any) -> None:
    found = compare(uplink()).json
    assert found["differ"] == {"ipv4": [], "ipv6": []}
    assert found["agree"] is True


def test_who_fails_where_we_have_an_answer_disagrees(compare: Any) -> None:
    ways = [{"oif": 2, "gateway": "192.0.2.1"}, {"oif": 2, "gateway": "192.0.2.2"}]
    route = {"family": "inet", "dst": "default", "table": 254, "nexthops": ways}
    found = compare(uplink(routes=[route])).json
    assert found["profiles"]["flannel"]["error"]
    assert set(found["differ"]["ipv4"]) == {"openshift", "flannel"}


def test_options_are_those_of_the_real_systems(compare: Any) -> None:
    answer = compare(
        HOST, "--option", "calico.method=interface=eth0", "openshift.hint=198.51.100.1"
    )
    assert answer.json["profiles"]["calico"]["ipv4"] == "192.0.2.10"
    assert answer.json["profiles"]["openshift"]["ipv4"] == "198.51.100.10"


def test_an_unknown_option_is_one_line_and_status_2(compare: Any) -> None:
    answer = compare(HOST, "--option", "calico.colour=red")
    assert (answer.status, answer.out) == (2, "")
    assert answer.err == (
        "addrtracker: compare: --option calico.colour=red: calico takes method, method6, "
        "internal-ips\n"
    )


def test_a_table_marks_what_differs(compare: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "160")
    lines = compare(HOST, "--output", "table").out.splitlines()
    assert lines[0].split() == ["profile", "ipv4", "ipv6", "reason", "or", "error"]
    rows = {line.split()[0]: line.split() for line in lines[2:] if line.strip()}
    assert rows["addrtracker"][1] == "192.0.2.10"
    assert rows["calico"][1] == "!198.51.100.10"
    assert rows["kubelet"][1:3] == ["192.0.2.10", "-"]
    assert any(line.startswith("ipv4 differs: ") and "calico" in line for line in lines)


LONG = "2001:db8:aaaa:bbbb:cccc:dddd:eeee:10"


@pytest.mark.parametrize(
    ("columns", "host"),
    [
        (40, HOST),
        (
            80,
            uplink(
                addresses=[address(2, "192.0.2.10/24"), address(2, f"{LONG}/64")],
                routes=[default(2, "192.0.2.1"), default(2, "fe80::1", 1024)],
            ),
        ),
    ],
)
def test_each_profile_is_a_paragraph_where_reasons_have_no_room(
    compare: Any, monkeypatch: pytest.MonkeyPatch, columns: int, host: Any
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    lines = compare(host, "--output", "table").out.splitlines()
    start = lines.index("calico")
    ipv4, ipv6, *reason = lines[start + 1 : lines.index("talos-v1")]
    found = compare(host).json["profiles"]["calico"]
    assert ipv4.split()[0] == "ipv4"
    assert ipv4.split()[1].removeprefix("!") == found["ipv4"]
    assert ipv6.split()[1].removeprefix("!") == found["ipv6"]
    assert " ".join(" ".join(reason).split()) == found["reason"]
    said = [line for line in lines if not line.startswith(("ipv4 differs", "ipv6 differs"))]
    assert max(map(len, said)) <= max(columns, len(f"  ipv6  {LONG}"))


def test_eighty_columns_hold_a_table_with_whole_words(
    compare: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    text = compare(HOST, "--output", "table").out
    assert text.splitlines()[0].split()[:3] == ["profile", "ipv4", "ipv6"]
    words = {word for c in compare(HOST).json["profiles"].values() for word in str(c).split("'")}
    reasons = {w for line in words for w in line.split() if "/" in w or w == "interface"}
    assert "/proc/net/route:" in reasons
    assert "/proc/net/route:" in text


def test_every_option_can_be_listed(capsys: pytest.CaptureFixture[str]) -> None:
    answer = run(capsys, "compare", "--list")
    assert answer.status == 0
    assert "  calico.method: IP_AUTODETECTION_METHOD" in answer.out


def test_a_host_without_addresses_is_compared_as_well(compare: Any) -> None:
    answer = compare(uplink(addresses=[], routes=[]))
    assert answer.status == 0
    assert answer.json["agree"] is True
    assert answer.json["profiles"]["addrtracker"]["error"].startswith("ipv4: no default route")


def test_a_case_is_compared_as_it_is_at_its_end(compare: Any) -> None:
    gone = {"type": "RTM_DELADDR", "data": {"ifindex": 2, "address": "192.0.2.10", "prefixlen": 24}}
    new = {"type": "RTM_NEWADDR", "data": {"ifindex": 2, "address": "192.0.2.77", "prefixlen": 24}}
    found = compare({"input": {**uplink(), "events": [gone, new]}, "expected": {}}).json
    assert found["profiles"]["kubelet"]["ipv4"] == "192.0.2.77"


def test_labels_are_read_from_what_ip_prints(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    flags = ["BROADCAST", "UP", "LOWER_UP"]
    info = {"family": "inet", "prefixlen": 24, "scope": "global"}
    infos = [
        {**info, "local": "192.0.2.4", "label": "eth0:eip"},
        {**info, "local": "192.0.2.10", "label": "eth0"},
    ]
    addresses = [{"ifindex": 2, "ifname": "eth0", "flags": flags, "addr_info": infos}]
    routes = [{"dst": "default", "gateway": "192.0.2.1", "dev": "eth0", "flags": []}]
    files = [write(tmp_path, addresses, "address.json"), write(tmp_path, routes, "route.json")]
    answer = run(capsys, "compare", *ENGINE, "--from", *files)
    assert answer.json["profiles"]["openshift"]["ipv4"] == "192.0.2.10"


def test_addresses_of_a_recording_are_put_into_the_kernels_order() -> None:
    def record(local: bytes, cstamp: int, flags: int = 0x80) -> bytes:
        family = 2 if len(local) == 4 else 10
        payload = Addr(family, 2, local, 24, flags=flags, cstamp=cstamp)
        return encode(Record(Header(), payload))

    def ipv6(last: int) -> bytes:
        return b"\x20\x01\x0d\xb8" + bytes(11) + bytes([last])

    raw = b"".join(
        [
            record(b"\x0a\0\0\1", 100, 0x81),
            record(b"\x0a\0\0\2", 300),
            record(b"\x0a\0\0\3", 200),
            record(ipv6(1), 100),
            record(ipv6(2), 300),
        ]
    )
    found = [str(a.ip) for a in from_snapshot(raw, "n1").addresses]
    assert [ip for ip in found if "." in ip] == ["10.0.0.3", "10.0.0.2", "10.0.0.1"]
    assert [ip for ip in found if ":" in ip] == ["2001:db8::2", "2001:db8::1"]


def test_other_commands_do_not_load_profiles() -> None:
    text = (
        "import sys, tracker.cli.main, tracker.cli.show, tracker.cli.explain, tracker.cli.watch\n"
        "assert not [name for name in sys.modules if name.startswith('tracker.profiles')]\n"
        "assert 'ipaddress' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", text], cwd=ROOT, check=True)


@pytest.mark.parametrize("name", [name for name in COMMANDS if name != "compare"])
def test_profiles_load_only_where_they_are_used(name: str) -> None:
    text = (
        f"import sys, tracker.cli.{name}\n"
        "assert not [name for name in sys.modules if name.startswith('tracker.profiles')]\n"
    )
    subprocess.run([sys.executable, "-c", text], cwd=ROOT, check=True)
