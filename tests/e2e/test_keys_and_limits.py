"""Keys and limits through real processes: where a key may be found, when it stops working, what counts together."""

import json
import time
from base64 import b64encode
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import pytest
import requests

from tests.engines.aws import dynamodb_client
from tests.service import Service, bearer

# Where two processes come to a bucket at the same moment.
MISCOUNTED = 3
ALL_BUT_ADMIN = ("--scope", "events:write", "--scope", "inbox:read", "--scope", "tenant:manage")


@pytest.fixture(params=["sqlite", "dynamodb_local"])
def stored(request: pytest.FixtureRequest, service: Service) -> Service:
    """Ready to start."""
    if request.param != "sqlite":
        service.keep_in_dynamodb(request.getfixturevalue(f"{request.param}_url"))
    service.run("init")
    return service


def everything_stored(service: Service) -> bytes:
    if not service.is_on_dynamodb:
        return b"".join(file.read_bytes() for file in service.folder.iterdir() if file != service.log)
    client = dynamodb_client(service.variables["AWS_ENDPOINT_URL_DYNAMODB"])
    prefix = service.variables["INBOX_TABLE_PREFIX"]
    items = [client.scan(TableName=f"{prefix}{table}")["Items"] for table in ("Events", "TenantApiKeys", "Tenants")]
    client.close()
    return repr(items).encode()


@dataclass
class Ears:
    """Calls a service and keeps whatever it answers."""

    service: Service
    heard: list[str] = field(default_factory=list)

    def call(self, method: str, path: str, headers: dict[str, str], body: object = None) -> requests.Response:
        answer = requests.request(method, f"{self.service.url}{path}", headers=headers, json=body, timeout=30)
        self.heard.append(f"{answer.headers}\n{answer.text}")
        return answer


def test_nothing_that_is_stored_logged_or_answered_contains_a_key(stored: Service) -> None:
    manager = stored.create_key("acme", "--name", "manager", *ALL_BUT_ADMIN)
    admin = stored.create_key("system", "--scope", "admin")
    stored.start()
    ears = Ears(stored)
    # The two answers that show a key, each this once, are taken apart and not kept.
    made = requests.post(f"{stored.url}/keys", headers=bearer(manager), timeout=30).json()
    rotated = requests.post(f"{stored.url}/keys/{made['key_id']}/rotate", headers=bearer(manager), timeout=30).json()
    first = requests.post(f"{stored.url}/admin/tenants/acme/keys", headers=bearer(admin), json={}, timeout=30).json()
    by_command = stored.run("keys", "rotate", rotated["key_id"])
    keys = [manager, admin, made["key"], rotated["key"], first["key"], by_command.stdout.strip()]
    assert len(set(keys)) == 6

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
                ears.call(method, path, headers, body)
    commands = [
        stored.run("keys", "list", "acme", "--json"),
        stored.run("tenants", "audit", "acme"),
        stored.run("keys", "revoke", made["key_id"]),
    ]
    stored.stop()

    found = {
        "answers": "\n".join(ears.heard),
        "commands": "\n".join(done.stdout + done.stderr for done in commands) + by_command.stderr,
        "log": stored.log.read_text(),
        "store": everything_stored(stored).decode("latin-1"),
    }
    assert '"status":429' not in found["answers"]
    assert made["key_id"] in found["answers"]
    assert made["key_id"] in found["commands"]
    assert made["key_id"] in found["store"]
    assert '"route":"/me"' in found["log"]
    for key in keys:
        for where, text in found.items():
            # Less than the whole would be too much as well: all but the four letters of the hint.
            assert key[4:-6] not in text, where


@pytest.mark.parametrize(
    ("stored", "end"),
    [("sqlite", "by command"), ("sqlite", "suspended"), ("sqlite", "by HTTP"), ("dynamodb_local", "by HTTP")],
    indirect=["stored"],
)
def test_a_key_stops_working_everywhere_within_the_cache_time(stored: Service, end: str) -> None:
    cache_seconds = 1
    stored.variables["INBOX_KEY_CACHE_SECONDS"] = str(cache_seconds)
    key, manager = stored.create_key("acme"), stored.create_key("acme", *ALL_BUT_ADMIN)
    key_id = json.loads(stored.run("keys", "list", "acme", "--json").stdout.splitlines()[0])["key_id"]
    stored.start()

    def status(_: int) -> int:
        # Each on a connection of its own, so that every process gets some.
        return requests.get(f"{stored.url}/me", headers=bearer(key), timeout=30).status_code

    with ThreadPoolExecutor(8) as pool:
        assert set(pool.map(status, range(64))) == {200}
        if end == "by command":
            assert stored.run("keys", "revoke", key_id).returncode == 0
        elif end == "by HTTP":
            requests.delete(f"{stored.url}/keys/{key_id}", headers=bearer(manager), timeout=30).raise_for_status()
        else:
            assert stored.run("tenants", "suspend", "acme").returncode == 0
        time.sleep(cache_seconds)
        assert set(pool.map(status, range(64))) == {403 if end == "suspended" else 401}


def answers_in(service: Service, calls: int, headers: Callable[[int], dict[str, str]]) -> tuple[list[int], float]:
    """What so many calls get, each on a connection of its own, and how many seconds it took."""
    began = time.monotonic()
    with ThreadPoolExecutor(8) as pool:
        statuses = list(
            pool.map(
                lambda n: requests.get(f"{service.url}/me", headers=headers(n), timeout=30).status_code, range(calls)
            )
        )
    return statuses, time.monotonic() - began


def test_a_tenants_limit_is_one_for_all_processes(service: Service) -> None:
    service.variables |= {"INBOX_RATE_LIMIT": "10", "INBOX_WORKERS": "4"}
    key = service.create_key("acme")
    service.start()

    statuses, seconds = answers_in(service, 100, lambda _: bearer(key))
    assert set(statuses) == {200, 429}
    assert 10 <= statuses.count(200) <= 10 * (1 + seconds) + MISCOUNTED


def test_failures_are_counted_for_all_processes_together(service: Service) -> None:
    service.variables |= {"INBOX_AUTH_FAILURE_LIMIT": "60", "INBOX_WORKERS": "4"}
    service.start()

    statuses, seconds = answers_in(service, 200, lambda n: {"X-API-Key": f"wrong {n}"})
    assert set(statuses) == {401, 429}
    assert 60 <= statuses.count(401) <= 60 + seconds + MISCOUNTED
