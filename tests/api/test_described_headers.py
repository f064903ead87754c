"""/openapi.json knows the headers of responses."""

from dataclasses import replace

import pytest
from flask import Flask

from inbox.app import Shared, create_app
from inbox.auth.token_buckets import TokenBuckets
from inbox.settings import Settings
from inbox.store.interface import Store
from tests.api.conftest import ApiClient, Clock
from tests.api.test_openapi_examples import Spec, resolved
from tests.unit.test_token_buckets import Seconds

GENERAL = {"Content-Type", "Content-Length", "Cache-Control", "X-Content-Type-Options"}


@pytest.fixture
def settings(settings: Settings) -> Settings:
    return replace(settings, rate_limit=11)


@pytest.fixture
def app(settings: Settings, store: Store, clock: Clock) -> Flask:  # noqa: ARG001 - before the app
    return create_app(settings, store, Shared(TokenBuckets(Seconds())))


def test_every_header_of_an_answer_is_described(spec: Spec, acme: ApiClient, acme_manager: ApiClient) -> None:
    body = {"payload": {}, "idempotency_key": "k"}
    responses = [
        ("/events", 201, acme.post("/events", json=body)),
        ("/events", 200, acme.post("/events", json=body)),
        ("/events/batch", 201, acme.post("/events/batch", json=[{}, body])),
        ("/events/batch", 200, acme.post("/events/batch", json=[body])),
        ("/inbox", 200, acme.get("/inbox?mode=peek")),
        ("/inbox", 422, acme.get("/inbox?limit=0")),
        ("/events", 200, acme.get("/events?limit=1")),
        ("/inboxes/{name}", 201, acme_manager.put("/inboxes/crm")),
        ("/inboxes/{name}", 200, acme_manager.put("/inboxes/crm")),
        ("/inboxes/{name}", 204, acme_manager.delete("/inboxes/crm")),
        ("/events", 415, acme.post("/events", json={}, headers={"Content-Encoding": "br"})),
        ("/me", 429, acme.get("/me")),
        ("/me", 401, ApiClient(acme.client, "nobody").get("/me")),
        ("/healthz", 200, acme.get("/healthz")),
    ]
    seen = set()
    for path, status, response in responses:
        assert response.status_code == status, path
        operation = spec["paths"][path][response.request.method.lower()]
        described = resolved(spec, operation["responses"][str(status)])["headers"]
        required = {name for name, header in described.items() if resolved(spec, header)["required"]}
        sent = {*response.headers.keys()} - GENERAL
        assert required <= sent <= described.keys(), (path, status)
        seen |= sent
    # No call says which methods a path takes, only its refusal of others does.
    assert seen == spec["components"]["headers"].keys() - {"Allow"}
