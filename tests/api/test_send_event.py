"""POST /events."""

import json
import time
import uuid
from datetime import datetime
from typing import Any

import pytest
from flask import Flask

from inbox.settings import Settings
from tests.api.conftest import ApiClient, payloads, pointers, problem

# Webhooks as Zoom and Calendly send them, shortened.
ZOOM = {"event": "meeting.started", "event_ts": 1626230691572, "payload": {"account_id": "a", "object": {"id": "1"}}}
CALENDLY = {"event": "invitee.created", "created_at": "2020-11-23T17:51:19Z", "payload": {"email": "a@b.example"}}
KEY_HEADER = {"Idempotency-Key": "k1"}


def test_envelope_is_stored(acme: ApiClient) -> None:
    before_ms = time.time_ns() // 1_000_000
    response = acme.post("/events", json={"event_type": "order.created", "payload": {"order": 1001}})
    event = response.get_json()

    assert (response.status_code, response.headers["Location"]) == (201, f"/events/{event['id']}")
    assert acme.peek() == [event | {"payload": {"order": 1001}}]
    assert acme.get(response.headers["Location"]).get_json() == event | {"payload": {"order": 1001}}
    assert uuid.UUID(event.pop("id")).version == 4
    timestamp_ms, created_at = event.pop("timestamp"), datetime.fromisoformat(event.pop("created_at"))
    # The service's clock approaches the wall clock slowly.
    assert before_ms - 100 <= timestamp_ms <= time.time_ns() // 1_000_000 + 100
    assert created_at.timestamp() * 1000 == pytest.approx(timestamp_ms)
    assert event == {"event_type": "order.created", "status": "undelivered", "deliveries": 0}


def test_object_without_payload_is_stored_whole(acme: ApiClient) -> None:
    body = {"ref": "main", "event_type": 7}
    assert acme.post("/events?event_type=push", json=body).status_code == 201
    assert [(event["event_type"], event["payload"]) for event in acme.peek()] == [("push", body)]


def test_event_type_is_optional_and_can_be_a_parameter(acme: ApiClient) -> None:
    for query, body, expected in (
        ("", {"payload": {}}, None),
        ("", {"payload": {}, "event_type": None}, None),
        ("", {}, None),
        ("?event_type=a", {"payload": {}}, "a"),
        ("?event_type=a", {"payload": {}, "event_type": "b"}, "b"),
    ):
        assert acme.post(f"/events{query}", json=body).get_json()["event_type"] == expected


@pytest.mark.parametrize("event_type", ["a", "order.created", "A_z:0/9-.", "x" * 128])
def test_event_type_has_1_to_128_allowed_characters(acme: ApiClient, event_type: str) -> None:
    assert acme.send({}, event_type=event_type)["event_type"] == event_type


@pytest.mark.parametrize("body", [ZOOM, CALENDLY, {"payload": 1}, {"payload": {}, "event_type": "x y"}, {}])
def test_raw_body_is_stored_whole(acme: ApiClient, body: dict[str, Any]) -> None:
    assert acme.post("/events?raw=true&event_type=hook", json=body).status_code == 201
    assert [(event["event_type"], event["payload"]) for event in acme.peek()] == [("hook", body)]


def test_error_suggests_raw_for_a_body_that_is_no_envelope(acme: ApiClient) -> None:
    for query in ("", "?raw=false"):
        response = acme.post(f"/events{query}", json=ZOOM)
        assert (response.status_code, set(pointers(response))) == (422, {"/event", "/event_ts"})
        assert "?raw=true" in response.get_json()["detail"]
    assert "?raw=true" in acme.post("/events", json={"payload": "text"}).get_json()["detail"]
    assert "raw" not in acme.post("/events", json={"payload": {}, "event_type": "a b"}).get_json()["detail"]
    assert acme.peek() == []


def test_idempotency_key_applies_to_raw_bodies(acme: ApiClient) -> None:
    statuses = [
        acme.post("/events?raw=true", json=body, headers=KEY_HEADER).status_code for body in (ZOOM, ZOOM, CALENDLY)
    ]
    assert (statuses, payloads(acme.peek())) == ([201, 200, 409], [ZOOM])


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
    assert problem(acme.post("/events", data=body, content_type="application/json")) == (400, "not-json")
    assert acme.peek() == []


