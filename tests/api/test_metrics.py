"""GET /metrics."""

from collections.abc import Callable
from dataclasses import replace
from threading import Thread
from typing import Any

import pytest
from flask import Flask
from flask.testing import FlaskClient
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4

from authorizer import apikey
from inbox import __version__
from inbox.app import Shared, create_app
from inbox.errors import StoreUnavailable
from inbox.settings import Settings
from inbox.store.interface import Store
from tests.api.conftest import ApiClient, FakeTime
from tests.exposition import Exposition

Scrape = Callable[[], Exposition]


@pytest.fixture
def scrape(client: FlaskClient) -> Scrape:
    return lambda: Exposition(client.get("/metrics").text)


def test_metrics_are_public_and_uncached(client: FlaskClient) -> None:
    response = client.get("/metrics")
    assert (response.status_code, response.content_type) == (200, CONTENT_TYPE_PLAIN_0_0_4)
    assert response.headers["Cache-Control"] == "no-store"
    assert Exposition(response.text).value("inbox_build_info", version=__version__, engine="sqlite") == 1


def test_metrics_have_no_rate_limit(settings: Settings, store: Store) -> None:
    client = create_app(replace(settings, rate_limit=1, auth_failure_limit=1), store, Shared()).test_client()
    for _ in range(5):
        response = client.get("/metrics")
        assert response.status_code == 200
        assert "RateLimit" not in response.headers


def test_requests_are_counted_by_route_method_and_status(acme: ApiClient, scrape: Scrape) -> None:
    event = acme.send({"n": 1})
    for path in (f"/events/{event['id']}", "/events/00000000-0000-4000-8000-000000000000", "/inbox?limit=0"):
        acme.get(path)
    shown = scrape()
    rule = "/events/<uuid:event_id>"
    assert shown.value("inbox_requests_total", route="/events", method="POST", status="201") == 1
    assert shown.value("inbox_requests_total", route=rule, method="GET", status="200") == 1
    assert shown.value("inbox_requests_total", route=rule, method="GET", status="404") == 1
    assert shown.value("inbox_requests_total", route="/inbox", method="GET", status="422") == 1
    assert shown.value("inbox_request_duration_seconds_count", route=rule, method="GET") == 2
    assert 0 < shown.value("inbox_request_duration_seconds_sum", route=rule, method="GET") < 60


def test_no_client_can_create_a_series(acme: ApiClient, client: FlaskClient, scrape: Scrape) -> None:
    def send_requests_with(text: str) -> None:
        client.get(f"/nowhere-{text}", headers={"X-Request-Id": text})
        client.open("/inbox", method=f"BREW{text}")
        acme.get(f"/inbox/name-{text}?mode=peek")
        acme.send({"n": text}, event_type=f"type-{text}")

    send_requests_with("first")
    send_requests_with("second")
    # The first scrape creates the series of /metrics itself.
    scrape()
    before = scrape()
    for number in range(20):
        send_requests_with(str(number))
    shown = scrape()
    assert shown.value("inbox_requests_total", route="unmatched", method="GET", status="404") == 22
    assert shown.value("inbox_requests_total", route="unmatched", method="other", status="405") == 22
    assert shown.label_values == before.label_values


def test_metrics_contain_no_tenant_key_event_or_path(acme: ApiClient, client: FlaskClient) -> None:
    event = acme.send({"secret": "my-payload"}, event_type="my.type", idempotency_key="my-idempotency-key")
    acme.get(f"/events/{event['id']}")
    acme.get(f"/my-path/{acme.key}?my-query")
    text = client.get("/metrics").text
    for private in ("acme", acme.key, acme.key[4:20], event["id"], "my-", "my.type"):
        assert private not in text


def test_long_polls_are_not_in_request_durations(acme: ApiClient, fake_time: FakeTime, scrape: Scrape) -> None:
    acme.get("/inbox?wait=20")
    acme.get("/inbox")
    shown = scrape()
    assert fake_time.seconds == pytest.approx(20)
    assert shown.value("inbox_request_duration_seconds_count", route="/inbox", method="GET") == 1
    assert shown.value("inbox_long_poll_duration_seconds_count", route="/inbox") == 1
    assert shown.value("inbox_requests_total", route="/inbox", method="GET", status="200") == 2


def test_waiting_polls_are_counted(acme: ApiClient, fake_time: FakeTime, scrape: Scrape) -> None:
    seen = []
    fake_time.meanwhile = lambda: seen.append(scrape().value("inbox_waiting_polls"))
    acme.get("/inbox?wait=1")
    assert set(seen) == {1}
    assert scrape().value("inbox_waiting_polls") == 0


