"""`deploy/smoke`: a good deployment passes, each bad one is told in a line, and no event is left behind or taken."""

import re
import subprocess
import sys
import uuid
from collections.abc import Callable
from pathlib import Path

import pytest
import requests

from tests.deploy.conftest import CHECKOUT
from tests.deploy.smoke_runs import events_of, refusal, smoke
from tests.deploy.tampering_proxy import Passed, body, on, status, tampering, without
from tests.service import Service, bearer, free_port


def test_a_good_deployment_passes_and_nothing_is_left(running_service: Service, key: str) -> None:
    passes(running_service, key)


def test_so_does_one_on_dynamodb(service: Service, dynamodb_local_url: str) -> None:
    service.keep_in_dynamodb(dynamodb_local_url)
    assert service.run("init").returncode == 0
    service.start()
    passes(service, service.create_key("smoke-of-tables", "--scope", "all"))


def passes(service: Service, key: str) -> None:
    run = smoke(service.url, key)
    assert (run.returncode, run.stderr) == (0, "")
    lines = run.stdout.splitlines()
    assert len(lines) == 14
    assert all(line.startswith("ok  ") for line in lines)
    assert "ok  without a key a call gets 401 and WWW-Authenticate" in lines
    tenant_id = requests.get(f"{service.url}/me", headers=bearer(key), timeout=10).json()["tenant_id"]
    assert f"ok  the key is one of the tenant {tenant_id}, and may send and poll" in lines
    assert lines[-1] == "ok  every answer of the service had an X-Request-Id"
    assert key not in run.stdout
    assert events_of(service, key) == []


def test_the_file_can_be_executed_and_the_url_be_an_argument(running_service: Service, key: str) -> None:
    assert (CHECKOUT / "deploy" / "smoke").stat().st_mode & 0o111 == 0o111
    assert smoke("", key, f"{running_service.url}/").returncode == 0


def test_a_tenant_that_may_not_call_often_is_no_fault(running_service: Service, key: str) -> None:
    (tenant_id,) = re.findall(r"the tenant (\S+),", smoke(running_service.url, key).stdout)
    assert running_service.run("tenants", "update", tenant_id, "--rate-limit", "5").returncode == 0
    # Another key of it: the limit is known together with the key, for as long as that is remembered.
    limited = running_service.run("keys", "create", tenant_id, "--scope", "all").stdout.strip()
    refused: list[str] = []

    def note(passed: Passed) -> None:
        if passed.status == 429:
            refused.append(passed.call)

    with tampering(running_service.url, note) as url:
        run = smoke(url, limited)
    assert (run.returncode, run.stderr) == (0, ""), run.stdout
    assert refused


def test_it_does_not_wait_for_ever(running_service: Service, key: str) -> None:
    asked: list[str] = []

    def refuse(passed: Passed) -> None:
        asked.append(passed.call)
        passed.status, passed.headers["Retry-After"] = 429, "0"

    with tampering(running_service.url, on("GET /readyz", refuse)) as url:
        assert refusal(smoke(url, key)) == "GET /readyz answered 429 in place of 200"
    assert asked == 5 * ["GET /readyz"]


def test_what_cannot_be_told_is_an_error_and_the_event_erased(running_service: Service, key: str) -> None:
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
    assert (run.returncode, run.stderr) == (1, "What was checked could not be told: No space left on device.\n")
    assert events_of(running_service, key) == []


def test_events_that_wait_are_left_alone(running_service: Service, key: str) -> None:
    requests.post(f"{running_service.url}/events", json={"order": 1}, headers=bearer(key), timeout=10)
    before = events_of(running_service, key)
    assert "in use: it has events waiting" in refusal(smoke(running_service.url, key))
    assert events_of(running_service, key) == before
    assert before[0]["status"] == "undelivered"
    assert len(before) == 1


def test_a_tenant_with_named_inboxes_is_left_alone(running_service: Service) -> None:
    key = running_service.create_key(f"named-{uuid.uuid4().hex[:8]}", "--scope", "all")
    made = requests.put(f"{running_service.url}/inboxes/crm", json={}, headers=bearer(key), timeout=10)
    assert made.status_code == 201
    assert "named inboxes. Nothing was sent" in refusal(smoke(running_service.url, key))
    assert events_of(running_service, key) == []


def test_what_somebody_else_sends_meanwhile_is_given_back(running_service: Service, key: str) -> None:
    def send_before_the_poll(passed: Passed) -> None:
        if passed.call == "GET /inboxes":
            requests.post(f"{running_service.url}/events", json={"order": 1}, headers=bearer(key), timeout=10)

    with tampering(running_service.url, send_before_the_poll) as url:
        assert "somebody else sends to this tenant" in refusal(smoke(url, key))
    (other,) = events_of(running_service, key)
    assert other["status"] == "undelivered"


def test_a_wrong_key_is_told(running_service: Service) -> None:
    assert refusal(smoke(running_service.url, "ibx_wrong")) == "the key is refused: GET /me answered 401"


def test_a_key_without_a_scope_is_told(running_service: Service) -> None:
    key = running_service.create_key(f"reads-{uuid.uuid4().hex[:8]}", "--scope", "inbox:read")
    assert refusal(smoke(running_service.url, key)) == "the key lacks the scope events:write and tenant:manage"


def test_nobody_listening_is_told() -> None:
    said = refusal(smoke(f"http://127.0.0.1:{free_port()}", "ibx_any"))
    assert said.startswith("GET /healthz got no answer: ")


