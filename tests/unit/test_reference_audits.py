"""What an audit counts as drift, on both engines."""

from __future__ import annotations

import pytest

from tests.build import (
    DEPRECATED,
    MS,
    RTPROT_RA,
    TENTATIVE,
    Host,
    addr,
    begin,
    end,
    entry,
    gone,
    leg,
    link,
    nexthop,
    route,
)
from tracker.capture.record import Op, Payload, Record, describe, iter_records
from tracker.model import Scope

ETH0 = link(2, "eth0")
TEN, TWENTY = addr("192.0.2.10/24", 2), addr("192.0.2.20/24", 3)
DEFAULT = route(via="192.0.2.1", oif=2)
OTHER = route(via="198.51.100.1", oif=3, metric=5)


def drifts(host: Host) -> list[str]:
    return [describe(record) for record in iter_records(host.engine.drifts())]


@pytest.mark.parametrize(
    ("scope", "old", "shown", "drift"),
    [
        (Scope.ADDR4, [TEN], [TEN], 0),
        (Scope.ADDR4, [TEN], [TEN, TWENTY], 1),
        (Scope.ADDR4, [TEN, TWENTY], [TEN], 1),
        (Scope.ADDR4, [TEN], [TWENTY], 2),
        (Scope.ADDR4, [TEN], [addr("192.0.2.10/24", 2, flags=DEPRECATED)], 1),
        (Scope.ADDR4, [TEN], [addr("192.0.2.10/24", 2, cstamp=7, valid=9)], 0),
        (Scope.ADDR6, [], [addr("2001:db8::1/64", 2, flags=TENTATIVE)], 0),
        (Scope.LINK, [ETH0], [link(2, "eth0", mtu=9000, lower=4)], 0),
        (Scope.LINK, [ETH0], [link(2, "eth0", carrier=False)], 0),
        (Scope.LINK, [ETH0], [link(2, "eth0", up=False)], 1),
        (Scope.LINK, [ETH0], [link(2, "eth9")], 1),
        (Scope.NEXTHOP, [nexthop(1, oif=2)], [nexthop(1, oif=3)], 1),
        (Scope.ROUTE4, [DEFAULT], [DEFAULT], 0),
        (Scope.ROUTE4, [DEFAULT], [route(via="192.0.2.9", oif=2)], 1),
        (Scope.ROUTE4, [DEFAULT], [route(via="192.0.2.9", oif=2), DEFAULT], 1),
        (Scope.ROUTE4, [DEFAULT, route(via="192.0.2.9", oif=2)], [DEFAULT], 1),
        (Scope.ROUTE4, [route(legs=(leg(2), leg(3)))], [route(legs=(leg(2), leg(3, weight=2)))], 1),
        (
            Scope.ROUTE6,
            [route(via="fe80::1", oif=2, proto=RTPROT_RA, expires=30)],
            [route(via="fe80::1", oif=2, proto=RTPROT_RA, expires=99)],
            0,
        ),
    ],
)
def test_an_audit_counts_differing_keys(
    host: Host, scope: Scope, old: list[Record], shown: list[Record], drift: int
) -> None:
    name = f"drift.{scope.name.lower()}"
    host.send(*old)
    host.dump(scope, *shown, audit=True)
    assert host.count(name) == drift
    assert len(drifts(host)) == drift
    host.send(*(gone(record) for record in shown), *old)
    host.dump(scope, *shown)
    assert host.count(name) == drift, "only an audit counts"


# Carrier, which the kernel announces late

NO_CARRIER = link(2, "eth0", carrier=False)


def known(host: Host) -> list[Payload]:
    return [record.payload for record in iter_records(host.engine.snapshot())]


