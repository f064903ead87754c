"""Indexes, expiry and purges of events. `inbox.store.sqlite.claims`, `.leases`, `.history` and `.events`."""

from pathlib import Path

import apsw
import pytest

from inbox.domain.events import (
    ATTEMPT_MS,
    DEFAULT_INBOX,
    ExportedEvent,
    NewEvent,
    Order,
    PageSize,
    Receipt,
    Selection,
    Status,
    attempt_digest,
    random_event_id,
)
from inbox.domain.inboxes import Inbox
from inbox.errors import InvalidRequest, StoreUnavailable
from inbox.store.sqlite import SQLiteStore, claims, database, events, history, leases
from tests.unit.databases import LATER_S, NOW_MS, explain


def new_event() -> NewEvent:
    return NewEvent(random_event_id(), None, b"{}")


def neither_scans_nor_sorts(plan: list[str]) -> bool:
    return not any(step.startswith("SCAN events") or "TEMP B-TREE" in step for step in plan)


@pytest.mark.parametrize(
    "sql",
    [*claims._PEEK.values(), claims._OLDEST, claims._HAS_ELIGIBLE, claims._NEEDS_WRITE],
)
def test_poll_reads_the_index_by_status(store: SQLiteStore, sql: str) -> None:
    parameters = {
        "tenant_id": "acme",
        "inbox": DEFAULT_INBOX,
        "attempt": "a",
        "now_ms": NOW_MS,
        "now_s": NOW_MS // 1000,
    }
    plan = explain(store, sql, parameters)
    assert any("INDEX events_by_status (tenant_id=? AND inbox=? AND status=?" in step for step in plan), plan
    assert neither_scans_nor_sorts(plan), plan


@pytest.mark.parametrize("order", Order)
@pytest.mark.parametrize("event_type", [None, "order.created"])
@pytest.mark.parametrize("statuses", [None, *history.STORED_STATUSES.values(), ("delivered", "dead")], ids=str)
def test_every_selection_reads_an_index_in_order(
    store: SQLiteStore, statuses: tuple[str, ...] | None, event_type: str | None, order: Order
) -> None:
    selection = Selection(event_type=event_type)
    sql = history.selection_statement("seq, timestamp_ms", selection, statuses, order)
    plan = explain(store, sql, history.selection_parameters("acme", selection, order, None, NOW_MS))
    assert any("SEARCH events" in step for step in plan), plan
    assert neither_scans_nor_sorts(plan), plan


def test_expired_leases_are_found_in_their_index(store: SQLiteStore) -> None:
    plan = explain(store, leases.EXPIRED, {"tenant_id": "acme", "inbox": DEFAULT_INBOX, "now_ms": NOW_MS})
    assert any("INDEX events_by_end (tenant_id=? AND inbox=? AND until_ms<?)" in step for step in plan), plan


