"""GET /inbox?mode=lease, and POST /inbox/ack, /release, /extend."""

from datetime import datetime, timedelta
from typing import Any

import pytest

from inbox.settings import Settings
from tests.api.conftest import ApiClient, Clock, pointers

VERBS = {"ack": "acknowledged", "release": "released", "extend": "extended"}


def fill(caller: ApiClient, count: int) -> list[str]:
    return [caller.send({"n": number})["id"] for number in range(count)]


def ids(events: list[dict[str, Any]]) -> list[str]:
    return [event["id"] for event in events]


def receipts(events: list[dict[str, Any]]) -> list[str]:
    return [event["receipt"] for event in events]


def status(caller: ApiClient, event_id: str) -> str:
    return str(caller.get(f"/events/{event_id}").get_json()["status"])


def test_a_leased_event_says_so_and_brings_a_receipt(acme: ApiClient) -> None:
    sent = acme.send({"n": 1}, event_type="t")
    (event,) = acme.lease()

    assert event.pop("receipt")
    assert datetime.fromisoformat(event.pop("lease_expires_at")) > datetime.fromisoformat(event["created_at"])
    assert event == sent | {"status": "leased", "deliveries": 1, "payload": {"n": 1}}


def test_the_receipt_stands_wherever_the_event_is_shown(acme: ApiClient) -> None:
    fill(acme, 1)
    leased = acme.lease()
    assert acme.get("/events").get_json() == leased
    assert acme.get(f"/events/{leased[0]['id']}").get_json() == leased[0]


def test_nobody_else_gets_a_leased_event(acme: ApiClient) -> None:
    fill(acme, 2)
    assert len(acme.lease("&limit=1")) == 1
    response = acme.get("/inbox?mode=lease")
    assert (len(response.get_json()), response.headers["Inbox-More"]) == (1, "false")
    assert acme.lease() == acme.poll() == acme.waiting() == []


@pytest.mark.parametrize(("query", "seconds"), [("", 7), ("&lease_seconds=1", 1), ("&lease_seconds=43200", 43200)])
def test_a_lease_lasts_as_long_as_it_was_asked_for(
    settings: Settings, acme: ApiClient, clock: Clock, query: str, seconds: int
) -> None:
    assert settings.lease_seconds == 7
    sent = fill(acme, 1)
    (event,) = acme.lease(query)
    expires_at = datetime.fromisoformat(event["lease_expires_at"])
    assert expires_at - datetime.fromisoformat(event["created_at"]) >= timedelta(seconds=seconds)

    clock.advance(seconds + 1)
    assert [ids(acme.waiting()), status(acme, sent[0])] == [sent, "undelivered"]


@pytest.fixture(name="settings")
def short_leases(settings: Settings) -> Settings:
    return Settings(store=settings.store, lease_seconds=7, max_deliveries=2, max_event_bytes=1000)


def test_an_acknowledged_event_is_delivered_for_good(acme: ApiClient, clock: Clock) -> None:
    sent = fill(acme, 2)
    leased = acme.lease()
    assert acme.settle("ack", receipts(leased)) == {"acknowledged": sent, "lost": []}

    clock.advance(3600)
    assert acme.waiting() == []
    event = acme.get(f"/events/{sent[0]}").get_json()
    assert (event["status"], event["deliveries"], "delivered_at" in event) == ("delivered", 1, True)
    assert not {"receipt", "lease_expires_at"} & set(event)


def test_acknowledging_again_changes_nothing(acme: ApiClient, clock: Clock) -> None:
    sent = fill(acme, 1)
    leased = receipts(acme.lease())
    first = acme.settle("ack", leased)
    event = acme.get(f"/events/{sent[0]}").get_json()
    clock.advance(60)
    assert acme.settle("ack", leased) == first == {"acknowledged": sent, "lost": []}
    assert acme.get(f"/events/{sent[0]}").get_json() == event


def test_what_is_not_acknowledged_in_time_comes_again_at_its_old_place(acme: ApiClient, clock: Clock) -> None:
    sent = fill(acme, 2)
    late = receipts(acme.lease("&limit=1"))
    clock.advance(8)
    again = acme.lease()

    assert ids(again) == sent
    assert [event["deliveries"] for event in again] == [2, 1]
    assert receipts(again)[0] != late[0]
    for verb, done in VERBS.items():
        assert acme.settle(verb, late) == {done: [], "lost": late}
    assert acme.settle("ack", receipts(again)) == {"acknowledged": sent, "lost": []}


