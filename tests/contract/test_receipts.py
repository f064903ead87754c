"""Acknowledging and releasing events, and the validity of receipts."""

from dataclasses import replace

import pytest

from inbox.domain.events import Status
from tests.contract.consumer import Consumer
from tests.contract.samples import MINUTE, NOW, ids, new_event, receipt, receipts


@pytest.mark.parametrize(("at", "is_valid"), [(NOW + MINUTE - 1, True), (NOW + MINUTE, False)])
def test_receipt_is_valid_until_the_lease_expires(acme: Consumer, at: int, is_valid: bool) -> None:
    acme.send_some(2)
    one, other = receipts(acme.lease().events)

    assert acme.acknowledge([one], at) == [is_valid]
    assert acme.release([other], at) == [is_valid]


def test_acknowledged_event_stays_delivered(acme: Consumer) -> None:
    (event,) = acme.send(new_event())
    leased = acme.lease().events[0]

    assert acme.acknowledge([receipt(leased)], NOW + 5) == [True]
    delivered = leased._replace(status=Status.DELIVERED, delivered_at_ms=NOW + 5, lease=None)
    assert acme.get(event.event_id) == delivered
    assert acme.acknowledge([receipt(leased)], NOW + 2 * MINUTE) == [True]
    assert acme.get(event.event_id, NOW + 2 * MINUTE) == delivered
    assert acme.consume(at=NOW + 2 * MINUTE).events == []


def test_released_event_returns_to_its_position(acme: Consumer) -> None:
    events = acme.send_some(3)
    leased = acme.lease(2).events

    assert acme.release([receipt(leased[1])], NOW + 5) == [True]
    assert acme.get(events[1].event_id) == leased[1]._replace(status=Status.UNDELIVERED, lease=None)
    again = acme.lease(at=NOW + 5).events
    assert ids(again) == ids(events[1:])
    assert [event.deliveries for event in again] == [2, 1]


@pytest.mark.parametrize("failed", [False, True])
@pytest.mark.parametrize(("at", "is_claimable"), [(NOW + MINUTE - 1, False), (NOW + MINUTE, True)])
def test_delayed_event_is_not_claimable_before_its_delay_ends(
    acme: Consumer, at: int, is_claimable: bool, failed: bool
) -> None:
    first, second = acme.send_some(2)
    leased = acme.lease(1).events[0]
    acme.release([receipt(leased)], until=NOW + MINUTE, failed=failed)

    undelivered = leased._replace(status=Status.UNDELIVERED, lease=None)
    assert acme.get(first.event_id, at) == undelivered
    expected = ids([first, second]) if is_claimable else ids([second])
    assert ids(acme.peek(at=at).events) == expected
    page = acme.peek(1, at=at)
    assert (ids(page.events), page.more) == (expected[:1], is_claimable)
    claimed = acme.consume(1, at=at)
    assert (ids(claimed.events), claimed.more) == (expected[:1], is_claimable)


def test_first_of_repeated_releases_sets_the_delay(acme: Consumer) -> None:
    acme.send_some(1)
    one = receipt(acme.lease().events[0])

    assert acme.release([one], until=NOW + 10) == [True]
    assert acme.release([one], NOW + 5, until=NOW + 1000) == [True]
    assert acme.release([one], NOW + 5, until=NOW + 6) == [True]
    assert acme.consume(at=NOW + 9).events == []
    assert acme.release([one], NOW + 10, until=NOW + 1000) == [True]
    assert len(acme.consume(at=NOW + 10).events) == 1


def test_release_fails_after_another_claim(acme: Consumer) -> None:
    acme.send_some(1)
    old = receipt(acme.lease().events[0])
    acme.release([old])
    new = receipt(acme.lease().events[0])

    assert acme.release([old]) == [False]
    assert acme.release([new], until=NOW + 10) == [True]
    assert acme.release([old]) == [False]
    assert acme.consume(at=NOW + 9).events == []


def test_receipt_of_another_tenant_inbox_event_or_lease_is_invalid(acme: Consumer) -> None:
    shipping = acme.in_inbox("shipping")
    shipping.create_inbox()
    acme.send_some(1)
    acme.in_tenant("globex").send_some(1)
    ours, copy = acme.lease().events[0], shipping.lease().events[0]
    theirs = acme.in_tenant("globex").lease().events[0]
    good = receipt(ours)
    bad = [
        receipt(theirs),
        replace(good, inbox="shipping"),
        replace(good, inbox="unknown"),
        replace(good, event_id=theirs.event_id),
        replace(good, claim_id=receipt(copy).claim_id),
        replace(good, claim_id=""),
        replace(good, event_id=""),
    ]

    lost = [False] * len(bad)
    for at in (NOW, NOW + 5):
        assert acme.acknowledge(bad, at) == lost
        assert acme.release(bad, at) == lost
        assert acme.extend(bad, NOW + 5 * MINUTE, at) == lost
    assert acme.get(ours.event_id) == ours
    assert shipping.get(ours.event_id) == copy
    assert acme.in_tenant("globex").get(theirs.event_id) == theirs


def test_each_receipt_has_its_own_outcome_in_order(acme: Consumer) -> None:
    acme.send_some(60)
    good = receipts(acme.lease(60).events)
    bad = [replace(one, claim_id="0" * 32) for one in good]
    mixed = [one for pair in zip(good, bad, strict=True) for one in pair][::-1]
    expected = [False, True] * 60

    assert acme.extend(mixed, NOW + 2 * MINUTE) == expected
    assert acme.release(mixed[:40]) == expected[:40]
    assert acme.acknowledge(mixed[40:]) == expected[40:]
    assert [len(acme.history(limit=200)), len(acme.consume(200).events)] == [60, 20]


def test_receipt_can_be_repeated_in_one_call(acme: Consumer) -> None:
    acme.send_some(2)
    one, other = receipts(acme.lease().events)

    assert acme.extend([one, other, one], NOW + 2 * MINUTE) == [True] * 3
    assert acme.acknowledge([one, one]) == [True] * 2
    assert acme.release([other, other]) == [True] * 2


def test_no_receipts_have_no_outcomes(acme: Consumer) -> None:
    assert [acme.acknowledge([]), acme.release([]), acme.extend([], NOW + MINUTE)] == [[], [], []]
