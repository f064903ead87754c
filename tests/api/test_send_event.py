"""POST /events."""

import json
import time
import uuid
from datetime import datetime
from typing import Any

import pytest
from flask import Flask

from inbox.settings import Settings
from tests.api.conftest import ApiClient, pointers


def test_an_envelope_is_stored(acme: ApiClient) -> None:
    before_ms = time.time_ns() // 1_000_000
    response = acme.post("/events", json={"event_type": "order.created", "payload": {"order": 1001}})

    assert response.status_code == 201
    assert set(response.get_json()) == {"id", "event_type", "timestamp", "created_at", "status", "deliveries"}
    assert response.headers["Location"] == f"/events/{response.get_json()['id']}"
    assert uuid.UUID(response.get_json()["id"]).version == 4
    assert before_ms <= response.get_json()["timestamp"] <= time.time_ns() // 1_000_000
    assert datetime.fromisoformat(response.get_json()["created_at"]).timestamp() * 1000 == pytest.approx(
        response.get_json()["timestamp"]
    )
    assert (response.get_json()["event_type"], response.get_json()["status"], response.get_json()["deliveries"]) == (
        "order.created",
        "undelivered",
        0,
    )
    assert acme.waiting() == [response.get_json() | {"payload": {"order": 1001}}]


def test_an_object_without_payload_is_taken_whole(acme: ApiClient) -> None:
    response = acme.post("/events?event_type=push", json={"ref": "main", "event_type": 7})

    assert response.status_code == 201
    assert [(event["event_type"], event["payload"]) for event in acme.waiting()] == [
        ("push", {"ref": "main", "event_type": 7})
    ]


@pytest.mark.parametrize("body", [{"payload": {}}, {"payload": {}, "event_type": None}, {}])
def test_a_type_is_not_needed(acme: ApiClient, body: dict[str, Any]) -> None:
    assert acme.post("/events", json=body).get_json()["event_type"] is None


def test_the_parameter_types_an_envelope_without_a_type(acme: ApiClient) -> None:
    assert acme.post("/events?event_type=a", json={"payload": {}}).get_json()["event_type"] == "a"
    assert acme.post("/events?event_type=a", json={"payload": {}, "event_type": "b"}).get_json()["event_type"] == "b"


@pytest.mark.parametrize("event_type", ["a", "order.created", "A_z:0/9-.", "x" * 128])
def test_types_of_the_allowed_characters_are_taken(acme: ApiClient, event_type: str) -> None:
    assert acme.send({}, event_type=event_type)["event_type"] == event_type


@pytest.mark.parametrize("event_type", ["", "x" * 129, "a b", "é", "a\n", "a*", 7, ["a"], True])
def test_other_types_are_refused(acme: ApiClient, event_type: Any) -> None:
    response = acme.post("/events", json={"payload": {}, "event_type": event_type})

    assert (response.status_code, pointers(response)) == (422, ["/event_type"])
    assert acme.waiting() == []


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({"payload": {}, "typ": "a"}, "/typ"),
        ({"payload": {}, "a/b~c": 1}, "/a~1b~0c"),
        ({"payload": []}, "/payload"),
        ({"payload": None}, "/payload"),
        ({"payload": "text"}, "/payload"),
        ({"payload": 1}, "/payload"),
        ({"payload": {}, "idempotency_key": ""}, "/idempotency_key"),
        ({"payload": {}, "idempotency_key": "x" * 256}, "/idempotency_key"),
        ({"payload": {}, "idempotency_key": None}, "/idempotency_key"),
        ([], ""),
        (["a"], ""),
        ("text", ""),
        (1, ""),
        (None, ""),
    ],
)
def test_a_body_of_another_form_is_refused_with_a_pointer(acme: ApiClient, body: Any, pointer: str) -> None:
    response = acme.post("/events", data=json.dumps(body), content_type="application/json")

    assert (response.status_code, pointers(response)) == (422, [pointer])
    assert acme.waiting() == []


# As Zoom and Calendly send them, shortened.
ZOOM = {"event": "meeting.started", "event_ts": 1626230691572, "payload": {"account_id": "a", "object": {"id": "1"}}}
CALENDLY = {"event": "invitee.created", "created_at": "2020-11-23T17:51:19Z", "payload": {"email": "a@b.example"}}