def test_export_reads_rows_in_order(store: SQLiteStore) -> None:
    parameters = {"tenant_id": "acme", "inbox": DEFAULT_INBOX, "now_s": NOW_MS // 1000, "timestamp_ms": 0, "seq": 0}
    plan = explain(store, events._EXPORT, parameters)
    assert any("events_by_time (tenant_id=? AND inbox=? AND timestamp_ms>?)" in step for step in plan), plan
    assert neither_scans_nor_sorts(plan), plan


def test_more_leases_expire_at_once_than_fit_in_a_transaction(store: SQLiteStore) -> None:
    stored = [new_event() for _ in range(leases._MAX_EXPIRED + 5)]
    store.events.put("acme", stored, NOW_MS, LATER_S)
    everything = PageSize(len(stored), 1_000_000)
    # The leases of the newest events expire first.
    half = PageSize(len(stored) // 2, 1_000_000)
    store.events.claim("acme", DEFAULT_INBOX, half, NOW_MS, NOW_MS + 20)
    store.events.claim("acme", DEFAULT_INBOX, everything, NOW_MS, NOW_MS + 10)

    claimed = store.events.claim("acme", DEFAULT_INBOX, everything, NOW_MS + 20)
    assert [event.event_id for event in claimed.events] == [event.event_id for event in stored]
    assert store.events.peek("acme", DEFAULT_INBOX, Order.OLDEST, everything, NOW_MS + 20).events == []


def test_reads_take_the_write_lock_only_if_a_lease_has_expired(
    store_path: Path, store: SQLiteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database, "_LOCK_WAIT_SECONDS", 0.05)
    store.events.put("acme", [new_event()], NOW_MS, LATER_S)
    store.events.claim("acme", DEFAULT_INBOX, PageSize(1, 1000), NOW_MS, NOW_MS + 10)
    other = apsw.Connection(str(store_path))
    other.execute("BEGIN IMMEDIATE")

    def read(now_ms: int) -> tuple[int, int, int]:
        size = PageSize(9, 1000)
        listing = store.events.page("acme", Selection(), Order.OLDEST, size, None, now_ms)
        peeked = store.events.peek("acme", DEFAULT_INBOX, Order.OLDEST, size, now_ms)
        claimed = store.events.claim("acme", DEFAULT_INBOX, size, now_ms)
        return len(listing.events), len(peeked.events), len(claimed.events)

    assert read(NOW_MS + 9) == (1, 0, 0)
    with pytest.raises(StoreUnavailable):
        read(NOW_MS + 10)
    other.close()
    assert read(NOW_MS + 10) == (1, 1, 1)


@pytest.mark.parametrize(
    "after", ["", "1", "1-", "-1", "1-2-3", "a-1", "1-1 ", "\u0661-1", f"1-{2**63}", f"{2**63}-1", "9" * 5000 + "-1"]
)
def test_malformed_position_is_refused(store: SQLiteStore, after: str) -> None:
    with pytest.raises(InvalidRequest):
        store.events.page("acme", Selection(), Order.NEWEST, PageSize(1, 1000), after, NOW_MS)


def test_largest_position_is_accepted(store: SQLiteStore) -> None:
    store.events.put("acme", [new_event()], NOW_MS, LATER_S)
    largest = f"{2**63 - 1}-{2**63 - 1}"
    assert len(store.events.page("acme", Selection(), Order.NEWEST, PageSize(1, 1000), largest, NOW_MS).events) == 1


@pytest.mark.parametrize("order", Order)
def test_position_outside_the_selection_does_not_widen_it(store: SQLiteStore, order: Order) -> None:
    for now_ms in range(NOW_MS, NOW_MS + 5):
        store.events.put("acme", [new_event()], now_ms, LATER_S)
    position = f"{NOW_MS - 9}-0" if order is Order.OLDEST else f"{NOW_MS + 9}-9"
    selection = Selection(since_ms=NOW_MS + 1, until_ms=NOW_MS + 4)
    listing = store.events.page("acme", selection, order, PageSize(9, 1000), position, NOW_MS)
    assert {event.timestamp_ms for event in listing.events} == {NOW_MS + 1, NOW_MS + 2, NOW_MS + 3}


def test_export_returns_the_stored_rows_of_every_open_inbox(store: SQLiteStore) -> None:
    for name in ("audit", "removed"):
        store.inboxes.save("acme", Inbox(name, None, NOW_MS))
    event = NewEvent("first", "order.created", b"{}", b"print")
    store.events.put("acme", [event], NOW_MS, LATER_S)
    store.inboxes.close("acme", "removed")
    one = PageSize(1, 1000)
    store.events.claim("acme", "audit", one, NOW_MS, NOW_MS + 10)
    leased = store.events.claim("acme", "audit", one, NOW_MS + 10, NOW_MS + 20).events[0]
    delayed = store.events.claim("acme", DEFAULT_INBOX, one, NOW_MS, NOW_MS + 20).events[0]
    assert delayed.lease is not None
    store.events.release("acme", [Receipt(DEFAULT_INBOX, "first", delayed.lease.claim_id)], NOW_MS + 30, NOW_MS)

    undelivered = delayed._replace(status=Status.UNDELIVERED, lease=None)
    exported = store.events.export_events("acme", NOW_MS + 25)
    assert exported.count == 2
    assert list(exported.events) == [
        ExportedEvent(1, undelivered, b"print", LATER_S, available_at_ms=NOW_MS + 30),
        ExportedEvent(2, leased, b"print", LATER_S, lost_leases=1),
    ]


def test_purge_deletes_all_old_attempts(store: SQLiteStore) -> None:
    store.events.put("acme", [new_event() for _ in range(5)], NOW_MS, LATER_S)
    store.events.put("acme", [new_event() for _ in range(2)], NOW_MS, NOW_MS // 1000 + 1)
    for number, attempt in enumerate(["a", "b", "c", "d", "new"]):
        store.events.claim("acme", DEFAULT_INBOX, PageSize(1, 1000), NOW_MS + number // 4, attempt=attempt)

    assert [store.events.purge(NOW_MS + ATTEMPT_MS, 3) for _ in range(3)] == [3, 3, 0]
    assert store._database.read("SELECT attempt FROM attempts") == [(attempt_digest("new"),)]


def test_attempts_of_an_inbox_are_deleted_with_its_last_copy(store: SQLiteStore) -> None:
    store.inboxes.save("acme", Inbox("audit", None, NOW_MS))
    store.events.put("acme", [new_event()], NOW_MS, LATER_S)
    store.events.claim("acme", "audit", PageSize(1, 1000), NOW_MS, attempt="a")
    store.inboxes.close("acme", "audit")
    assert [store.inboxes.delete_copies("acme", "audit", 1) for _ in range(2)] == [1, 0]

    store.inboxes.save("acme", Inbox("audit", None, NOW_MS))
    store.events.put("acme", [new_event()], NOW_MS, LATER_S)
    assert len(store.events.claim("acme", "audit", PageSize(1, 1000), NOW_MS, attempt="a").events) == 1
