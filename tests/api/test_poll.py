"""GET /inbox: modes, repeated attempts and long polls."""

from datetime import datetime

import pytest

from inbox.app import Shared, create_app
from inbox.settings import Settings
from inbox.store.interface import Store
from tests.api.conftest import ApiClient, Clock, FakeTime, TenantFactory, numbers, problem


def test_poll_returns_each_event_once(acme: ApiClient) -> None:
    acme.send_numbered(3)
    assert numbers(acme.poll()) == [0, 1, 2]
    response = acme.get("/inbox")
    assert (response.status_code, response.get_json(), response.headers["Inbox-More"]) == (200, [], "false")
    assert response.headers["Cache-Control"] == "no-store"


def test_delivered_event_has_its_status_and_time(acme: ApiClient) -> None:
    sent = acme.send({"n": 1}, event_type="t")
    [event] = acme.poll()
    delivered_at = event.pop("delivered_at")
    assert event == sent | {"status": "delivered", "deliveries": 1, "payload": {"n": 1}}
    assert datetime.fromisoformat(delivered_at) >= datetime.fromisoformat(event["created_at"])


def test_poll_returns_100_events_by_default(acme: ApiClient) -> None:
    acme.send_numbered(101)
    response = acme.get("/inbox")
    assert (len(response.get_json()), response.headers["Inbox-More"]) == (100, "true")
    assert acme.get("/inbox").headers["Inbox-More"] == "false"


def test_peek_changes_nothing_and_can_be_newest_first(acme: ApiClient) -> None:
    acme.send_numbered(3)
    assert numbers(acme.poll("/inbox?mode=peek&order=newest&limit=2")) == [2, 1]
    response = acme.get("/inbox?mode=peek&order=oldest&limit=2")
    assert (numbers(response.get_json()), response.headers["Inbox-More"]) == ([0, 1], "true")
    assert {event["status"] for event in acme.peek()} == {"undelivered"}
    assert numbers(acme.poll("/inbox?mode=consume")) == [0, 1, 2]


def test_head_does_not_poll(acme: ApiClient) -> None:
    acme.send_numbered(1)
    response = acme.client.head("/inbox", headers=acme.headers)
    assert (response.status_code, response.headers["Allow"]) == (405, "GET, OPTIONS")
    assert acme.client.delete("/inbox").headers["Allow"] == "GET, OPTIONS"
    assert "HEAD" not in acme.client.options("/inbox").headers["Allow"]
    assert numbers(acme.poll()) == [0]


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
def test_prefetch_does_not_poll(acme: ApiClient, header: str, value: str) -> None:
    acme.send_numbered(1)
    response = acme.get("/inbox", headers={header: value})
    assert problem(response) == (403, "prefetch-refused")
    assert numbers(acme.poll()) == [0]


def test_other_spelling_of_the_path_does_not_poll(acme: ApiClient) -> None:
    acme.send_numbered(1)
    for path in ("/inbox/", "/inbox//", "/INBOX", "/inbox/..", "/./inbox"):
        assert acme.get(path).status_code == 404
    assert numbers(acme.poll()) == [0]


@pytest.mark.parametrize("mode", ["consume", "lease"])
def test_repeated_attempt_returns_the_same_events(acme: ApiClient, mode: str) -> None:
    acme.send_numbered(3)
    first, again, other = (
        acme.get(f"/inbox?mode={mode}&limit=2", headers={"Inbox-Attempt": attempt}).get_json() for attempt in "aab"
    )
    assert again == first
    assert (numbers(first), numbers(other)) == ([0, 1], [2])


def test_attempt_is_remembered_for_five_minutes(acme: ApiClient, clock: Clock) -> None:
    acme.send_numbered(2)
    for minutes, expected in ((0, [0]), (4, [0]), (2, [1])):
        clock.advance(minutes * 60)
        events = acme.get("/inbox?limit=1", headers={"Inbox-Attempt": "a"}).get_json()
        assert numbers(events) == expected


def test_attempt_is_any_text_of_up_to_128_characters(acme: ApiClient) -> None:
    for attempt in ("x" * 128, " a b ", "é", "日"):
        header = {"Inbox-Attempt": attempt.encode().decode("latin-1")}
        assert acme.get("/inbox", headers=header).status_code == 200, attempt


@pytest.mark.parametrize("mode", ["consume", "lease", "peek"])
def test_long_poll_ends_when_an_event_arrives(acme: ApiClient, fake_time: FakeTime, mode: str) -> None:
    def send_in_the_third_second() -> None:
        if fake_time.seconds > 2 and not acme.peek():
            acme.send({"n": 1})

    fake_time.meanwhile = send_in_the_third_second
    assert numbers(acme.poll(f"/inbox?mode={mode}&wait=20")) == [1]
    assert 2 < fake_time.seconds < 3


def test_long_poll_without_events_ends_after_its_wait(acme: ApiClient, fake_time: FakeTime) -> None:
    response = acme.get("/inbox?wait=20")
    assert (response.status_code, response.get_json(), response.headers["Inbox-More"]) == (200, [], "false")
    assert fake_time.seconds == pytest.approx(20)


def test_long_poll_returns_existing_events_at_once(acme: ApiClient, fake_time: FakeTime) -> None:
    acme.send_numbered(1)
    assert len(acme.poll("/inbox?wait=20")) == 1
    assert acme.poll("/inbox") == acme.poll("/inbox?wait=0") == []
    assert fake_time.seconds == 0


def test_long_poll_ends_when_its_inbox_is_deleted(
    acme: ApiClient, acme_manager: ApiClient, fake_time: FakeTime
) -> None:
    acme_manager.put("/inboxes/crm")
    fake_time.meanwhile = lambda: acme_manager.delete("/inboxes/crm")
    assert acme.get("/inbox/crm?wait=20").status_code == 404
    assert fake_time.seconds < 1


def test_key_revoked_during_a_long_poll_gets_no_events(
    tenant_factory: TenantFactory, store: Store, acme: ApiClient, fake_time: FakeTime
) -> None:
    client = ApiClient(create_app(Settings(key_cache_seconds=0), store, Shared()).test_client(), acme.key)
    other = tenant_factory.create_client("acme")

    def revoke_and_send() -> None:
        tenant_factory.key_service.revoke(tenant_factory.key_service.list("acme")[0].key_id)
        other.send({"n": 1})

    fake_time.meanwhile = revoke_and_send
    assert client.get("/inbox?wait=20").status_code == 401
    assert len(other.poll()) == 1
