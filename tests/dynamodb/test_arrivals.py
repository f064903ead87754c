"""The watch for new events: intervals of its queries, number of inboxes per check, and failed queries."""

import threading
from collections import Counter
from collections.abc import Callable, Iterator
from typing import cast

import pytest

from inbox.domain.events import DEFAULT_INBOX, InboxKey
from inbox.errors import StoreUnavailable
from inbox.store.dynamodb import DynamoDBStore, arrivals
from inbox.store.dynamodb.arrivals import DynamoDBArrivalWatch
from inbox.store.dynamodb.claimable_events import ClaimableEvents
from inbox.store.dynamodb.shards import NOTICE_MS
from tests.contract.samples import tenant as named
from tests.dynamodb.conftest import LATER_S, NOW, audit_entry, claim, new_event, put_events
from tests.engines.wire import Fault, Wire
from tests.service import until

ACME: InboxKey = ("acme", DEFAULT_INBOX)
GLOBEX: InboxKey = ("globex", DEFAULT_INBOX)
ONLY_ACME, ONLY_GLOBEX, BOTH = frozenset({ACME}), frozenset({GLOBEX}), frozenset({ACME, GLOBEX})


class FakeIndex:
    """Replaces the index and the clock of the watch."""

    settle_ms = 0

    def __init__(self) -> None:
        self.tenths = 0
        self.queries: list[tuple[int, InboxKey]] = []
        self.has_event: Callable[[InboxKey], bool] = lambda _key: False

    def may_exist(self, tenant_id: str, inbox: str, _now_ms: int) -> bool:
        self.queries.append((self.tenths, (tenant_id, inbox)))
        return self.has_event((tenant_id, inbox))

    def monotonic(self) -> float:
        # A little more than tenths of a second, or 0.2 + 0.4 would be later than 0.6.
        return self.tenths * 0.100_000_001


@pytest.fixture
def index() -> FakeIndex:
    return FakeIndex()


@pytest.fixture
def watch(index: FakeIndex, monkeypatch: pytest.MonkeyPatch) -> Iterator[DynamoDBArrivalWatch]:
    """A watch that waits for every query, even on a slow machine."""
    monkeypatch.setattr(arrivals, "_MAX_SECONDS_PER_CHECK", 60.0)
    watch = DynamoDBArrivalWatch(cast(ClaimableEvents, index), index.monotonic)
    yield watch
    watch.close()


def check_for(
    watch: DynamoDBArrivalWatch, index: FakeIndex, waiting: frozenset[InboxKey], tenths: int
) -> list[set[InboxKey]]:
    """Checks every tenth of a second. Returns the inboxes of each check that reported any."""
    found = []
    for _ in range(tenths):
        found.append(watch.check(waiting, NOW))
        index.tenths += 1
    return [each for each in found if each]


def raise_unavailable(_key: InboxKey) -> bool:
    raise StoreUnavailable("throttled")


def test_idle_inbox_is_queried_less_and_less_often(watch: DynamoDBArrivalWatch, index: FakeIndex) -> None:
    check_for(watch, index, ONLY_ACME, 100)

    assert [tenths for tenths, _ in index.queries] == [2, 6, 14, 30, 50, 70, 90]


def test_inbox_with_an_event_is_queried_every_fifth_of_a_second(watch: DynamoDBArrivalWatch, index: FakeIndex) -> None:
    check_for(watch, index, ONLY_ACME, 40)
    index.has_event = lambda _key: True
    index.queries.clear()

    assert check_for(watch, index, ONLY_ACME, 16) == [{ACME}] * 3
    assert [tenths for tenths, _ in index.queries] == [50, 52, 54]


def test_check_soon_queries_the_inbox_soon(watch: DynamoDBArrivalWatch, index: FakeIndex) -> None:
    check_for(watch, index, ONLY_ACME, 51)
    watch.check_soon([ACME[0], GLOBEX[0]])
    index.queries.clear()
    check_for(watch, index, ONLY_ACME, 10)

    assert [tenths for tenths, _ in index.queries] == [53, 57]


def test_inbox_with_a_new_event_is_queried_once_the_event_has_settled(index: FakeIndex) -> None:
    index.settle_ms = 1_000
    watch = DynamoDBArrivalWatch(cast(ClaimableEvents, index), index.monotonic)
    check_for(watch, index, ONLY_ACME, 51)
    watch.check_soon([ACME[0]])
    index.queries.clear()
    check_for(watch, index, ONLY_ACME, 12)
    watch.close()

    assert [tenths for tenths, _ in index.queries] == [61]


def test_inbox_that_is_polled_again_is_queried_soon(watch: DynamoDBArrivalWatch, index: FakeIndex) -> None:
    check_for(watch, index, ONLY_ACME, 60)
    check_for(watch, index, frozenset(), 1)
    index.queries.clear()
    check_for(watch, index, ONLY_ACME, 5)

    assert [tenths for tenths, _ in index.queries] == [63]


