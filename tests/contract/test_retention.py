"""Expired events, and purging them."""

import uuid

from inbox.domain.events import Order, ReplayResult
from tests.contract.consumer import Consumer
from tests.contract.samples import LATER_S, MINUTE, NOW, ids, keyed_event, new_event, numbered, receipts

EXPIRES_AT_S = NOW // 1000 + 10
BEFORE_EXPIRY_MS, AFTER_EXPIRY_MS = NOW + 9_000, NOW + 10_000


def test_expired_event_is_gone(acme: Consumer) -> None:
    (expired,) = acme.send(new_event(), expires_at_s=EXPIRES_AT_S)
    (kept,) = acme.send(new_event())

    assert acme.get(expired.event_id, BEFORE_EXPIRY_MS) is not None
    assert acme.get(expired.event_id, AFTER_EXPIRY_MS) is None
    for order in Order:
        page = acme.peek(1, AFTER_EXPIRY_MS, order)
        assert (ids(page.events), page.more) == ([kept.event_id], False)
    assert acme.erase(expired.event_id, AFTER_EXPIRY_MS) is False
    claimed = acme.consume(1, AFTER_EXPIRY_MS)
    assert (ids(claimed.events), claimed.more) == ([kept.event_id], False)


def test_receipts_of_an_expired_event_are_invalid(acme: Consumer) -> None:
    acme.send(*numbered(4), expires_at_s=EXPIRES_AT_S)
    leased, acknowledged, released, other = receipts(acme.lease().events)
    assert acme.acknowledge([acknowledged]) == [True]
    assert acme.release([released]) == [True]

    assert acme.acknowledge([leased, acknowledged], AFTER_EXPIRY_MS) == [False, False]
    assert acme.release([other, released], AFTER_EXPIRY_MS) == [False, False]
    assert acme.extend([leased, other], AFTER_EXPIRY_MS + MINUTE, AFTER_EXPIRY_MS) == [False, False]


def test_expired_event_is_not_replayed(acme: Consumer) -> None:
    (expired,) = acme.send(new_event(), expires_at_s=EXPIRES_AT_S)
    acme.send_some(1)
    acme.consume()

    assert acme.replay(expired.event_id, AFTER_EXPIRY_MS) is None
    assert acme.replay_all(limit=1, at=AFTER_EXPIRY_MS) == ReplayResult(1, False)


def test_repeated_attempt_omits_expired_events(acme: Consumer) -> None:
    acme.send(new_event(), expires_at_s=EXPIRES_AT_S)
    acme.send_some(1)
    consumed = acme.consume(attempt="consume").events
    acme.send(new_event(), expires_at_s=EXPIRES_AT_S)
    acme.send_some(2)
    leased = acme.lease(2, attempt="lease").events

    assert acme.consume(at=AFTER_EXPIRY_MS, attempt="consume").events == consumed[1:]
    assert acme.lease(2, AFTER_EXPIRY_MS, attempt="lease").events == leased[1:]


def test_expired_copy_is_gone(acme: Consumer) -> None:
    shipping = acme.in_inbox("shipping")
    shipping.create_inbox()
    (expired,) = acme.send(new_event(), expires_at_s=EXPIRES_AT_S)
    acme.consume()

    assert len(shipping.peek(at=BEFORE_EXPIRY_MS).events) == 1
    assert shipping.get(expired.event_id, AFTER_EXPIRY_MS) is None
    claimed = shipping.lease(at=AFTER_EXPIRY_MS)
    assert (claimed.events, claimed.more) == ([], False)


def test_purge_deletes_only_expired_events(acme: Consumer) -> None:
    shipping, globex = acme.in_inbox("shipping"), acme.in_tenant("globex")
    shipping.create_inbox()
    acme.send(*numbered(5), expires_at_s=EXPIRES_AT_S)
    globex.send(*numbered(2), expires_at_s=EXPIRES_AT_S)
    kept = acme.send_some(3)
    theirs = globex.send_some(1)
    acme.consume(6)
    shipping.lease(6, until=AFTER_EXPIRY_MS + MINUTE)
    consumers = (acme, shipping, globex)
    before = [consumer.history(at=AFTER_EXPIRY_MS) for consumer in consumers]
    purge = acme.harness.store.events.purge

    assert purge(BEFORE_EXPIRY_MS, 4) == 0
    while purge(AFTER_EXPIRY_MS, 4) == 4:
        pass
    assert purge(AFTER_EXPIRY_MS, 4) == 0
    assert [consumer.history(at=AFTER_EXPIRY_MS) for consumer in consumers] == before
    assert [ids(events) for events in before] == [ids(kept), ids(kept), ids(theirs)]
    assert ids(acme.consume(at=AFTER_EXPIRY_MS).events) == ids(kept[1:])
    assert acme.acknowledge(receipts(before[1][:1]), AFTER_EXPIRY_MS) == [True]


def test_idempotency_key_of_a_purged_event_is_free(acme: Consumer) -> None:
    event_id = str(uuid.uuid4())
    acme.put([keyed_event(event_id)], expires_at_s=EXPIRES_AT_S)
    acme.harness.store.events.purge(AFTER_EXPIRY_MS, 9)

    assert acme.put([keyed_event(event_id, b"second")], AFTER_EXPIRY_MS, LATER_S)[0].repeated is False
    assert ids(acme.consume(at=AFTER_EXPIRY_MS).events) == [event_id]
