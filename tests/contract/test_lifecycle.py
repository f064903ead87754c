"""Every action on an event in every state."""

from collections.abc import Callable

import pytest

from inbox.domain.events import Receipt, Status
from inbox.errors import EventLeased
from tests.contract.consumer import Consumer
from tests.contract.samples import LATER_S, MINUTE, NOW, new_event, receipt
from tests.engines.harnesses import MAX_DELIVERIES

# The time of the action.
THEN = NOW + 10 * MINUTE

# The event's status after each action. `+`: the action succeeds and changes nothing. `-`: the action fails and changes
# nothing. `!`: the action raises EventLeased. The receipt is unknown if the event was never leased. In `last_lease` and
# `failed_dead` it belongs to the last lease, otherwise to the first.
TABLE = """
state                 acknowledge release     fail        extend replay      replay_all  consume   lease  erase
undelivered           -           -           -           -      +           -           delivered leased gone
leased                delivered   undelivered undelivered leased !           -           -         -      gone
last_lease            delivered   undelivered dead        leased !           -           -         -      gone
delayed               -           +           +           -      +           -           -         -      gone
released              -           +           +           -      +           -           delivered leased gone
failed                -           +           +           -      +           -           delivered leased gone
lease_expired         -           -           -           -      +           -           delivered leased gone
leased_by_other       -           -           -           -      !           -           -         -      gone
consumed              -           -           -           -      undelivered undelivered -         -      gone
acknowledged          +           -           -           -      undelivered undelivered -         -      gone
acknowledged_by_other -           -           -           -      undelivered undelivered -         -      gone
replayed              -           -           -           -      +           -           delivered leased gone
dead                  -           -           -           -      undelivered undelivered -         -      gone
failed_dead           -           +           +           -      undelivered undelivered -         -      gone
expired               -           -           -           -      -           -           -         -      -
erased                -           -           -           -      -           -           -         -      -
"""


def lease(consumer: Consumer, at: int, until: int) -> Receipt:
    return receipt(consumer.lease(at=at, until=until).events[0])


# Each of these functions brings a new event into a state at THEN, and returns a receipt for the action.


def make_undelivered(_: Consumer, event_id: str) -> Receipt:
    return Receipt("default", event_id, "0" * 32)


def make_leased(consumer: Consumer, _: str) -> Receipt:
    return lease(consumer, NOW, THEN + 1)


def make_last_lease(consumer: Consumer, _: str) -> Receipt:
    for time in range(MAX_DELIVERIES - 1):
        lease(consumer, NOW + time, NOW + time + 1)
    return lease(consumer, NOW + MAX_DELIVERIES, THEN + 1)


def make_delayed(consumer: Consumer, _: str) -> Receipt:
    first = lease(consumer, NOW, THEN)
    consumer.release([first], until=THEN + 1)
    return first


def make_released(consumer: Consumer, _: str) -> Receipt:
    first = lease(consumer, NOW, THEN)
    consumer.release([first], until=THEN)
    return first


def make_failed(consumer: Consumer, _: str) -> Receipt:
    first = lease(consumer, NOW, THEN)
    consumer.release([first], until=THEN, failed=True)
    return first


def make_lease_expired(consumer: Consumer, _: str) -> Receipt:
    return lease(consumer, NOW, THEN)


def make_leased_by_other(consumer: Consumer, _: str) -> Receipt:
    first = lease(consumer, NOW, NOW + 1)
    lease(consumer, NOW + 1, THEN + 1)
    return first


def make_consumed(consumer: Consumer, event_id: str) -> Receipt:
    consumer.consume()
    return make_undelivered(consumer, event_id)


def make_acknowledged(consumer: Consumer, _: str) -> Receipt:
    first = lease(consumer, NOW, THEN)
    consumer.acknowledge([first])
    return first


def make_acknowledged_by_other(consumer: Consumer, _: str) -> Receipt:
    first = lease(consumer, NOW, NOW + 1)
    consumer.acknowledge([lease(consumer, NOW + 1, THEN)], NOW + 2)
    return first


def make_replayed(consumer: Consumer, event_id: str) -> Receipt:
    first = make_acknowledged(consumer, event_id)
    consumer.replay(event_id)
    return first


def make_dead(consumer: Consumer, _: str) -> Receipt:
    first, *_others = [lease(consumer, NOW + time, NOW + time + 1) for time in range(MAX_DELIVERIES)]
    return first


def make_failed_dead(consumer: Consumer, event_id: str) -> Receipt:
    last = make_last_lease(consumer, event_id)
    consumer.release([last], NOW + MAX_DELIVERIES, failed=True)
    return last


def make_erased(consumer: Consumer, event_id: str) -> Receipt:
    first = make_leased(consumer, event_id)
    consumer.erase(event_id)
    return first


STATES: dict[str, Callable[[Consumer, str], Receipt]] = {
    "undelivered": make_undelivered,
    "leased": make_leased,
    "last_lease": make_last_lease,
    "delayed": make_delayed,
    "released": make_released,
    "failed": make_failed,
    "lease_expired": make_lease_expired,
    "leased_by_other": make_leased_by_other,
    "consumed": make_consumed,
    "acknowledged": make_acknowledged,
    "acknowledged_by_other": make_acknowledged_by_other,
    "replayed": make_replayed,
    "dead": make_dead,
    "failed_dead": make_failed_dead,
    "expired": make_leased,
    "erased": make_erased,
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
def test_each_action_has_the_expected_outcome_in_each_state(acme: Consumer, state: str) -> None:
    assert {action: find_outcome(acme.in_tenant(action), state, action) for action in ACTIONS} == EXPECTED[state]


def find_outcome(consumer: Consumer, state: str, action: str) -> str:
    """Returns the cell of TABLE for the action, or what is wrong."""
    (event,) = consumer.send(new_event(), expires_at_s=THEN // 1000 if state == "expired" else LATER_S)
    first = STATES[state](consumer, event.event_id)
    before, peeked = consumer.get(event.event_id, THEN), consumer.peek(at=THEN).events
    try:
        result = "+" if ACTIONS[action](consumer, first) else "-"
    except EventLeased:
        result = "!"
    after, peeked_now = consumer.get(event.event_id, THEN), consumer.peek(at=THEN).events
    if after == before:
        return result if peeked_now == peeked else "listed differently"
    if result != "+":
        return f"{result}, and changed"
    if before is None or after is None:
        return "gone" if after is None and peeked_now == [] else "stored again"
    assert after == before._replace(
        status=after.status,
        deliveries=before.deliveries + (action in ("consume", "lease")),
        delivered_at_ms=THEN if after.status == Status.DELIVERED else None,
        lease=after.lease if after.status == Status.LEASED else None,
    )
    assert peeked_now == ([after] if after.status == Status.UNDELIVERED else [])
    return after.status
