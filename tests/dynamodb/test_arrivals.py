"""How DynamoDB is asked which inboxes have events: how often, how many inboxes at once, and what a failure does."""

import threading
from collections import Counter
from collections.abc import Callable, Iterator
from typing import cast

import pytest

from inbox.domain.events import DEFAULT_INBOX, InboxKey
from inbox.errors import StoreUnavailable
from inbox.store.dynamodb import DynamoDBStore, arrivals
from inbox.store.dynamodb.arrivals import DynamoDBArrivals
from inbox.store.dynamodb.claims import ClaimableEvents
from inbox.store.dynamodb.shards import NOTICE_MS
from tests.contract.samples import tenant as named
from tests.dynamodb.conftest import LATER, NOW, claim, entry, filled, fresh
from tests.engines.wire import Fault, Wire

ACME: InboxKey = ("acme", DEFAULT_INBOX)
GLOBEX: InboxKey = ("globex", DEFAULT_INBOX)
ONLY_ACME, ONLY_GLOBEX, BOTH = frozenset({ACME}), frozenset({GLOBEX}), frozenset({ACME, GLOBEX})

HasEvent = Callable[[InboxKey], bool]


class Inboxes:
    """Replaces the index and the clock of the watch."""

    def __init__(self) -> None:
        self.tenths = 0
        self.asked: list[tuple[int, InboxKey]] = []
        self.answer: HasEvent = lambda _key: False

    def may_exist(self, tenant_id: str, inbox: str, _now_ms: int) -> bool:
        self.asked.append((self.tenths, (tenant_id, inbox)))
        return self.answer((tenant_id, inbox))

    def monotonic(self) -> float:
        # A little more than tenths of a second, or 0.2 + 0.4 would be later than 0.6.
        return self.tenths * 0.100_000_001


@pytest.fixture
def inboxes() -> Inboxes:
    return Inboxes()


@pytest.fixture
def watch(inboxes: Inboxes, monkeypatch: pytest.MonkeyPatch) -> Iterator[DynamoDBArrivals]:
    """Waits for each answer, on a slow machine too."""
    monkeypatch.setattr(arrivals, "_MAX_SECONDS_PER_CHECK", 60.0)
    watch = DynamoDBArrivals(cast(ClaimableEvents, inboxes), inboxes.monotonic)
    yield watch
    watch.close()


def look_for(
    watch: DynamoDBArrivals, inboxes: Inboxes, waiting: frozenset[InboxKey], tenths: int
) -> list[set[InboxKey]]:
    """Looks every tenth of a second, and returns what was reported."""
    found = []
    for _ in range(tenths):
        found.append(watch.check(waiting, NOW))
        inboxes.tenths += 1
    return [each for each in found if each]


def unavailable(_key: InboxKey) -> bool:
    raise StoreUnavailable("throttled")


def test_idle_inbox_is_asked_about_less_and_less_often(watch: DynamoDBArrivals, inboxes: Inboxes) -> None:
    look_for(watch, inboxes, ONLY_ACME, 100)

    assert [tenths for tenths, _ in inboxes.asked] == [2, 6, 14, 30, 50, 70, 90]


def test_inbox_with_an_event_is_asked_about_every_fifth_of_a_second(watch: DynamoDBArrivals, inboxes: Inboxes) -> None:
    look_for(watch, inboxes, ONLY_ACME, 40)
    inboxes.answer = lambda _key: True
    inboxes.asked.clear()

    assert look_for(watch, inboxes, ONLY_ACME, 16) == [{ACME}] * 3
    assert [tenths for tenths, _ in inboxes.asked] == [50, 52, 54]


def test_inbox_that_may_just_have_got_events_is_asked_about_soon(watch: DynamoDBArrivals, inboxes: Inboxes) -> None:
    look_for(watch, inboxes, ONLY_ACME, 51)
    watch.check_soon([ACME[0], GLOBEX[0]])
    inboxes.asked.clear()
    look_for(watch, inboxes, ONLY_ACME, 10)

    assert [tenths for tenths, _ in inboxes.asked] == [53, 57]


def test_inbox_that_waits_again_is_asked_about_soon(watch: DynamoDBArrivals, inboxes: Inboxes) -> None:
    look_for(watch, inboxes, ONLY_ACME, 60)
    look_for(watch, inboxes, frozenset(), 1)
    inboxes.asked.clear()
    look_for(watch, inboxes, ONLY_ACME, 5)

    assert [tenths for tenths, _ in inboxes.asked] == [63]