def test_failed_poll_is_not_waiting(
    acme: ApiClient, store: Store, fake_time: FakeTime, scrape: Scrape, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise StoreUnavailable("It does not respond.")

    fake_time.meanwhile = lambda: monkeypatch.setattr(store.events, "claim", fail)
    assert acme.get("/inbox?wait=1").status_code == 503
    assert scrape().value("inbox_waiting_polls") == 0


def test_events_are_counted(acme: ApiClient, scrape: Scrape) -> None:
    body = {"payload": {}, "idempotency_key": "k"}
    acme.post("/events", json=body)
    acme.post("/events", json=body)
    acme.post("/events/batch", json=[{}, {}, body])
    acme.poll("/inbox?limit=1")
    acme.poll("/inbox?mode=peek")
    leased = acme.lease()
    assert acme.poll() == []
    receipts = [event["receipt"] for event in leased]
    acme.settle("extend", receipts)
    acme.settle("ack", receipts[:1])
    acme.settle("release", receipts[1:])
    acme.settle("extend", receipts)
    acme.post(f"/events/{leased[0]['id']}/replay")
    acme.post("/events/replay", json={})
    shown = scrape()
    assert shown.value("inbox_events_received_total") == 3
    assert shown.value("inbox_events_repeated_total") == 2
    assert shown.value("inbox_events_handed_out_total", status="delivered") == 1
    assert shown.value("inbox_events_handed_out_total", status="leased") == 2
    assert shown.value("inbox_events_settled_total", action="acknowledged") == 1
    assert shown.value("inbox_events_settled_total", action="released") == 1
    assert shown.value("inbox_events_settled_total", action="extended") == 2
    assert shown.value("inbox_receipts_lost_total") == 2
    assert shown.value("inbox_events_replayed_total") == 2


def test_key_lookups_are_counted_by_source(acme: ApiClient, client: FlaskClient, scrape: Scrape) -> None:
    for key in (acme.key, acme.key, unknown := apikey.mint(), unknown, "no key"):
        client.get("/me", headers={"X-API-Key": key})
    shown = scrape()
    assert shown.value("inbox_key_lookups_total", source="store") == 2
    assert shown.value("inbox_key_lookups_total", source="cache") == 2
    assert shown.total("inbox_key_lookups_total") == 4


def test_store_calls_are_counted_and_a_conflict_is_no_error(acme: ApiClient, scrape: Scrape) -> None:
    for payload in ({"n": 1}, {"n": 2}):
        acme.post("/events", json={"payload": payload, "idempotency_key": "k"})
    put = {"engine": "sqlite", "operation": "events.put"}
    shown = scrape()
    assert shown.value("inbox_requests_total", route="/events", method="POST", status="409") == 1
    assert shown.value("inbox_store_call_duration_seconds_count", **put) == 2
    assert 0 < shown.value("inbox_store_call_duration_seconds_sum", **put) < 60
    assert shown.total("inbox_store_errors_total") == 0
    # The series exists from the start, or `rate` would miss the first error.
    assert "inbox_store_errors" in {family.name for family in shown.families if family.samples}


@pytest.mark.parametrize(("error", "status"), [(StoreUnavailable("It does not respond."), 503), (KeyError("bug"), 500)])
def test_store_errors_are_counted(
    acme: ApiClient, store: Store, scrape: Scrape, monkeypatch: pytest.MonkeyPatch, error: Exception, status: int
) -> None:
    def fail(*_: Any) -> None:
        raise error

    acme.send({})
    monkeypatch.setattr(type(store.events), "put", fail)
    assert acme.post("/events", json={}).status_code == status
    shown = scrape()
    put = {"engine": "sqlite", "operation": "events.put"}
    assert shown.value("inbox_store_errors_total", **put) == shown.total("inbox_store_errors_total") == 1
    assert shown.value("inbox_store_call_duration_seconds_count", **put) == 2
    assert shown.value("inbox_events_received_total") == 1


def test_batch_sizes_are_measured(acme: ApiClient, scrape: Scrape) -> None:
    before = scrape()
    threads = [Thread(target=acme.send, args=({"n": number},)) for number in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    shown = scrape()
    name = "inbox_store_batch_size"
    # The sum includes writes that record the use of the key.
    written = shown.value(f"{name}_sum", engine="sqlite") - before.value(f"{name}_sum", engine="sqlite")
    assert written == 20 + shown.value(
        "inbox_store_call_duration_seconds_count", engine="sqlite", operation="keys.record_use"
    )
    assert 1 <= shown.value(f"{name}_count", engine="sqlite") <= written


def test_each_app_has_its_own_counts(app: Flask, settings: Settings, store: Store, client: FlaskClient) -> None:
    other = create_app(settings, store, Shared()).test_client()
    other.get("/healthz")
    assert app is not other.application
    assert Exposition(client.get("/metrics").text).total("inbox_requests_total") == 0
