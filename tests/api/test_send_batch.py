"""POST /events/batch."""

import json
from typing import Any, ClassVar

import pytest

from inbox.settings import Settings
from tests.api.conftest import ApiClient, pointers


def test_batch_is_stored_in_order(acme: ApiClient) -> None:
    batch = [{"payload": {"n": 0}, "event_type": "a"}, {"n": 1}, {"payload": {"n": 2}}]
    response = acme.post("/events/batch", json=batch)

    assert response.status_code == 201
    waiting = acme.waiting()
    assert [event["payload"] for event in waiting] == [{"n": 0}, {"n": 1}, {"n": 2}]
    assert [event | {"payload": None} for event in waiting] == [
        event | {"payload": None} for event in response.get_json()
    ]


def test_parameter_is_the_type_of_events_without_one(acme: ApiClient) -> None:
    response = acme.post("/events/batch?event_type=b", json=[{"payload": {}, "event_type": "a"}, {"n": 1}])
    assert [event["event_type"] for event in response.get_json()] == ["a", "b"]


def test_batch_has_up_to_500_events(acme: ApiClient) -> None:
    assert len(acme.post("/events/batch", json=[{"n": n} for n in range(500)]).get_json()) == 500
    assert [event["payload"]["n"] for event in acme.waiting()] == list(range(500))


def test_response_lists_up_to_20_errors(acme: ApiClient) -> None:
    assert len(pointers(acme.post("/events/batch", json=[7] * 500))) == 20


def test_raw_stores_each_event_whole(acme: ApiClient) -> None:
    batch = [{"payload": {"n": 0}, "event": "a"}, {"payload": 1, "idempotency_key": 7}, {"n": 2}]
    refused = acme.post("/events/batch", json=batch)
    assert (refused.status_code, set(pointers(refused))) == (422, {"/0/event", "/1/payload", "/1/idempotency_key"})
    assert "?raw=true" in refused.get_json()["detail"]

    response = acme.post("/events/batch?raw=true&event_type=hook", json=batch, headers={"Idempotency-Key": "k"})
    assert response.status_code == 201
    assert [(event["event_type"], event["payload"]) for event in acme.waiting()] == [("hook", each) for each in batch]
    assert pointers(acme.post("/events/batch?raw=true", json=[{}, 7])) == ["/1"]


class TestLargerThanAnEvent:
    """Batches that are parsed one event at a time."""

    LARGE: ClassVar = {"text": "x" * 100_000}

    def test_each_event_is_stored(self, acme: ApiClient) -> None:
        batch = [self.LARGE | {"n": n} for n in range(10)]
        assert acme.post("/events/batch", json=batch).status_code == 201
        assert [event["payload"] for event in acme.waiting()] == batch

    def test_idempotency_key_applies(self, acme: ApiClient) -> None:
        batch: list[Any] = [self.LARGE | {"n": 0}, {"payload": self.LARGE, "idempotency_key": "own"}, self.LARGE]
        first, again, other = (
            acme.post("/events/batch", json=each, headers={"Idempotency-Key": "k"})
            for each in (batch, batch, batch[:1])
        )
        assert (first.status_code, again.status_code, other.status_code) == (201, 200, 409)
        assert first.get_json() == again.get_json()
        # The key of a batch stands for the same events however it was parsed.
        assert pointers(acme.post("/events/batch", json=[{}, *batch[1:]], headers={"Idempotency-Key": "k"})) == ["/0"]

    def test_errors_of_all_events_are_listed(self, acme: ApiClient) -> None:
        batch = [self.LARGE, 7, {"payload": self.LARGE, "event_type": ""}, self.LARGE, {"payload": 1}]
        response = acme.post("/events/batch", json=batch)
        assert (response.status_code, pointers(response)) == (422, ["/1", "/2/event_type", "/4/payload"])
        assert acme.waiting() == []

    def test_malformed_json_rejects_the_batch(self, acme: ApiClient) -> None:
        good = json.dumps(self.LARGE)
        for bad in ("{", "nope", '{"a": NaN}', '{"a": 1, "a": 2}', '"\\ud800"', "[" * 31 + "]" * 31 + "["):
            body = f"[{good}, {good}, {good}, 7, {bad}]"
            response = acme.post("/events/batch", data=body, content_type="application/json")
            assert (response.status_code, response.get_json()["type"]) == (400, "/problems/not-json"), bad
        assert acme.waiting() == []

    @pytest.mark.parametrize("count", [0, 501])
    def test_empty_or_too_long_batch_is_rejected(self, acme: ApiClient, count: int) -> None:
        body = " " * 300_000 + json.dumps([{}] * count)
        response = acme.post("/events/batch", data=body, content_type="application/json")
        assert (response.status_code, pointers(response)) == (422, [""])

    def test_pointer_names_the_event_that_is_too_large(self, acme: ApiClient) -> None:
        for event in ({"text": "x" * 262_144}, {"text": "x" * 1_000_000}, {"numbers": [1] * 500_000}):
            response = acme.post("/events/batch", json=[{}, self.LARGE, event, {}])
            assert (response.status_code, pointers(response)) == (413, ["/2"])
            assert response.get_json()["detail"] == "An event is larger than 262144 bytes."
        assert acme.waiting() == []

    def test_white_space_does_not_count(self, acme: ApiClient) -> None:
        event = {"numbers": [[1] * 1000] * 50}
        body = json.dumps([event, event], indent=10)
        assert len(body) > 1_000_000
        assert acme.post("/events/batch", data=body, content_type="application/json").status_code == 201
        assert [each["payload"] for each in acme.waiting()] == [event, event]