class TestRaw:
    @pytest.mark.parametrize("body", [ZOOM, CALENDLY, {"payload": 1}, {"payload": {}, "event_type": "x y"}, {}])
    def test_body_is_the_payload_whatever_its_members(self, acme: ApiClient, body: dict[str, Any]) -> None:
        response = acme.post("/events?raw=true&event_type=hook", json=body)

        assert response.status_code == 201
        assert [(event["event_type"], event["payload"]) for event in acme.waiting()] == [("hook", body)]

    def test_refusal_of_such_a_body_names_the_parameter(self, acme: ApiClient) -> None:
        for query in ("", "?raw=false"):
            response = acme.post(f"/events{query}", json=ZOOM)
            assert (response.status_code, set(pointers(response))) == (422, {"/event", "/event_ts"})
            assert "?raw=true" in response.get_json()["detail"]
        assert "?raw=true" in acme.post("/events", json={"payload": "text"}).get_json()["detail"]
        assert acme.waiting() == []

    def test_refusal_of_an_envelope_with_a_bad_type_does_not(self, acme: ApiClient) -> None:
        response = acme.post("/events", json={"payload": {}, "event_type": "a b"})
        assert "raw" not in response.get_json()["detail"]

    def test_header_makes_it_repeatable(self, acme: ApiClient) -> None:
        header = {"Idempotency-Key": "k1"}
        first, again = (acme.post("/events?raw=true", json=ZOOM, headers=header) for _ in range(2))
        assert (first.status_code, again.status_code, len(acme.waiting())) == (201, 200, 1)
        other = acme.post("/events?raw=true", json=CALENDLY, headers=header)
        assert other.status_code == 409

    @pytest.mark.parametrize("body", [[], "text", 1, None])
    def test_what_is_no_object_is_refused(self, acme: ApiClient, body: Any) -> None:
        response = acme.post("/events?raw=true", data=json.dumps(body), content_type="application/json")
        assert (response.status_code, pointers(response)) == (422, [""])

    @pytest.mark.parametrize("value", ["", "1", "True", "yes", "on", "true%20", "raw"])
    def test_other_values_are_refused(self, acme: ApiClient, value: str) -> None:
        for path, body in (("/events", {}), ("/events/batch", [{}])):
            response = acme.post(f"{path}?raw={value}", json=body)
            assert (response.status_code, pointers(response)) == (422, ["/raw"])
        assert acme.waiting() == []


def test_an_unknown_parameter_is_refused(acme: ApiClient) -> None:
    response = acme.post("/events?eventtype=a", json={"payload": {}})
    assert (response.status_code, pointers(response)) == (422, ["/eventtype"])


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"{'a': 1}",
        b'{"payload": {"a": NaN}}',
        b'{"payload": {"a": -Infinity}}',
        b'{"payload": {"a": 1, "a": 2}}',
        b'{"payload": {}, "payload": {}}',
        b'{"payload": {"a": "\\ud800"}}',
        b'{"payload": {"a": "\xff"}}',
        b'{"payload": {"a": "\xed\xa0\x80"}}',
        '{"payload": {}}'.encode("utf-16"),
        b'\xef\xbb\xbf{"payload": {}}',
        b'{"payload": {"a": ' + b"[" * 40 + b"]" * 40 + b"}}",
        b'{"payload": {"a": ' + b"[" * 100_000,
        b'{"payload": {}} {}',
        b'{"payload": {"a": "\x00"}}',
    ],
)
def test_what_is_not_json_here_is_refused(acme: ApiClient, body: bytes) -> None:
    response = acme.post("/events", data=body, content_type="application/json")

    assert (response.status_code, response.get_json()["type"]) == (400, "/problems/not-json")
    assert acme.waiting() == []


@pytest.mark.parametrize(
    "content_type",
    [
        *(None, "text/plain", "application/x-www-form-urlencoded", "application/json; charset=latin-1", "json"),
        *("text/json", "application/jsonx", "application/json\xa0", "*/*", "multipart/form-data; boundary=x"),
        *("application/json, text/plain", "text/plain, application/json", "text/plain; application/json"),
    ],
)
def test_another_media_type_is_refused(acme: ApiClient, content_type: str | None) -> None:
    response = acme.post("/events", data=b'{"payload": {}}', content_type=content_type)
    assert (response.status_code, response.get_json()["type"]) == (415, "/problems/unsupported-media-type")


@pytest.mark.parametrize("content_type", ["application/json; charset=UTF-8", "application/cloudevents+json"])
def test_json_by_its_other_names_is_taken(acme: ApiClient, content_type: str) -> None:
    assert acme.post("/events", data=b'{"payload": {}}', content_type=content_type).status_code == 201


class TestLimits:
    @pytest.fixture
    def settings(self, settings: Settings) -> Settings:
        return Settings(store=settings.store, max_event_bytes=100)

    def test_a_body_at_the_limit_is_taken(self, acme: ApiClient) -> None:
        body = b'{"payload": {"a": "' + b"x" * 78 + b'"}}'
        assert len(body) == 100
        assert acme.post("/events", data=body, content_type="application/json").status_code == 201

    def test_a_body_above_the_limit_is_refused(self, acme: ApiClient) -> None:
        body = b'{"payload": {"a": "' + b"x" * 79 + b'"}}'
        response = acme.post("/events", data=body, content_type="application/json")
        assert (response.status_code, response.get_json()["type"]) == (413, "/problems/too-large")
        assert acme.waiting() == []


