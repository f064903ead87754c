"""GET /inbox."""

from datetime import datetime

import pytest

from tests.api.conftest import ApiClient, pointers


def numbers(caller: ApiClient, query: str = "") -> list[int]:
    return [event["payload"]["n"] for event in caller.get(f"/inbox{query}").get_json()]


def fill(caller: ApiClient, count: int) -> None:
    caller.post("/events/batch", json=[{"n": number} for number in range(count)])


def test_a_poll_takes_each_event_once(acme: ApiClient) -> None:
    fill(acme, 3)
    assert numbers(acme) == [0, 1, 2]
    assert numbers(acme) == []


def test_a_delivered_event_says_so(acme: ApiClient) -> None:
    sent = acme.send({"n": 1}, event_type="t")
    event = acme.get("/inbox").get_json()[0]

    delivered_at = event.pop("delivered_at")
    assert event == sent | {"status": "delivered", "deliveries": 1, "payload": {"n": 1}}
    assert datetime.fromisoformat(delivered_at) >= datetime.fromisoformat(event["created_at"])


def test_an_empty_inbox_is_an_empty_array(acme: ApiClient) -> None:
    response = acme.get("/inbox")
    assert (response.status_code, response.get_json(), response.headers["Inbox-More"]) == (200, [], "false")


def test_a_poll_takes_a_hundred_unless_told_otherwise(acme: ApiClient) -> None:
    fill(acme, 101)
    response = acme.get("/inbox")
    assert (len(response.get_json()), response.headers["Inbox-More"]) == (100, "true")
    assert acme.get("/inbox").headers["Inbox-More"] == "false"


@pytest.mark.parametrize("mode", ["consume", "peek"])
def test_the_header_says_whether_more_remain(acme: ApiClient, mode: str) -> None:
    fill(acme, 3)
    assert acme.get(f"/inbox?mode={mode}&limit=2").headers["Inbox-More"] == "true"


def test_a_peek_changes_nothing(acme: ApiClient) -> None:
    fill(acme, 3)
    assert numbers(acme, "?mode=peek") == numbers(acme, "?mode=peek") == [0, 1, 2]
    assert {event["status"] for event in acme.waiting()} == {"undelivered"}
    assert numbers(acme, "?mode=consume") == [0, 1, 2]


def test_a_peek_turns_round(acme: ApiClient) -> None:
    fill(acme, 3)
    assert numbers(acme, "?mode=peek&order=newest&limit=2") == [2, 1]
    assert numbers(acme, "?mode=peek&order=oldest&limit=2") == [0, 1]


@pytest.mark.parametrize(
    ("query", "pointer"),
    [
        ("limit=0", "/limit"),
        ("limit=501", "/limit"),
        ("limit=-1", "/limit"),
        ("limit=ten", "/limit"),
        ("limit=1.5", "/limit"),
        ("limit=", "/limit"),
        ("limit=1&limit=2", "/limit"),
        ("limit=1_0", "/limit"),
        ("limit=%2B5", "/limit"),
        ("limit=%201", "/limit"),
        ("limit=5%0A", "/limit"),
        ("limit=%D9%A3", "/limit"),
        ("mode=take", "/mode"),
        ("mode=", "/mode"),
        ("order=newest", "/order"),
        ("mode=peek&order=random", "/order"),
        ("limt=5", "/limt"),
        ("MODE=consume", "/MODE"),
        ("mode=peek&mode=consume", "/mode"),
        ("mode=consume%00", "/mode"),
        ("mode=%ff", "/mode"),
        ("mode=consume;limit=1", "/mode"),
        ("limit=1%26mode=peek", "/limit"),
    ],
)
def test_bad_parameters_are_refused_before_any_event_is_touched(acme: ApiClient, query: str, pointer: str) -> None:
    fill(acme, 1)
    response = acme.get(f"/inbox?{query}")

    assert (response.status_code, pointers(response)) == (422, [pointer])
    assert numbers(acme) == [0]


def test_head_is_no_poll(acme: ApiClient) -> None:
    fill(acme, 1)
    response = acme.client.head("/inbox", headers=acme.headers)

    assert (response.status_code, response.headers["Allow"]) == (405, "GET, OPTIONS")
    assert acme.client.delete("/inbox").headers["Allow"] == "GET, OPTIONS"
    assert "HEAD" not in acme.client.options("/inbox").headers["Allow"]
    assert numbers(acme) == [0]


@pytest.mark.parametrize(
    ("header", "value"),
    [
        ("Sec-Purpose", "prefetch;prerender"),
        ("Sec-Purpose", "prerender"),
        ("Purpose", "prefetch"),
        ("X-Purpose", "preview"),
        ("X-Moz", "Prefetch"),
    ],
)
def test_a_prefetch_is_no_poll(acme: ApiClient, header: str, value: str) -> None:
    fill(acme, 1)
    response = acme.get("/inbox", headers={header: value})

    assert (response.status_code, response.get_json()["type"]) == (403, "/problems/prefetch-refused")
    assert numbers(acme) == [0]


def test_answers_are_not_for_caches(acme: ApiClient) -> None:
    assert acme.get("/inbox").headers["Cache-Control"] == "no-store"


@pytest.mark.parametrize("path", ["/inbox/", "/inbox//", "/INBOX", "/inbox/..", "/./inbox"])
def test_a_path_that_only_resembles_the_inbox_is_no_poll(acme: ApiClient, path: str) -> None:
    fill(acme, 1)
    assert acme.get(path).status_code == 404
    assert numbers(acme) == [0]
