"""GET /events and GET /events/{id}."""

import re
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote

import pytest
from werkzeug.test import TestResponse

from tests.api.conftest import ApiClient, Clock, pointers


def numbers(events: list[dict[str, Any]]) -> list[int]:
    return [event["payload"]["n"] for event in events]


def fill(caller: ApiClient, count: int) -> None:
    caller.post("/events/batch", json=[{"n": number} for number in range(count)])


def next_path(response: TestResponse) -> str | None:
    match = re.fullmatch('<(/events[^>]*)>; rel="next"', response.headers.get("Link", ""))
    return match[1] if match else None


def walk(caller: ApiClient, path: str | None) -> list[list[int]]:
    pages = []
    while path is not None:
        response = caller.get(path)
        assert response.status_code == 200, response.text
        pages.append(numbers(response.get_json()))
        path = next_path(response)
    return pages


def test_events_in_every_status_are_listed_the_newest_first(acme: ApiClient) -> None:
    fill(acme, 4)
    acme.poll("/inbox?limit=1")
    acme.lease("&limit=1")
    response = acme.get("/events")
    assert [event["status"] for event in response.get_json()] == ["undelivered", "undelivered", "leased", "delivered"]
    assert numbers(response.get_json()) == [3, 2, 1, 0]
    assert "Link" not in response.headers


def test_the_order_can_be_turned_round(acme: ApiClient) -> None:
    fill(acme, 3)
    assert numbers(acme.poll("/events?order=oldest")) == [0, 1, 2]
    assert numbers(acme.poll("/events?order=newest")) == [2, 1, 0]


def test_listing_changes_nothing(acme: ApiClient) -> None:
    fill(acme, 2)
    assert acme.poll("/events") == acme.poll("/events")
    assert {event["deliveries"] for event in acme.poll("/events")} == {0}
    head = acme.client.head("/events", headers=acme.headers)
    assert (head.status_code, head.data) == (200, b"")
    assert head.headers["Content-Length"] == acme.get("/events").headers["Content-Length"]
    assert len(acme.waiting()) == 2


@pytest.mark.parametrize(
    ("status", "expected"), [("undelivered", [2]), ("leased", [1]), ("delivered", [0]), ("dead", [])]
)
def test_a_status_is_a_filter(acme: ApiClient, status: str, expected: list[int]) -> None:
    fill(acme, 3)
    acme.poll("/inbox?limit=1")
    acme.lease("&limit=1")
    assert numbers(acme.poll(f"/events?status={status}")) == expected


def test_a_type_is_a_filter(acme: ApiClient) -> None:
    for number, event_type in enumerate(["a", "b", None, "a", "a.b"]):
        acme.send({"n": number}, event_type=event_type)
    assert numbers(acme.poll("/events?event_type=a")) == [3, 0]
    assert numbers(acme.poll("/events?event_type=none")) == []
    assert numbers(acme.poll("/events?event_type=a&status=delivered")) == []


def test_times_are_filters_and_count_from_since_and_before_until(acme: ApiClient, clock: Clock) -> None:
    stamps = []
    for number in range(3):
        stamps.append(acme.send({"n": number})["timestamp"])
        clock.advance(1000)
    assert numbers(acme.poll(f"/events?since={stamps[1]}")) == [2, 1]
    assert numbers(acme.poll(f"/events?until={stamps[1]}")) == [0]
    assert numbers(acme.poll(f"/events?since={stamps[0]}&until={stamps[2]}&order=oldest")) == [0, 1]
    assert numbers(acme.poll(f"/events?since={stamps[2]}&until={stamps[0]}")) == []
    middle = datetime.fromtimestamp(stamps[1] / 1000, UTC)
    for text in (
        middle.isoformat(),
        middle.isoformat().replace("+00:00", "Z"),
        middle.replace(tzinfo=None).isoformat(),
        middle.astimezone().isoformat(),
    ):
        assert numbers(acme.poll(f"/events?since={quote(text)}")) == [2, 1], text
    assert numbers(acme.poll("/events?since=1970-01-01&until=9999-12-31")) == [2, 1, 0]
    assert numbers(acme.poll("/events?since=0001-01-01&until=999999999999999")) == [2, 1, 0]


@pytest.mark.parametrize("order", ["oldest", "newest"])
def test_cursors_lead_through_everything_once(acme: ApiClient, order: str) -> None:
    fill(acme, 7)
    pages = walk(acme, f"/events?limit=3&order={order}")
    everything = [number for page in pages for number in page]
    assert everything == (list(range(7)) if order == "oldest" else list(reversed(range(7))))
    assert [len(page) for page in pages] == [3, 3, 1]


