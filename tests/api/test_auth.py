"""Who may call what, and how a key is sent."""

import base64
from dataclasses import replace

import pytest
from flask.testing import FlaskClient

from authorizer import apikey
from inbox.registry import Registry
from inbox.store.port import Store
from inbox.tenants import Scope, TenantStatus
from tests.api.conftest import Caller

CALLS = [
    ("POST", "/events"),
    ("POST", "/events/batch"),
    ("GET", "/inbox"),
    ("GET", "/inbox/crm"),
    ("POST", "/inbox/ack"),
    ("POST", "/inbox/release"),
    ("POST", "/inbox/extend"),
    ("GET", "/events"),
    ("GET", "/events/6f7dd7a3-6f0c-4c1e-9a53-0d7b1f0c6a55"),
    ("DELETE", "/events/6f7dd7a3-6f0c-4c1e-9a53-0d7b1f0c6a55"),
    ("POST", "/events/6f7dd7a3-6f0c-4c1e-9a53-0d7b1f0c6a55/replay"),
    ("POST", "/events/replay"),
    ("GET", "/inboxes"),
    ("GET", "/inboxes/crm"),
    ("PUT", "/inboxes/crm"),
    ("DELETE", "/inboxes/crm"),
    ("GET", "/me"),
]
SENDING = {("POST", "/events"), ("POST", "/events/batch")}
MANAGING = {("PUT", "/inboxes/crm"), ("DELETE", "/inboxes/crm")}
LOOKING_AT_INBOXES = {("GET", "/inboxes"), ("GET", "/inboxes/crm")}
ME = {("GET", "/me")}


def basic(user: str, password: str) -> str:
    return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()


def test_the_key_is_taken_in_each_of_its_places(client: FlaskClient, acme: Caller) -> None:
    for headers in (
        {"Authorization": f"Bearer {acme.key}"},
        {"Authorization": f"bearer  {acme.key}"},
        {"Authorization": f"BEARER\t{acme.key}"},
        {"Authorization": "Basic " + base64.b64encode(b"\xff:" + acme.key.encode()).decode()},
        {"X-API-Key": acme.key},
        {"Authorization": basic(acme.key, "")},
        {"Authorization": basic("", acme.key)},
        {"Authorization": basic("zapier", acme.key)},
        {"Authorization": basic(acme.key, acme.key)},
        {"Authorization": f"Bearer {acme.key}", "X-API-Key": acme.key},
    ):
        assert client.get("/me", headers=headers).status_code == 200, headers


@pytest.mark.parametrize(("method", "path"), CALLS)
def test_every_call_without_a_valid_key_gets_the_same_answer(
    client: FlaskClient, registry: Registry, acme: Caller, method: str, path: str
) -> None:
    revoked = registry.create_key("acme", "old")
    registry.revoke_key(next(key.key_id for key in registry.keys("acme") if key.name == "old"))
    expired = registry.create_key("acme", lifetime_seconds=0)
    wrong_checksum = acme.key[:-1] + ("a" if acme.key[-1] != "a" else "b")
    answers = {}
    for headers in (
        {},
        {"Authorization": ""},
        {"Authorization": "Bearer"},
        {"Authorization": "Bearer nonsense"},
        {"Authorization": f"Digest {acme.key}"},
        {"Authorization": acme.key},
        {"Authorization": "Basic %%%"},
        {"Authorization": "Basic " + base64.b64encode(b"\xff:\xff").decode()},
        {"Authorization": f"Bearer {wrong_checksum}"},
        {"Authorization": f"Bearer {apikey.mint()}"},
        {"Authorization": f"Bearer {revoked}"},
        {"Authorization": f"Bearer {expired}"},
        {"Authorization": f"Bearer {acme.key}", "X-API-Key": apikey.mint()},
        {"Authorization": basic(acme.key, apikey.mint())},
        {"X-API-Key": acme.key + "x"},
    ):
        answer = client.open(path, method=method, headers=headers, data=b"not even json")
        assert answer.status_code == 401, headers
        document = {name: value for name, value in answer.get_json().items() if name != "request_id"}
        answers[(answer.headers["WWW-Authenticate"], answer.content_type, str(document))] = headers
    assert len(answers) == 1


@pytest.mark.parametrize(
    ("scopes", "allowed"),
    [
        ([Scope.EVENTS_WRITE], SENDING | ME),
        ([Scope.INBOX_READ], set(CALLS) - SENDING - MANAGING),
        ([Scope.TENANT_MANAGE], MANAGING | LOOKING_AT_INBOXES | ME),
    ],
)
def test_a_key_opens_what_its_scopes_allow(
    client: FlaskClient, registry: Registry, scopes: list[Scope], allowed: set[tuple[str, str]]
) -> None:
    registry.create_tenant("acme")
    caller = Caller(client, registry.create_key("acme", scopes=scopes))
    for method, path in CALLS:
        answer = client.open(path, method=method, headers=caller.headers)
        assert (answer.status_code != 403) == ((method, path) in allowed), (method, path)
        if (method, path) not in allowed:
            assert answer.get_json()["type"] == "/problems/missing-scope"


@pytest.mark.parametrize(("method", "path"), CALLS)
def test_a_suspended_tenant_may_do_nothing(
    client: FlaskClient, store: Store, registry: Registry, method: str, path: str
) -> None:
    tenant = registry.create_tenant("source")
    store.tenants.create(replace(tenant, tenant_id="acme", status=TenantStatus.SUSPENDED))
    caller = Caller(client, registry.create_key("acme"))

    answer = client.open(path, method=method, headers=caller.headers)
    assert (answer.status_code, answer.get_json()["type"]) == (403, "/problems/tenant-inactive")


def test_me_says_who_a_key_is(registry: Registry, acme: Caller) -> None:
    assert acme.get("/me").get_json() == {
        "tenant_id": "acme",
        "tenant_name": "Acme Corp.",
        "key_id": registry.keys("acme")[0].key_id,
        "scopes": ["events:write", "inbox:read"],
    }


def test_two_tenants_see_only_their_own_events_on_every_route(acme: Caller, globex: Caller) -> None:
    ours, theirs = acme.send({"whose": "acme"}), globex.send({"whose": "globex"})

    assert acme.get(f"/events/{theirs['id']}").status_code == 404
    assert globex.get(f"/events/{ours['id']}").status_code == 404
    assert acme.get("/me").get_json()["tenant_id"] == "acme"
    assert globex.get("/me").get_json()["tenant_id"] == "globex"
    for query in ("?mode=peek", "?mode=peek&order=newest", ""):
        assert [event["id"] for event in acme.get(f"/inbox{query}").get_json()] == [ours["id"]]
        assert [event["id"] for event in globex.get(f"/inbox{query}").get_json()] == [theirs["id"]]


def test_a_foreign_event_looks_like_none_at_all(acme: Caller, globex: Caller) -> None:
    foreign = acme.get(f"/events/{globex.send({})['id']}", headers={"X-Request-Id": "x"})
    missing = acme.get("/events/6f7dd7a3-6f0c-4c1e-9a53-0d7b1f0c6a55", headers={"X-Request-Id": "x"})
    assert (foreign.status_code, foreign.text) == (missing.status_code, missing.text)
