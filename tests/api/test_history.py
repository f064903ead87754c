"""GET /events, GET /events/{id} and DELETE /events/{id}."""

import re
from datetime import UTC, datetime
from urllib.parse import quote

import pytest
from werkzeug.test import TestResponse

from tests.api.conftest import ApiClient, Clock, ids, numbers, pointers


def find_next_path(response: TestResponse) -> str | None:
    match = re.fullmatch('<(/events[^>]*)>; rel="next"', response.headers.get("Link", ""))
    return match[1] if match else None


def read_pages(client: ApiClient, path: str | None) -> list[list[int]]:
    """Returns the numbers of the events on each page."""
    found = []
    while path is not None:
        response = client.get(path)
        assert response.status_code == 200, response.text
        found.append(numbers(response.get_json()))
        path = find_next_path(response)
    return found


def test_events_of_every_status_are_listed_newest_first(acme: ApiClient) -> None:
    acme.send_numbered(4)
    acme.poll("/inbox?limit=1")
    acme.lease("&limit=1")
    response = acme.get("/events")
    assert [event["status"] for event in response.get_json()] == ["undelivered", "undelivered", "leased", "delivered"]
    assert numbers(response.get_json()) == [3, 2, 1, 0]
    assert "Link" not in response.headers
    assert numbers(acme.poll("/events?order=newest")) == [3, 2, 1, 0]
    assert numbers(acme.poll("/events?order=oldest")) == [0, 1, 2, 3]
    for status, expected in {"undelivered": [3, 2], "leased": [1], "delivered": [0], "dead": []}.items():
        assert numbers(acme.poll(f"/events?status={status}")) == expected


def test_listing_changes_nothing(acme: ApiClient) -> None:
    acme.send_numbered(2)
    assert acme.poll("/events") == acme.poll("/events")
    assert {event["deliveries"] for event in acme.poll("/events")} == {0}
    head = acme.client.head("/events", headers=acme.headers)
    assert (head.status_code, head.data) == (200, b"")
    assert head.headers["Content-Length"] == acme.get("/events").headers["Content-Length"]
    assert len(acme.peek()) == 2


def test_events_are_listed_by_type(acme: ApiClient) -> None:
    for number, event_type in enumerate(["a", "b", None, "a", "a.b"]):
        acme.send({"n": number}, event_type=event_type)
    assert numbers(acme.poll("/events?event_type=a")) == [3, 0]
    assert numbers(acme.poll("/events?event_type=none")) == []
    assert numbers(acme.poll("/events?event_type=a&status=delivered")) == []


def test_since_is_inclusive_and_until_exclusive(acme: ApiClient, clock: Clock) -> None:
    timestamps = []
    for number in range(3):
        timestamps.append(acme.send({"n": number})["timestamp"])
        clock.advance(1000)
    first, second, third = timestamps
    for query, expected in {
        f"since={second}": [2, 1],
        f"until={second}": [0],
        f"since={first}&until={third}&order=oldest": [0, 1],
        f"since={third}&until={first}": [],
        "since=1970-01-01&until=9999-12-31": [2, 1, 0],
        "since=0001-01-01&until=999999999999999": [2, 1, 0],
    }.items():
        assert numbers(acme.poll(f"/events?{query}")) == expected, query
    utc = datetime.fromtimestamp(second / 1000, UTC)
    text = utc.isoformat()
    for since in (text, text.replace("+00:00", "Z"), text.replace("+00:00", ""), utc.astimezone().isoformat()):
        assert numbers(acme.poll(f"/events?since={quote(since)}")) == [2, 1], since


@pytest.mark.parametrize("order", ["oldest", "newest"])
def test_pages_return_every_event_once(acme: ApiClient, order: str) -> None:
    acme.send_numbered(7)
    found = read_pages(acme, f"/events?limit=3&order={order}")
    expected = [[0, 1, 2], [3, 4, 5], [6]] if order == "oldest" else [[6, 5, 4], [3, 2, 1], [0]]
    assert found == expected


