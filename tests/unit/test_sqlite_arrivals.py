"""Checks for new events: the statements they execute, and the events they report. `inbox.store.sqlite.arrivals`."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from inbox.domain.events import DEFAULT_INBOX, InboxKey, NewEvent, PageSize, Receipt, random_event_id
from inbox.errors import StoreUnavailable
from inbox.store.sqlite import SQLiteStore, arrivals, inboxes
from inbox.store.sqlite.arrivals import SQLiteArrivalWatch
from tests.engines.harnesses import MAX_DELIVERIES
from tests.unit.databases import LATER_S, NOW_MS, explain, query

ACME: InboxKey = ("acme", DEFAULT_INBOX)
GLOBEX: InboxKey = ("globex", DEFAULT_INBOX)
ONLY_ACME, ONLY_GLOBEX, BOTH = frozenset({ACME}), frozenset({GLOBEX}), frozenset({ACME, GLOBEX})
ONE_PAGE = PageSize(9, 1_000_000)
COUNT_REOPENED = "SELECT count(*) FROM reopened_inboxes"


@pytest.fixture
def watch(store: SQLiteStore) -> Iterator[SQLiteArrivalWatch]:
    watch = store.watch_arrivals()
    yield watch
    watch.close()


def put(store: SQLiteStore, count: int = 1, tenant_id: str = "acme") -> list[str]:
    events = [NewEvent(random_event_id(), None, b"{}") for _ in range(count)]
    store.events.put(tenant_id, events, NOW_MS, LATER_S)
    return [event.event_id for event in events]


def lease(store: SQLiteStore, until_ms: int) -> list[Receipt]:
    page = store.events.claim("acme", DEFAULT_INBOX, ONE_PAGE, NOW_MS, until_ms)
    return [Receipt(event.inbox, event.event_id, event.lease.claim_id) for event in page.events if event.lease]


def record_statements(watch: SQLiteArrivalWatch) -> list[str]:
    """Returns a list that receives every statement that the watch executes."""
    statements: list[str] = []

    def trace(_cursor: Any, statement: str, _bindings: Any) -> bool:
        statements.append(statement)
        return True

    assert watch._connection is not None
    watch._connection.exec_trace = trace
    return statements


def test_idle_check_reads_only_the_data_version(store: SQLiteStore, watch: SQLiteArrivalWatch) -> None:
    put(store)
    lease(store, NOW_MS + 60_000)
    watch.check(ONLY_ACME, NOW_MS)
    watch.check(ONLY_ACME, NOW_MS + 1_000)
    statements = record_statements(watch)

    for later_ms in (1_001, 2_001, 30_000):
        assert watch.check(ONLY_ACME, NOW_MS + later_ms) == set()
    assert statements == [arrivals._DATA_VERSION] * 3


def test_check_after_a_put_examines_no_inbox(store: SQLiteStore, watch: SQLiteArrivalWatch) -> None:
    watch.check(BOTH, NOW_MS)
    statements = record_statements(watch)
    put(store)

    assert watch.check(BOTH, NOW_MS + 1) == {ACME}
    assert statements == [arrivals._DATA_VERSION, arrivals._NEWEST, arrivals._NEW_EVENTS]


def test_all_inboxes_are_examined_once_a_second_while_events_are_written(
    store: SQLiteStore, watch: SQLiteArrivalWatch
) -> None:
    watch.check(ONLY_ACME, NOW_MS)
    statements = record_statements(watch)
    for later_ms in range(0, 3_000, 100):
        put(store, tenant_id="globex")
        assert watch.check(ONLY_ACME, NOW_MS + later_ms) == set()

    assert statements.count(arrivals._EXAMINE) == 2


def test_new_inbox_is_examined_alone(store: SQLiteStore, watch: SQLiteArrivalWatch) -> None:
    put(store, tenant_id="globex")
    watch.check(ONLY_ACME, NOW_MS)
    statements = record_statements(watch)

    assert watch.check(BOTH, NOW_MS) == {GLOBEX}
    assert statements == [arrivals._DATA_VERSION, arrivals._EXAMINE]


def test_inbox_with_a_waiting_poll_is_examined_once(store: SQLiteStore, watch: SQLiteArrivalWatch) -> None:
    put(store)
    watch.check(ONLY_ACME, NOW_MS)

    assert watch.check(BOTH, NOW_MS) == set()
    assert watch.check(ONLY_ACME, NOW_MS) == set()


def test_lease_ends_are_dropped_when_no_poll_waits(store: SQLiteStore, watch: SQLiteArrivalWatch) -> None:
    put(store)
    lease(store, NOW_MS + 500)
    watch.check(BOTH, NOW_MS)
    watch.check(ONLY_GLOBEX, NOW_MS)
    statements = record_statements(watch)

    assert watch.check(ONLY_GLOBEX, NOW_MS + 500) == set()
    assert statements == [arrivals._DATA_VERSION]


def test_examination_searches_indexes(store: SQLiteStore) -> None:
    parameters = {"inboxes": "[]", "now_ms": NOW_MS, "now_s": NOW_MS // 1000}
    plan = explain(store, arrivals._EXAMINE, parameters)

    for index in (
        "events_by_status (tenant_id=? AND inbox=? AND status=?",
        "events_by_end (tenant_id=? AND inbox=? AND",
    ):
        assert any(index in step for step in plan), plan
    # Without MATERIALIZED, SQLite would evaluate each subquery twice.
    assert sum("SEARCH events" in step for step in plan) == 3, plan
    assert not any(step.startswith("SCAN events") for step in plan), plan


def test_new_events_are_read_by_rowid(store: SQLiteStore) -> None:
    parameters = {"known": 0, "newest": 9, "now_s": NOW_MS // 1000}
    plan = explain(store, arrivals._NEW_EVENTS, parameters)

    assert any("INTEGER PRIMARY KEY (rowid>? AND rowid<?)" in step for step in plan), plan


def test_more_new_events_than_a_check_reads_are_reported_by_the_next_checks(
    store: SQLiteStore, watch: SQLiteArrivalWatch, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(arrivals, "_MAX_NEW_EVENTS", 10)
    watch.check(BOTH, NOW_MS)
    put(store, 25)
    put(store, 1, "globex")

    assert [watch.check(BOTH, NOW_MS) for _ in range(4)] == [{ACME}, {ACME}, {ACME, GLOBEX}, set()]


def test_event_after_an_erased_one_is_reported(store: SQLiteStore, watch: SQLiteArrivalWatch) -> None:
    (event_id,) = put(store)
    watch.check(ONLY_ACME, NOW_MS)
    store.events.erase("acme", event_id, NOW_MS)
    assert watch.check(ONLY_ACME, NOW_MS) == set()
    put(store)

    assert watch.check(ONLY_ACME, NOW_MS) == {ACME}


def test_lease_already_expired_by_a_poll_is_reported(store: SQLiteStore, watch: SQLiteArrivalWatch) -> None:
    put(store, 2)
    lease(store, NOW_MS + 500)
    watch.check(ONLY_ACME, NOW_MS)
    store.events.claim("acme", DEFAULT_INBOX, PageSize(1, 1_000_000), NOW_MS + 500)

    assert watch.check(ONLY_ACME, NOW_MS + 510) == {ACME}


def test_clock_step_back_does_not_stop_examinations(store: SQLiteStore, watch: SQLiteArrivalWatch) -> None:
    put(store)
    watch.check(ONLY_ACME, NOW_MS)

    assert watch.check(ONLY_ACME, NOW_MS - 7_200_000) == {ACME}


def test_missing_file_is_unavailable_until_it_is_restored(
    store_path: Path, store: SQLiteStore, watch: SQLiteArrivalWatch
) -> None:
    watch.check(ONLY_ACME, NOW_MS)
    moved = store_path.with_name("moved.db")
    store_path.rename(moved)
    for _ in range(2):
        with pytest.raises(StoreUnavailable):
            watch.check(ONLY_ACME, NOW_MS)
    moved.rename(store_path)
    put(store)

    assert watch.check(ONLY_ACME, NOW_MS) == {ACME}


def test_database_that_replaces_the_store_is_watched(
    store_path: Path, tmp_path: Path, watch: SQLiteArrivalWatch
) -> None:
    watch.check(BOTH, NOW_MS)
    other_path = tmp_path / "other.db"
    other = SQLiteStore(other_path, MAX_DELIVERIES)
    put(other, tenant_id="globex")
    other.close()
    for companion in ("-wal", "-shm"):
        Path(f"{store_path}{companion}").unlink(missing_ok=True)
    other_path.replace(store_path)

    assert watch.check(BOTH, NOW_MS) == {GLOBEX}


def test_check_after_an_error_misses_nothing(store: SQLiteStore, watch: SQLiteArrivalWatch) -> None:
    watch.check(ONLY_ACME, NOW_MS)
    put(store)
    assert watch._connection is not None
    watch._connection.set_progress_handler(lambda: True, 1)
    with pytest.raises(Exception, match="interrupted"):
        watch.check(ONLY_ACME, NOW_MS)

    assert watch.check(ONLY_ACME, NOW_MS) == {ACME}


def test_only_releases_and_replays_record_a_reopened_inbox(store_path: Path, store: SQLiteStore) -> None:
    delivered, *_ = put(store, 5)
    acknowledged, delayed, released, also_released, _ = lease(store, NOW_MS + 60_000)
    store.events.acknowledge("acme", [acknowledged], NOW_MS)
    store.events.extend("acme", [released], NOW_MS + 50_000, NOW_MS)
    store.events.release("acme", [delayed], NOW_MS + 10_000, NOW_MS)
    assert query(store_path, COUNT_REOPENED) == 0

    store.events.release("acme", [released, also_released], NOW_MS, NOW_MS)
    assert query(store_path, COUNT_REOPENED) == 1
    store.events.replay("acme", DEFAULT_INBOX, delivered, NOW_MS)
    assert query(store_path, COUNT_REOPENED) == 2


def test_only_the_latest_reopened_inboxes_are_kept(store_path: Path, store: SQLiteStore) -> None:
    names = [f"inbox-{number}" for number in range(inboxes._MAX_REOPENED + 5)]
    store._database.write(lambda connection: inboxes.note_reopened(connection, "acme", names))

    assert query(store_path, COUNT_REOPENED) == inboxes._MAX_REOPENED
    assert query(store_path, "SELECT min(number) FROM reopened_inboxes") == 6