def test_a_released_event_is_there_at_once(acme: ApiClient) -> None:
    sent = fill(acme, 2)
    leased = receipts(acme.lease())
    assert acme.settle("release", leased[:1]) == {"released": sent[:1], "lost": []}
    assert ids(acme.waiting()) == sent[:1]
    assert acme.settle("ack", leased[:1]) == {"acknowledged": [], "lost": leased[:1]}


def test_a_released_event_waits_out_its_delay(acme: ApiClient, clock: Clock) -> None:
    sent = fill(acme, 1)
    acme.settle("release", receipts(acme.lease()), delay_seconds=30)
    assert (acme.waiting(), acme.lease(), status(acme, sent[0])) == ([], [], "undelivered")
    clock.advance(31)
    assert ids(acme.lease()) == sent


@pytest.mark.parametrize(("members", "seconds"), [({}, 7), ({"lease_seconds": 60}, 60)])
def test_an_extended_lease_lasts_longer(acme: ApiClient, clock: Clock, members: dict[str, int], seconds: int) -> None:
    sent = fill(acme, 1)
    leased = acme.lease()
    clock.advance(5)
    assert acme.settle("extend", receipts(leased), **members) == {"extended": sent, "lost": []}
    shown = acme.get(f"/events/{sent[0]}").get_json()
    assert (shown["receipt"], shown["lease_expires_at"] > leased[0]["lease_expires_at"]) == (leased[0]["receipt"], True)
    clock.advance(seconds - 1)
    assert acme.waiting() == []
    assert acme.settle("ack", receipts(leased)) == {"acknowledged": sent, "lost": []}


def test_an_event_that_lost_too_many_leases_is_dead(acme: ApiClient, clock: Clock) -> None:
    sent = fill(acme, 1)
    for _ in range(2):
        assert ids(acme.lease()) == sent
        clock.advance(8)
    assert (acme.lease(), status(acme, sent[0])) == ([], "dead")
    assert ids(acme.get("/events?status=dead").get_json()) == sent


def test_a_release_is_no_lost_lease(acme: ApiClient) -> None:
    sent = fill(acme, 1)
    for _ in range(5):
        assert acme.settle("release", receipts(acme.lease())) == {"released": sent, "lost": []}
    assert ids(acme.lease()) == sent


def test_failed_release_counts_as_a_lost_lease(acme: ApiClient, clock: Clock) -> None:
    sent = fill(acme, 2)
    for time in range(2):
        failing = receipts(acme.lease("&limit=1"))
        for _ in range(2):
            assert acme.settle("release", failing, failed=True) == {"released": sent[:1], "lost": []}
        assert status(acme, sent[0]) == ("undelivered", "dead")[time]
    assert ids(acme.waiting()) == sent[1:]
    assert acme.get("/stats").get_json()["totals"]["dead"] == 1

    acme.settle("release", receipts(acme.lease()), failed=True, delay_seconds=30)
    assert (acme.waiting(), status(acme, sent[1])) == ([], "undelivered")
    clock.advance(31)
    acme.lease()
    clock.advance(8)
    assert ids(acme.get("/events?status=dead").get_json()) == sent[::-1]


@pytest.mark.parametrize("bad", [1, 0, "true", "yes", None, [], {}])
def test_failed_is_a_boolean(acme: ApiClient, bad: Any) -> None:
    fill(acme, 1)
    leased = receipts(acme.lease())
    for verb, good in (("release", bad), ("ack", True), ("extend", True)):
        response = acme.post(f"/inbox/{verb}", json={"receipts": leased, "failed": good})
        assert (response.status_code, pointers(response)) == (422, ["/failed"])
    assert acme.settle("ack", leased)["lost"] == []


@pytest.mark.parametrize("verb", VERBS)
def test_receipts_are_answered_once_each_and_in_their_order(acme: ApiClient, verb: str) -> None:
    sent = fill(acme, 3)
    one, two, three = receipts(acme.lease())
    response = acme.settle(verb, [three, "zzz", one, three, "aaa", two, one, "zzz"])
    assert response == {VERBS[verb]: [sent[2], sent[0], sent[1]], "lost": ["zzz", "aaa"]}


