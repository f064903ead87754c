"""POST /events/{id}/replay and POST /events/replay."""

from typing import Any

import pytest

from inbox.settings import Settings
from tests.api.conftest import ApiClient, Clock, pointers


def fill(caller: ApiClient, count: int) -> list[str]:
    return [caller.send({"n": number})["id"] for number in range(count)]


def replay_all(caller: ApiClient, **members: Any) -> dict[str, Any]:
    response = caller.post("/events/replay", json=members)
    assert response.status_code == 200, response.text
    document: dict[str, Any] = response.get_json()
    return document


def waiting(caller: ApiClient) -> list[int]:
    return [event["payload"]["n"] for event in caller.waiting()]


@pytest.fixture(name="settings")
def one_lease(settings: Settings) -> Settings:
    return Settings(store=settings.store, lease_seconds=7, max_deliveries=1)


def test_a_replayed_event_is_undelivered_again_at_its_old_place(acme: ApiClient) -> None:
    sent = fill(acme, 3)
    acme.poll("/inbox?limit=2")
    response = acme.post(f"/events/{sent[0]}/replay")

    event = response.get_json()
    assert (response.status_code, event["id"], event["status"], event["deliveries"]) == (200, sent[0], "undelivered", 1)
    assert "delivered_at" not in event
    assert waiting(acme) == [0, 2]
    assert acme.poll()[0]["deliveries"] == 2


def test_a_dead_event_gets_its_leases_back(acme: ApiClient, clock: Clock) -> None:
    sent = fill(acme, 1)
    acme.lease()
    clock.advance(8)
    assert acme.get(f"/events/{sent[0]}").get_json()["status"] == "dead"
    assert acme.post(f"/events/{sent[0]}/replay").get_json()["status"] == "undelivered"
    assert len(acme.lease()) == 1


def test_replaying_what_is_undelivered_changes_nothing(acme: ApiClient) -> None:
    sent = fill(acme, 1)
    before = acme.get(f"/events/{sent[0]}").get_json()
    assert acme.post(f"/events/{sent[0]}/replay").get_json() == before


def test_a_leased_event_stays_in_its_hands(acme: ApiClient) -> None:
    sent = fill(acme, 1)
    (event,) = acme.lease()
    refused = acme.post(f"/events/{sent[0]}/replay")
    assert (refused.status_code, refused.get_json()["type"]) == (409, "/problems/event-leased")
    assert acme.settle("ack", [event["receipt"]])["lost"] == []
    assert acme.post(f"/events/{sent[0]}/replay").status_code == 200


def test_each_inbox_has_its_own_copy_to_replay(acme: ApiClient, acme_manager: ApiClient) -> None:
    acme_manager.put("/inboxes/crm")
    sent = fill(acme, 1)
    acme.poll()
    acme.poll("/inbox/crm")
    assert acme.post(f"/events/{sent[0]}/replay?inbox=crm").status_code == 200
    assert (len(acme.poll("/inbox/crm?mode=peek")), acme.waiting()) == (1, [])
    assert replay_all(acme, inbox="crm") == {"replayed": 0, "more": False}
    assert replay_all(acme) == {"replayed": 1, "more": False}


def test_what_is_not_there_is_a_404(acme: ApiClient, globex: ApiClient) -> None:
    (foreign,) = fill(globex, 1)
    assert acme.post(f"/events/{foreign}/replay").status_code == 404
    assert acme.post("/events/6f7dd7a3-6f0c-4c1e-9a53-0d7b1f0c6a55/replay").status_code == 404
    assert acme.post("/events/1/replay").status_code == 404
    assert globex.post(f"/events/{foreign}/replay?inbox=none").status_code == 404
    assert acme.post("/events/replay", json={"inbox": "none"}).status_code == 404


def test_everything_delivered_or_dead_is_replayed(acme: ApiClient, clock: Clock) -> None:
    fill(acme, 4)
    acme.lease("&limit=1")
    clock.advance(8)
    acme.poll("/inbox?limit=1")
    (leased,) = acme.lease("&limit=1")
    assert [event["status"] for event in acme.poll("/events?order=oldest")] == [
        "dead",
        "delivered",
        "leased",
        "undelivered",
    ]
    assert replay_all(acme) == {"replayed": 2, "more": False}
    assert waiting(acme) == [0, 1, 3]
    assert acme.settle("ack", [leased["receipt"]])["lost"] == []


@pytest.mark.parametrize(("status", "expected"), [("dead", [0]), ("delivered", [1])])
def test_a_status_is_a_filter(acme: ApiClient, clock: Clock, status: str, expected: list[int]) -> None:
    fill(acme, 2)
    acme.lease("&limit=1")
    clock.advance(8)
    acme.poll()
    assert replay_all(acme, status=status) == {"replayed": 1, "more": False}
    assert waiting(acme) == expected


def test_times_and_types_are_filters(acme: ApiClient, clock: Clock) -> None:
    stamps = []
    for number in range(4):
        stamps.append(acme.send({"n": number}, event_type="odd" if number % 2 else "even")["timestamp"])
        clock.advance(10)
    acme.poll()
    assert replay_all(acme, since=stamps[1], until=stamps[3], event_type="odd")["replayed"] == 1
    assert waiting(acme) == [1]
    since = acme.poll("/events?limit=1")[0]["created_at"]
    assert replay_all(acme, since=since)["replayed"] == 1
    assert waiting(acme) == [1, 3]
    assert replay_all(acme, until=str(stamps[1]))["replayed"] == 1
    assert replay_all(acme, since=10**14)["replayed"] == 0


def test_many_take_several_calls_the_oldest_first(acme: ApiClient) -> None:
    for batch in range(3):
        acme.post("/events/batch", json=[{"n": batch * 400 + number} for number in range(400)])
        acme.poll("/inbox?limit=500")
    assert replay_all(acme) == {"replayed": 1000, "more": True}
    assert waiting(acme) == list(range(500))
    assert replay_all(acme) == {"replayed": 200, "more": False}


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({"since": "yesterday"}, "/since"),
        ({"since": None}, "/since"),
        ({"since": 1.5}, "/since"),
        ({"since": -1}, "/since"),
        ({"until": True}, "/until"),
        ({"until": [1]}, "/until"),
        ({"event_type": ""}, "/event_type"),
        ({"event_type": 7}, "/event_type"),
        ({"status": "leased"}, "/status"),
        ({"status": "undelivered"}, "/status"),
        ({"status": "gone"}, "/status"),
        ({"status": 7}, "/status"),
        ({"inbox": "A"}, "/inbox"),
        ({"order": "newest"}, "/order"),
        ([], ""),
        (7, ""),
    ],
)
def test_a_selection_of_another_form_is_refused(acme: ApiClient, body: Any, pointer: str) -> None:
    fill(acme, 1)
    acme.poll()
    response = acme.post("/events/replay", json=body)
    assert (response.status_code, pointers(response)) == (422, [pointer])
    assert acme.waiting() == []


def test_a_call_that_does_not_say_what_to_replay_is_refused(acme: ApiClient) -> None:
    fill(acme, 1)
    acme.poll()
    assert acme.post("/events/replay").status_code == 415
    assert acme.post("/events/replay", data=b"", content_type="application/json").status_code == 400
    assert pointers(acme.post("/events/replay?status=dead", json={})) == ["/status"]
    assert acme.waiting() == []
