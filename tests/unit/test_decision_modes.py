"""The decision in modes that list what they take, and under another policy."""

from __future__ import annotations

from tests.unit.test_decision import POLICY, STABILITY, T0, A, B, S, row, settled, view
from tracker.decision import Decider, Remembered
from tracker.model import AF_INET, Fallback, Mode, Network, Reject, Row, State, Tier

TIER = -2
LISTED = POLICY._replace(
    mode=Mode.LIST,
    mode_networks=(Network(AF_INET, 24, bytes([192, 0, 2, 0])),),
    fallback=Fallback.DEFAULT_ROUTE,
)
STATIC = 0
"""Position of a criterion that is marked D."""


def outside(address: str, tier: Tier = Tier.LOOPBACK) -> Row:
    """A row that the mode does not take, while another one is in it."""
    return row(address, tier=tier)._replace(reject=Reject.NOT_IN_MODE, own_reject=Reject.NONE)


def decided(best: Row) -> Decider:
    decider = Decider(LISTED, STABILITY, T0)
    decider.step(T0 + S, view(best))
    decider.step(T0 + S, view(best, best))
    assert (decider.address, decider.state) == (best.address, State.STABLE)
    return decider


def test_what_only_filled_in_makes_room_after_settle() -> None:
    decider = decided(row(A, tier=Tier.LOOPBACK))
    now = T0 + 20 * S
    seen = view(row(B), outside(A), TIER, now)
    assert not decider.step(now, seen)
    assert (decider.state, decider.deadline) == (State.STABLE, now + S)
    assert decider.step(now + S, seen)
    assert decider.address == B


def test_what_leaves_its_mode_is_held_then_replaced() -> None:
    decider = decided(row(A))
    now = T0 + 20 * S
    seen = view(row(B), outside(A), TIER, now)
    decider.step(now, seen)
    assert (decider.state, decider.deadline) == (State.HOLDING, now + 10 * S)
    decider.step(now + 5 * S, view(row(A), row(A)))
    assert (decider.state, decider.address, decider.held) == (State.STABLE, A, 1)
    decider.step(now, seen)
    assert decider.step(now + 10 * S, seen)
    assert decider.address == B


def test_what_leaves_its_mode_and_is_not_replaced_is_lost() -> None:
    decider = decided(row(A))
    now = T0 + 20 * S
    seen = view(None, outside(A, Tier.NONE), at=now)
    decider.step(now, seen)
    decider.step(now + 10 * S, seen)
    assert (decider.state, decider.address) == (State.LOST, A)


def test_what_falls_back_on_itself_stays() -> None:
    decider = decided(row(A))
    now = T0 + 20 * S
    fallback = row(A, tier=Tier.LOOPBACK)
    decider.step(now, view(fallback, fallback, at=now))
    assert (decider.state, decider.address) == (State.STABLE, A)


def test_what_filled_in_may_lose_its_default_route() -> None:
    decider = decided(row(A, tier=Tier.LOOPBACK))
    now = T0 + 20 * S
    decider.step(now, view(None, outside(A, Tier.NONE), at=now))
    assert (decider.state, decider.address) == (State.STABLE, A)


def test_a_remembered_address_that_is_not_in_the_mode_is_dropped() -> None:
    kept = Remembered(A, None, named=False, lost=False, same_boot=False)
    decider = Decider(LISTED, STABILITY, T0, kept)
    decider.step(T0, view(row(B), outside(A), TIER))
    assert decider.state is State.SETTLING
    decider.step(T0 + S, view(row(B), outside(A), TIER))
    assert decider.address == B


# Another policy


def test_an_address_that_another_policy_rejects_waits_for_settle_alone() -> None:
    decider = settled()
    decider.set_policy(POLICY._replace(exclude=LISTED.mode_networks), STABILITY)
    now = T0 + 20 * S
    seen = view(row(B), row(A, reject=Reject.EXCLUDED_NETWORK), at=now)
    decider.step(now, seen)
    assert (decider.state, decider.deadline) == (State.HOLDING, now + S)
    assert decider.step(now + S, seen)
    assert decider.address == B


def test_a_policy_that_looks_elsewhere_moves_the_answer_after_settle() -> None:
    decider = settled()
    decider.set_policy(POLICY._replace(table=100), STABILITY)
    now = T0 + 20 * S
    seen = view(row(B), row(A, tier=Tier.FALLBACK), TIER, now)
    assert not decider.step(now, seen)
    assert decider.deadline == now + S
    assert decider.step(now + S, seen)
    assert decider.address == B


def test_a_policy_that_looks_where_it_did_is_no_failback() -> None:
    decider = settled()
    decider.set_policy(POLICY._replace(exclude=LISTED.mode_networks), STABILITY)
    now = T0 + 20 * S
    seen = view(row(B), row(A), at=now)
    decider.step(now, seen)
    decider.step(now + 100 * S, seen)
    assert decider.address == A
    assert not decider.reconfigured


def test_the_same_policy_is_no_other_one() -> None:
    decider = settled()
    decider.set_policy(POLICY, STABILITY._replace(hold=3 * S))
    assert not decider.reconfigured
    now = T0 + 20 * S
    decider.step(now, view(row(B), row(A, carrier=False), at=now))
    assert decider.deadline == now + 3 * S, "held, by the new time"


def test_once_it_has_settled_the_decision_is_as_reluctant_as_before() -> None:
    decider = settled()
    decider.set_policy(POLICY._replace(table=100), STABILITY)
    now = T0 + 20 * S
    decider.step(now, view(row(A), row(A), at=now))
    assert not decider.reconfigured
    decider.step(now + S, view(row(B), row(A), at=now))
    decider.step(now + 100 * S, view(row(B), row(A), at=now))
    assert decider.address == A


def test_a_hold_goes_on_for_settle_where_another_policy_rejects_what_is_held() -> None:
    decider = decided(row(A))
    now = T0 + 20 * S
    decider.step(now, view(row(B), outside(A), TIER, now))
    assert (decider.state, decider.deadline) == (State.HOLDING, now + 10 * S)
    decider.set_policy(LISTED._replace(exclude=LISTED.mode_networks), STABILITY)
    seen = view(row(B), row(A, reject=Reject.EXCLUDED_NETWORK), at=now)
    decider.step(now + 2 * S, seen)
    assert (decider.state, decider.deadline) == (State.HOLDING, now + 3 * S)
    assert decider.step(now + 3 * S, seen)
    assert decider.address == B


def test_a_hold_goes_on_under_another_policy_where_the_address_is_away() -> None:
    decider = decided(row(A))
    now = T0 + 20 * S
    decider.step(now, view(row(B), None, TIER, now))
    decider.set_policy(LISTED._replace(exclude=LISTED.mode_networks), STABILITY)
    decider.step(now + 2 * S, view(row(B), None, TIER, now))
    assert (decider.state, decider.deadline) == (State.HOLDING, now + 10 * S)


def test_what_had_no_path_is_lost_where_another_mode_does_not_take_it() -> None:
    decider = settled()
    now = T0 + 20 * S
    decider.step(now, view(None, row(A, tier=Tier.NONE), at=now))
    assert (decider.state, decider.address) == (State.STABLE, A)
    decider.set_policy(LISTED, STABILITY)
    seen = view(None, outside(A, Tier.NONE), at=now)
    decider.step(now, seen)
    decider.step(now + S, seen)
    assert (decider.state, decider.address) == (State.LOST, A)
    decider.step(now + 20 * S, seen)
    assert decider.state is State.LOST