def test_look_asks_about_a_few_inboxes_in_turn(
    watch: DynamoDBArrivals, inboxes: Inboxes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(arrivals, "_MAX_INBOXES_PER_CHECK", 3)
    waiting = frozenset((f"tenant-{number}", DEFAULT_INBOX) for number in range(7))
    look_for(watch, inboxes, waiting, 5)

    assert [tenths for tenths, _ in inboxes.asked] == [2, 2, 2, 3, 3, 3, 4]
    assert {key for _, key in inboxes.asked} == waiting


def test_inboxes_with_events_do_not_keep_others_from_their_turn(
    watch: DynamoDBArrivals, inboxes: Inboxes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(arrivals, "_MAX_INBOXES_PER_CHECK", 3)
    inboxes.answer = lambda _key: True
    waiting = frozenset((f"tenant-{number}", DEFAULT_INBOX) for number in range(7))
    look_for(watch, inboxes, waiting, 30)

    times_asked = Counter(key for _, key in inboxes.asked)
    assert all(times_asked[key] >= 7 for key in waiting), times_asked


def test_failed_query_stops_no_other_inbox(watch: DynamoDBArrivals, inboxes: Inboxes) -> None:
    inboxes.answer = lambda key: unavailable(key) if key == ACME else True

    assert look_for(watch, inboxes, BOTH, 3) == [{GLOBEX}]
    inboxes.answer = lambda _key: True
    assert {ACME, GLOBEX} == set().union(*look_for(watch, inboxes, BOTH, 4))


def test_look_fails_if_every_query_fails(watch: DynamoDBArrivals, inboxes: Inboxes) -> None:
    watch.check(BOTH, NOW)
    inboxes.answer = unavailable
    inboxes.tenths = 2
    with pytest.raises(StoreUnavailable, match="throttled"):
        watch.check(BOTH, NOW)
    inboxes.answer = lambda _key: True

    assert look_for(watch, inboxes, BOTH, 5) == [{ACME, GLOBEX}]


def test_slow_query_is_reported_by_a_later_look(
    watch: DynamoDBArrivals, inboxes: Inboxes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(arrivals, "_MAX_SECONDS_PER_CHECK", 0.01)
    goes_on = threading.Event()
    inboxes.answer = lambda key: key != ACME or goes_on.wait(30)
    reported = look_for(watch, inboxes, BOTH, 20)
    goes_on.set()
    monkeypatch.setattr(arrivals, "_MAX_SECONDS_PER_CHECK", 60.0)

    assert set().union(*reported) == {GLOBEX}
    assert ACME in watch.check(BOTH, NOW)
    assert [key for _, key in inboxes.asked].count(ACME) == 1


def test_answer_about_an_inbox_that_no_longer_waits_is_dropped(
    watch: DynamoDBArrivals, inboxes: Inboxes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(arrivals, "_MAX_SECONDS_PER_CHECK", 0.01)
    goes_on = threading.Event()
    inboxes.answer = lambda _key: goes_on.wait(30)
    look_for(watch, inboxes, ONLY_ACME, 3)
    goes_on.set()
    monkeypatch.setattr(arrivals, "_MAX_SECONDS_PER_CHECK", 60.0)

    assert watch.check(ONLY_GLOBEX, NOW) == set()
    assert watch._running == {}


@pytest.fixture
def watch_of_store(store: DynamoDBStore, monkeypatch: pytest.MonkeyPatch) -> Iterator[DynamoDBArrivals]:
    """Asks at each look, and waits for the answer."""
    monkeypatch.setattr(arrivals, "_MIN_PAUSE_SECONDS", 0.0)
    monkeypatch.setattr(arrivals, "_MAX_SECONDS_PER_CHECK", 60.0)
    watch = store.watch_arrivals()
    yield watch
    watch.close()


def test_question_about_an_inbox_is_two_queries(
    store: DynamoDBStore, wire: Wire, watch_of_store: DynamoDBArrivals, tenant: str
) -> None:
    claim(store, tenant)
    wire.reset()
    watch_of_store.check(frozenset({(tenant, DEFAULT_INBOX)}), NOW)
    assert dict(wire.calls) == {"Query": 2}
    assert wire.units["Query"] == 1

    filled(store, tenant, 100)
    wire.reset()
    assert watch_of_store.check(frozenset({(tenant, DEFAULT_INBOX)}), NOW) == {(tenant, DEFAULT_INBOX)}
    assert dict(wire.calls) == {"Query": 2}
    assert wire.units["Query"] == 1


@pytest.mark.usefixtures("no_pauses")
def test_throttled_query_is_repeated_at_the_next_turn(
    store: DynamoDBStore, wire: Wire, watch_of_store: DynamoDBArrivals, tenant: str
) -> None:
    filled(store, tenant, 1)
    wire.fail("Query", Fault.THROTTLED, 100)
    with pytest.raises(StoreUnavailable):
        watch_of_store.check(frozenset({(tenant, DEFAULT_INBOX)}), NOW)
    wire.reset()

    assert watch_of_store.check(frozenset({(tenant, DEFAULT_INBOX)}), NOW) == {(tenant, DEFAULT_INBOX)}


def test_event_in_any_shard_is_reported(store: DynamoDBStore, watch_of_store: DynamoDBArrivals, tenant: str) -> None:
    store.tenants.create(named(tenant), [entry()])
    store.tenants.shard(tenant, 4, NOW)
    key, other_key = (tenant, DEFAULT_INBOX), (f"{tenant}-2", DEFAULT_INBOX)
    assert watch_of_store.check(frozenset({key, other_key}), NOW) == set()
    for _ in range(8):
        store.events.put(tenant, [fresh()], NOW + NOTICE_MS, LATER)
        assert watch_of_store.check(frozenset({key, other_key}), NOW + NOTICE_MS) == {key}
        claim(store, tenant, now_ms=NOW + NOTICE_MS)

    assert watch_of_store.check(frozenset({key, other_key}), NOW + NOTICE_MS) == set()
