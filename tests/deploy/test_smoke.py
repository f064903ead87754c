"""`deploy/smoke` passes a good deployment, reports each bad one in a line, and leaves no event behind."""

import re
import subprocess
import sys
import uuid
from collections.abc import Callable
from pathlib import Path

import pytest
import requests

from tests.deploy.conftest import CHECKOUT
from tests.deploy.smoke_runs import failure_of, list_events, run_smoke
from tests.deploy.tampering_proxy import Exchange, on, remove_header, replace_in_body, run_tampering_proxy, set_status
from tests.service import Service, bearer, free_port


def test_good_deployment_passes_and_no_event_is_left(running_service: Service, key: str) -> None:
    assert_passes(running_service, key)


def test_good_deployment_on_dynamodb_passes(service: Service, dynamodb_local_url: str) -> None:
    service.keep_in_dynamodb(dynamodb_local_url)
    assert service.run("init").returncode == 0
    service.start()
    assert_passes(service, service.create_key("smoke-of-tables", "--scope", "all"))


def assert_passes(service: Service, key: str) -> None:
    run = run_smoke(service.url, key)
    assert (run.returncode, run.stderr) == (0, "")
    lines = run.stdout.splitlines()
    assert len(lines) == 14
    assert all(line.startswith("ok  ") for line in lines)
    assert "ok  a request without a key gets 401 with WWW-Authenticate" in lines
    tenant_id = requests.get(f"{service.url}/me", headers=bearer(key), timeout=10).json()["tenant_id"]
    assert f"ok  the key of tenant {tenant_id} has the scopes to send and poll" in lines
    assert lines[-1] == "ok  every response of the service had an X-Request-Id"
    assert key not in run.stdout
    assert list_events(service, key) == []


def test_rate_limited_tenant_passes(running_service: Service, key: str) -> None:
    (tenant_id,) = re.findall(r"of tenant (\S+) has", run_smoke(running_service.url, key).stdout)
    assert running_service.run("tenants", "update", tenant_id, "--rate-limit", "5").returncode == 0
    # A new key: the service caches the limit together with the key.
    limited = running_service.run("keys", "create", tenant_id, "--scope", "all").stdout.strip()
    refused: list[str] = []

    def record_refusal(exchange: Exchange) -> None:
        if exchange.status == 429:
            refused.append(exchange.request)

    with run_tampering_proxy(running_service.url, record_refusal) as url:
        run = run_smoke(url, limited)
    assert (run.returncode, run.stderr) == (0, ""), run.stdout
    assert refused


def test_check_fails_after_five_429_responses(running_service: Service, key: str) -> None:
    requested: list[str] = []

    def refuse(exchange: Exchange) -> None:
        requested.append(exchange.request)
        exchange.status, exchange.headers["Retry-After"] = 429, "0"

    with run_tampering_proxy(running_service.url, on("GET /readyz", refuse)) as url:
        assert failure_of(run_smoke(url, key)) == "GET /readyz returned 429 instead of 200"
    assert requested == 5 * ["GET /readyz"]


def test_full_stdout_is_an_error_and_the_event_is_erased(running_service: Service, key: str) -> None:
    with Path("/dev/full").open("w") as full:
        run = subprocess.run(
            [sys.executable, CHECKOUT / "deploy" / "smoke", running_service.url],
            env={"INBOX_API_KEY": key},
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            timeout=120,
            check=False,
        )
    assert (run.returncode, run.stderr) == (1, "error: the results could not be written: No space left on device.\n")
    assert list_events(running_service, key) == []


def test_check_changes_nothing_if_the_tenant_has_undelivered_events(running_service: Service, key: str) -> None:
    requests.post(f"{running_service.url}/events", json={"order": 1}, headers=bearer(key), timeout=10)
    before = list_events(running_service, key)
    assert "in use: it has undelivered events" in failure_of(run_smoke(running_service.url, key))
    assert list_events(running_service, key) == before
    assert before[0]["status"] == "undelivered"
    assert len(before) == 1


