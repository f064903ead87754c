"""Bodies that are being parsed share a budget of bytes."""

import json
from typing import Any

import pytest
from flask import Flask
from werkzeug.test import TestResponse

from inbox.api.request_bodies import LARGEST_EVENTS_IN_A_BATCH, ByteBudget
from inbox.app import body_budget
from inbox.errors import Overloaded
from inbox.settings import Settings
from tests.api.conftest import ApiClient

BUDGET = 64 * 1024 * 1024


@pytest.fixture
def budget(app: Flask) -> ByteBudget:
    budget: ByteBudget = app.extensions["inbox"].body_budget
    return budget


def is_overloaded(response: TestResponse) -> bool:
    named = (response.status_code, response.get_json().get("type"), response.headers.get("Retry-After"))
    return named == (503, "/problems/overloaded", "1")


def test_request_beyond_the_budget_gets_503_and_changes_nothing(acme: ApiClient, budget: ByteBudget) -> None:
    budget.reserve(BUDGET - 20)
    for path, body in (("/events", {"text": "x" * 20}), ("/events/batch", [{"text": "x" * 20}])):
        assert is_overloaded(acme.post(path, json=body))
    assert acme.waiting() == []
    # What still fits is taken.
    assert acme.post("/events", json={"n": 1}).status_code == 201

    budget.release(BUDGET - 20)
    assert acme.post("/events", json={"text": "x" * 20}).status_code == 201
    assert len(acme.waiting()) == 2


def test_body_is_counted_until_it_is_stored(
    app: Flask, acme: ApiClient, budget: ByteBudget, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = app.extensions["inbox"].publish.store
    put, body = store.put, json.dumps([{"n": 1}]).encode()

    def put_while_counted(*arguments: Any) -> Any:
        with pytest.raises(Overloaded):
            budget.reserve(BUDGET - len(body) + 1)
        return put(*arguments)

    monkeypatch.setattr(store, "put", put_while_counted)
    assert acme.post("/events/batch", data=body, content_type="application/json").status_code == 201
    budget.reserve(BUDGET)


def test_budget_is_released_however_a_request_ends(
    app: Flask, acme: ApiClient, budget: ByteBudget, monkeypatch: pytest.MonkeyPatch
) -> None:
    def post(body: bytes, path: str = "/events/batch") -> int:
        return acme.post(path, data=body, content_type="application/json").status_code

    assert [post(b"[{}]"), post(b"[{}"), post(b"[7]"), post(b"{}", "/events"), post(b"[]")] == [201, 400, 422, 201, 422]
    assert post(b'[{"a": "' + b"x" * 300_000 + b'"}]') == 413
    budget.reserve(BUDGET)
    assert post(b"[{}]") == 503
    budget.release(BUDGET)

    def fail(*_: Any) -> None:
        raise OSError("the disk is gone")

    monkeypatch.setattr(app.extensions["inbox"].publish.store, "put", fail)
    assert post(b"[{}]") == 500
    budget.reserve(BUDGET)


@pytest.mark.parametrize("max_event_bytes", [1, 262_144, 64 * 1024 * 1024])
def test_largest_bodies_are_always_admitted_alone(settings: Settings, max_event_bytes: int) -> None:
    with_limit = Settings(store=settings.store, max_event_bytes=max_event_bytes)
    budget = body_budget(with_limit)
    # The second one is that of calls which take no event.
    for largest in (LARGEST_EVENTS_IN_A_BATCH * max_event_bytes, 262_144):
        budget.reserve(largest)
        budget.release(largest)
