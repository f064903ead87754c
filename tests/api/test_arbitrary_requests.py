"""Generated bodies and parameters are accepted and returned exactly, or get a documented 4xx."""

import json
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as examples
from hypothesis import strategies as st

from inbox.settings import Settings
from tests.api.conftest import ApiClient, payloads
from tests.json_documents import OBJECTS, VALUES, exact

# All examples of a test share a store: each either empties the inbox again or does not depend on its content.
ONE_STORE = [HealthCheck.function_scoped_fixture]
CLIENT_ERRORS = {400, 409, 413, 415, 422}
EVENTS = st.fixed_dictionaries(
    {"payload": OBJECTS}, optional={"event_type": st.sampled_from(["a", "order.created", None])}
)


@pytest.fixture(name="settings")
def small_events(settings: Settings) -> Settings:
    return Settings(store=settings.store, max_event_bytes=20_000)


def post_and_check(client: ApiClient, path: str, body: bytes, content_type: str = "application/json") -> Any:
    response = client.post(path, data=body, content_type=content_type)
    assert response.status_code in {200, 201} | CLIENT_ERRORS, response.text
    return response


@examples(max_examples=300, deadline=None, suppress_health_check=ONE_STORE)
@given(OBJECTS, st.booleans())
def test_polled_payload_equals_the_sent_one(acme: ApiClient, payload: dict[str, Any], ascii_only: bool) -> None:
    text = json.dumps({"payload": payload}, ensure_ascii=ascii_only)
    location = post_and_check(acme, "/events", text.encode()).headers["Location"]
    polled = exact(acme.get("/inbox").get_data())
    assert payloads(polled) == [exact(text)["payload"]]
    assert exact(acme.get(location).get_data())["payload"] == exact(text)["payload"]


@examples(max_examples=300, deadline=None, suppress_health_check=ONE_STORE)
@given(st.sampled_from(["/events", "/events/batch"]), st.binary(max_size=300))
def test_arbitrary_bytes_are_stored_or_rejected(acme: ApiClient, path: str, body: bytes) -> None:
    post_and_check(acme, path, body)


@examples(max_examples=300, deadline=None, suppress_health_check=ONE_STORE)
@given(st.sampled_from(["/events", "/events/batch"]), VALUES | st.lists(VALUES) | OBJECTS)
def test_arbitrary_json_is_stored_or_rejected(acme: ApiClient, path: str, document: Any) -> None:
    response = post_and_check(acme, path, json.dumps(document).encode())
    if path == "/events" and not isinstance(document, dict):
        assert response.status_code == 422
    if path == "/events/batch" and not isinstance(document, list):
        assert response.status_code == 422


@examples(max_examples=300, deadline=None, suppress_health_check=ONE_STORE)
@given(EVENTS, st.data())
def test_truncated_body_is_rejected(acme: ApiClient, event: dict[str, Any], data: st.DataObject) -> None:
    text = json.dumps(event).encode()
    cut = data.draw(st.integers(0, len(text) - 1))
    assert post_and_check(acme, "/events", text[:cut]).status_code == 400


@examples(max_examples=300, deadline=None, suppress_health_check=ONE_STORE)
@given(EVENTS, st.data())
def test_body_with_one_changed_byte_is_stored_or_rejected(
    acme: ApiClient, event: dict[str, Any], data: st.DataObject
) -> None:
    text = bytearray(json.dumps([event], ensure_ascii=False).encode())
    text[data.draw(st.integers(0, len(text) - 1))] = data.draw(st.integers(0, 255))
    post_and_check(acme, "/events/batch", bytes(text))


@examples(max_examples=100, deadline=None, suppress_health_check=ONE_STORE)
@given(EVENTS, st.sampled_from(["utf-16", "utf-32", "utf-7", "cp037", "latin-1"]), st.text(max_size=30))
def test_other_encodings_and_media_types_are_stored_or_rejected(
    acme: ApiClient, event: dict[str, Any], encoding: str, content_type: str
) -> None:
    post_and_check(acme, "/events", json.dumps(event, ensure_ascii=False).encode(encoding, "replace"))
    header = content_type.encode().decode("latin-1").replace("\r", "").replace("\n", "")
    post_and_check(acme, "/events", json.dumps(event).encode(), header)


PATHS = ["/inbox/ack", "/inbox/release", "/inbox/extend", "/events/replay"]
MEMBERS = st.sampled_from(
    ["receipts", "delay_seconds", "lease_seconds", "since", "until", "status", "event_type", "inbox", "event_types"]
)


@examples(max_examples=300, deadline=None, suppress_health_check=ONE_STORE)
@given(st.sampled_from(PATHS), VALUES | st.dictionaries(MEMBERS, VALUES | st.lists(VALUES, max_size=3), max_size=3))
def test_arbitrary_settling_or_replay_is_executed_or_rejected(acme: ApiClient, path: str, document: Any) -> None:
    response = acme.post(path, json=document)
    # A generated inbox name rarely exists.
    assert response.status_code in {200, 404} | CLIENT_ERRORS, response.text


@examples(max_examples=300, deadline=None, suppress_health_check=ONE_STORE)
@given(st.dictionaries(st.just("event_types"), VALUES | st.lists(st.text(max_size=5), max_size=3)) | VALUES, st.text())
def test_arbitrary_inbox_is_created_or_rejected(acme_manager: ApiClient, document: Any, name: str) -> None:
    saved = acme_manager.put("/inboxes/crm", json=document)
    assert saved.status_code in {200, 201, 422}, saved.text
    path = f"/inboxes/{quote(name, safe='')}"
    assert acme_manager.put(path).status_code in {200, 201, 404, 405, 409, 422}


PARAMETERS = st.sampled_from(["status", "event_type", "since", "until", "order", "cursor", "inbox"])
TEXTS = st.text(max_size=30) | st.datetimes().map(str) | st.integers().map(str) | st.just("default")


@examples(max_examples=300, deadline=None, suppress_health_check=ONE_STORE)
@given(st.dictionaries(PARAMETERS, TEXTS, max_size=3))
def test_arbitrary_list_query_is_accepted_or_rejected(acme: ApiClient, parameters: dict[str, str]) -> None:
    response = acme.get("/events", query_string=parameters)
    assert response.status_code in {200, 404, 422}, response.text


@pytest.mark.parametrize(
    "body",
    [
        b"[" * 1_000_000,
        b'{"a":' * 100_000,
        b'{"a": "' + b"x" * 30_000 + b'"}',
        b"9" * 19_000,
        b'{"a": ' + b"9" * 19_000 + b"}",
    ],
)
def test_deep_or_huge_body_is_stored_or_rejected(acme: ApiClient, body: bytes) -> None:
    for path in ("/events", "/events/batch"):
        post_and_check(acme, path, body)