def test_other_media_type_is_rejected(acme: ApiClient) -> None:
    for content_type in (
        *(None, "text/plain", "application/x-www-form-urlencoded", "application/json; charset=latin-1", "json"),
        *("text/json", "application/jsonx", "application/json\xa0", "*/*", "multipart/form-data; boundary=x"),
        *("application/json, text/plain", "text/plain, application/json", "text/plain; application/json"),
    ):
        response = acme.post("/events", data=b'{"payload": {}}', content_type=content_type)
        assert problem(response) == (415, "unsupported-media-type"), content_type


@pytest.mark.parametrize("content_type", ["application/json; charset=UTF-8", "application/cloudevents+json"])
def test_json_media_types_are_accepted(acme: ApiClient, content_type: str) -> None:
    assert acme.post("/events", data=b'{"payload": {}}', content_type=content_type).status_code == 201


class TestLimits:
    @pytest.fixture
    def settings(self, settings: Settings) -> Settings:
        return Settings(store=settings.store, max_event_bytes=100)

    def test_body_has_up_to_max_event_bytes(self, acme: ApiClient) -> None:
        for padding, expected in ((79, 413), (78, 201)):
            body = json.dumps({"payload": {"a": "x" * padding}}).encode()
            assert len(body) == padding + 22
            assert acme.post("/events", data=body, content_type="application/json").status_code == expected
        assert len(acme.peek()) == 1


def test_repeated_event_gets_the_first_response(acme: ApiClient) -> None:
    body = {"payload": {"a": 1, "b": 2}, "event_type": "t", "idempotency_key": "k1"}
    first, again = acme.post("/events", json=body), acme.post("/events", json=body)
    assert (first.status_code, again.status_code) == (201, 200)
    assert "Idempotency-Replayed" not in first.headers
    assert again.headers["Idempotency-Replayed"] == "true"
    assert again.headers["Location"] == first.headers["Location"]
    assert uuid.UUID(first.get_json()["id"]).version == 5

    assert len(acme.poll()) == 1
    after_delivery = acme.post("/events", json=body)
    assert after_delivery.get_json() == again.get_json() == first.get_json()
    assert acme.poll() == []


@pytest.mark.parametrize("key", ["k1", "ключ", "x" * 255])
def test_header_and_member_name_the_same_idempotency_key(acme: ApiClient, key: str) -> None:
    header = {"Idempotency-Key": key.encode().decode("latin-1")}
    member = {"payload": {}, "idempotency_key": key}
    first = acme.post("/events", json=member)
    again = acme.post("/events", json={"payload": {}}, headers=header)
    both = acme.post("/events", json=member, headers=header)
    assert [first.status_code, again.status_code, both.status_code] == [201, 200, 200]
    assert first.get_json() == again.get_json() == both.get_json()


def test_idempotency_keys_in_header_and_member_must_agree(acme: ApiClient) -> None:
    response = acme.post("/events", json={"payload": {}, "idempotency_key": "a"}, headers=KEY_HEADER)
    assert (response.status_code, pointers(response)) == (422, ["/idempotency_key"])


def test_member_order_and_white_space_do_not_change_the_fingerprint(acme: ApiClient) -> None:
    bodies = (b'{"a": 1, "b": [1.50]}', b'{"b":[1.50],"a":1}')
    responses = [
        acme.post("/events", data=body, content_type="application/json", headers=KEY_HEADER) for body in bodies
    ]
    assert [response.status_code for response in responses] == [201, 200]


@pytest.mark.parametrize(
    "other", [{"payload": {"a": 2}}, {"payload": {"a": 1}, "event_type": "t"}, {"payload": {"a": 1.0}}, {"b": 1}]
)
def test_different_event_with_the_same_idempotency_key_is_a_conflict(acme: ApiClient, other: dict[str, Any]) -> None:
    acme.post("/events", json={"payload": {"a": 1}}, headers=KEY_HEADER)
    assert problem(acme.post("/events", json=other, headers=KEY_HEADER)) == (409, "idempotency-conflict")
    assert payloads(acme.peek()) == [{"a": 1}]


def test_tenants_can_use_the_same_idempotency_key(acme: ApiClient, globex: ApiClient) -> None:
    one, other = (client.post("/events", json={"n": 1}, headers=KEY_HEADER) for client in (acme, globex))
    assert (one.status_code, other.status_code) == (201, 201)
    assert one.get_json()["id"] != other.get_json()["id"]


def test_bug_in_the_store_returns_500_without_details(
    app: Flask, acme: ApiClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any) -> None:
        raise OSError("the disk is gone: secret payload")

    monkeypatch.setattr(app.extensions["inbox"].publish.store, "put", fail)
    response = acme.post("/events", json={"payload": {}})
    assert problem(response) == (500, "internal-error")
    assert "secret" not in response.text
