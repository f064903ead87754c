"""The arrival watch reports inboxes in which events become claimable."""

from collections.abc import Iterator

import pytest

from inbox.domain.events import InboxKey, Selection, Status
from inbox.store.interface import ArrivalWatch
from tests.contract.consumer import Consumer
from tests.contract.samples import MINUTE, NOW, new_event, numbered, receipts
from tests.engines.harnesses import MAX_DELIVERIES, Harness


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes each check examine every inbox. tests/dynamodb/test_arrivals.py tests the limits."""
    monkeypatch.setattr("inbox.store.dynamodb.arrivals._MIN_PAUSE_SECONDS", 0.0)
    monkeypatch.setattr("inbox.store.dynamodb.arrivals._MAX_SECONDS_PER_CHECK", 60.0)


@pytest.fixture
def watch(harness: Harness) -> Iterator[ArrivalWatch]:
    watch = harness.store.watch_arrivals()
    yield watch
    watch.close()


@pytest.fixture(params=["same process", "another process"])
def producer(request: pytest.FixtureRequest, acme: Consumer) -> Consumer:
    return acme if request.param == "same process" else acme.in_another_process()


def key_of(consumer: Consumer) -> InboxKey:
    return consumer.tenant_id, consumer.inbox


def check(watch: ArrivalWatch, *consumers: Consumer, at: int = NOW) -> set[InboxKey]:
    consumers[0].harness.settle()
    return watch.check(frozenset(map(key_of, consumers)), at)


def test_empty_inbox_is_not_reported(acme: Consumer, watch: ArrivalWatch) -> None:
    assert check(watch, acme) == set()
    assert check(watch, acme) == set()
    assert check(watch, acme, at=NOW + MINUTE) == set()


def test_event_sent_before_the_first_check_is_reported(acme: Consumer, watch: ArrivalWatch) -> None:
    acme.send(new_event())
    assert check(watch, acme) == {key_of(acme)}


@pytest.mark.parametrize("count", [1, 60])
def test_new_events_are_reported(acme: Consumer, producer: Consumer, watch: ArrivalWatch, count: int) -> None:
    check(watch, acme)
    producer.send(*numbered(count))

    assert check(watch, acme) == {key_of(acme)}


def test_event_sent_before_its_inbox_is_polled_is_reported(acme: Consumer, watch: ArrivalWatch) -> None:
    other = acme.in_tenant("globex")
    check(watch, acme)
    other.send(new_event())
    assert check(watch, acme) == set()

    assert check(watch, acme, other) == {key_of(other)}


def test_event_sent_while_no_inbox_is_polled_is_reported(acme: Consumer, watch: ArrivalWatch) -> None:
    check(watch, acme)
    watch.check(frozenset(), NOW)
    acme.send(new_event())
    assert watch.check(frozenset(), NOW) == set()

    assert check(watch, acme) == {key_of(acme)}


def test_only_inboxes_that_receive_the_event_are_reported(
    acme: Consumer, producer: Consumer, watch: ArrivalWatch
) -> None:
    orders, parcels = acme.in_inbox("orders"), acme.in_inbox("parcels")
    orders.create_inbox("order.*")
    parcels.create_inbox("parcel.*")
    check(watch, acme, orders, parcels)
    producer.send(new_event(event_type="order.created"))

    assert check(watch, acme, orders, parcels) == {key_of(acme), key_of(orders)}


def test_event_is_not_reported_for_another_tenant(acme: Consumer, producer: Consumer, watch: ArrivalWatch) -> None:
    other = acme.in_tenant("acme-2")
    check(watch, acme, other)
    producer.in_tenant("acme-2").send(new_event())

    assert check(watch, acme, other) == {key_of(other)}


def test_event_of_a_disabled_default_inbox_is_not_reported(acme: Consumer, watch: ArrivalWatch) -> None:
    orders = acme.in_inbox("orders")
    orders.create_inbox()
    acme.harness.store.inboxes.set_default_enabled("acme", False)
    check(watch, acme, orders)
    acme.send(new_event())

    assert check(watch, acme, orders) == {key_of(orders)}


def test_claimed_event_is_not_reported(acme: Consumer, producer: Consumer, watch: ArrivalWatch) -> None:
    acme.send_some(2)
    producer.consume(1)
    producer.lease(1)

    assert check(watch, acme) == set()
    assert check(watch, acme, at=NOW + 1_000) == set()


def test_event_just_claimed_by_this_process_is_not_reported(acme: Consumer, watch: ArrivalWatch) -> None:
    acme.send(new_event())
    acme.consume()

    assert watch.check(frozenset({key_of(acme)}), NOW) == set()


@pytest.mark.parametrize("failed", [False, True])
def test_released_event_is_reported(acme: Consumer, producer: Consumer, watch: ArrivalWatch, failed: bool) -> None:
    acme.send(new_event())
    leased = acme.lease().events
    assert check(watch, acme) == set()
    producer.release(receipts(leased), failed=failed)

    assert check(watch, acme) == {key_of(acme)}


@pytest.mark.parametrize("delayed_before_first_check", [False, True])
def test_delayed_event_is_reported_when_its_delay_ends(
    acme: Consumer, producer: Consumer, watch: ArrivalWatch, delayed_before_first_check: bool
) -> None:
    acme.send(new_event())
    leased = acme.lease().events
    if not delayed_before_first_check:
        check(watch, acme)
    producer.release(receipts(leased), until=NOW + 5_000)

    assert check(watch, acme) == set()
    assert check(watch, acme, at=NOW + 4_999) == set()
    assert check(watch, acme, at=NOW + 5_000) == {key_of(acme)}


@pytest.mark.parametrize("leased_before_first_check", [False, True])
def test_expired_lease_is_reported(
    acme: Consumer, producer: Consumer, watch: ArrivalWatch, leased_before_first_check: bool
) -> None:
    acme.send(new_event())
    if not leased_before_first_check:
        check(watch, acme)
    producer.lease()

    assert check(watch, acme, at=NOW + 1) == set()
    assert check(watch, acme, at=NOW + MINUTE - 1) == set()
    assert check(watch, acme, at=NOW + MINUTE) == {key_of(acme)}


def test_each_of_several_leases_is_reported_when_it_ends(acme: Consumer, watch: ArrivalWatch) -> None:
    inboxes = [acme.in_tenant(f"tenant-{number}") for number in range(3)]
    for number, inbox in enumerate(inboxes):
        inbox.send_some(2)
        inbox.lease(1, until=NOW + 100 + number)
        inbox.lease(1, until=NOW + 200 + number)
    assert check(watch, *inboxes) == set()

    for end in (NOW + 100, NOW + 200):
        for number, inbox in enumerate(inboxes):
            assert key_of(inbox) in check(watch, *inboxes, at=end + number)
            inbox.consume(at=end + number)


def test_shortened_lease_is_reported_within_a_second_of_its_end(acme: Consumer, watch: ArrivalWatch) -> None:
    acme.send(new_event())
    leased = acme.lease().events
    check(watch, acme)
    acme.extend(receipts(leased), NOW + 10)

    assert check(watch, acme, at=NOW + 1_000) == {key_of(acme)}


@pytest.mark.parametrize("status", [Status.DELIVERED, Status.DEAD])
@pytest.mark.parametrize("replays_all", [False, True])
def test_replayed_event_is_reported(
    acme: Consumer, producer: Consumer, watch: ArrivalWatch, status: Status, replays_all: bool
) -> None:
    (event,) = acme.send(new_event())
    if status is Status.DELIVERED:
        acme.consume()
    else:
        for _ in range(MAX_DELIVERIES):
            acme.release(receipts(acme.lease().events), failed=True)
    assert check(watch, acme) == set()
    if replays_all:
        assert producer.replay_all().count == 1
    else:
        producer.replay(event.event_id)

    assert check(watch, acme) == {key_of(acme)}


def test_replay_that_finds_nothing_is_not_reported(acme: Consumer, watch: ArrivalWatch) -> None:
    acme.send(new_event())
    acme.consume()
    check(watch, acme)
    acme.replay_all(Selection(status=Status.DEAD))

    assert check(watch, acme) == set()


def test_expired_event_is_not_reported(acme: Consumer, watch: ArrivalWatch) -> None:
    expiry_s = NOW // 1000 + 60
    acme.send(new_event(), expires_at_s=expiry_s)
    leased = acme.in_tenant("globex")
    leased.send(new_event(), expires_at_s=expiry_s)
    leased.lease(until=NOW + MINUTE)

    assert check(watch, acme, leased, at=NOW + 2 * MINUTE) == set()
    assert check(watch, acme, leased, at=NOW + 3 * MINUTE) == set()


def test_unclaimed_event_is_reported_again(acme: Consumer, watch: ArrivalWatch) -> None:
    check(watch, acme)
    acme.send(new_event())
    assert check(watch, acme) == {key_of(acme)}

    assert check(watch, acme, at=NOW + 1_000) == {key_of(acme)}
    assert check(watch, acme, at=NOW + 2_000) == {key_of(acme)}