class TestIdempotency:
    def test_events_can_have_their_own_keys(self, acme: ApiClient) -> None:
        batch = [{"payload": {"n": 0}, "idempotency_key": "k0"}, {"payload": {"n": 1}, "idempotency_key": "k1"}]
        first = acme.post("/events/batch", json=batch)
        again = acme.post("/events/batch", json=batch)

        assert (first.status_code, again.status_code) == (201, 200)
        assert again.headers["Idempotency-Replayed"] == "true"
        assert first.get_json() == again.get_json()
        assert len(acme.waiting()) == 2

    def test_batch_stores_only_its_new_events(self, acme: ApiClient) -> None:
        acme.send({"n": 0}, idempotency_key="k0")
        response = acme.post("/events/batch", json=[{"payload": {"n": 0}, "idempotency_key": "k0"}, {"n": 1}])

        assert response.status_code == 201
        assert "Idempotency-Replayed" not in response.headers
        assert [event["payload"]["n"] for event in acme.waiting()] == [0, 1]

    def test_header_applies_to_the_whole_batch(self, acme: ApiClient) -> None:
        header = {"Idempotency-Key": "batch-1"}
        first = acme.post("/events/batch", json=[{"n": 0}, {"n": 1}], headers=header)
        again = acme.post("/events/batch", json=[{"n": 0}, {"n": 1}], headers=header)

        assert (first.status_code, again.status_code) == (201, 200)
        assert first.get_json() == again.get_json()
        assert len(acme.waiting()) == 2

    @pytest.mark.parametrize("other", [[{"n": 0}], [{"n": 0}, {"n": 1}, {"n": 2}], [{"n": 1}, {"n": 0}]])
    def test_different_batch_with_the_key_is_a_conflict(self, acme: ApiClient, other: list[Any]) -> None:
        header = {"Idempotency-Key": "batch-1"}
        acme.post("/events/batch", json=[{"n": 0}, {"n": 1}], headers=header)
        response = acme.post("/events/batch", json=other, headers=header)

        assert (response.status_code, pointers(response)[0]) == (409, "/0")
        assert [event["payload"]["n"] for event in acme.waiting()] == [0, 1]

    def test_keys_of_batches_and_events_are_independent(self, acme: ApiClient) -> None:
        header = {"Idempotency-Key": "k"}
        acme.post("/events", json={"payload": {"n": 0}}, headers=header)
        assert acme.post("/events/batch", json=[{"n": 1}], headers=header).status_code == 201

    def test_conflict_points_at_its_event_and_stores_nothing(self, acme: ApiClient) -> None:
        acme.send({"n": 0}, idempotency_key="k0")
        response = acme.post("/events/batch", json=[{"n": 1}, {"payload": {"n": 2}, "idempotency_key": "k0"}])

        assert (response.status_code, pointers(response)) == (409, ["/1/idempotency_key"])
        assert [event["payload"]["n"] for event in acme.waiting()] == [0]


class TestLimits:
    @pytest.fixture
    def settings(self, settings: Settings) -> Settings:
        return Settings(store=settings.store, max_event_bytes=100)

    def test_event_above_the_limit_rejects_the_batch(self, acme: ApiClient) -> None:
        response = acme.post("/events/batch", json=[{"n": 1}, {"n": "x" * 100}])

        assert (response.status_code, pointers(response)) == (413, ["/1"])
        assert acme.waiting() == []

    def test_batch_can_have_64_times_the_size_of_an_event(self, acme: ApiClient) -> None:
        assert acme.post("/events/batch", json=[{"n": "x" * 80}] * 65).status_code == 201
        assert acme.post("/events/batch", json=[{"n": "x" * 80}] * 75).status_code == 413
