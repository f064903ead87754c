"""POST /events."""

import time
import uuid
from datetime import datetime
from typing import Any

import pytest
from flask import Flask

from inbox.settings import Settings
from tests.api.conftest import ApiClient, pointers


def test_envelope_is_stored(acme: ApiClient) -> None:
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


def test_object_without_payload_is_stored_whole(acme: ApiClient) -> None:
    response = acme.post("/events?event_type=push", json={"ref": "main", "event_type": 7})

    assert response.status_code == 201
    assert [(event["event_type"], event["payload"]) for event in acme.waiting()] == [
        ("push", {"ref": "main", "event_type": 7})
    ]


@pytest.mark.parametrize("body", [{"payload": {}}, {"payload": {}, "event_type": None}, {}])
def test_event_type_is_optional(acme: ApiClient, body: dict[str, Any]) -> None:
    assert acme.post("/events", json=body).get_json()["event_type"] is None


def test_parameter_is_the_type_of_events_without_one(acme: ApiClient) -> None:
    assert acme.post("/events?event_type=a", json={"payload": {}}).get_json()["event_type"] == "a"
    assert acme.post("/events?event_type=a", json={"payload": {}, "event_type": "b"}).get_json()["event_type"] == "b"


@pytest.mark.parametrize("event_type", ["a", "order.created", "A_z:0/9-.", "x" * 128])
def test_event_type_has_1_to_128_allowed_characters(acme: ApiClient, event_type: str) -> None:
    assert acme.send({}, event_type=event_type)["event_type"] == event_type


# As Zoom and Calendly send them, shortened.
ZOOM = {"event": "meeting.started", "event_ts": 1626230691572, "payload": {"account_id": "a", "object": {"id": "1"}}}
CALENDLY = {"event": "invitee.created", "created_at": "2020-11-23T17:51:19Z", "payload": {"email": "a@b.example"}}


class TestRaw:
    @pytest.mark.parametrize("body", [ZOOM, CALENDLY, {"payload": 1}, {"payload": {}, "event_type": "x y"}, {}])
    def test_body_is_stored_whole_whatever_its_members(self, acme: ApiClient, body: dict[str, Any]) -> None:
        response = acme.post("/events?raw=true&event_type=hook", json=body)

        assert response.status_code == 201
        assert [(event["event_type"], event["payload"]) for event in acme.waiting()] == [("hook", body)]

    def test_error_suggests_raw_for_a_body_that_is_no_envelope(self, acme: ApiClient) -> None:
        for query in ("", "?raw=false"):
            response = acme.post(f"/events{query}", json=ZOOM)
            assert (response.status_code, set(pointers(response))) == (422, {"/event", "/event_ts"})
            assert "?raw=true" in response.get_json()["detail"]
        assert "?raw=true" in acme.post("/events", json={"payload": "text"}).get_json()["detail"]
        assert acme.waiting() == []

    def test_error_suggests_nothing_for_an_invalid_event_type(self, acme: ApiClient) -> None:
        response = acme.post("/events", json={"payload": {}, "event_type": "a b"})
        assert "raw" not in response.get_json()["detail"]

    def test_idempotency_key_applies(self, acme: ApiClient) -> None:
        header = {"Idempotency-Key": "k1"}
        first, again = (acme.post("/events?raw=true", json=ZOOM, headers=header) for _ in range(2))
        assert (first.status_code, again.status_code, len(acme.waiting())) == (201, 200, 1)
        other = acme.post("/events?raw=true", json=CALENDLY, headers=header)
        assert other.status_code == 409


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
def test_malformed_json_is_rejected(acme: ApiClient, body: bytes) -> None:
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
def test_other_media_type_is_rejected(acme: ApiClient, content_type: str | None) -> None:
    response = acme.post("/events", data=b'{"payload": {}}', content_type=content_type)
    assert (response.status_code, response.get_json()["type"]) == (415, "/problems/unsupported-media-type")


@pytest.mark.parametrize("content_type", ["application/json; charset=UTF-8", "application/cloudevents+json"])
def test_json_media_types_are_accepted(acme: ApiClient, content_type: str) -> None:
    assert acme.post("/events", data=b'{"payload": {}}', content_type=content_type).status_code == 201