def test_events_that_come_meanwhile_move_nothing(acme: ApiClient) -> None:
    fill(acme, 4)
    first = acme.get("/events?limit=2")
    acme.send({"n": 4})
    assert numbers(acme.poll(str(next_path(first)))) == [1, 0]


def test_the_link_keeps_every_parameter(acme: ApiClient) -> None:
    for number in range(3):
        acme.send({"n": number}, event_type="a/b:c")
    query = "limit=1&event_type=a%2Fb%3Ac&since=2020-01-01T00%3A00%3A00%2B01%3A00&status=undelivered&inbox=default"
    link = next_path(acme.get(f"/events?{query}"))
    assert link is not None
    assert link.startswith(f"/events?{query}&cursor=")
    assert walk(acme, f"/events?{query}") == [[2], [1], [0]]


def test_a_hundred_are_listed_unless_told_otherwise(acme: ApiClient) -> None:
    fill(acme, 101)
    assert len(acme.poll("/events")) == 100
    assert len(acme.poll("/events?limit=500")) == 101


def other_than(character: str) -> str:
    return "B" if character == "A" else "A"


def test_a_cursor_holds_for_its_own_question_only(acme: ApiClient, globex: ApiClient, acme_manager: ApiClient) -> None:
    acme_manager.put("/inboxes/crm")
    for caller in (acme, globex):
        fill(caller, 3)
    cursor = str(next_path(acme.get("/events?limit=1"))).rpartition("cursor=")[2]
    assert numbers(acme.poll(f"/events?limit=2&cursor={cursor}")) == [1, 0]
    for caller, query in (
        (globex, f"cursor={cursor}"),
        (acme, f"order=oldest&cursor={cursor}"),
        (acme, f"status=undelivered&cursor={cursor}"),
        (acme, f"event_type=a&cursor={cursor}"),
        (acme, f"since=5&cursor={cursor}"),
        (acme, f"inbox=crm&cursor={cursor}"),
        (acme, f"cursor={cursor[:-1]}{other_than(cursor[-1])}"),
        (acme, f"cursor={other_than(cursor[0])}{cursor[1:]}"),
        (acme, f"cursor={cursor[:-1]}"),
        (acme, f"cursor={cursor}="),
        (acme, f"cursor={cursor}A"),
        (acme, "cursor="),
        (acme, "cursor=%C3%A9"),
        (acme, "cursor=x"),
    ):
        response = caller.get(f"/events?limit=1&{query}")
        assert (response.status_code, pointers(response)) == (422, ["/cursor"]), query


@pytest.mark.parametrize(
    ("query", "pointer"),
    [
        ("status=gone", "/status"),
        ("status=", "/status"),
        ("event_type=", "/event_type"),
        ("event_type=a%20b", "/event_type"),
        ("since=yesterday", "/since"),
        ("since=", "/since"),
        ("since=-1", "/since"),
        ("since=1.5", "/since"),
        ("since=1234567890123456", "/since"),
        ("until=2026-13-01", "/until"),
        ("until=2026-11-16T01:00:00+01:00", "/until"),
        ("order=random", "/order"),
        ("limit=0", "/limit"),
        ("limit=501", "/limit"),
        ("inbox=Crm", "/inbox"),
        ("inbox=", "/inbox"),
        ("mode=peek", "/mode"),
        ("limit=1&limit=2", "/limit"),
    ],
)
def test_bad_parameters_are_refused(acme: ApiClient, query: str, pointer: str) -> None:
    response = acme.get(f"/events?{query}")
    assert (response.status_code, pointers(response)) == (422, [pointer])


def test_an_unknown_inbox_is_a_404(acme: ApiClient, globex: ApiClient, acme_manager: ApiClient) -> None:
    acme_manager.put("/inboxes/crm")
    event_id = acme.send({"n": 1})["id"]
    for path in ("/events", f"/events/{event_id}"):
        assert acme.get(f"{path}?inbox=crm").status_code == 200
        assert acme.get(f"{path}?inbox=none").status_code == 404
        assert globex.get(f"{path}?inbox=crm").status_code == 404
    assert acme.get(f"/events/{event_id}?inbox=").status_code == 422
    assert acme.get(f"/events/{event_id}?box=crm").status_code == 422


def test_another_tenants_events_are_not_listed(acme: ApiClient, globex: ApiClient) -> None:
    fill(globex, 2)
    assert acme.poll("/events") == acme.poll("/events?status=undelivered&order=oldest") == []
