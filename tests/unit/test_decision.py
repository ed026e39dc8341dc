"""The decision follows the ranking reluctantly."""

from __future__ import annotations

import pytest

from tracker.decision import IFA_F_DEPRECATED, Decider, Remembered, Stability
from tracker.engine.base import NEVER
from tracker.model import (
    IPV4,
    NO_ROUTE,
    Criterion,
    Fallback,
    PolicyTable,
    Reject,
    Row,
    State,
    Tier,
    View,
)

S = 1_000_000_000
T0 = 1000 * S
CRITERIA = (
    Criterion.STATIC,
    Criterion.DEFAULT_ROUTE,
    Criterion.PREFSRC,
    Criterion.NOT_DEPRECATED,
    Criterion.NOT_VIP_LIKE,
    Criterion.INCUMBENT,
)
POLICY = PolicyTable(
    families=(IPV4,),
    table=254,
    criteria=CRITERIA,
    displacing=frozenset({Criterion.STATIC, Criterion.NOT_DEPRECATED, Criterion.NOT_VIP_LIKE}),
    fallback=Fallback.AUTO,
    fallback_name="",
    exclude_names=(),
    keep_names=(),
    exclude_kinds=(),
    exclude=(),
    statics=(),
    internal=(),
)
STABILITY = Stability(settle=1 * S, settle_max=10 * S, hold=10 * S, failback=None)
PATH = CRITERIA.index(Criterion.DEFAULT_ROUTE)
VIP = CRITERIA.index(Criterion.NOT_VIP_LIKE)
A, B, C = "192.0.2.10", "192.0.2.20", "198.51.100.30"


def row(
    address: str,
    *,
    reject: Reject = Reject.NONE,
    carrier: bool = True,
    flags: int = 0x80,
    named: bool = False,
    tier: Tier = Tier.ROUTE,
    ifindex: int = 2,
) -> Row:
    """An address as the engine judges it; only what the decision looks at."""
    values = (0, NO_ROUTE, 0 if named else 1, 0, 0, 1)
    return Row(
        IPV4, address, 24, "", ifindex, f"eth{ifindex}", flags, 0, 0, reject, reject, tier,
        carrier, 1, values,
    )  # fmt: skip


def view(best: Row | None, incumbent: Row | None = None, diff: int = PATH, at: int = T0) -> View:
    """What the ranking says."""
    same = best is not None and incumbent is not None and best.address == incumbent.address
    first = -1 if best is None or incumbent is None or same else diff
    return View(best, incumbent, 1, 0, 0, 1, False, first, 0, at, b"")


def settled(address: str = A, stability: Stability = STABILITY) -> Decider:
    """A decider that has decided for `address` at T0 + settle."""
    decider = Decider(POLICY, stability, T0)
    best = row(address)
    decider.step(T0, view(best))
    assert decider.step(T0 + stability.settle, view(best))
    assert (decider.state, decider.address) == (State.STABLE, address)
    return decider


