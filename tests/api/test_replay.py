"""POST /events/{id}/replay and POST /events/replay."""

from typing import Any

import pytest

from inbox.settings import Settings
from tests.api.conftest import ApiClient, Clock, numbers, problem, receipts


@pytest.fixture
def settings(settings: Settings) -> Settings:
    return Settings(store=settings.store, lease_seconds=7, max_deliveries=1)


def replay(client: ApiClient, **members: Any) -> dict[str, Any]:
    response = client.post("/events/replay", json=members)
    assert response.status_code == 200, response.text
    document: dict[str, Any] = response.get_json()
    return document


def test_replayed_event_is_undelivered_at_its_original_position(acme: ApiClient) -> None:
    sent = acme.send_numbered(3)
    acme.poll("/inbox?limit=2")
    response = acme.post(f"/events/{sent[0]}/replay")

    event = response.get_json()
    assert (response.status_code, event["id"], event["status"], event["deliveries"]) == (200, sent[0], "undelivered", 1)
    assert "delivered_at" not in event
    assert acme.post(f"/events/{sent[0]}/replay").get_json() == event
    assert numbers(acme.peek()) == [0, 2]
    assert acme.poll()[0]["deliveries"] == 2


def test_dead_event_can_be_replayed_and_leased(acme: ApiClient, clock: Clock) -> None:
    sent = acme.send_numbered(1)
    acme.lease()
    clock.advance(8)
    assert acme.get_status(sent[0]) == "dead"
    assert acme.post(f"/events/{sent[0]}/replay").get_json()["status"] == "undelivered"
    assert len(acme.lease()) == 1


def test_leased_event_cannot_be_replayed(acme: ApiClient) -> None:
    sent = acme.send_numbered(1)
    leased = acme.lease()
    refused = acme.post(f"/events/{sent[0]}/replay")
    assert problem(refused) == (409, "event-leased")
    assert acme.settle("ack", receipts(leased))["lost"] == []
    assert acme.post(f"/events/{sent[0]}/replay").status_code == 200


def test_each_inbox_replays_its_own_copy(acme: ApiClient, acme_manager: ApiClient) -> None:
    acme_manager.put("/inboxes/crm")
    sent = acme.send_numbered(1)
    acme.poll()
    acme.poll("/inbox/crm")
    assert acme.post(f"/events/{sent[0]}/replay?inbox=crm").status_code == 200
    assert (len(acme.poll("/inbox/crm?mode=peek")), acme.peek()) == (1, [])
    assert replay(acme, inbox="crm") == {"replayed": 0, "more": False}
    assert replay(acme) == {"replayed": 1, "more": False}


def test_replay_of_missing_event_or_inbox_returns_404(acme: ApiClient) -> None:
    [event_id] = acme.send_numbered(1)
    for path in ("6f7dd7a3-6f0c-4c1e-9a53-0d7b1f0c6a55/replay", "1/replay", f"{event_id}/replay?inbox=none"):
        assert acme.post(f"/events/{path}").status_code == 404, path
    assert acme.post("/events/replay", json={"inbox": "none"}).status_code == 404


@pytest.mark.parametrize(
    ("members", "expected"), [({}, [0, 1]), ({"status": "dead"}, [0]), ({"status": "delivered"}, [1])]
)
def test_delivered_and_dead_events_are_replayed_by_status(
    acme: ApiClient, clock: Clock, members: dict[str, str], expected: list[int]
) -> None:
    acme.send_numbered(4)
    acme.lease("&limit=1")
    clock.advance(8)
    acme.poll("/inbox?limit=1")
    leased = acme.lease("&limit=1")
    statuses = [event["status"] for event in acme.poll("/events?order=oldest")]
    assert statuses == ["dead", "delivered", "leased", "undelivered"]
    assert replay(acme, **members) == {"replayed": len(expected), "more": False}
    assert numbers(acme.peek()) == [*expected, 3]
    assert acme.settle("ack", receipts(leased))["lost"] == []


def test_events_are_replayed_by_time_and_type(acme: ApiClient, clock: Clock) -> None:
    timestamps = []
    for number in range(4):
        timestamps.append(acme.send({"n": number}, event_type="odd" if number % 2 else "even")["timestamp"])
        clock.advance(10)
    acme.poll()
    assert replay(acme, since=timestamps[1], until=timestamps[3], event_type="odd")["replayed"] == 1
    assert numbers(acme.peek()) == [1]
    since = acme.poll("/events?limit=1")[0]["created_at"]
    assert replay(acme, since=since)["replayed"] == 1
    assert numbers(acme.peek()) == [1, 3]
    assert replay(acme, until=str(timestamps[1]))["replayed"] == 1
    assert replay(acme, since=10**14)["replayed"] == 0


def test_one_request_replays_up_to_1000_events_oldest_first(acme: ApiClient) -> None:
    for batch in range(3):
        acme.post("/events/batch", json=[{"n": batch * 400 + number} for number in range(400)])
        acme.poll("/inbox?limit=500")
    assert replay(acme) == {"replayed": 1000, "more": True}
    assert numbers(acme.peek()) == list(range(500))
    assert replay(acme) == {"replayed": 200, "more": False}