def test_check_changes_nothing_if_the_tenant_has_named_inboxes(running_service: Service) -> None:
    key = running_service.create_key(f"named-{uuid.uuid4().hex[:8]}", "--scope", "all")
    made = requests.put(f"{running_service.url}/inboxes/crm", json={}, headers=bearer(key), timeout=10)
    assert made.status_code == 201
    assert "named inboxes. Nothing was sent" in failure_of(run_smoke(running_service.url, key))
    assert list_events(running_service, key) == []


def test_event_of_another_producer_is_released(running_service: Service, key: str) -> None:
    def send_before_the_poll(exchange: Exchange) -> None:
        if exchange.request == "GET /inboxes":
            requests.post(f"{running_service.url}/events", json={"order": 1}, headers=bearer(key), timeout=10)

    with run_tampering_proxy(running_service.url, send_before_the_poll) as url:
        assert "another producer sends to this tenant" in failure_of(run_smoke(url, key))
    (other,) = list_events(running_service, key)
    assert other["status"] == "undelivered"


def test_wrong_key_is_reported(running_service: Service) -> None:
    assert failure_of(run_smoke(running_service.url, "ibx_wrong")) == "the key is refused: GET /me returned 401"


def test_key_without_a_scope_is_reported(running_service: Service) -> None:
    key = running_service.create_key(f"reads-{uuid.uuid4().hex[:8]}", "--scope", "inbox:read")
    assert failure_of(run_smoke(running_service.url, key)) == "the key has no scope events:write and tenant:manage"


def test_refused_connection_is_reported() -> None:
    text = failure_of(run_smoke(f"http://127.0.0.1:{free_port()}", "ibx_any"))
    assert text.startswith("GET /healthz got no response: ")


def test_key_is_never_sent_unencrypted() -> None:
    # An address reserved for documentation.
    assert "nothing was sent" in failure_of(run_smoke("http://192.0.2.1", "ibx_any"))


@pytest.mark.parametrize(
    ("url", "key", "arguments"),
    [
        ("", "ibx_any", []),
        ("http://127.0.0.1", "", []),
        ("http://127.0.0.1", "ibx_any", ["--verbose"]),
        ("http://127.0.0.1", "ibx_any", ["http://127.0.0.1", "http://127.0.0.1"]),
        ("", "ibx_any", ["ibx_any"]),
        ("ftp://127.0.0.1", "ibx_any", []),
        ("http://127.0.0.1:port", "ibx_any", []),
        ("http://name:word@127.0.0.1", "ibx_any", []),
        ("http://:word@127.0.0.1", "ibx_any", []),
    ],
)
def test_wrong_usage_is_reported(url: str, key: str, arguments: list[str]) -> None:
    run = run_smoke(url, key, *arguments)
    assert (run.returncode, run.stdout) == (2, "")
    assert run.stderr.startswith("usage: ")
    assert "Traceback" not in run.stderr


