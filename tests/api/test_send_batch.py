"""POST /events/batch."""

import json
from typing import Any

import pytest

from inbox.settings import Settings
from tests.api.conftest import ApiClient, numbers, payloads, pointers, problem

# A batch with several of these is parsed one event at a time.
LARGE = {"text": "x" * 100_000}
KEY_HEADER = {"Idempotency-Key": "batch-1"}


def test_batch_is_stored_in_order(acme: ApiClient) -> None:
    batch = [{"payload": {"n": 0}, "event_type": "a"}, {"n": 1}, {"payload": {"n": 2}}]
    response = acme.post("/events/batch", json=batch)
    assert response.status_code == 201
    assert acme.peek() == [event | {"payload": {"n": n}} for n, event in enumerate(response.get_json())]


def test_event_type_parameter_applies_to_events_without_a_type(acme: ApiClient) -> None:
    response = acme.post("/events/batch?event_type=b", json=[{"payload": {}, "event_type": "a"}, {"n": 1}])
    assert [event["event_type"] for event in response.get_json()] == ["a", "b"]


def test_batch_has_up_to_500_events(acme: ApiClient) -> None:
    assert len(acme.send_numbered(500)) == 500
    assert numbers(acme.peek()) == list(range(500))


def test_response_lists_up_to_20_errors(acme: ApiClient) -> None:
    assert len(pointers(acme.post("/events/batch", json=[7] * 500))) == 20


def test_raw_stores_each_event_whole(acme: ApiClient) -> None:
    batch = [{"payload": {"n": 0}, "event": "a"}, {"payload": 1, "idempotency_key": 7}, {"n": 2}]
    refused = acme.post("/events/batch", json=batch)
    assert (refused.status_code, set(pointers(refused))) == (422, {"/0/event", "/1/payload", "/1/idempotency_key"})
    detail = refused.get_json()["detail"]
    assert detail.startswith("`errors` lists what is wrong with the request. An object with a member `payload` is read")
    assert "?raw=true" in detail

    assert acme.post("/events/batch?raw=true&event_type=hook", json=batch, headers=KEY_HEADER).status_code == 201
    assert [(event["event_type"], event["payload"]) for event in acme.peek()] == [("hook", each) for each in batch]


def test_large_events_are_stored(acme: ApiClient) -> None:
    batch = [LARGE | {"n": n} for n in range(10)]
    assert acme.post("/events/batch", json=batch).status_code == 201
    assert payloads(acme.peek()) == batch


def test_idempotency_key_applies_to_large_batches(acme: ApiClient) -> None:
    batch: list[Any] = [LARGE | {"n": 0}, {"payload": LARGE, "idempotency_key": "own"}, LARGE]
    first, again, other = (
        acme.post("/events/batch", json=each, headers=KEY_HEADER) for each in (batch, batch, batch[:1])
    )
    assert (first.status_code, again.status_code, other.status_code) == (201, 200, 409)
    assert first.get_json() == again.get_json()
    # The idempotency key identifies the same events whether they are parsed together or one at a time.
    assert pointers(acme.post("/events/batch", json=[{}, *batch[1:]], headers=KEY_HEADER)) == ["/0"]


def test_errors_of_all_large_events_are_listed(acme: ApiClient) -> None:
    batch = [LARGE, 7, {"payload": LARGE, "event_type": ""}, LARGE, {"payload": 1}]
    response = acme.post("/events/batch", json=batch)
    assert (response.status_code, pointers(response)) == (422, ["/1", "/2/event_type", "/4/payload"])
    assert acme.peek() == []


def test_malformed_json_rejects_a_large_batch(acme: ApiClient) -> None:
    good = json.dumps(LARGE)
    for bad in ("{", "nope", '{"a": NaN}', '{"a": 1, "a": 2}', '"\\ud800"', "[" * 31 + "]" * 31 + "["):
        body = f"[{good}, {good}, {good}, 7, {bad}]"
        response = acme.post("/events/batch", data=body, content_type="application/json")
        assert problem(response) == (400, "not-json"), bad
    assert acme.peek() == []


