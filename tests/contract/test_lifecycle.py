"""Every action on an event in every status."""

from collections.abc import Callable

import pytest

from inbox.domain.events import Receipt, Status
from inbox.errors import EventLeased
from tests.contract.consumer import Consumer
from tests.contract.samples import LATER, MINUTE, NOW, new_event, receipt
from tests.engines.harnesses import MAX_DELIVERIES

# The time of the action.
THEN = NOW + 10 * MINUTE

# The status after each action. `+`: nothing changes and the action succeeds. `-`: nothing changes and it fails.
# `!`: it raises EventLeased. The receipt is that of the event's first lease, or an unknown one; in `last_lease` and
# `failed_dead` that of the last lease.
TABLE = """
state         acknowledge  release      fail         extend  replay       replay_all   consume    lease   erase
undelivered   -            -            -            -       +            -            delivered  leased  gone
leased        delivered    undelivered  undelivered  leased  !            -            -          -       gone
last_lease    delivered    undelivered  dead         leased  !            -            -          -       gone
delayed       -            +            +            -       +            -            -          -       gone
released      -            +            +            -       +            -            delivered  leased  gone
failed        -            +            +            -       +            -            delivered  leased  gone
lease_expired       -            -            -            -       +            -            delivered  leased  gone
lost_to_other -            -            -            -       !            -            -          -       gone
consumed      -            -            -            -       undelivered  undelivered  -          -       gone
acknowledged  +            -            -            -       undelivered  undelivered  -          -       gone
done_by_other -            -            -            -       undelivered  undelivered  -          -       gone
replayed      -            -            -            -       +            -            delivered  leased  gone
dead          -            -            -            -       undelivered  undelivered  -          -       gone
failed_dead   -            +            +            -       undelivered  undelivered  -          -       gone
expired       -            -            -            -       -            -            -          -       -
erased        -            -            -            -       -            -            -          -       -
"""


def lease(consumer: Consumer, at: int, until: int) -> Receipt:
    return receipt(consumer.lease(at=at, until=until).events[0])


def undelivered(_: Consumer, event_id: str) -> Receipt:
    return Receipt("default", event_id, "0" * 32)


def leased(consumer: Consumer, _: str) -> Receipt:
    return lease(consumer, NOW, THEN + 1)


def last_lease(consumer: Consumer, _: str) -> Receipt:
    for time in range(MAX_DELIVERIES - 1):
        lease(consumer, NOW + time, NOW + time + 1)
    return lease(consumer, NOW + MAX_DELIVERIES, THEN + 1)


def delayed(consumer: Consumer, _: str) -> Receipt:
    first = lease(consumer, NOW, THEN)
    consumer.release([first], until=THEN + 1)
    return first


def released(consumer: Consumer, _: str) -> Receipt:
    first = lease(consumer, NOW, THEN)
    consumer.release([first], until=THEN)
    return first


def failed(consumer: Consumer, _: str) -> Receipt:
    first = lease(consumer, NOW, THEN)
    consumer.release([first], until=THEN, failed=True)
    return first


def lease_expired(consumer: Consumer, _: str) -> Receipt:
    return lease(consumer, NOW, THEN)


def lost_to_other(consumer: Consumer, _: str) -> Receipt:
    first = lease(consumer, NOW, NOW + 1)
    lease(consumer, NOW + 1, THEN + 1)
    return first


def consumed(consumer: Consumer, event_id: str) -> Receipt:
    consumer.consume()
    return undelivered(consumer, event_id)


def acknowledged(consumer: Consumer, _: str) -> Receipt:
    first = lease(consumer, NOW, THEN)
    consumer.acknowledge([first])
    return first


def done_by_other(consumer: Consumer, _: str) -> Receipt:
    first = lease(consumer, NOW, NOW + 1)
    consumer.acknowledge([lease(consumer, NOW + 1, THEN)], NOW + 2)
    return first


def replayed(consumer: Consumer, event_id: str) -> Receipt:
    first = acknowledged(consumer, event_id)
    consumer.replay(event_id)
    return first


def dead(consumer: Consumer, _: str) -> Receipt:
    first, *_others = [lease(consumer, NOW + time, NOW + time + 1) for time in range(MAX_DELIVERIES)]
    return first


def failed_dead(consumer: Consumer, event_id: str) -> Receipt:
    last = last_lease(consumer, event_id)
    consumer.release([last], NOW + MAX_DELIVERIES, failed=True)
    return last


def erased(consumer: Consumer, event_id: str) -> Receipt:
    first = leased(consumer, event_id)
    consumer.erase(event_id)
    return first


STATES: dict[str, Callable[[Consumer, str], Receipt]] = {
    "undelivered": undelivered,
    "leased": leased,
    "last_lease": last_lease,
    "delayed": delayed,
    "released": released,
    "failed": failed,
    "lease_expired": lease_expired,
    "lost_to_other": lost_to_other,
    "consumed": consumed,
    "acknowledged": acknowledged,
    "done_by_other": done_by_other,
    "replayed": replayed,
    "dead": dead,
    "failed_dead": failed_dead,
    "expired": leased,
    "erased": erased,
}

ACTIONS: dict[str, Callable[[Consumer, Receipt], object]] = {
    "acknowledge": lambda consumer, first: consumer.acknowledge([first], THEN) == [True],
    "release": lambda consumer, first: consumer.release([first], THEN) == [True],
    "fail": lambda consumer, first: consumer.release([first], THEN, failed=True) == [True],
    "extend": lambda consumer, first: consumer.extend([first], THEN + MINUTE, THEN) == [True],
    "replay": lambda consumer, first: consumer.replay(first.event_id, THEN),
    "replay_all": lambda consumer, _: consumer.replay_all(at=THEN).count,
    "consume": lambda consumer, _: consumer.consume(at=THEN).events,
    "lease": lambda consumer, _: consumer.lease(at=THEN).events,
    "erase": lambda consumer, first: consumer.erase(first.event_id, THEN),
}

(_, *COLUMNS), *ROWS = (line.split() for line in TABLE.strip().splitlines())
EXPECTED = {state: dict(zip(COLUMNS, cells, strict=True)) for state, *cells in ROWS}


@pytest.mark.parametrize("state", STATES)
def test_every_action_in_every_status(acme: Consumer, state: str) -> None:
    assert {action: outcome(acme.in_tenant(action), state, action) for action in ACTIONS} == EXPECTED[state]


def outcome(consumer: Consumer, state: str, action: str) -> str:
    (event,) = consumer.send(new_event(), expires_at_s=THEN // 1000 if state == "expired" else LATER)
    first = STATES[state](consumer, event.event_id)
    before, peeked = consumer.get(event.event_id, THEN), consumer.peek(at=THEN).events
    try:
        result = "+" if ACTIONS[action](consumer, first) else "-"
    except EventLeased:
        result = "!"
    after, peeked_now = consumer.get(event.event_id, THEN), consumer.peek(at=THEN).events
    if after == before:
        return result if peeked_now == peeked else "hidden or shown"
    if result != "+":
        return f"{result}, and changed"
    if before is None or after is None:
        return "gone" if after is None and peeked_now == [] else "there again"
    assert after == before._replace(
        status=after.status,
        deliveries=before.deliveries + (action in ("consume", "lease")),
        delivered_at_ms=THEN if after.status == Status.DELIVERED else None,
        lease=after.lease if after.status == Status.LEASED else None,
    )
    assert peeked_now == ([after] if after.status == Status.UNDELIVERED else [])
    return after.status
