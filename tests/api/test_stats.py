"""GET /stats."""

import re
from typing import Any

import pytest

from inbox.settings import Settings
from inbox.store.interface import Store
from tests.api.conftest import ApiClient, Clock

COUNTS = ("received", "delivered", "leased", "dead", "replayed", "bytes")
HOUR_SECONDS, DAY_SECONDS = 3600, 86_400


def counts(**nonzero: int) -> dict[str, int]:
    return dict.fromkeys(COUNTS, 0) | nonzero


def get_stats(client: ApiClient, query: str = "") -> dict[str, Any]:
    response = client.get(f"/stats{query}")
    assert response.status_code == 200, response.text
    document: dict[str, Any] = response.get_json()
    return document


def only_counts(entry: dict[str, Any]) -> dict[str, int]:
    return {name: entry[name] for name in COUNTS}


def test_empty_inbox_has_zero_counts(acme: ApiClient) -> None:
    figures = get_stats(acme)
    series = [figures.pop(name) for name in ("per_hour", "per_day")]
    assert figures == {
        "inbox": "default",
        "window": "24h",
        "undelivered": 0,
        "oldest_undelivered_at": None,
        "oldest_undelivered_age_seconds": None,
        "totals": counts(),
        "event_types": [],
    }
    assert [len(entries) for entries in series] == [24, 2]
    assert all(only_counts(entry) == counts() for entries in series for entry in entries)


def test_events_are_counted_by_action(acme: ApiClient, clock: Clock) -> None:
    first = acme.send({"n": 1}, event_type="order.created")
    for _ in range(2):
        acme.send({"n": 2})
    acme.send({"n": 3}, event_type="order.created")
    acme.poll("/inbox?limit=1")
    leased = acme.lease("&limit=1")
    acme.settle("ack", [leased[0]["receipt"]])
    acme.post(f"/events/{first['id']}/replay")
    clock.advance(30)

    figures = get_stats(acme)
    assert figures["undelivered"] == 3
    assert figures["oldest_undelivered_at"] == first["created_at"]
    assert figures["oldest_undelivered_age_seconds"] in (30, 31)
    assert figures["totals"] == counts(received=4, delivered=2, leased=1, replayed=1, bytes=28)
    assert figures["event_types"] == [
        {"event_type": None, **counts(received=2, delivered=1, leased=1, bytes=14)},
        {"event_type": "order.created", **counts(received=2, delivered=1, replayed=1, bytes=14)},
    ]
    for series in ("per_hour", "per_day"):
        assert sum(entry["received"] for entry in figures[series]) == 4


@pytest.mark.parametrize(("window", "hours", "days"), [("24h", 24, 2), ("7d", 72, 7), ("30d", 72, 30)])
def test_window_has_every_hour_and_day(acme: ApiClient, clock: Clock, window: str, hours: int, days: int) -> None:
    acme.send({"n": 1})
    clock.advance(2 * DAY_SECONDS)
    acme.send({"n": 1})

    figures = get_stats(acme, f"?window={window}")
    hour_starts = [entry["start"] for entry in figures["per_hour"]]
    assert (len(hour_starts), sorted(set(hour_starts))) == (hours, hour_starts)
    assert all(re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:00:00.000Z", start) for start in hour_starts)
    day_starts = [entry["start"] for entry in figures["per_day"]]
    assert (len(day_starts), sorted(set(day_starts))) == (days, day_starts)
    assert all(start.endswith("T00:00:00.000Z") for start in day_starts)
    assert figures["per_hour"][-1]["received"] == figures["per_day"][-1]["received"] == 1
    assert figures["totals"]["received"] == (1 if window == "24h" else 2)
    assert sum(entry["received"] for entry in figures["per_hour"]) == (1 if window == "24h" else 2)


def test_dead_event_is_counted_at_once(acme: ApiClient, clock: Clock, settings: Settings) -> None:
    acme.send({"n": 1})
    for _ in range(settings.max_deliveries):
        assert acme.lease("&lease_seconds=1")
        clock.advance(2)
    assert get_stats(acme)["totals"]["dead"] == 1


def test_event_from_the_future_is_counted_in_the_current_hour(acme: ApiClient, clock: Clock) -> None:
    clock.advance(3 * HOUR_SECONDS)
    acme.send({"n": 1})
    clock.advance(-3 * HOUR_SECONDS)
    acme.send({"n": 2})
    figures = get_stats(acme)
    assert figures["totals"]["received"] == figures["per_hour"][-1]["received"] == 2


def test_each_inbox_has_its_own_counts(acme: ApiClient, acme_manager: ApiClient) -> None:
    acme_manager.put("/inboxes/crm", json={"event_types": ["order.*"]})
    acme.send({"n": 1}, event_type="order.created")
    acme.send({"n": 2})
    acme.poll("/inbox/crm")

    crm_stats = get_stats(acme, "?inbox=crm")
    assert (crm_stats["inbox"], crm_stats["undelivered"], crm_stats["totals"]["received"]) == ("crm", 0, 1)
    assert get_stats(acme, "?inbox=default") == get_stats(acme) | {"undelivered": 2}
    assert acme.get("/stats?inbox=other").status_code == 404


def test_counts_of_tenants_are_separate(acme: ApiClient, globex: ApiClient) -> None:
    acme.send({"n": 1})
    assert get_stats(globex)["totals"] == counts()


def test_stats_need_no_write(acme: ApiClient, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    acme.send({"n": 1})
    monkeypatch.setattr(store._database, "write", None)  # type: ignore[attr-defined]
    assert get_stats(acme)["undelivered"] == 1