@pytest.mark.parametrize(("before", "after"), [(ETH0, NO_CARRIER), (NO_CARRIER, ETH0)])
def test_carrier_that_is_not_announced_yet_is_no_drift_and_has_no_effect(
    host: Host, before: Record, after: Record
) -> None:
    host.send(before, nexthop(1, oif=2))
    told = known(host)
    host.dump(Scope.LINK, after, audit=True)
    assert host.count("drift.link") == 0
    assert drifts(host) == []
    assert known(host) == told
    assert host.view().last_change_ns < host.now


def test_carrier_that_is_never_announced_is_drift_of_a_later_audit(host: Host) -> None:
    host.send(ETH0)
    host.dump(Scope.LINK, NO_CARRIER, audit=True)
    host.now += 4000 * MS
    host.dump(Scope.LINK, NO_CARRIER, audit=True)
    assert host.count("drift.link") == 1
    assert known(host) == [NO_CARRIER.payload]
    assert drifts(host) == [describe(NO_CARRIER)]
    host.dump(Scope.LINK, NO_CARRIER, audit=True)
    assert host.count("drift.link") == 1


def test_carrier_may_be_announced_for_as_long_as_the_kernel_takes(host: Host) -> None:
    host.send(ETH0)
    host.dump(Scope.LINK, NO_CARRIER, audit=True)
    host.now += 3999 * MS
    host.dump(Scope.LINK, NO_CARRIER, audit=True)
    assert host.count("drift.link") == 0


@pytest.mark.parametrize(
    "between",
    [
        [ETH0],
        [gone(ETH0), ETH0],
        [begin(Scope.LINK), entry(ETH0), end(Scope.LINK)],
        [begin(Scope.LINK, audit=True), entry(ETH0), end(Scope.LINK)],
    ],
    ids=["event", "made again", "dump", "audit"],
)
def test_what_is_heard_of_a_link_begins_the_time_anew(host: Host, between: list[Record]) -> None:
    host.send(ETH0)
    host.dump(Scope.LINK, NO_CARRIER, audit=True)
    host.send(*between)
    host.now += 60_000 * MS
    host.dump(Scope.LINK, NO_CARRIER, audit=True)
    assert host.count("drift.link") == 0


def test_carrier_beside_another_difference_is_drift(host: Host) -> None:
    host.send(ETH0)
    renamed = link(2, "eth9", carrier=False)
    host.dump(Scope.LINK, renamed, audit=True)
    assert host.count("drift.link") == 1
    assert known(host) == [renamed.payload]


def test_a_dump_that_is_no_audit_shows_carrier_as_it_is(host: Host) -> None:
    host.send(ETH0)
    host.dump(Scope.LINK, NO_CARRIER)
    assert known(host) == [NO_CARRIER.payload]


def test_an_audit_names_what_differed(host: Host) -> None:
    host.send(TEN)
    host.dump(Scope.ADDR4, TWENTY, audit=True)
    assert drifts(host) == ["RTM_NEWADDR 192.0.2.20/24 if3", "RTM_DELADDR 192.0.2.10/24 if2"]
    assert drifts(host) == []


def test_an_audit_names_the_newest_sixteen(host: Host) -> None:
    host.dump(Scope.ADDR4, *(addr(f"10.0.0.{last}/8", 2) for last in range(1, 21)), audit=True)
    assert host.count("drift.addr4") == 20
    assert [line.split()[1] for line in drifts(host)] == [f"10.0.0.{n}/8" for n in range(5, 21)]


def test_an_entry_that_an_event_wins_over_is_no_drift(host: Host) -> None:
    host.send(begin(Scope.ADDR4, audit=True))
    host.send(gone(TEN), entry(TEN), end(Scope.ADDR4))
    assert host.count("drift.addr4") == 0


def test_a_removal_that_an_audit_found_has_the_states_entry(host: Host) -> None:
    host.send(DEFAULT, OTHER)
    host.dump(Scope.ROUTE4, OTHER, audit=True)
    (record,) = iter_records(host.engine.drifts())
    assert record.header.op is Op.DEL
    assert describe(record) == "RTM_DELROUTE default via 192.0.2.1 dev if2"