def test_empty_or_too_long_array_is_rejected_in_a_large_body(acme: ApiClient) -> None:
    for count in (0, 501):
        body = " " * 300_000 + json.dumps([{}] * count)
        response = acme.post("/events/batch", data=body, content_type="application/json")
        assert (response.status_code, pointers(response)) == (422, [""])


def test_pointer_names_the_event_that_is_too_large(acme: ApiClient) -> None:
    for event in ({"text": "x" * 262_144}, {"text": "x" * 1_000_000}, {"numbers": [1] * 500_000}):
        response = acme.post("/events/batch", json=[{}, LARGE, event, {}])
        assert (response.status_code, pointers(response)) == (413, ["/2"])
        assert response.get_json()["detail"] == "An event is larger than 262144 bytes."
    assert acme.peek() == []


def test_white_space_does_not_count_as_event_size(acme: ApiClient) -> None:
    event = {"numbers": [[1] * 1000] * 50}
    body = json.dumps([event, event], indent=10)
    assert len(body) > 1_000_000
    assert acme.post("/events/batch", data=body, content_type="application/json").status_code == 201
    assert payloads(acme.peek()) == [event, event]


@pytest.mark.parametrize("in_header", [True, False])
def test_repeated_batch_gets_the_first_response(acme: ApiClient, in_header: bool) -> None:
    keyed = [{"payload": {"n": n}, "idempotency_key": f"k{n}"} for n in range(2)]
    batch, headers = ([{"n": 0}, {"n": 1}], KEY_HEADER) if in_header else (keyed, {})
    first, again = (acme.post("/events/batch", json=batch, headers=headers) for _ in range(2))
    assert (first.status_code, again.status_code) == (201, 200)
    assert again.headers["Idempotency-Replayed"] == "true"
    assert first.get_json() == again.get_json()
    assert len(acme.peek()) == 2


def test_batch_stores_only_its_new_events(acme: ApiClient) -> None:
    acme.send({"n": 0}, idempotency_key="k0")
    response = acme.post("/events/batch", json=[{"payload": {"n": 0}, "idempotency_key": "k0"}, {"n": 1}])
    assert response.status_code == 201
    assert "Idempotency-Replayed" not in response.headers
    assert numbers(acme.peek()) == [0, 1]


def test_different_batch_with_the_same_idempotency_key_is_a_conflict(acme: ApiClient) -> None:
    acme.post("/events/batch", json=[{"n": 0}, {"n": 1}], headers=KEY_HEADER)
    for other in ([{"n": 0}], [{"n": 0}, {"n": 1}, {"n": 2}], [{"n": 1}, {"n": 0}]):
        response = acme.post("/events/batch", json=other, headers=KEY_HEADER)
        assert (response.status_code, pointers(response)[0]) == (409, "/0")
    assert numbers(acme.peek()) == [0, 1]


def test_idempotency_keys_of_batches_and_events_are_independent(acme: ApiClient) -> None:
    acme.post("/events", json={"payload": {"n": 0}}, headers=KEY_HEADER)
    assert acme.post("/events/batch", json=[{"n": 1}], headers=KEY_HEADER).status_code == 201


def test_conflict_points_at_its_event_and_stores_nothing(acme: ApiClient) -> None:
    acme.send({"n": 0}, idempotency_key="k0")
    response = acme.post("/events/batch", json=[{"n": 1}, {"payload": {"n": 2}, "idempotency_key": "k0"}])
    assert (response.status_code, pointers(response)) == (409, ["/1/idempotency_key"])
    assert numbers(acme.peek()) == [0]


class TestLimits:
    @pytest.fixture
    def settings(self, settings: Settings) -> Settings:
        return Settings(store=settings.store, max_event_bytes=100)

    def test_event_above_the_limit_rejects_the_batch(self, acme: ApiClient) -> None:
        response = acme.post("/events/batch", json=[{"n": 1}, {"n": "x" * 100}])
        assert (response.status_code, pointers(response)) == (413, ["/1"])
        assert acme.peek() == []

    def test_batch_can_have_64_times_the_size_of_an_event(self, acme: ApiClient) -> None:
        assert acme.post("/events/batch", json=[{"n": "x" * 80}] * 65).status_code == 201
        assert acme.post("/events/batch", json=[{"n": "x" * 80}] * 75).status_code == 413
