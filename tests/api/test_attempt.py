"""The header Inbox-Attempt."""

import pytest

from tests.api.conftest import ApiClient, Clock, pointers


def fill(caller: ApiClient, count: int) -> None:
    caller.post("/events/batch", json=[{"n": number} for number in range(count)])


@pytest.mark.parametrize("mode", ["consume", "lease"])
def test_the_same_attempt_gets_the_same_events_again(acme: ApiClient, mode: str) -> None:
    fill(acme, 3)
    path = f"/inbox?mode={mode}&limit=2"
    first = acme.get(path, headers={"Inbox-Attempt": "a"}).get_json()
    again = acme.get(path, headers={"Inbox-Attempt": "a"}).get_json()
    assert [event["payload"]["n"] for event in first] == [0, 1]
    assert again == first
    other = acme.get(path, headers={"Inbox-Attempt": "b"}).get_json()
    assert [event["payload"]["n"] for event in other] == [2]


def test_an_attempt_is_forgotten_after_five_minutes(acme: ApiClient, clock: Clock) -> None:
    fill(acme, 2)
    for minutes, expected in ((0, [0]), (4, [0]), (2, [1])):
        clock.advance(minutes * 60)
        events = acme.get("/inbox?limit=1", headers={"Inbox-Attempt": "a"}).get_json()
        assert [event["payload"]["n"] for event in events] == expected


def test_an_attempt_that_found_nothing_can_find_something_later(acme: ApiClient) -> None:
    assert acme.get("/inbox", headers={"Inbox-Attempt": "a"}).get_json() == []
    fill(acme, 1)
    assert len(acme.get("/inbox", headers={"Inbox-Attempt": "a"}).get_json()) == 1


def test_an_attempt_belongs_to_its_tenant(acme: ApiClient, globex: ApiClient) -> None:
    fill(acme, 1)
    fill(globex, 1)
    for caller in (acme, globex):
        (event,) = caller.get("/inbox", headers={"Inbox-Attempt": "a"}).get_json()
        assert caller.get(f"/events/{event['id']}").status_code == 200


@pytest.mark.parametrize(
    "attempt", ["x" * 128, "é".encode().decode("latin-1") * 1, " a b ", "日".encode().decode("latin-1")]
)
def test_any_text_of_up_to_128_characters_is_an_attempt(acme: ApiClient, attempt: str) -> None:
    assert acme.get("/inbox", headers={"Inbox-Attempt": attempt}).status_code == 200


@pytest.mark.parametrize(("query", "attempt"), [("", ""), ("", "x" * 129), ("", "\xff"), ("?mode=peek", "a")])
def test_a_bad_attempt_is_refused_before_any_event_is_touched(acme: ApiClient, query: str, attempt: str) -> None:
    fill(acme, 1)
    response = acme.get(f"/inbox{query}", headers={"Inbox-Attempt": attempt})
    assert (response.status_code, pointers(response)) == (422, ["/Inbox-Attempt"])
    assert len(acme.poll()) == 1
