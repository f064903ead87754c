"""GET /inbox?mode=lease, and POST /inbox/ack, /release, /extend."""

from datetime import datetime, timedelta

import pytest

from inbox.settings import Settings
from tests.api.conftest import ApiClient, Clock, ids, receipts

VERBS = {"ack": "acknowledged", "release": "released", "extend": "extended"}


@pytest.fixture
def settings(settings: Settings) -> Settings:
    return Settings(store=settings.store, lease_seconds=7, max_deliveries=2, max_event_bytes=1000)


def test_leased_event_has_a_receipt_in_every_response(acme: ApiClient) -> None:
    sent = acme.send({"n": 1}, event_type="t")
    [event] = acme.lease()
    assert acme.get("/events").get_json() == [event]
    assert acme.get(f"/events/{sent['id']}").get_json() == event

    assert event.pop("receipt")
    assert datetime.fromisoformat(event.pop("lease_expires_at")) > datetime.fromisoformat(event["created_at"])
    assert event == sent | {"status": "leased", "deliveries": 1, "payload": {"n": 1}}


def test_leased_event_is_not_returned_by_other_polls(acme: ApiClient) -> None:
    acme.send_numbered(2)
    assert len(acme.lease("&limit=1")) == 1
    response = acme.get("/inbox?mode=lease")
    assert (len(response.get_json()), response.headers["Inbox-More"]) == (1, "false")
    assert acme.lease() == acme.poll() == acme.peek() == []


@pytest.mark.parametrize(("query", "seconds"), [("", 7), ("&lease_seconds=1", 1), ("&lease_seconds=43200", 43200)])
def test_expired_lease_returns_event_to_inbox(acme: ApiClient, clock: Clock, query: str, seconds: int) -> None:
    sent = acme.send_numbered(1)
    [event] = acme.lease(query)
    expires_at = datetime.fromisoformat(event["lease_expires_at"])
    assert expires_at - datetime.fromisoformat(event["created_at"]) >= timedelta(seconds=seconds)

    clock.advance(seconds + 1)
    assert [ids(acme.peek()), acme.get_status(sent[0])] == [sent, "undelivered"]


def test_acknowledged_event_is_delivered_and_can_be_acknowledged_again(acme: ApiClient, clock: Clock) -> None:
    sent = acme.send_numbered(2)
    leased = receipts(acme.lease())
    assert acme.settle("ack", leased) == {"acknowledged": sent, "lost": []}
    event = acme.get(f"/events/{sent[0]}").get_json()
    assert (event["status"], event["deliveries"], "delivered_at" in event) == ("delivered", 1, True)
    assert not {"receipt", "lease_expires_at"} & set(event)

    clock.advance(3600)
    assert acme.settle("ack", leased) == {"acknowledged": sent, "lost": []}
    assert acme.get(f"/events/{sent[0]}").get_json() == event
    assert acme.peek() == []


def test_receipt_of_an_expired_lease_is_lost(acme: ApiClient, clock: Clock) -> None:
    sent = acme.send_numbered(2)
    late = receipts(acme.lease("&limit=1"))
    clock.advance(8)
    again = acme.lease()

    assert ids(again) == sent
    assert [event["deliveries"] for event in again] == [2, 1]
    assert receipts(again)[0] != late[0]
    for verb, done in VERBS.items():
        assert acme.settle(verb, late) == {done: [], "lost": late}
    assert acme.settle("ack", receipts(again)) == {"acknowledged": sent, "lost": []}


def test_released_event_is_undelivered_after_its_delay(acme: ApiClient, clock: Clock) -> None:
    sent = acme.send_numbered(2)
    immediate, delayed = receipts(acme.lease())
    assert acme.settle("release", [immediate]) == {"released": sent[:1], "lost": []}
    acme.settle("release", [delayed], delay_seconds=30)
    assert ids(acme.peek()) == sent[:1]
    assert acme.settle("ack", [immediate]) == {"acknowledged": [], "lost": [immediate]}
    assert acme.get_status(sent[1]) == "undelivered"
    clock.advance(31)
    assert ids(acme.lease()) == sent


