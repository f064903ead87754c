"""Expired events, and purging them."""

import uuid

from inbox.domain.events import Order, ReplayResult
from tests.contract.consumer import Consumer
from tests.contract.samples import LATER, MINUTE, NOW, ids, keyed_event, new_event, numbered, receipts

SOON = NOW // 1000 + 10
BEFORE, AFTER = NOW + 9_000, NOW + 10_000


def test_expired_event_is_gone(acme: Consumer) -> None:
    (gone,) = acme.send(new_event(), expires_at_s=SOON)
    (kept,) = acme.send(new_event())

    assert acme.get(gone.event_id, BEFORE) is not None
    assert acme.get(gone.event_id, AFTER) is None
    for order in Order:
        page = acme.peek(1, AFTER, order)
        assert (ids(page.events), page.more) == ([kept.event_id], False)
    assert acme.erase(gone.event_id, AFTER) is False
    claimed = acme.consume(1, AFTER)
    assert (ids(claimed.events), claimed.more) == ([kept.event_id], False)


def test_receipts_of_an_expired_event_are_invalid(acme: Consumer) -> None:
    acme.send(*numbered(4), expires_at_s=SOON)
    held, done, freed, other = receipts(acme.lease().events)
    assert acme.acknowledge([done]) == [True]
    assert acme.release([freed]) == [True]

    assert acme.acknowledge([held, done], AFTER) == [False, False]
    assert acme.release([other, freed], AFTER) == [False, False]
    assert acme.extend([held, other], AFTER + MINUTE, AFTER) == [False, False]


def test_expired_event_is_not_replayed(acme: Consumer) -> None:
    (gone,) = acme.send(new_event(), expires_at_s=SOON)
    acme.send_some(1)
    acme.consume()

    assert acme.replay(gone.event_id, AFTER) is None
    assert acme.replay_all(limit=1, at=AFTER) == ReplayResult(1, False)


def test_repeated_attempt_omits_expired_events(acme: Consumer) -> None:
    acme.send(new_event(), expires_at_s=SOON)
    acme.send_some(1)
    consumed = acme.consume(attempt="consume").events
    acme.send(new_event(), expires_at_s=SOON)
    acme.send_some(2)
    leased = acme.lease(2, attempt="lease").events

    assert acme.consume(at=AFTER, attempt="consume").events == consumed[1:]
    assert acme.lease(2, AFTER, attempt="lease").events == leased[1:]


def test_expired_copy_is_gone(acme: Consumer) -> None:
    shipping = acme.in_inbox("shipping")
    shipping.create_inbox()
    (gone,) = acme.send(new_event(), expires_at_s=SOON)
    acme.consume()

    assert len(shipping.peek(at=BEFORE).events) == 1
    assert shipping.get(gone.event_id, AFTER) is None
    claimed = shipping.lease(at=AFTER)
    assert (claimed.events, claimed.more) == ([], False)


def test_purge_deletes_only_expired_events(acme: Consumer) -> None:
    shipping, globex = acme.in_inbox("shipping"), acme.in_tenant("globex")
    shipping.create_inbox()
    acme.send(*numbered(5), expires_at_s=SOON)
    globex.send(*numbered(2), expires_at_s=SOON)
    kept = acme.send_some(3)
    theirs = globex.send_some(1)
    acme.consume(6)
    shipping.lease(6, until=AFTER + MINUTE)
    consumers = (acme, shipping, globex)
    before = [consumer.history(at=AFTER) for consumer in consumers]
    purge = acme.harness.store.events.purge

    assert purge(BEFORE, 4) == 0
    while purge(AFTER, 4) == 4:
        pass
    assert purge(AFTER, 4) == 0
    assert [consumer.history(at=AFTER) for consumer in consumers] == before
    assert [ids(events) for events in before] == [ids(kept), ids(kept), ids(theirs)]
    assert ids(acme.consume(at=AFTER).events) == ids(kept[1:])
    assert acme.acknowledge(receipts(before[1][:1]), AFTER) == [True]


def test_key_of_a_purged_event_is_free(acme: Consumer) -> None:
    event_id = str(uuid.uuid4())
    acme.put([keyed_event(event_id)], expires_at_s=SOON)
    acme.harness.store.events.purge(AFTER, 9)

    assert acme.put([keyed_event(event_id, b"second")], AFTER, LATER)[0].repeated is False
    assert ids(acme.consume(at=AFTER).events) == [event_id]