def test_a_key_never_travels_in_the_clear() -> None:
    # The address is one for documentation, which nobody has.
    assert "nothing was sent" in refusal(smoke("http://192.0.2.1", "ibx_any"))


@pytest.mark.parametrize("option", ["-h", "--help"])
def test_help_is_what_the_file_says_of_itself(option: str) -> None:
    run = smoke("", "", option)
    assert (run.returncode, run.stderr) == (0, "")
    assert f'"""{run.stdout}"""' in (CHECKOUT / "deploy" / "smoke").read_text()


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
def test_wrong_usage_is_told(url: str, key: str, arguments: list[str]) -> None:
    run = smoke(url, key, *arguments)
    assert (run.returncode, run.stdout) == (2, "")
    assert run.stderr.startswith("usage: ")
    assert "Traceback" not in run.stderr


def redirect(passed: Passed) -> None:
    passed.status, passed.headers["Location"] = 307, "http://127.0.0.1:1/"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (on("GET /readyz", status(503)), "GET /readyz answered 503 in place of 200"),
        (on("GET /healthz", redirect), "GET /healthz answered 307 in place of 200"),
        (on("GET /healthz", without("X-Request-Id")), "GET /healthz answered without X-Request-Id"),
        (on("GET /me", without("WWW-Authenticate")), "a call without a key got 401"),
        (on("GET /me", status(200)), "a call without a key got 200"),
        (on("GET /inbox?mode=peek", body(b"^.*$", b"<html>")), "answered with something that is not JSON"),
        (on("GET /inbox?mode=peek", body(b"^.*$", b"{}")), "did not answer with a list"),
        (on("POST /events", body(b'"id"', b'"ID"'), times=1), "POST /events answered without the member id"),
        (on("POST /events", without("Idempotency-Replayed")), "was not recognized by its idempotency key"),
        (on("POST /events", status(502), times=1), "an event was not taken: POST /events answered 502"),
        (on("HEAD /inbox", status(200)), "HEAD /inbox answered 200 in place of 405"),
        (on("GET /inbox?mode=lease", body(b"^.*$", b"[]")), "the event did not come out"),
        (on("GET /inbox?mode=lease", body(b'"amount":1[.]0', b'"amount":1')), "is not the one that went in"),
        (on("GET /inbox?mode=lease", body(b'"amount":1[.]0', b'"amount":"1.0"')), "is not the one that went in"),
        (on("GET /inbox?mode=lease", body(b"(1234567890){4}", b"1234567890e30")), "is not the one that went in"),
        (on("GET /events/", body(b'"delivered"', b'"leased"')), "acknowledged, and not delivered"),
        (on("DELETE /events/", status(500)), "DELETE /events/"),
    ],
)
def test_what_is_wrong_is_told_and_no_event_is_left(
    change: Callable[[Passed], None], said: str, running_service: Service, key: str
) -> None:
    with tampering(running_service.url, change) as url:
        run = smoke(url, key)
    assert run.returncode == 1
    failures = [line for line in run.stdout.splitlines() if line.startswith("FAILED  ")]
    assert said in failures[0]
    assert events_of(running_service, key) == []


def test_an_event_that_nobody_told_the_id_of_is_told_too(running_service: Service, key: str) -> None:
    with tampering(running_service.url, on("POST /events", status(502))) as url:
        run = smoke(url, key)
    assert run.stdout.splitlines()[-2:] == [
        "FAILED  an event was not taken: POST /events answered 502",
        "FAILED  and whether the event is there nobody says: POST /events answered 502",
    ]


def test_an_event_that_cannot_be_erased_is_told_too(running_service: Service, key: str) -> None:
    def change(passed: Passed) -> None:
        on("HEAD /inbox", status(200))(passed)
        on("DELETE /events/", status(500))(passed)

    with tampering(running_service.url, change) as url:
        run = smoke(url, key)
    first, second = run.stdout.splitlines()[-2:]
    assert first == "FAILED  HEAD /inbox answered 200 in place of 405"
    assert re.fullmatch("FAILED  and the event [0-9a-f-]{36} could not be erased", second)


@pytest.mark.parametrize(("number", "headers"), [(401, {}), (401, {"WWW-Authenticate": "Bearer"}), (403, {})])
def test_a_gateway_in_front_may_refuse_in_its_own_way(
    number: int, headers: dict[str, str], running_service: Service, key: str
) -> None:
    def change(passed: Passed) -> None:
        if not passed.has_key:
            passed.status, passed.headers, passed.body = number, headers, b'{"message": "Unauthorized"}'

    with tampering(running_service.url, change) as url:
        run = smoke(url, key)
    assert run.returncode == 0, run.stdout
    assert f"ok  without a key a call gets {number}, from what stands in front of the service\n" in run.stdout
    assert run.stdout.endswith("\nok  every answer of the service had an X-Request-Id\n")


def test_a_clock_that_is_off_is_a_warning(running_service: Service, key: str) -> None:
    # The first digit of epoch milliseconds is a 1 until 2033.
    with tampering(running_service.url, on("POST /events", body(b'"timestamp":1', b'"timestamp":2'))) as url:
        run = smoke(url, key)
    assert run.returncode == 0, run.stdout
    assert re.search("^warn  its clock is [0-9]+ seconds ahead of ours$", run.stdout, re.MULTILINE)