def test_checks_query_up_to_the_maximum_number_of_inboxes_in_turn(
    watch: DynamoDBArrivalWatch, index: FakeIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(arrivals, "_MAX_INBOXES_PER_CHECK", 3)
    waiting = frozenset((f"tenant-{number}", DEFAULT_INBOX) for number in range(7))
    check_for(watch, index, waiting, 5)

    assert [tenths for tenths, _ in index.queries] == [2, 2, 2, 3, 3, 3, 4]
    assert {key for _, key in index.queries} == waiting


def test_inboxes_with_events_do_not_delay_others(
    watch: DynamoDBArrivalWatch, index: FakeIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(arrivals, "_MAX_INBOXES_PER_CHECK", 3)
    index.has_event = lambda _key: True
    waiting = frozenset((f"tenant-{number}", DEFAULT_INBOX) for number in range(7))
    check_for(watch, index, waiting, 30)

    queries = Counter(key for _, key in index.queries)
    assert all(queries[key] >= 7 for key in waiting), queries


def test_failed_query_affects_no_other_inbox(watch: DynamoDBArrivalWatch, index: FakeIndex) -> None:
    index.has_event = lambda key: raise_unavailable(key) if key == ACME else True

    assert check_for(watch, index, BOTH, 3) == [{GLOBEX}]
    index.has_event = lambda _key: True
    assert {ACME, GLOBEX} == set().union(*check_for(watch, index, BOTH, 4))


def test_check_fails_if_every_query_fails(watch: DynamoDBArrivalWatch, index: FakeIndex) -> None:
    watch.check(BOTH, NOW)
    index.has_event = raise_unavailable
    index.tenths = 2
    with pytest.raises(StoreUnavailable, match="throttled"):
        watch.check(BOTH, NOW)
    index.has_event = lambda _key: True

    assert check_for(watch, index, BOTH, 5) == [{ACME, GLOBEX}]


def test_slow_query_is_reported_by_a_later_check(
    watch: DynamoDBArrivalWatch, index: FakeIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(arrivals, "_MAX_SECONDS_PER_CHECK", 0.01)
    resume = threading.Event()
    index.has_event = lambda key: key != ACME or resume.wait(30)
    reported: list[set[InboxKey]] = []

    def has_reported() -> bool:
        reported.extend(check_for(watch, index, BOTH, 1))
        return bool(reported)

    until(has_reported)
    resume.set()
    monkeypatch.setattr(arrivals, "_MAX_SECONDS_PER_CHECK", 60.0)

    assert set().union(*reported) == {GLOBEX}
    assert ACME in watch.check(BOTH, NOW)
    assert [key for _, key in index.queries].count(ACME) == 1


def test_result_for_an_inbox_that_is_no_longer_polled_is_dropped(
    watch: DynamoDBArrivalWatch, index: FakeIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(arrivals, "_MAX_SECONDS_PER_CHECK", 0.01)
    resume = threading.Event()
    index.has_event = lambda _key: resume.wait(30)
    check_for(watch, index, ONLY_ACME, 3)
    resume.set()
    monkeypatch.setattr(arrivals, "_MAX_SECONDS_PER_CHECK", 60.0)

    assert watch.check(ONLY_GLOBEX, NOW) == set()
    assert watch._running == {}


@pytest.fixture
def watch_of_store(store: DynamoDBStore, monkeypatch: pytest.MonkeyPatch) -> Iterator[DynamoDBArrivalWatch]:
    """A watch that queries at each check, and waits for the results."""
    monkeypatch.setattr(arrivals, "_MIN_PAUSE_SECONDS", 0.0)
    monkeypatch.setattr(arrivals, "_MAX_SECONDS_PER_CHECK", 60.0)
    watch = store.watch_arrivals()
    yield watch
    watch.close()


def test_check_of_an_inbox_costs_one_query(
    store: DynamoDBStore, wire: Wire, watch_of_store: DynamoDBArrivalWatch, tenant: str
) -> None:
    claim(store, tenant)
    wire.reset()
    watch_of_store.check(frozenset({(tenant, DEFAULT_INBOX)}), NOW)
    assert dict(wire.calls) == {"Query": 1}
    assert wire.units["Query"] == 0.5

    put_events(store, tenant, 100)
    wire.reset()
    assert watch_of_store.check(frozenset({(tenant, DEFAULT_INBOX)}), NOW) == {(tenant, DEFAULT_INBOX)}
    assert dict(wire.calls) == {"Query": 1}
    assert wire.units["Query"] == 0.5


@pytest.mark.usefixtures("no_pauses")
def test_throttled_query_is_repeated_by_the_next_check(
    store: DynamoDBStore, wire: Wire, watch_of_store: DynamoDBArrivalWatch, tenant: str
) -> None:
    put_events(store, tenant, 1)
    wire.fail("Query", Fault.THROTTLED, 100)
    with pytest.raises(StoreUnavailable):
        watch_of_store.check(frozenset({(tenant, DEFAULT_INBOX)}), NOW)
    wire.reset()

    assert watch_of_store.check(frozenset({(tenant, DEFAULT_INBOX)}), NOW) == {(tenant, DEFAULT_INBOX)}


def test_event_in_any_shard_is_reported(
    store: DynamoDBStore, watch_of_store: DynamoDBArrivalWatch, tenant: str
) -> None:
    store.tenants.create(named(tenant), [audit_entry()])
    store.tenants.shard(tenant, 4, NOW)
    key, other_key = (tenant, DEFAULT_INBOX), (f"{tenant}-2", DEFAULT_INBOX)
    assert watch_of_store.check(frozenset({key, other_key}), NOW) == set()
    for _ in range(8):
        store.events.put(tenant, [new_event()], NOW + NOTICE_MS, LATER_S)
        assert watch_of_store.check(frozenset({key, other_key}), NOW + NOTICE_MS) == {key}
        claim(store, tenant, now_ms=NOW + NOTICE_MS)

    assert watch_of_store.check(frozenset({key, other_key}), NOW + NOTICE_MS) == set()
