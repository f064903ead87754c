"""Problem documents, their pages, and the log."""

import re
from pathlib import Path

import pytest
from flask import Flask
from flask.testing import FlaskClient
from structlog.testing import capture_logs

from inbox.api.problem_types import PROBLEMS
from inbox.app import Shared, create_app
from inbox.errors import StoreUnavailable
from inbox.settings import Settings
from inbox.store.interface import Store
from tests.api.conftest import ApiClient, problem


def test_problem_has_the_members_of_rfc_9457(client: FlaskClient) -> None:
    response = client.get("/nowhere", headers={"X-Request-Id": "abc-1"})

    assert response.content_type == "application/problem+json"
    assert response.get_json() == {
        "type": "/problems/not-found",
        "title": PROBLEMS["not-found"].title,
        "status": 404,
        "detail": PROBLEMS["not-found"].meaning,
        "request_id": "abc-1",
    }


@pytest.mark.parametrize("slug", PROBLEMS)
def test_every_problem_has_a_page(client: FlaskClient, slug: str) -> None:
    page = client.get(f"/problems/{slug}")

    assert (page.status_code, page.mimetype) == (200, "text/html")
    assert PROBLEMS[slug].title in page.text
    assert f'href="/problems/{slug}"' in client.get("/problems").text


def test_page_of_unknown_problem_returns_404(client: FlaskClient) -> None:
    assert client.get("/problems/none").status_code == 404


def test_405_lists_the_allowed_methods(client: FlaskClient) -> None:
    response = client.delete("/events")
    assert (response.status_code, response.headers["Allow"]) == (405, "GET, HEAD, OPTIONS, POST")
    assert response.get_json()["detail"] == "The path does not support DELETE. Allowed: GET, HEAD, OPTIONS, POST."


def test_detail_of_a_404_names_a_slash_at_the_end_of_the_path(client: FlaskClient) -> None:
    for path in ("/events/", "/events/?since=1"):
        response = client.get(path)
        assert problem(response) == (404, "not-found")
        assert response.get_json()["detail"] == "Remove the slash at the end of the path."


def test_unavailable_store_returns_503_with_retry_after(
    app: Flask, acme: ApiClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise StoreUnavailable("The database did not respond.")

    monkeypatch.setattr(app.extensions["inbox"].publish.store, "put", fail)
    response = acme.post("/events", json={})
    assert (response.status_code, response.headers["Retry-After"]) == (503, "1")
    assert response.get_json()["type"] == "/problems/unavailable"


def test_every_response_has_a_request_id(client: FlaskClient, acme: ApiClient) -> None:
    responses = [
        client.get("/", buffered=True),
        client.get("/nowhere"),
        client.get("/me"),
        acme.get("/me"),
        acme.post("/events"),
    ]
    request_ids = [response.headers["X-Request-Id"] for response in responses]
    assert len(set(request_ids)) == len(request_ids)
    assert all(re.fullmatch("[0-9a-f]{32}", each) for each in request_ids)
    assert {response.headers["X-Content-Type-Options"] for response in responses} == {"nosniff"}
    # Pages may be cached if they are revalidated. Other responses may not.
    assert [response.headers.getlist("Cache-Control") for response in responses] == [["no-cache"]] + [["no-store"]] * 4


@pytest.mark.parametrize("invalid", ["", "a b", "x" * 129, "é", '"><script>', "ibx_0", "my-ibx_key"])
def test_invalid_request_id_is_replaced(client: FlaskClient, invalid: str) -> None:
    assert client.get("/healthz", headers={"X-Request-Id": invalid}).headers["X-Request-Id"] != invalid


def test_unavailable_store_fails_readyz_but_not_healthz(client: FlaskClient, app: Flask) -> None:
    assert (client.get("/healthz").get_json(), client.get("/readyz").get_json()) == ({"status": "ok"}, {"status": "ok"})

    def fail() -> None:
        raise StoreUnavailable("The database did not respond.")

    object.__setattr__(app.extensions["inbox"], "check_store", fail)
    assert (client.get("/healthz").status_code, client.get("/readyz").status_code) == (200, 503)


def test_result_of_readiness_check_is_cached(settings: Settings, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("inbox.services.readiness._CACHE_SECONDS", 3600)
    checks: list[None] = []
    monkeypatch.setattr(store, "check", lambda: checks.append(None))
    client = create_app(settings, store, Shared()).test_client()
    assert [client.get("/readyz").status_code for _ in range(5)] == [200] * 5
    assert len(checks) == 1


def test_bug_is_logged_without_request_data(app: Flask, acme: ApiClient, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise ValueError("my-payload " + acme.key)

    monkeypatch.setattr(app.extensions["inbox"].consume.store, "claim", fail)
    with capture_logs() as log:
        response = acme.get("/inbox")

    assert problem(response) == (500, "internal-error")
    bug = next(entry for entry in log if entry["event"] == "bug")
    assert (bug["error"], bug["request_id"]) == ("ValueError", response.get_json()["request_id"])
    assert any(Path(__file__).name in frame for frame in bug["frames"])
    assert "my-payload" not in str(log) + response.text
    assert acme.key not in str(log) + response.text


def test_each_request_is_logged_once(client: FlaskClient, acme: ApiClient) -> None:
    with capture_logs() as log:
        acme.get(f"/inbox?mode={acme.key}", headers={"X-Request-Id": "abc"})
        client.get(f"/{acme.key}")

    assert [(line["method"], line["route"], line["status"], line["tenant_id"]) for line in log] == [
        ("GET", "/inbox", 422, "acme"),
        ("GET", None, 404, None),
    ]
    assert log[0]["request_id"] == "abc"
    assert acme.key not in str(log)