class TestIdempotency:
    def test_the_same_event_again_gets_the_first_answer(self, acme: ApiClient) -> None:
        body = {"payload": {"a": 1, "b": 2}, "event_type": "t", "idempotency_key": "k1"}
        first = acme.post("/events", json=body)
        again = acme.post("/events", json=body)

        assert (first.status_code, again.status_code) == (201, 200)
        assert "Idempotency-Replayed" not in first.headers
        assert again.headers["Idempotency-Replayed"] == "true"
        assert again.get_json() == first.get_json()
        assert again.headers["Location"] == first.headers["Location"]
        assert uuid.UUID(first.get_json()["id"]).version == 5
        assert len(acme.waiting()) == 1

    def test_the_first_answer_stays_the_same_after_delivery(self, acme: ApiClient) -> None:
        body = {"payload": {}, "idempotency_key": "k1"}
        first = acme.post("/events", json=body)
        acme.get("/inbox")

        assert acme.post("/events", json=body).get_json() == first.get_json()
        assert acme.get("/inbox").get_json() == []

    @pytest.mark.parametrize("key", ["k1", "ключ", "x" * 255])
    def test_the_header_does_what_the_member_does(self, acme: ApiClient, key: str) -> None:
        first = acme.post("/events", json={"payload": {}, "idempotency_key": key})
        header = {"Idempotency-Key": key.encode().decode("latin-1")}
        again = acme.post("/events", json={"payload": {}}, headers=header)
        both = acme.post("/events", json={"payload": {}, "idempotency_key": key}, headers=header)

        assert [first.status_code, again.status_code, both.status_code] == [201, 200, 200]
        assert first.get_json() == again.get_json() == both.get_json()

    def test_the_order_of_members_and_white_space_make_no_other_event(self, acme: ApiClient) -> None:
        header = {"Idempotency-Key": "k1"}
        first = acme.post("/events", data=b'{"a": 1, "b": [1.50]}', content_type="application/json", headers=header)
        again = acme.post("/events", data=b'{"b":[1.50],"a":1}', content_type="application/json", headers=header)
        assert (first.status_code, again.status_code) == (201, 200)

    @pytest.mark.parametrize(
        "other", [{"payload": {"a": 2}}, {"payload": {"a": 1}, "event_type": "t"}, {"payload": {"a": 1.0}}, {"b": 1}]
    )
    def test_another_event_under_the_key_is_a_conflict(self, acme: ApiClient, other: dict[str, Any]) -> None:
        header = {"Idempotency-Key": "k1"}
        acme.post("/events", json={"payload": {"a": 1}}, headers=header)
        response = acme.post("/events", json=other, headers=header)

        assert (response.status_code, response.get_json()["type"]) == (409, "/problems/idempotency-conflict")
        assert [event["payload"] for event in acme.waiting()] == [{"a": 1}]

    def test_header_and_member_may_not_contradict(self, acme: ApiClient) -> None:
        response = acme.post("/events", json={"payload": {}, "idempotency_key": "a"}, headers={"Idempotency-Key": "b"})
        assert (response.status_code, pointers(response)) == (422, ["/idempotency_key"])

    @pytest.mark.parametrize("key", ["", "x" * 256, "\xff"])
    def test_a_header_of_another_form_is_refused(self, acme: ApiClient, key: str) -> None:
        response = acme.post("/events", json={"payload": {}}, headers={"Idempotency-Key": key})
        assert (response.status_code, pointers(response)) == (422, ["/Idempotency-Key"])

    def test_keys_of_two_tenants_have_nothing_to_do_with_each_other(self, acme: ApiClient, globex: ApiClient) -> None:
        header = {"Idempotency-Key": "k1"}
        ours = acme.post("/events", json={"payload": {"whose": "ours"}}, headers=header)
        theirs = globex.post("/events", json={"payload": {"whose": "theirs"}}, headers=header)

        assert (ours.status_code, theirs.status_code) == (201, 201)
        assert ours.get_json()["id"] != theirs.get_json()["id"]


def test_the_event_is_where_location_says(acme: ApiClient) -> None:
    response = acme.post("/events", json={"payload": {"n": 1}})
    assert acme.get(response.headers["Location"]).get_json() == response.get_json() | {"payload": {"n": 1}}


def test_nothing_is_answered_before_the_store_has_it(
    app: Flask, acme: ApiClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any) -> None:
        raise OSError("the disk is gone: secret payload")

    monkeypatch.setattr(app.extensions["inbox"].publish._store, "put", fail)
    response = acme.post("/events", json={"payload": {}})

    assert (response.status_code, response.get_json()["type"]) == (500, "/problems/internal-error")
    assert "secret" not in response.text
