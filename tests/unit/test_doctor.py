"""What doctor finds, and what it says follows."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING

from tests.unit.command import run
from tracker import doctor, features

if TYPE_CHECKING:
    import pytest


def test_json_has_every_section(capsys: pytest.CaptureFixture[str]) -> None:
    answer = run(capsys, "doctor", "--output", "json")
    report = answer.json
    assert answer.status == 0
    assert report["source"]["name"] in {"bpf", "netlink"}
    assert report["source"]["engine"] == "native"
    assert report["source"]["receive_buffer"] > 0
    assert [f["name"] for f in report["features"]] == [f.name for f in features.FEATURES]
    assert report["kernel"]


def test_a_table_has_every_section(capsys: pytest.CaptureFixture[str]) -> None:
    out = run(capsys, "doctor", "--output", "table").out
    assert "source: " in out
    assert ", engine: native" in out
    assert "strict-dumps" in out
    assert "CAP_NET_ADMIN" in out
    assert "net.core.rmem_max" in out


def test_capabilities_say_what_their_absence_means() -> None:
    names = ["CAP_BPF", "CAP_PERFMON", "CAP_NET_ADMIN", "CAP_SYS_ADMIN", "CAP_SYS_RESOURCE"]
    with_all = doctor.capabilities("Name:\tx\nCapEff:\t000001ffffffffff\n", "5.10.0")
    assert [(f.name, f.ok, f.follows) for f in with_all] == [(name, True, "") for name in names]
    none = doctor.capabilities("Name:\tx\nCapEff:\t0000000000000000\n", "5.10.0")
    assert [f.ok for f in none] == [False] * 5
    assert all(f.follows for f in none)


def test_a_kernel_that_is_new_enough_is_not_to_blame(monkeypatch: pytest.MonkeyPatch) -> None:
    def of(release: str) -> str:
        feature = features.Feature("maps", "5.8", lambda: "without CAP_BPF", "no source bpf")
        monkeypatch.setattr(features, "FEATURES", (feature,))
        monkeypatch.setattr(os, "uname", lambda: SimpleNamespace(release=release))
        (found,) = doctor.features()
        return f"{found.value}: {found.follows}"

    assert of("6.18.1-x") == "without CAP_BPF: no source bpf"
    assert of("5.4.0") == (
        "without CAP_BPF (kernel 5.4.0 is older than 5.8): no source bpf (needs kernel 5.8)"
    )


def values(mask: int, release: str = "6.1.0") -> dict[str, str]:
    found = doctor.capabilities(f"CapEff:\t{mask:016x}\n", release)
    return {f.name: f.value if f.ok else f"{f.value}!" for f in found}


def test_one_capability_may_stand_for_others() -> None:
    assert values(1 << 21 | 1 << 12) == {
        "CAP_BPF": "by CAP_SYS_ADMIN",
        "CAP_PERFMON": "by CAP_SYS_ADMIN",
        "CAP_NET_ADMIN": "yes",
        "CAP_SYS_ADMIN": "yes",
        "CAP_SYS_RESOURCE": "no",
    }


def test_the_least_that_is_needed_lacks_only_what_is_not_used() -> None:
    least = 1 << 39 | 1 << 38 | 1 << 12
    assert values(least)["CAP_SYS_RESOURCE"] == "no"
    assert values(least, "5.10.0")["CAP_SYS_RESOURCE"] == "no!"
    assert values(least)["CAP_SYS_ADMIN"] == "no!"


def sysctl(root: Path, name: str, value: str) -> None:
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"{value}\n")


def test_sysctls_that_matter_are_named(tmp_path: Path) -> None:
    sysctl(tmp_path, "net/ipv4/conf/all/rp_filter", "1")
    sysctl(tmp_path, "net/ipv4/conf/all/promote_secondaries", "1")
    found = {f.name: f for f in doctor.sysctls(str(tmp_path))}
    assert not found["net.ipv4.conf.all.rp_filter"].ok
    assert "strict" in found["net.ipv4.conf.all.rp_filter"].follows
    assert found["net.ipv4.conf.all.promote_secondaries"].ok
    assert found["net.ipv4.nexthop_compat_mode"].value == "not there"


def test_a_router_that_wants_routes_from_routers_is_told(tmp_path: Path) -> None:
    for link, forwarding, accept in (
        ("all", "1", "1"),
        ("eth0", "1", "1"),
        ("eth1", "1", "2"),
        ("eth2", "0", "1"),
    ):
        sysctl(tmp_path, f"net/ipv6/conf/{link}/forwarding", forwarding)
        sysctl(tmp_path, f"net/ipv6/conf/{link}/accept_ra", accept)
    found = [f for f in doctor.sysctls(str(tmp_path)) if f.name.endswith("accept_ra")]
    assert [f.name for f in found] == ["net.ipv6.conf.eth0.accept_ra"]
    assert found[0].follows.startswith("eth0 forwards")


def test_many_links_that_forward_are_one_line(tmp_path: Path) -> None:
    for number in range(100, 300):
        sysctl(tmp_path, f"net/ipv6/conf/veth{number}/forwarding", "1")
        sysctl(tmp_path, f"net/ipv6/conf/veth{number}/accept_ra", "1")
    [found] = [f for f in doctor.sysctls(str(tmp_path)) if f.name.endswith("accept_ra")]
    assert found.name == "net.ipv6.conf.*.accept_ra"
    assert found.follows.startswith("each of 200 links (veth100, veth101, veth102 ...) forwards")


def test_a_feature_that_is_missing_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    missing = features.Feature("x", "1.9", lambda: "Protocol not available", "worse")
    monkeypatch.setattr(features, "FEATURES", (missing,))
    assert doctor.features() == [
        doctor.Finding("x", ok=False, value="Protocol not available", follows="worse")
    ]


def test_a_feature_that_cannot_be_there_says_what_proves_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    missing = features.Feature("x", "99.9", lambda: "Invalid argument", "worse")
    monkeypatch.setattr(features, "FEATURES", (missing,))
    [found] = doctor.features()
    assert found.value.startswith("Invalid argument (kernel ")
    assert found.value.endswith(" is older than 99.9)")
