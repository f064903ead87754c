"""The app on a real store, called in this process."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from time import time_ns
from typing import Any

import pytest
from flask import Flask
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from inbox.app import Shared, create_app
from inbox.domain.keys import DEFAULT_SCOPES, Scope
from inbox.domain.tenants import TenantStatus
from inbox.services.keys import KeyService
from inbox.services.tenants import TenantService
from inbox.settings import Settings
from inbox.store.factory import open_store
from inbox.store.interface import Store


@dataclass(frozen=True)
class ApiClient:
    """Sends requests with one key."""

    client: FlaskClient
    key: str

    @property
    def headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.key}"}

    def get(self, path: str, headers: dict[str, str] | None = None, **options: Any) -> TestResponse:
        return self.client.get(path, headers=self.headers | (headers or {}), **options)

    def post(self, path: str, headers: dict[str, str] | None = None, **options: Any) -> TestResponse:
        return self.client.post(path, headers=self.headers | (headers or {}), **options)

    def put(self, path: str, headers: dict[str, str] | None = None, **options: Any) -> TestResponse:
        return self.client.put(path, headers=self.headers | (headers or {}), **options)

    def patch(self, path: str, **options: Any) -> TestResponse:
        return self.client.patch(path, headers=self.headers, **options)

    def request(self, method: str, path: str, headers: dict[str, str] | None = None, **options: Any) -> TestResponse:
        return self.client.open(path, method=method, headers=self.headers | (headers or {}), **options)

    def delete(self, path: str) -> TestResponse:
        return self.client.delete(path, headers=self.headers)

    def send(self, payload: dict[str, Any], **members: Any) -> dict[str, Any]:
        response = self.post("/events", json={"payload": payload} | members)
        assert response.status_code == 201, response.text
        event: dict[str, Any] = response.get_json()
        return event

    def send_numbered(self, count: int) -> list[str]:
        """Sends events with the payloads {"n": 0}, {"n": 1}, … and returns their IDs."""
        return ids(self.post("/events/batch", json=[{"n": number} for number in range(count)]).get_json())

    def poll(self, path: str = "/inbox") -> list[dict[str, Any]]:
        response = self.get(path)
        assert response.status_code == 200, response.text
        events: list[dict[str, Any]] = response.get_json()
        return events

    def lease(self, query: str = "") -> list[dict[str, Any]]:
        return self.poll(f"/inbox?mode=lease{query}")

    def settle(self, verb: str, receipts: Sequence[str], **members: Any) -> dict[str, Any]:
        """Returns the response of /inbox/ack, /inbox/release or /inbox/extend."""
        response = self.post(f"/inbox/{verb}", json={"receipts": receipts} | members)
        assert response.status_code == 200, response.text
        document: dict[str, Any] = response.get_json()
        return document

    def peek(self) -> list[dict[str, Any]]:
        """Returns up to 500 undelivered events without changing them."""
        return self.poll("/inbox?mode=peek&limit=500")

    def get_status(self, event_id: str) -> str:
        return str(self.get(f"/events/{event_id}").get_json()["status"])


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(store=f"sqlite:///{tmp_path}/inbox.db")


@pytest.fixture
def store(settings: Settings) -> Iterator[Store]:
    store = open_store(settings)
    yield store
    store.close()


@pytest.fixture
def tenant_service(store: Store) -> TenantService:
    return TenantService(store.tenants, now_ms)


@pytest.fixture
def key_service(store: Store) -> KeyService:
    """Gives each key a distinct, past creation time.

    Lists show these keys in the order of their creation, before keys that the app creates.
    """
    milliseconds = count(now_ms() - 1000)
    return KeyService(store.keys, store.tenants, lambda: next(milliseconds))


def now_ms() -> int:
    return time_ns() // 1_000_000


class Clock:
    """The app's clock, which a test can advance."""

    def __init__(self) -> None:
        self._ahead_ms = 0

    def __call__(self) -> int:
        return now_ms() + self._ahead_ms

    def advance(self, seconds: int) -> None:
        self._ahead_ms += seconds * 1000


@pytest.fixture
def clock(store: Store, monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(store, "now_ms", clock)
    return clock


@pytest.fixture
def shared() -> Shared:
    return Shared()


@pytest.fixture
def app(settings: Settings, store: Store, clock: Clock, shared: Shared) -> Flask:  # noqa: ARG001 - patches the store
    return create_app(settings, store, shared)


@pytest.fixture
def client(app: Flask) -> FlaskClient:
    return app.test_client()


@pytest.fixture
def spec(client: FlaskClient) -> dict[str, Any]:
    """Returns /openapi.json."""
    document: dict[str, Any] = client.get("/openapi.json").get_json()
    return document


@dataclass(frozen=True)
class TenantFactory:
    """Creates tenants, and clients with their keys."""

    client: FlaskClient
    tenant_service: TenantService
    key_service: KeyService

    def register(self, tenant_id: str, name: str | None = None) -> None:
        self.tenant_service.create("test", tenant_id, status=TenantStatus.REGISTERED, organization_name=name)

    def create_client(self, tenant_id: str, *scopes: Scope) -> ApiClient:
        return ApiClient(self.client, self.key_service.create(tenant_id, scopes=scopes or DEFAULT_SCOPES).key)


@pytest.fixture
def tenant_factory(client: FlaskClient, tenant_service: TenantService, key_service: KeyService) -> TenantFactory:
    return TenantFactory(client, tenant_service, key_service)


@pytest.fixture
def acme(tenant_factory: TenantFactory) -> ApiClient:
    tenant_factory.register("acme", "Acme Corp.")
    return tenant_factory.create_client("acme")


@pytest.fixture
def acme_manager(tenant_factory: TenantFactory, acme: ApiClient) -> ApiClient:  # noqa: ARG001 - creates the tenant
    return tenant_factory.create_client("acme", Scope.TENANT_MANAGE)


@pytest.fixture
def globex(tenant_factory: TenantFactory) -> ApiClient:
    tenant_factory.register("globex")
    return tenant_factory.create_client("globex")


@pytest.fixture
def admin(tenant_factory: TenantFactory) -> ApiClient:
    tenant_factory.register("system")
    return tenant_factory.create_client("system", Scope.ADMIN)


class FakeTime:
    """Fake time for long polls. It passes only during sleeps, and each sleep then calls `meanwhile`."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self.meanwhile: Callable[[], Any] = lambda: None

    def monotonic(self) -> float:
        return self.seconds

    def sleep(self, seconds: float) -> None:
        self.seconds += seconds
        self.meanwhile()


@pytest.fixture
def fake_time(monkeypatch: pytest.MonkeyPatch) -> FakeTime:
    fake_time = FakeTime()
    monkeypatch.setattr("inbox.services.blocking_polls.time", fake_time)
    return fake_time


def problem(response: TestResponse) -> tuple[int, str]:
    """Returns the status and the slug of a problem document."""
    return response.status_code, response.get_json()["type"].removeprefix("/problems/")


def pointers(response: TestResponse) -> list[str]:
    return [error["pointer"] for error in response.get_json()["errors"]]


def numbers(events: Iterable[dict[str, Any]]) -> list[int]:
    return [event["payload"]["n"] for event in events]


def payloads(events: Iterable[dict[str, Any]]) -> list[Any]:
    return [event["payload"] for event in events]


def ids(events: Iterable[dict[str, Any]]) -> list[str]:
    return [event["id"] for event in events]


def receipts(events: Iterable[dict[str, Any]]) -> list[str]:
    return [event["receipt"] for event in events]
