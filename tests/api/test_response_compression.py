"""Responses are compressed for clients that accept gzip."""

import gzip
from typing import Any

import orjson
import pytest
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from inbox.domain.keys import Scope
from tests.api.conftest import ApiClient, TenantFactory, payloads

ACCEPT_GZIP = {"Accept-Encoding": "gzip"}
STYLE = "/console/css/base.css"
PAGES = [
    *("/console/scripts/main.js", "/console/icons.svg", "/console/n8n.json", "/", STYLE, "/openapi.json", "/problems"),
]
GZIP_ACCEPTED = [
    *("gzip", "GZIP", "gzip, deflate, br", "deflate, gzip;q=0.5", "gzip;q=0.001", "*", "*;q=0.5", "br, *;q=0.1"),
    *("identity;q=0.5, gzip", "identity, gzip", "gzip, identity;q=0"),
]
GZIP_NOT_ACCEPTED = [
    *("gzip;q=0", "gzip; q=0", "gzip;q=0.000, *", "*, gzip;q=0", "*;q=0", "identity", "identity, gzip;q=0.5"),
    *("deflate, br", "gzipped", ""),
    # Invalid values mean no gzip, and are no error.
    *("gzip;q=x", "gzip;q=2", "gzip;q=-1", "gzip;q=nan", ";;,,=;\xe9", "x," * 4000),
]


def is_compressed(response: TestResponse) -> bool:
    coding = response.headers.get("Content-Encoding")
    assert coding in (None, "gzip")
    assert int(response.headers["Content-Length"]) == len(response.data)
    return coding == "gzip"


def headers_without(headers: Any, *names: str) -> list[tuple[str, str]]:
    return [(name, value) for name, value in headers if name not in ("X-Request-Id", *names)]


@pytest.fixture
def acme_with_events(acme: ApiClient) -> ApiClient:
    for number in range(20):
        acme.send({"order": number, "text": "x" * 50})
    return acme


@pytest.mark.parametrize("path", ["/inbox", "/inbox?mode=lease", "/inbox/default?mode=peek"])
def test_poll_is_compressed(acme_with_events: ApiClient, path: str) -> None:
    undelivered = acme_with_events.peek()
    response = acme_with_events.get(path, ACCEPT_GZIP)

    assert is_compressed(response)
    assert response.headers["Vary"] == "Accept-Encoding"
    events = orjson.loads(gzip.decompress(response.data))
    assert payloads(events) == payloads(undelivered)
    assert len(response.data) < len(orjson.dumps(events)) / 3


def test_compressed_list_equals_the_uncompressed_one(
    tenant_factory: TenantFactory, acme_with_events: ApiClient
) -> None:
    reader = tenant_factory.create_client("acme", Scope.TENANT_MANAGE, Scope.INBOX_READ)
    for number in range(15):
        reader.put(f"/inboxes/inbox-{number}", json={"event_types": ["order.*"]})
        reader.post("/keys", json={"name": f"key-{number}"})
    event_id = acme_with_events.send({"text": "x" * 2000})["id"]

    for path in ("/events", f"/events/{event_id}", "/inboxes", "/keys"):
        plain, compressed = reader.get(path), reader.get(path, ACCEPT_GZIP)
        assert (is_compressed(plain), is_compressed(compressed)) == (False, True), path
        assert gzip.decompress(compressed.data) == plain.data
        assert plain.headers["Vary"] == compressed.headers["Vary"] == "Accept-Encoding"


def test_lists_of_tenants_and_their_audit_log_are_compressed(admin: ApiClient, tenant_factory: TenantFactory) -> None:
    for number in range(10):
        tenant_factory.register(f"tenant-{number}", "An organization")
        admin.patch("/admin/tenants/tenant-0", json={"organization_name": f"Number {number}"})
    for path in ("/admin/tenants", "/admin/tenants/tenant-0/audit"):
        plain, compressed = admin.get(path), admin.get(path, ACCEPT_GZIP)
        assert gzip.decompress(compressed.data) == plain.data
        assert is_compressed(compressed)


def test_page_or_file_is_compressed(client: FlaskClient) -> None:
    changed = ("Content-Length", "Content-Encoding", "ETag", "Accept-Ranges", "Date")
    for path in PAGES:
        plain = client.get(path, buffered=True)
        # The second compressed response comes from the cache.
        for _ in range(2):
            compressed = client.get(path, headers=ACCEPT_GZIP, buffered=True)
            assert is_compressed(compressed), path
            assert gzip.decompress(compressed.data) == plain.data
        assert plain.headers["Vary"] == compressed.headers["Vary"] == "Accept-Encoding"
        assert headers_without(compressed.headers, *changed) == headers_without(plain.headers, *changed)