def test_start_waits_until_nothing_changed_for_settle() -> None:
    decider = Decider(POLICY, STABILITY, T0)
    assert not decider.step(T0, view(row(A)))
    assert decider.deadline == T0 + S
    assert not decider.step(T0 + S, view(row(A), at=T0 + S // 2))
    assert decider.deadline == T0 + S // 2 + S
    assert decider.step(T0 + S // 2 + S, view(row(A), at=T0 + S // 2))
    assert decider.address == A


def test_start_waits_no_longer_than_settle_max() -> None:
    decider = Decider(POLICY, STABILITY, T0)
    now = T0
    while not decider.step(now, view(row(A), at=now)):
        assert decider.state is State.SETTLING
        now += S // 2
    assert now == T0 + 10 * S


def test_a_family_without_an_address_is_none_and_takes_the_first_one_after_settle() -> None:
    decider = Decider(POLICY, STABILITY, T0)
    assert not decider.step(T0 + S, view(None))
    assert decider.state is State.NONE
    assert decider.deadline == NEVER
    assert not decider.step(T0 + 5 * S, view(row(A)))
    assert decider.deadline == T0 + 6 * S
    assert decider.step(T0 + 6 * S, view(row(A)))
    assert decider.address == A


def test_a_first_address_that_goes_again_is_not_taken() -> None:
    decider = Decider(POLICY, STABILITY, T0)
    decider.step(T0 + S, view(None))
    decider.step(T0 + 5 * S, view(row(A)))
    decider.step(T0 + 5 * S + 1, view(None))
    assert not decider.step(T0 + 7 * S, view(row(B)))
    assert decider.step(T0 + 8 * S, view(row(B)))
    assert decider.address == B


def test_a_challenger_with_a_marked_criterion_displaces_after_settle() -> None:
    decider = settled()
    now = T0 + 20 * S
    better = view(row(B), row(A), VIP)
    assert not decider.step(now, better)
    assert decider.deadline == now + S
    assert decider.step(now + S, better)
    assert decider.address == B


def test_a_challenger_that_is_not_best_for_settle_displaces_nobody() -> None:
    decider = settled()
    now = T0 + 20 * S
    decider.step(now, view(row(B), row(A), VIP))
    decider.step(now + S - 1, view(row(C), row(A), VIP))
    assert not decider.step(now + S, view(row(B), row(A), VIP))
    assert decider.address == A


@pytest.mark.parametrize("diff", [PATH, CRITERIA.index(Criterion.PREFSRC), -2])
def test_paths_alone_displace_nobody_without_failback(diff: int) -> None:
    decider = settled()
    assert not decider.step(T0 + 20 * S, view(row(B), row(A), diff))
    assert decider.deadline == NEVER
    assert not decider.step(T0 + 9000 * S, view(row(B), row(A), diff))


@pytest.mark.parametrize("diff", [PATH, -2])
def test_paths_displace_after_failback(diff: int) -> None:
    decider = settled(stability=STABILITY._replace(failback=30 * S))
    now = T0 + 20 * S
    assert not decider.step(now, view(row(B), row(A), diff))
    assert decider.deadline == now + 30 * S
    assert decider.step(now + 30 * S, view(row(B), row(A), diff))


def test_losing_the_default_route_keeps_the_address() -> None:
    decider = settled()
    without = row(A, tier=Tier.NONE)
    assert not decider.step(T0 + 20 * S, view(None, without))
    assert (decider.state, decider.address) == (State.STABLE, A)
    assert decider.row is not None
    assert decider.row.tier is Tier.NONE


def test_a_renewal_within_hold_changes_nothing() -> None:
    decider = settled()
    now = T0 + 20 * S
    assert not decider.step(now, view(row(B), None))
    assert decider.state is State.HOLDING
    assert decider.deadline == now + 10 * S
    assert not decider.step(now + S, view(row(A), row(A)))
    assert (decider.state, decider.held) == (State.STABLE, 1)


def test_an_address_that_comes_back_on_another_link_is_the_same_answer() -> None:
    decider = settled()
    now = T0 + 20 * S
    decider.step(now, view(None, None))
    assert not decider.step(now + S, view(row(A, ifindex=10), row(A, ifindex=10)))
    assert decider.row is not None
    assert decider.row.ifindex == 10


def test_after_hold_the_best_is_taken_at_once() -> None:
    decider = settled()
    now = T0 + 20 * S
    decider.step(now, view(row(B), None))
    assert not decider.step(now + 10 * S - 1, view(row(B), None))
    assert decider.step(now + 10 * S, view(row(B), None))
    assert (decider.state, decider.address) == (State.STABLE, B)


def test_hold_lasts_longer_while_the_address_is_back_but_tentative() -> None:
    decider = settled()
    now = T0 + 20 * S
    decider.step(now, view(row(B), None))
    back = row(A, reject=Reject.TENTATIVE)
    assert not decider.step(now + 10 * S, view(row(B), back))
    assert decider.state is State.HOLDING
    assert not decider.step(now + 11 * S, view(row(A), row(A)))
    assert decider.state is State.STABLE


def test_without_a_successor_the_last_value_stays_as_lost() -> None:
    decider = settled()
    now = T0 + 20 * S
    decider.step(now, view(None, None))
    assert not decider.step(now + 10 * S, view(None, None))
    assert (decider.state, decider.address) == (State.LOST, A)
    assert not decider.step(now + 60 * S, view(row(A), row(A)))
    assert decider.state is State.STABLE


def test_a_lost_address_is_replaced_after_settle() -> None:
    decider = settled()
    now = T0 + 20 * S
    decider.step(now, view(None, None))
    decider.step(now + 10 * S, view(None, None))
    assert not decider.step(now + 60 * S, view(row(B), None))
    assert decider.step(now + 61 * S, view(row(B), None))
    assert decider.address == B


def test_losing_the_carrier_holds_then_moves_to_an_address_with_one() -> None:
    decider = settled()
    now = T0 + 20 * S
    dark = row(A, carrier=False)
    decider.step(now, view(row(B), dark))
    assert decider.state is State.HOLDING
    assert decider.step(now + 10 * S, view(row(B), dark))
    assert decider.address == B


def test_a_dark_address_is_not_given_up_for_another_dark_one() -> None:
    decider = settled()
    now = T0 + 20 * S
    dark = view(row(B, carrier=False), row(A, carrier=False))
    decider.step(now, dark)
    assert not decider.step(now + 10 * S, dark)
    assert (decider.state, decider.address) == (State.LOST, A)
    assert not decider.step(now + 60 * S, dark)
    assert decider.address == A


def test_the_only_address_without_carrier_is_lost_not_flapping() -> None:
    decider = settled(stability=STABILITY._replace(hold=0))
    dark = row(A, carrier=False)
    assert not decider.step(T0 + 20 * S, view(dark, dark))
    assert decider.state is State.LOST


def test_a_deprecated_incumbent_gives_way_only_to_an_undeprecated_best() -> None:
    decider = settled()
    now = T0 + 20 * S
    old = row(A, flags=IFA_F_DEPRECATED)
    assert not decider.step(now, view(old, old))
    assert decider.state is State.STABLE
    assert not decider.step(now, view(row(B), old))
    assert decider.state is State.HOLDING
    assert decider.step(now + 10 * S, view(row(B), old))


def test_a_renewed_lifetime_ends_the_hold() -> None:
    decider = settled()
    now = T0 + 20 * S
    decider.step(now, view(row(B), row(A, flags=IFA_F_DEPRECATED)))
    assert not decider.step(now + S, view(row(A), row(A)))
    assert decider.state is State.STABLE


def test_an_address_that_only_its_default_route_made_eligible_survives_losing_it() -> None:
    decider = Decider(POLICY, STABILITY, T0)
    decider.step(T0 + S, view(row(A, named=True)))
    decider.step(T0 + S, view(row(A, named=True), row(A, named=True)))
    unnamed = row(A, reject=Reject.EXCLUDED_INTERFACE, tier=Tier.NONE)
    assert not decider.step(T0 + 20 * S, view(None, unnamed))
    assert decider.state is State.STABLE


def test_an_excluded_incumbent_is_invalid() -> None:
    decider = settled()
    decider.step(T0 + 20 * S, view(row(B), row(A, reject=Reject.EXCLUDED_ADDRESS)))
    assert decider.state is State.HOLDING


def remembered(address: str = A, **changes: object) -> Remembered:
    """What a daemon left behind that was stopped while all was well."""
    return Remembered(address, None, named=False, lost=False, same_boot=True)._replace(**changes)  # type: ignore[arg-type] # values by name


def test_a_restart_keeps_a_good_answer_without_settling() -> None:
    decider = Decider(POLICY, STABILITY, T0, remembered())
    assert not decider.step(T0, view(row(B), row(A), PATH))
    assert (decider.state, decider.address) == (State.STABLE, A)


def test_a_restart_drops_an_answer_that_is_not_on_the_host() -> None:
    decider = Decider(POLICY, STABILITY, T0, remembered())
    decider.step(T0, view(row(B), None))
    assert (decider.state, decider.address) == (State.SETTLING, None)
    assert decider.unsettled
    assert decider.step(T0 + S, view(row(B), None))
    assert decider.address == B


def test_a_restart_goes_on_with_a_running_hold() -> None:
    decider = Decider(POLICY, STABILITY, T0, remembered(hold_until=T0 + 3 * S))
    decider.step(T0, view(row(B), None))
    assert (decider.state, decider.address) == (State.HOLDING, A)
    assert decider.deadline == T0 + 3 * S
    assert decider.step(T0 + 3 * S, view(row(B), None))
    assert decider.address == B


def test_a_restart_holds_no_longer_than_it_would_by_itself() -> None:
    decider = Decider(POLICY, STABILITY, T0, remembered(hold_until=T0 + 3600 * S))
    decider.step(T0, view(row(B), None))
    assert decider.deadline == T0 + STABILITY.hold


def test_a_hold_of_an_earlier_boot_means_nothing() -> None:
    last = remembered(hold_until=T0 + 3 * S, same_boot=False)
    decider = Decider(POLICY, STABILITY, T0, last)
    decider.step(T0, view(row(B), None))
    assert decider.state is State.SETTLING
    assert not decider.unsettled


def test_a_restart_never_publishes_nothing_over_a_value() -> None:
    decider = Decider(POLICY, STABILITY, T0, remembered())
    decider.step(T0, view(None, None))
    decider.step(T0 + S, view(None, None))
    assert (decider.state, decider.address) == (State.LOST, A)


def test_a_lost_answer_stays_lost_over_a_restart() -> None:
    decider = Decider(POLICY, STABILITY, T0, remembered(lost=True))
    decider.step(T0, view(None, None))
    assert (decider.state, decider.address) == (State.LOST, A)
    assert decider.remembered == remembered(lost=True)


def test_with_all_times_zero_the_decision_follows_the_ranking_at_once() -> None:
    decider = Decider(POLICY, Stability(0, 0, 0, 0), T0)
    assert decider.step(T0, view(row(A)))
    assert decider.step(T0 + 1, view(row(B), row(A), PATH))
    assert decider.step(T0 + 2, view(row(C), None))
    assert decider.address == C