class TestLimits:
    @pytest.fixture
    def settings(self, settings: Settings) -> Settings:
        return Settings(store=settings.store, max_event_bytes=100)

    def test_body_at_the_limit_is_accepted(self, acme: ApiClient) -> None:
        body = b'{"payload": {"a": "' + b"x" * 78 + b'"}}'
        assert len(body) == 100
        assert acme.post("/events", data=body, content_type="application/json").status_code == 201

    def test_body_above_the_limit_is_rejected(self, acme: ApiClient) -> None:
        body = b'{"payload": {"a": "' + b"x" * 79 + b'"}}'
        response = acme.post("/events", data=body, content_type="application/json")
        assert (response.status_code, response.get_json()["type"]) == (413, "/problems/too-large")
        assert acme.waiting() == []


class TestIdempotency:
    def test_repeated_event_gets_the_first_response(self, acme: ApiClient) -> None:
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

    def test_repeated_event_gets_the_first_response_after_delivery(self, acme: ApiClient) -> None:
        body = {"payload": {}, "idempotency_key": "k1"}
        first = acme.post("/events", json=body)
        acme.get("/inbox")

        assert acme.post("/events", json=body).get_json() == first.get_json()
        assert acme.get("/inbox").get_json() == []

    @pytest.mark.parametrize("key", ["k1", "ключ", "x" * 255])
    def test_header_and_member_are_the_same_key(self, acme: ApiClient, key: str) -> None:
        first = acme.post("/events", json={"payload": {}, "idempotency_key": key})
        header = {"Idempotency-Key": key.encode().decode("latin-1")}
        again = acme.post("/events", json={"payload": {}}, headers=header)
        both = acme.post("/events", json={"payload": {}, "idempotency_key": key}, headers=header)

        assert [first.status_code, again.status_code, both.status_code] == [201, 200, 200]
        assert first.get_json() == again.get_json() == both.get_json()

    def test_member_order_and_white_space_do_not_matter(self, acme: ApiClient) -> None:
        header = {"Idempotency-Key": "k1"}
        first = acme.post("/events", data=b'{"a": 1, "b": [1.50]}', content_type="application/json", headers=header)
        again = acme.post("/events", data=b'{"b":[1.50],"a":1}', content_type="application/json", headers=header)
        assert (first.status_code, again.status_code) == (201, 200)

    @pytest.mark.parametrize(
        "other", [{"payload": {"a": 2}}, {"payload": {"a": 1}, "event_type": "t"}, {"payload": {"a": 1.0}}, {"b": 1}]
    )
    def test_different_event_with_the_key_is_a_conflict(self, acme: ApiClient, other: dict[str, Any]) -> None:
        header = {"Idempotency-Key": "k1"}
        acme.post("/events", json={"payload": {"a": 1}}, headers=header)
        response = acme.post("/events", json=other, headers=header)

        assert (response.status_code, response.get_json()["type"]) == (409, "/problems/idempotency-conflict")
        assert [event["payload"] for event in acme.waiting()] == [{"a": 1}]

    def test_header_and_member_must_agree(self, acme: ApiClient) -> None:
        response = acme.post("/events", json={"payload": {}, "idempotency_key": "a"}, headers={"Idempotency-Key": "b"})
        assert (response.status_code, pointers(response)) == (422, ["/idempotency_key"])

    def test_tenants_can_use_the_same_key(self, acme: ApiClient, globex: ApiClient) -> None:
        header = {"Idempotency-Key": "k1"}
        ours = acme.post("/events", json={"payload": {"whose": "ours"}}, headers=header)
        theirs = globex.post("/events", json={"payload": {"whose": "theirs"}}, headers=header)

        assert (ours.status_code, theirs.status_code) == (201, 201)
        assert ours.get_json()["id"] != theirs.get_json()["id"]


def test_failed_store_is_a_500_without_details(app: Flask, acme: ApiClient, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any) -> None:
        raise OSError("the disk is gone: secret payload")

    monkeypatch.setattr(app.extensions["inbox"].publish.store, "put", fail)
    response = acme.post("/events", json={"payload": {}})

    assert (response.status_code, response.get_json()["type"]) == (500, "/problems/internal-error")
    assert "secret" not in response.text