def test_response_is_compressed_only_if_the_client_accepts_gzip(client: FlaskClient) -> None:
    for accepted in GZIP_ACCEPTED + GZIP_NOT_ACCEPTED:
        compresses = accepted in GZIP_ACCEPTED
        response = client.get(STYLE, headers={"Accept-Encoding": accepted}, buffered=True)
        assert (response.status_code, is_compressed(response)) == (200, compresses), accepted
        assert response.headers["Vary"] == "Accept-Encoding"
        assert response.headers["ETag"].startswith('W/"') == compresses


def test_body_of_up_to_1024_bytes_is_not_compressed(acme: ApiClient) -> None:
    event_id = acme.send({"a": ""})["id"]
    empty_bytes = len(acme.get(f"/events/{event_id}").data)
    for body_bytes, compresses in ((1024, False), (1025, True)):
        event_id = acme.send({"a": "x" * (body_bytes - empty_bytes)})["id"]
        response = acme.get(f"/events/{event_id}", ACCEPT_GZIP)
        assert is_compressed(response) == compresses
        assert ("Vary" in response.headers) == compresses
        assert compresses or len(response.data) == body_bytes


def test_only_successful_reads_are_compressed(acme: ApiClient, acme_manager: ApiClient) -> None:
    created = acme_manager.post("/keys", ACCEPT_GZIP, json={"name": "x" * 200})
    sent = acme.post("/events/batch", ACCEPT_GZIP, json=[{}] * 50)
    lost = acme.post("/inbox/ack", ACCEPT_GZIP, json={"receipts": ["x" * 299, "y" * 299, "z" * 299, "a" * 299]})
    refused = acme.get("/events?" + "&".join(f"{'x' * 100}{number}=1" for number in range(20)), ACCEPT_GZIP)
    for response, status in ((created, 201), (sent, 201), (lost, 200), (refused, 422)):
        assert response.status_code == status
        assert not is_compressed(response)
        assert "Vary" not in response.headers
    assert all(len(response.data) > 1024 for response in (sent, lost, refused))


@pytest.mark.parametrize("headers", [{}, ACCEPT_GZIP])
def test_head_has_the_headers_of_get(acme_with_events: ApiClient, headers: dict[str, str]) -> None:
    for path in ("/events", *PAGES):
        got = acme_with_events.get(path, headers, buffered=True)
        head = acme_with_events.client.head(path, headers=acme_with_events.headers | headers, buffered=True)
        assert head.data == b""
        assert headers_without(head.headers, "Date") == headers_without(got.headers, "Date")


@pytest.mark.parametrize("first_accepts", [{}, ACCEPT_GZIP])
@pytest.mark.parametrize("then_accepts", [{}, ACCEPT_GZIP])
def test_unchanged_file_is_not_sent_again(
    client: FlaskClient, first_accepts: dict[str, str], then_accepts: dict[str, str]
) -> None:
    for path in (STYLE, "/"):
        first = client.get(path, headers=first_accepts, buffered=True)
        for condition in (
            {"If-None-Match": first.headers["ETag"]},
            {"If-Modified-Since": first.headers["Last-Modified"]},
        ):
            again = client.get(path, headers=then_accepts | condition, buffered=True)
            assert (again.status_code, again.data) == (304, b"")
            assert "Content-Encoding" not in again.headers
            # The headers equal those of a response without the condition.
            whole = client.get(path, headers=then_accepts, buffered=True)
            assert [again.headers[name] for name in ("ETag", "Vary")] == [
                whole.headers[name] for name in ("ETag", "Vary")
            ]
        changed = client.get(path, headers=then_accepts | {"If-None-Match": '"other"'}, buffered=True)
        assert (changed.status_code, is_compressed(changed)) == (200, bool(then_accepts))


def test_byte_range_is_of_the_uncompressed_file(client: FlaskClient) -> None:
    plain = client.get(STYLE, buffered=True)
    part = client.get(STYLE, headers=ACCEPT_GZIP | {"Range": "bytes=0-1499"}, buffered=True)
    assert (part.status_code, part.data) == (206, plain.data[:1500])
    assert not is_compressed(part)
    assert part.headers["ETag"] == plain.headers["ETag"]
    assert "Accept-Ranges" not in client.get(STYLE, headers=ACCEPT_GZIP, buffered=True).headers