@pytest.mark.parametrize("verb", VERBS)
def test_a_receipt_that_stands_for_nothing_is_lost_and_no_error(acme: ApiClient, globex: ApiClient, verb: str) -> None:
    fill(acme, 1)
    (mine,) = receipts(acme.lease())
    nothing = ["", "x", "é", "=" * 300, mine + "=", mine[:-1], mine.lower(), f" {mine}", mine + "A"]
    assert acme.settle(verb, nothing) == {VERBS[verb]: [], "lost": nothing}
    assert globex.settle(verb, [mine]) == {VERBS[verb]: [], "lost": [mine]}
    assert acme.settle(verb, [mine])["lost"] == []


def test_500_receipts_fit_however_small_an_event_has_to_be(acme: ApiClient) -> None:
    acme.post("/events/batch", json=[{"n": number} for number in range(500)])
    leased = receipts(acme.lease("&limit=500"))
    assert len(acme.settle("ack", leased)["acknowledged"]) == 500
    longest = [f"{number:0300}" for number in range(500)]
    assert acme.settle("ack", longest)["lost"] == longest
    response = acme.post("/inbox/ack", data=b'{"receipts": ["x"]}' + b" " * 262_144, content_type="application/json")
    assert response.status_code == 413


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({}, "/receipts"),
        ({"receipts": None}, "/receipts"),
        ({"receipts": []}, "/receipts"),
        ({"receipts": "x"}, "/receipts"),
        ({"receipts": [7]}, "/receipts/0"),
        ({"receipts": ["x", None]}, "/receipts/1"),
        ({"receipts": ["x" * 301]}, "/receipts/0"),
        ({"receipts": ["x"] * 501}, "/receipts"),
        ({"receipts": ["x"], "receipt": "x"}, "/receipt"),
        ([], ""),
        ("x", ""),
        (7, ""),
    ],
)
def test_bodies_of_another_form_are_refused(acme: ApiClient, verb: str, body: Any, pointer: str) -> None:
    response = acme.post(f"/inbox/{verb}", json=body)
    assert (response.status_code, pointers(response)) == (422, [pointer])


@pytest.mark.parametrize(
    ("verb", "member", "bad"),
    [
        ("ack", "lease_seconds", [5]),
        ("ack", "delay_seconds", [5]),
        ("release", "lease_seconds", [5]),
        ("extend", "delay_seconds", [5]),
        ("release", "delay_seconds", [-1, 43201, 1.5, 1.0, "5", True, None, [1], 10**30]),
        ("extend", "lease_seconds", [0, -1, 43201, 1.5, 1.0, "5", True, None, [1], 10**30]),
    ],
)
def test_seconds_are_whole_numbers_within_their_limits(acme: ApiClient, verb: str, member: str, bad: list[Any]) -> None:
    fill(acme, 1)
    leased = receipts(acme.lease())
    for seconds in bad:
        response = acme.post(f"/inbox/{verb}", json={"receipts": leased, member: seconds})
        assert (response.status_code, pointers(response)) == (422, [f"/{member}"]), seconds
    assert acme.settle("ack", leased)["lost"] == []


@pytest.mark.parametrize("verb", VERBS)
def test_what_is_not_json_is_refused(acme: ApiClient, verb: str) -> None:
    assert acme.post(f"/inbox/{verb}", data=b"{", content_type="application/json").status_code == 400
    assert acme.post(f"/inbox/{verb}", data=b'{"receipts": ["x"]}').status_code == 415
    assert acme.post(f"/inbox/{verb}").status_code == 415
    assert acme.get("/events").status_code == 200


@pytest.mark.parametrize(
    "query",
    ["mode=lease&lease_seconds=0", "mode=lease&lease_seconds=43201", "lease_seconds=60", "mode=peek&lease_seconds=60"],
)
def test_a_bad_lease_is_refused_before_any_event_is_touched(acme: ApiClient, query: str) -> None:
    fill(acme, 1)
    response = acme.get(f"/inbox?{query}")
    assert (response.status_code, pointers(response)) == (422, ["/lease_seconds"])
    assert acme.waiting()[0]["deliveries"] == 0
