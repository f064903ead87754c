"""Several processes: none stores or logs a key, all refuse a revoked key, and all share the limits."""

import json
import time
from base64 import b64encode
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
import requests

from tests.e2e.consumers import ALL_SCOPES
from tests.engines.aws import dynamodb_client
from tests.service import Service, bearer

# Two processes may use a token bucket at the same time.
MAX_MISCOUNTED_REQUESTS = 3


def read_everything_stored(service: Service) -> bytes:
    if not service.is_on_dynamodb:
        return b"".join(file.read_bytes() for file in service.folder.iterdir() if file != service.log)
    client = dynamodb_client(service.variables["AWS_ENDPOINT_URL_DYNAMODB"])
    prefix = service.variables["INBOX_TABLE_PREFIX"]
    items = [client.scan(TableName=f"{prefix}{table}")["Items"] for table in ("Events", "TenantApiKeys", "Tenants")]
    client.close()
    return repr(items).encode()


def test_stored_data_logs_and_responses_contain_no_key(service_on_each_engine: Service) -> None:
    service = service_on_each_engine
    manager = service.create_key("acme", "--name", "manager", *ALL_SCOPES)
    admin = service.create_key("system", "--scope", "admin")
    service.start()
    responses = list[str]()
    # These responses contain a key, so they are not in the list.
    made = requests.post(f"{service.url}/keys", headers=bearer(manager), timeout=30).json()
    rotated = requests.post(f"{service.url}/keys/{made['key_id']}/rotate", headers=bearer(manager), timeout=30).json()
    first = requests.post(f"{service.url}/admin/tenants/acme/keys", headers=bearer(admin), json={}, timeout=30).json()
    by_command = service.invoke("keys", "rotate", rotated["key_id"])
    keys = [manager, admin, made["key"], rotated["key"], first["key"], by_command.stdout.strip()]
    assert len(set(keys)) == 6

    session = requests.Session()
    for key in (manager, admin, rotated["key"]):
        basic = b64encode(f"zapier:{key}".encode()).decode()
        for headers in (
            bearer(key),
            {"X-API-Key": key},
            {"Authorization": f"Basic {basic}"},
            bearer(key) | {"X-Request-Id": key, "Inbox-Attempt": key},
            {"Authorization": f"Digest {key}"},
            {"Authorization": f"Bearer {key}{key}", "Cookie": key, "User-Agent": key},
        ):
            for method, path, body in (
                ("GET", "/me", None),
                ("GET", "/keys", None),
                ("GET", "/admin/tenants?includeInactive=true", None),
                ("GET", "/admin/tenants/acme/audit", None),
                ("POST", "/events", {"payload": {}}),
                ("GET", "/inbox", None),
                ("GET", f"/inbox?key={key}", None),
                ("GET", f"/events/{key}", None),
                ("POST", f"/keys/{key}/rotate", None),
                ("DELETE", f"/keys/{key}", None),
                ("GET", f"/{key}", None),
            ):
                response = session.request(method, f"{service.url}{path}", headers=headers, json=body, timeout=30)
                responses.append(f"{response.headers}\n{response.text}")
    commands = [
        service.invoke("keys", "list", "acme", "--json"),
        service.invoke("tenants", "audit", "acme"),
        service.invoke("keys", "revoke", made["key_id"]),
    ]
    service.stop()

    found = {
        "responses": "\n".join(responses),
        "commands": "\n".join(done.stdout + done.stderr for done in commands) + by_command.stderr,
        "log": service.log.read_text(),
        "store": read_everything_stored(service).decode("latin-1"),
    }
    assert '"status":429' not in found["responses"]
    assert made["key_id"] in found["responses"]
    assert made["key_id"] in found["commands"]
    assert made["key_id"] in found["store"]
    assert '"route":"/me"' in found["log"]
    for key in keys:
        for where, text in found.items():
            # No part of a key may appear, except its last letters as the hint.
            assert key[4:-6] not in text, where


@pytest.mark.parametrize(
    ("service_on_each_engine", "end"),
    [("sqlite", "by command"), ("sqlite", "suspended"), ("dynamodb_local", "by HTTP")],
    indirect=["service_on_each_engine"],
)
def test_key_stops_working_everywhere_within_the_cache_time(service_on_each_engine: Service, end: str) -> None:
    service = service_on_each_engine
    cache_seconds = 1
    service.variables["INBOX_KEY_CACHE_SECONDS"] = str(cache_seconds)
    key, manager = service.create_key("acme"), service.create_key("acme", *ALL_SCOPES)
    key_id = json.loads(service.invoke("keys", "list", "acme", "--json").stdout.splitlines()[0])["key_id"]
    service.start()

    def status(_: int) -> int:
        # A connection per request, so that every process receives some.
        return requests.get(f"{service.url}/me", headers=bearer(key), timeout=30).status_code

    with ThreadPoolExecutor(8) as pool:
        assert set(pool.map(status, range(64))) == {200}
        if end == "by command":
            assert service.invoke("keys", "revoke", key_id).returncode == 0
        elif end == "by HTTP":
            requests.delete(f"{service.url}/keys/{key_id}", headers=bearer(manager), timeout=30).raise_for_status()
        else:
            assert service.invoke("tenants", "suspend", "acme").returncode == 0
        time.sleep(cache_seconds)
        assert set(pool.map(status, range(64))) == {403 if end == "suspended" else 401}


def request_statuses(service: Service, count: int, headers: Callable[[int], dict[str, str]]) -> tuple[list[int], float]:
    """Makes `count` requests, each on a new connection. Returns their statuses and the seconds they took."""
    started_at = time.monotonic()
    with ThreadPoolExecutor(8) as pool:
        statuses = list(
            pool.map(
                lambda n: requests.get(f"{service.url}/me", headers=headers(n), timeout=30).status_code, range(count)
            )
        )
    return statuses, time.monotonic() - started_at


def test_processes_share_the_rate_limit_of_a_tenant(service: Service) -> None:
    service.variables |= {"INBOX_RATE_LIMIT": "10", "INBOX_WORKERS": "4"}
    key = service.create_key("acme")
    service.start()

    statuses, seconds = request_statuses(service, 100, lambda _: bearer(key))
    assert set(statuses) == {200, 429}
    assert 10 <= statuses.count(200) <= 10 * (1 + seconds) + MAX_MISCOUNTED_REQUESTS


def test_processes_share_the_limit_of_failed_authentications(service: Service) -> None:
    service.variables |= {"INBOX_AUTH_FAILURE_LIMIT": "60", "INBOX_WORKERS": "4"}
    service.start()

    statuses, seconds = request_statuses(service, 200, lambda n: {"X-API-Key": f"wrong {n}"})
    assert set(statuses) == {401, 429}
    assert 60 <= statuses.count(401) <= 60 + seconds + MAX_MISCOUNTED_REQUESTS
