"""Every path has one spelling, so that a proxy's rules see the same path as the service."""

import pytest

from tests.torture.hostile.target import Target, Tenant, is_problem

ADMIN = [
    "//admin/tenants",
    "///admin/tenants",
    "/admin//tenants",
    "/admin/tenants/",
    "/admin/tenants//",
    "/./admin/tenants",
    "/admin/./tenants",
    "/admin/tenants/.",
    "/inbox/../admin/tenants",
    "/console/../admin/tenants",
    "/static/../admin/tenants",
    "/%2e%2e/admin/tenants",
    "/inbox/%2e%2e/admin/tenants",
    "/inbox/..%2fadmin/tenants",
    "/inbox/..;/admin/tenants",
    "/..%5cadmin/tenants",
    "/admin\\tenants",
    "/admin%5ctenants",
    "/admin%2ftenants",
    "/admin%2Ftenants",
    "/admin%252ftenants",
    "/%61dmin/tenants",
    "/admin/tenant%73",
    "/%2fadmin/tenants",
    "/admin/tenants%00",
    "/admin%00/tenants",
    "/admin/tenants%0a",
    "/admin/tenants%20",
    "/admin/tenants.",
    "/admin./tenants",
    "/admin/tenants;x=1",
    "/admin;x=1/tenants",
    "/ADMIN/tenants",
    "/Admin/Tenants",
    "/admin%c0%aftenants",
    "/admin%e0%80%aftenants",
    "/admin%ff/tenants",
    "/admin%u002ftenants",
    "/admin%/tenants",
    "/admin/tenants#",
    "/admin/tenants#/../../inbox",
    "/admin/tenants?#",
    "http://x/admin/tenants",
    "HTTP://x:80/admin/tenants",
    "https://elsewhere/admin/tenants",
    "file:///admin/tenants",
    "x://admin/tenants",
]


@pytest.fixture
def admin(target: Target) -> Tenant:
    return target.create_tenant("system", "--scope", "admin")


def test_admin_api_has_one_path_only(target: Target, admin: Tenant) -> None:
    assert target.request("GET", "/admin/tenants", admin.authorization).status == 200
    for path in ADMIN:
        assert is_problem(target.request("GET", path, admin.authorization), 404, "not-found"), path


@pytest.mark.parametrize(
    "path",
    [
        "//inbox",
        "/inbox/",
        "/./inbox",
        "/inbox/.",
        "/inbox/..",
        "/x/../inbox",
        "/%69nbox",
        "/inbox%2f",
        "/inbox%00",
        "/inbox;",
        "/inbox#",
        "/inbox#?mode=peek",
        "/inbox?mode=consume#",
        "/INBOX",
        "http://x/inbox",
        "/inbox/default/",
        "/inbox//default",
        "/inbox/%64efault",
        "/inbox/default%00",
        "/inbox/Default",
    ],
)
def test_other_spellings_of_a_poll_are_a_404(target: Target, victim: Tenant, path: str) -> None:
    event = victim.send_secret()
    assert is_problem(target.request("GET", path, victim.authorization), 404, "not-found")
    assert victim.list_events() == [(event, "undelivered", 0)]


def test_invalid_request_target_is_refused(target: Target, victim: Tenant) -> None:
    event = victim.send_secret()
    for line, status, slug in (
        ("GET inbox HTTP/1.1", 400, "bad-request"),
        ("GET x:80 HTTP/1.1", 400, "bad-request"),
        ("GET * HTTP/1.1", 400, "bad-request"),
        ("GET ?mode=consume HTTP/1.1", 400, "bad-request"),
        ("GET http://[/inbox HTTP/1.1", 400, "bad-request"),
        ("GET /inb\xf6x HTTP/1.1", 400, "bad-request"),
        ("GET /inbox\0 HTTP/1.1", 400, "bad-request"),
        ("OPTIONS * HTTP/1.1", 404, "not-found"),
        ("CONNECT x:80 HTTP/1.1", 404, "not-found"),
        ("CONNECT /inbox HTTP/1.1", 405, "method-not-allowed"),
    ):
        [response] = target.exchange(f"{line}\r\nHost: x\r\nConnection: close\r\n{victim.authorization}\r\n\r\n")
        assert is_problem(response, status, slug), line
    assert victim.list_events() == [(event, "undelivered", 0)]


@pytest.mark.parametrize(
    "header",
    [
        "X-Original-URL",
        "X-Rewrite-URL",
        "X-Forwarded-Prefix",
        "X-Forwarded-Path",
        "X-Script-Name",
        "SCRIPT_NAME",
        "PATH_INFO",
        "Script-Name",
        "Path-Info",
        "Request-Uri",
        "Raw-Uri",
    ],
)
def test_no_header_chooses_the_path(target: Target, admin: Tenant, victim: Tenant, header: str) -> None:
    event = victim.send_secret()
    assert target.request("GET", "/healthz", f"{header}: /inbox", victim.authorization).json() == {"status": "ok"}
    assert target.request("GET", "/nowhere", f"{header}: /admin/tenants", admin.authorization).status == 404
    assert target.request("GET", "/nowhere/healthz", f"{header}: /nowhere").status == 404
    assert victim.list_events() == [(event, "undelivered", 0)]


def test_names_and_ids_with_encoded_separators_are_a_404(target: Target, victim: Tenant, attacker: Tenant) -> None:
    event = victim.send_secret()
    for trick in (
        "%2e%2e",
        "..%2f",
        "%00",
        "%0d%0aX-Injected:%20a",
        "%5c..%5c",
        "%25%32%66",
        "%c0%ae",
        "%ff",
        "{}",
        "'--",
    ):
        for method, path in (
            ("GET", f"/events/{event}{trick}"),
            ("GET", f"/events/{trick}{event}"),
            ("DELETE", f"/events/{event}{trick}"),
            ("POST", f"/events/{event}{trick}/replay"),
            ("GET", f"/inbox/{trick}"),
            ("GET", f"/inboxes/{trick}"),
            ("GET", f"/problems/{trick}"),
            ("GET", f"/static/{trick}"),
            ("GET", f"/console/{trick}"),
        ):
            for tenant in (victim, attacker):
                response = target.request(method, path, tenant.authorization)
                assert is_problem(response, 404, "not-found"), (method, path)
                assert "x-injected" not in response.headers
    assert victim.list_events() == [(event, "undelivered", 0)]
