"""The rate limit of a tenant, and the limit of failed authentications per IP address."""

from dataclasses import replace

import pytest
from flask.testing import FlaskClient

from inbox.app import Shared, create_app
from inbox.auth.token_buckets import TokenBuckets
from inbox.settings import Settings
from inbox.store.interface import Store
from tests.api.conftest import ApiClient, TenantFactory
from tests.unit.test_token_buckets import FakeClock


@pytest.fixture
def seconds() -> FakeClock:
    return FakeClock()


@pytest.fixture
def settings(settings: Settings) -> Settings:
    return replace(settings, rate_limit=3, auth_failure_limit=5, key_cache_seconds=0)


@pytest.fixture
def shared(seconds: FakeClock) -> Shared:
    return Shared(TokenBuckets(seconds))


def test_tenant_above_its_limit_gets_429_with_retry_after(acme: ApiClient, seconds: FakeClock) -> None:
    responses = [acme.get("/me") for _ in range(4)]
    assert [response.status_code for response in responses] == [200, 200, 200, 429]
    assert [response.headers["RateLimit"] for response in responses] == [
        '"tenant";r=2;t=1',
        '"tenant";r=1;t=1',
        '"tenant";r=0;t=1',
        '"tenant";r=0;t=1',
    ]
    assert {response.headers["RateLimit-Policy"] for response in responses} == {'"tenant";q=3;w=1'}
    assert responses[3].headers["Retry-After"] == "1"
    assert responses[3].get_json()["type"] == "/problems/rate-limited"
    assert responses[3].get_json()["detail"] == "The tenant exceeded 3 requests per second. Retry after 1 second."
    assert "Retry-After" not in responses[0].headers

    seconds.now += 1
    assert acme.get("/me").status_code == 200


def test_request_above_the_limit_changes_nothing(acme: ApiClient, seconds: FakeClock) -> None:
    for _ in range(3):
        acme.send({})
    assert acme.post("/events", json={}).status_code == 429
    assert acme.get("/inbox").status_code == 429
    seconds.now += 1
    assert len(acme.poll()) == 3


def test_rejected_requests_count_against_the_limit(acme: ApiClient) -> None:
    for _ in range(3):
        assert acme.get("/keys").status_code == 403
    assert acme.get("/keys").status_code == 429


def test_keys_of_a_tenant_share_its_limit(tenant_factory: TenantFactory, acme: ApiClient, globex: ApiClient) -> None:
    second = tenant_factory.create_client("acme")
    assert [caller.get("/me").status_code for caller in (acme, second, acme, second)] == [200, 200, 200, 429]
    assert globex.get("/me").status_code == 200


def test_tenant_can_have_its_own_limit(tenant_factory: TenantFactory, acme: ApiClient) -> None:
    tenant_factory.tenant_service.update("acme", "test", rate_limit=1)
    assert [acme.get("/me").status_code for _ in range(2)] == [200, 429]
    assert "1 request per second" in acme.get("/me").get_json()["detail"]
    tenant_factory.tenant_service.update("acme", "test", rate_limit=0)
    responses = [acme.get("/me") for _ in range(10)]
    assert {response.status_code for response in responses} == {200}
    assert "RateLimit" not in responses[0].headers


def test_response_has_no_rate_limit_header_without_a_limit(store: Store, acme: ApiClient) -> None:
    client = create_app(Settings(), store, Shared()).test_client()
    assert "RateLimit" not in client.get("/me", headers=acme.headers).headers


def test_public_route_has_no_limit(client: FlaskClient) -> None:
    assert {client.get("/healthz").status_code for _ in range(20)} == {200}


def test_address_without_a_valid_key_gets_429(client: FlaskClient, seconds: FakeClock) -> None:
    responses = [client.get("/me", headers={"X-API-Key": f"wrong {number}"}) for number in range(6)]
    assert [response.status_code for response in responses] == [401] * 5 + [429]
    assert responses[5].get_json()["type"] == "/problems/too-many-failures"
    assert responses[5].headers["Retry-After"] == "12"
    assert responses[5].get_json()["detail"].endswith("Retry after 12 seconds.")
    assert "WWW-Authenticate" not in responses[5].headers
    seconds.now += 12
    assert client.get("/me").status_code == 401


def test_valid_key_works_from_a_limited_address(client: FlaskClient, acme: ApiClient) -> None:
    assert acme.get("/me").status_code == 200
    for _ in range(10):
        client.get("/me")
    assert client.get("/me").status_code == 429
    assert acme.get("/me").status_code == 200


def call_without_key(client: FlaskClient, forwarded_for: str) -> int:
    return client.get("/me", headers={"X-Forwarded-For": forwarded_for}).status_code


def test_forwarded_address_is_ignored_without_a_proxy(client: FlaskClient) -> None:
    assert [call_without_key(client, f"192.0.2.{number}") for number in range(6)] == [401] * 5 + [429]


def test_trusted_proxy_names_the_address(settings: Settings, store: Store, shared: Shared) -> None:
    client = create_app(replace(settings, trusted_proxies=1), store, shared).test_client()
    assert [call_without_key(client, f"192.0.2.{number}") for number in range(6)] == [401] * 6
    # Only the last entry is trusted; the client may have sent the others.
    assert [call_without_key(client, f"192.0.2.{number}, 192.0.2.99") for number in range(6)] == [401] * 5 + [429]