def test_link_keeps_every_parameter(acme: ApiClient) -> None:
    for number in range(3):
        acme.send({"n": number}, event_type="a/b:c")
    query = "limit=1&event_type=a%2Fb%3Ac&since=2020-01-01T00%3A00%3A00%2B01%3A00&status=undelivered&inbox=default"
    link = find_next_path(acme.get(f"/events?{query}"))
    assert link is not None
    assert link.startswith(f"/events?{query}&cursor=")
    assert read_pages(acme, f"/events?{query}") == [[2], [1], [0]]


def test_page_has_100_events_by_default(acme: ApiClient) -> None:
    acme.send_numbered(101)
    assert len(acme.poll("/events")) == 100
    assert len(acme.poll("/events?limit=500")) == 101


def different_letter(character: str) -> str:
    return "B" if character == "A" else "A"


def test_cursor_is_valid_for_its_own_list_only(acme: ApiClient, globex: ApiClient, acme_manager: ApiClient) -> None:
    acme_manager.put("/inboxes/crm")
    for client in (acme, globex):
        client.send_numbered(3)
    cursor = str(find_next_path(acme.get("/events?limit=1"))).rpartition("cursor=")[2]
    assert numbers(acme.poll(f"/events?limit=2&cursor={cursor}")) == [1, 0]
    for client, query in (
        (globex, f"cursor={cursor}"),
        (acme, f"order=oldest&cursor={cursor}"),
        (acme, f"status=undelivered&cursor={cursor}"),
        (acme, f"event_type=a&cursor={cursor}"),
        (acme, f"since=5&cursor={cursor}"),
        (acme, f"inbox=crm&cursor={cursor}"),
        (acme, f"cursor={cursor[:-1]}{different_letter(cursor[-1])}"),
        (acme, f"cursor={different_letter(cursor[0])}{cursor[1:]}"),
        (acme, f"cursor={cursor[:-1]}"),
        (acme, f"cursor={cursor}="),
        (acme, f"cursor={cursor}A"),
        (acme, "cursor="),
        (acme, "cursor=%C3%A9"),
        (acme, "cursor=x"),
    ):
        response = client.get(f"/events?limit=1&{query}")
        assert (response.status_code, pointers(response)) == (422, ["/cursor"]), query


def test_read_of_unknown_inbox_returns_404(acme: ApiClient, globex: ApiClient, acme_manager: ApiClient) -> None:
    acme_manager.put("/inboxes/crm")
    [event_id] = acme.send_numbered(1)
    for path in ("/events", f"/events/{event_id}"):
        assert acme.get(f"{path}?inbox=crm").status_code == 200
        assert acme.get(f"{path}?inbox=none").status_code == 404
        assert globex.get(f"{path}?inbox=crm").status_code == 404


def test_erased_event_is_gone_from_every_inbox(acme: ApiClient, acme_manager: ApiClient) -> None:
    acme_manager.put("/inboxes/crm")
    event_id, kept = acme.send({"n": 1}, idempotency_key="k")["id"], acme.send({"n": 2})["id"]
    leased, _ = acme.poll("/inbox/crm?mode=lease")

    erased = acme_manager.delete(f"/events/{event_id}")
    assert (erased.status_code, erased.data) == (204, b"")
    assert acme_manager.delete(f"/events/{event_id}").status_code == 404
    for path in (f"/events/{event_id}", f"/events/{event_id}?inbox=crm"):
        assert acme.get(path).status_code == 404
    for path in ("/events", "/events?inbox=crm", "/inbox?mode=peek"):
        assert ids(acme.poll(path)) == [kept]
    assert acme.settle("ack", [leased["receipt"]])["lost"] == [leased["receipt"]]
    assert acme.post(f"/events/{event_id}/replay").status_code == 404
    # Its idempotency key can be used again.
    acme.send({"n": 3}, idempotency_key="k")
    assert numbers(acme.peek()) == [2, 3]
