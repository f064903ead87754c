"""Migration, recount and retention of counts. `inbox.store.sqlite.counters`."""

from pathlib import Path

import apsw

from inbox.domain.events import DEFAULT_INBOX
from inbox.domain.stats import MAX_TYPES, OTHER_TYPES, Counts, Span
from inbox.store.sqlite import SQLiteStore
from tests.contract.samples import NOW, new_event
from tests.engines.harnesses import MAX_DELIVERIES
from tests.unit.databases import create_older

HOUR_MS, DAY_MS = Span.HOUR.ms, Span.DAY.ms
LATER_S = (NOW + 500 * DAY_MS) // 1000


def list_counts(store: SQLiteStore, span: Span) -> dict[tuple[int, str | None], Counts]:
    return {
        (start, event_type): counts
        for start, event_type, counts in store.counters.list_counts("acme", "default", span, 0)
    }


def test_events_of_an_earlier_release_are_counted_by_the_migration(store_path: Path) -> None:
    create_older(store_path, 5)
    old = apsw.Connection(str(store_path))
    rows = [
        ("a", "default", "order", NOW, "delivered", NOW + HOUR_MS, '{"n":1}'),
        ("a", "crm", "order", NOW, "undelivered", None, '{"n":1}'),
        ("b", "default", None, NOW, "undelivered", None, "{}"),
        ("c", "default", "order", NOW, "held", None, "{}"),
        *((f"d{each}", "default", f"type-{each}", NOW - DAY_MS, "dead", None, "{}") for each in range(MAX_TYPES + 9)),
    ]
    old.executemany(
        """INSERT INTO events
               (tenant_id, expires_at_s, event_id, inbox, event_type, timestamp_ms, status, delivered_at_ms, payload)
           VALUES ('acme', ?, ?, ?, ?, ?, ?, ?, ?)""",
        [(LATER_S, *row) for row in rows],
    )
    old.close()

    store = SQLiteStore(store_path, MAX_DELIVERIES)
    hours = list_counts(store, Span.HOUR)
    hour = Span.HOUR.start_ms(NOW)
    assert hours[hour, "order"] == Counts(received=2, bytes=9)
    assert hours[hour + HOUR_MS, "order"] == Counts(delivered=1)
    assert hours[hour, None] == Counts(received=1, bytes=2)
    assert hours[Span.HOUR.start_ms(NOW - DAY_MS), OTHER_TYPES] == Counts(received=9, bytes=18)
    assert store.counters.undelivered("acme", DEFAULT_INBOX, NOW).count == 1
    assert store.counters.undelivered("acme", "crm", NOW).count == 1
    days = list_counts(store, Span.DAY)
    assert days[Span.DAY.start_ms(NOW), "order"] == Counts(received=2, delivered=1, bytes=9)
    # A recount may only change which types are counted together.
    store.counters.recount("acme", NOW - HOUR_MS, NOW + HOUR_MS)
    assert list_counts(store, Span.HOUR) == hours
    store.close()


def test_recount_corrects_the_number_of_undelivered_events(store: SQLiteStore) -> None:
    store.events.put("acme", [new_event()], NOW, LATER_S)
    store._database.write(lambda connection: connection.execute("UPDATE backlog SET undelivered = 7"))
    assert store.counters.recount("acme", 0, NOW) == 1
    assert store.counters.recount("acme", 0, NOW) == 0
    assert store.counters.undelivered("acme", DEFAULT_INBOX, NOW).count == 1


def test_counts_of_old_hours_and_days_are_deleted(store: SQLiteStore) -> None:
    for days in (0, 2, 4, 398, 402):
        store.events.put("acme", [new_event()], NOW + days * DAY_MS, LATER_S)

    for span, kept in ((Span.HOUR, [402]), (Span.DAY, [2, 4, 398, 402])):
        starts = [start for start, _ in list_counts(store, span)]
        assert sorted(starts) == [span.start_ms(NOW + days * DAY_MS) for days in kept]