@pytest.mark.parametrize(("members", "seconds"), [({}, 7), ({"lease_seconds": 60}, 60)])
def test_extended_lease_expires_later(acme: ApiClient, clock: Clock, members: dict[str, int], seconds: int) -> None:
    sent = acme.send_numbered(1)
    leased = acme.lease()
    clock.advance(4)
    assert acme.settle("extend", receipts(leased), **members) == {"extended": sent, "lost": []}
    shown = acme.get(f"/events/{sent[0]}").get_json()
    assert (shown["receipt"], shown["lease_expires_at"] > leased[0]["lease_expires_at"]) == (leased[0]["receipt"], True)
    # Without the extension the lease would have expired. Its new end is seconds away, because real time passes too.
    clock.advance(seconds // 2 + 1)
    assert acme.peek() == []
    assert acme.settle("ack", receipts(leased)) == {"acknowledged": sent, "lost": []}


def test_event_with_too_many_expired_leases_is_dead(acme: ApiClient, clock: Clock) -> None:
    sent = acme.send_numbered(1)
    for _ in range(2):
        assert ids(acme.lease()) == sent
        clock.advance(8)
    assert (acme.lease(), acme.get_status(sent[0])) == ([], "dead")
    assert ids(acme.poll("/events?status=dead")) == sent


def test_only_a_failed_release_counts_like_an_expired_lease(acme: ApiClient, clock: Clock) -> None:
    sent = acme.send_numbered(2)
    for _ in range(3):
        acme.settle("release", receipts(acme.lease()))
    for status in ("undelivered", "dead"):
        failing = receipts(acme.lease("&limit=1"))
        for _ in range(2):
            assert acme.settle("release", failing, failed=True) == {"released": sent[:1], "lost": []}
        assert acme.get_status(sent[0]) == status
    assert ids(acme.peek()) == sent[1:]
    assert acme.get("/stats").get_json()["totals"]["dead"] == 1

    acme.settle("release", receipts(acme.lease()), failed=True, delay_seconds=30)
    assert (acme.peek(), acme.get_status(sent[1])) == ([], "undelivered")
    clock.advance(31)
    acme.lease()
    clock.advance(8)
    assert ids(acme.poll("/events?status=dead")) == sent[::-1]


@pytest.mark.parametrize("verb", VERBS)
def test_response_lists_receipts_once_and_in_order(acme: ApiClient, verb: str) -> None:
    sent = acme.send_numbered(3)
    one, two, three = receipts(acme.lease())
    response = acme.settle(verb, [three, "zzz", one, three, "aaa", two, one, "zzz"])
    assert response == {VERBS[verb]: [sent[2], sent[0], sent[1]], "lost": ["zzz", "aaa"]}


@pytest.mark.parametrize("verb", VERBS)
def test_unknown_receipt_is_lost_and_not_an_error(acme: ApiClient, globex: ApiClient, verb: str) -> None:
    acme.send_numbered(1)
    [own] = receipts(acme.lease())
    unknown = ["", "x", "é", "=" * 300, own + "=", own[:-1], own.lower(), f" {own}", own + "A"]
    assert acme.settle(verb, unknown) == {VERBS[verb]: [], "lost": unknown}
    assert globex.settle(verb, [own]) == {VERBS[verb]: [], "lost": [own]}
    assert acme.settle(verb, [own])["lost"] == []


def test_500_receipts_fit_whatever_the_limit_for_events(acme: ApiClient) -> None:
    acme.send_numbered(500)
    leased = receipts(acme.lease("&limit=500"))
    assert len(acme.settle("ack", leased)["acknowledged"]) == 500
    longest = [f"{number:0300}" for number in range(500)]
    assert acme.settle("ack", longest)["lost"] == longest
    response = acme.post("/inbox/ack", data=b'{"receipts": ["x"]}' + b" " * 262_144, content_type="application/json")
    assert response.status_code == 413