def redirect(exchange: Exchange) -> None:
    exchange.status, exchange.headers["Location"] = 307, "http://127.0.0.1:1/"


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (on("GET /readyz", set_status(503)), "GET /readyz returned 503 instead of 200"),
        (on("GET /healthz", redirect), "GET /healthz returned 307 instead of 200"),
        (on("GET /healthz", remove_header("X-Request-Id")), "the response to GET /healthz has no X-Request-Id"),
        (on("GET /me", remove_header("WWW-Authenticate")), "a request without a key got 401"),
        (on("GET /me", set_status(200)), "a request without a key got 200"),
        (on("GET /inbox?mode=peek", replace_in_body(b"^.*$", b"<html>")), "is not JSON"),
        (on("GET /inbox?mode=peek", replace_in_body(b"^.*$", b"{}")), "is not a list"),
        (
            on("POST /events", replace_in_body(b'"id"', b'"ID"'), max_times=1),
            "the body of POST /events has no member id",
        ),
        (on("POST /events", remove_header("Idempotency-Replayed")), "was not recognized by its idempotency key"),
        (on("POST /events", set_status(502), max_times=1), "the event was not accepted: POST /events returned 502"),
        (on("HEAD /inbox", set_status(200)), "HEAD /inbox returned 200 instead of 405"),
        (on("GET /inbox?mode=lease", replace_in_body(b"^.*$", b"[]")), "GET /inbox did not return the event"),
        (on("GET /inbox?mode=lease", replace_in_body(b'"amount":1[.]0', b'"amount":1')), "the polled payload differs"),
        (
            on("GET /inbox?mode=lease", replace_in_body(b'"amount":1[.]0', b'"amount":"1.0"')),
            "the polled payload differs",
        ),
        (
            on("GET /inbox?mode=lease", replace_in_body(b"(1234567890){4}", b"1234567890e30")),
            "the polled payload differs",
        ),
        (
            on("GET /events/", replace_in_body(b'"delivered"', b'"leased"')),
            "acknowledged, but its status is not delivered",
        ),
        (on("DELETE /events/", set_status(500)), "DELETE /events/"),
    ],
)
def test_failure_is_reported_and_no_event_is_left(
    change: Callable[[Exchange], None], text: str, running_service: Service, key: str
) -> None:
    with run_tampering_proxy(running_service.url, change) as url:
        run = run_smoke(url, key)
    assert run.returncode == 1
    failures = [line for line in run.stdout.splitlines() if line.startswith("FAILED  ")]
    assert text in failures[0]
    assert list_events(running_service, key) == []


def test_event_that_may_still_be_stored_is_reported_too(running_service: Service, key: str) -> None:
    with run_tampering_proxy(running_service.url, on("POST /events", set_status(502))) as url:
        run = run_smoke(url, key)
    assert run.stdout.splitlines()[-2:] == [
        "FAILED  the event was not accepted: POST /events returned 502",
        "FAILED  and the event may still be stored: POST /events returned 502",
    ]


def test_event_that_cannot_be_erased_is_reported_too(running_service: Service, key: str) -> None:
    def change(exchange: Exchange) -> None:
        on("HEAD /inbox", set_status(200))(exchange)
        on("DELETE /events/", set_status(500))(exchange)

    with run_tampering_proxy(running_service.url, change) as url:
        run = run_smoke(url, key)
    first, second = run.stdout.splitlines()[-2:]
    assert first == "FAILED  HEAD /inbox returned 200 instead of 405"
    assert re.fullmatch("FAILED  and the event [0-9a-f-]{36} could not be erased", second)


@pytest.mark.parametrize(("status", "headers"), [(401, {}), (401, {"WWW-Authenticate": "Bearer"}), (403, {})])
def test_gateway_in_front_may_refuse_requests_without_a_key(
    status: int, headers: dict[str, str], running_service: Service, key: str
) -> None:
    def change(exchange: Exchange) -> None:
        if not exchange.has_key:
            exchange.status, exchange.headers, exchange.body = status, headers, b'{"message": "Unauthorized"}'

    with run_tampering_proxy(running_service.url, change) as url:
        run = run_smoke(url, key)
    assert run.returncode == 0, run.stdout
    assert f"ok  a request without a key gets {status} from a proxy or gateway in front of the service\n" in run.stdout
    assert run.stdout.endswith("\nok  every response of the service had an X-Request-Id\n")


def test_wrong_clock_is_a_warning(running_service: Service, key: str) -> None:
    # The first digit of epoch milliseconds is a 1 until 2033.
    with run_tampering_proxy(
        running_service.url, on("POST /events", replace_in_body(b'"timestamp":1', b'"timestamp":2'))
    ) as url:
        run = run_smoke(url, key)
    assert run.returncode == 0, run.stdout
    assert re.search("^warn  the service's clock is [0-9]+ seconds ahead of this one$", run.stdout, re.MULTILINE)
