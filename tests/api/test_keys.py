"""/keys: a tenant's own keys."""

from datetime import UTC, datetime
from itertools import count
from typing import Any

import pytest
from flask.testing import FlaskClient

from inbox.domain.keys import MAX_KEYS, Scope
from inbox.services.keys import KeyService
from inbox.store.interface import Store
from tests.api.conftest import ApiClient, Clock, Tenancy, now_ms, problem


@pytest.fixture
def manager(tenancy: Tenancy) -> ApiClient:
    tenancy.register("acme")
    return tenancy.client_for("acme", Scope.TENANT_MANAGE)


def create(manager: ApiClient, **members: Any) -> dict[str, Any]:
    response = manager.post("/keys", json=members)
    assert response.status_code == 201, response.text
    key: dict[str, Any] = response.get_json()
    return key


def listed(manager: ApiClient) -> list[dict[str, Any]]:
    response = manager.get("/keys")
    assert response.status_code == 200
    keys: list[dict[str, Any]] = response.get_json()
    return keys


def iso_time_in(clock: Clock, seconds: int) -> str:
    return datetime.fromtimestamp(clock() / 1000 + seconds, UTC).isoformat()


def test_created_key_works_and_is_not_listed(manager: ApiClient, client: FlaskClient) -> None:
    new = create(manager, name="zapier", scopes=["inbox:read"])
    assert ApiClient(client, new["key"]).get("/me").get_json() == {
        "tenant_id": "acme",
        "tenant_name": "acme",
        "key_id": new["key_id"],
        "scopes": ["inbox:read"],
    }
    shown = listed(manager)[-1]
    assert shown | {"last_used_at": None, "key": new["key"]} == new
    assert new["key"] not in manager.get("/keys").text


def test_key_can_send_and_poll_and_never_expires_by_default(manager: ApiClient) -> None:
    new = manager.post("/keys").get_json()
    assert (new["name"], new["scopes"], new["expires_at"]) == ("", ["events:write", "inbox:read"], None)
    assert (new["status"], new["last_used_at"]) == ("active", None)


def test_hint_is_the_end_of_the_key(manager: ApiClient) -> None:
    new = create(manager)
    assert new["hint"] == "ibx_…" + new["key"][-4:]
    assert listed(manager)[-1]["hint"] == new["hint"]


def test_key_works_until_it_expires(manager: ApiClient, client: FlaskClient, clock: Clock) -> None:
    new = create(manager, expires_at=iso_time_in(clock, 60))
    user = ApiClient(client, new["key"])
    assert user.get("/me").status_code == 200
    clock.advance(61)
    assert user.get("/me").status_code == 401
    assert listed(manager)[-1]["status"] == "expired"


def test_revoked_key_is_listed_and_does_not_work(manager: ApiClient, client: FlaskClient) -> None:
    new = create(manager)
    for _ in range(2):
        assert manager.delete(f"/keys/{new['key_id']}").status_code == 204
    assert listed(manager)[-1]["status"] == "revoked"
    assert ApiClient(client, new["key"]).get("/me").status_code == 401


def test_old_key_works_for_the_overlap_of_its_rotation(manager: ApiClient, client: FlaskClient, clock: Clock) -> None:
    old = create(manager, name="zapier", scopes=["inbox:read"])
    response = manager.post(f"/keys/{old['key_id']}/rotate", json={"overlap_seconds": 60})
    new = response.get_json()

    assert response.status_code == 201
    assert (new["name"], new["scopes"], new["expires_at"]) == ("zapier", ["inbox:read"], None)
    assert new["key"] != old["key"]
    clients = [ApiClient(client, key["key"]) for key in (old, new)]
    assert [user.get("/me").status_code for user in clients] == [200, 200]
    clock.advance(61)
    assert [user.get("/me").status_code for user in clients] == [401, 200]


def test_rotation_overlaps_by_a_day_by_default(manager: ApiClient, clock: Clock) -> None:
    old = create(manager)
    manager.post(f"/keys/{old['key_id']}/rotate")
    ends = next(key["expires_at"] for key in listed(manager) if key["key_id"] == old["key_id"])
    assert abs(datetime.fromisoformat(ends).timestamp() - clock() / 1000 - 86_400) < 60


def test_new_key_has_the_lifetime_of_the_old_one(manager: ApiClient, clock: Clock) -> None:
    old = create(manager, expires_at=iso_time_in(clock, 1000))
    clock.advance(900)
    new = manager.post(f"/keys/{old['key_id']}/rotate").get_json()

    assert abs(datetime.fromisoformat(new["expires_at"]).timestamp() - clock() / 1000 - 1000) < 60
    # And the old one never lives longer than it was meant to.
    assert next(key["expires_at"] for key in listed(manager) if key["key_id"] == old["key_id"]) == old["expires_at"]


def test_second_rotation_gives_the_same_lifetime_as_the_first(manager: ApiClient, clock: Clock) -> None:
    lasting, ending = create(manager), create(manager, expires_at=iso_time_in(clock, 1000))
    for old, life in ((lasting, None), (ending, 1000)):
        for _ in range(2):
            # As by a client that has lost the first response, and the key in it.
            new = manager.post(f"/keys/{old['key_id']}/rotate", json={"overlap_seconds": 60}).get_json()
            ends = new["expires_at"] and datetime.fromisoformat(new["expires_at"]).timestamp() - clock() / 1000
            assert ends == life if life is None else abs(ends - life) < 30


def test_key_rotated_without_overlap_cannot_be_rotated_again(manager: ApiClient) -> None:
    old = create(manager)
    path = f"/keys/{old['key_id']}/rotate"
    assert manager.post(path, json={"overlap_seconds": 0}).status_code == 201
    assert manager.post(path, json={"overlap_seconds": 0}).status_code == 409


def test_revoked_or_expired_key_cannot_be_rotated(manager: ApiClient, clock: Clock) -> None:
    revoked, expired = create(manager), create(manager, expires_at=iso_time_in(clock, 1))
    manager.delete(f"/keys/{revoked['key_id']}")
    clock.advance(2)
    for key in (revoked, expired):
        response = manager.post(f"/keys/{key['key_id']}/rotate")
        assert problem(response) == (409, "not-allowed")
    assert len(listed(manager)) == 3


@pytest.mark.parametrize("path", ["/keys/key_none", "/keys/key_none/rotate"])
def test_unknown_key_is_a_404(client: FlaskClient, manager: ApiClient, path: str) -> None:
    method = "POST" if path.endswith("rotate") else "DELETE"
    assert client.open(path, method=method, headers=manager.headers).status_code == 404


def test_manager_of_system_cannot_create_or_change_admin_keys(tenancy: Tenancy, admin: ApiClient) -> None:
    manager = tenancy.client_for("system", Scope.TENANT_MANAGE)
    admin_key = tenancy.key_ring.list("system")[0].key_id

    for response in (
        manager.post("/keys", json={"scopes": ["admin"]}),
        manager.post(f"/keys/{admin_key}/rotate"),
        manager.delete(f"/keys/{admin_key}"),
    ):
        assert problem(response) == (403, "missing-scope")
    assert admin.get("/admin/tenants").status_code == 200
    both = tenancy.client_for("system", Scope.TENANT_MANAGE, Scope.ADMIN)
    assert both.post("/keys", json={"scopes": ["admin"]}).status_code == 201


def test_last_use_of_a_key_is_accurate_to_the_hour(manager: ApiClient, client: FlaskClient, clock: Clock) -> None:
    user = ApiClient(client, create(manager)["key"])

    def last_used() -> float:
        return datetime.fromisoformat(listed(manager)[-1]["last_used_at"]).timestamp()

    for _ in range(10):
        user.get("/me")
        assert 0 <= clock() / 1000 - last_used() < 3600
        clock.advance(1200)


def test_number_of_active_keys_is_limited(manager: ApiClient, tenancy: Tenancy) -> None:
    keys = [tenancy.key_ring.create("acme") for _ in range(MAX_KEYS - 1)]
    for path in ("/keys", f"/keys/{keys[0].metadata.key_id}/rotate"):
        response = manager.post(path)
        assert problem(response) == (409, "too-many-keys")
    tenancy.key_ring.revoke(keys[0].metadata.key_id)
    assert manager.post("/keys").status_code == 201


def test_only_the_latest_revoked_keys_are_listed(manager: ApiClient, store: Store) -> None:
    # Made in one millisecond, they would stand in no order.
    milliseconds = count(now_ms())
    keys = KeyService(store.keys, store.tenants, lambda: next(milliseconds))
    for number in range(MAX_KEYS + 5):
        keys.revoke(keys.create("acme", str(number)).metadata.key_id)
    keys.create("acme", "last")
    names = [key["name"] for key in listed(manager)]
    assert names == ["", *(str(number) for number in range(5, MAX_KEYS + 5)), "last"]


@pytest.mark.parametrize("call", ["make", "rotate"])
def test_revoked_key_cannot_create_or_rotate_keys_while_it_is_cached(
    manager: ApiClient, tenancy: Tenancy, call: str
) -> None:
    (own,) = tenancy.key_ring.list("acme")
    other = tenancy.key_ring.create("acme").metadata.key_id
    assert manager.get("/inboxes").status_code == 200
    tenancy.key_ring.revoke(own.key_id)

    assert manager.get("/inboxes").status_code == 200
    assert manager.post("/keys" if call == "make" else f"/keys/{other}/rotate").status_code == 401
    assert len(tenancy.key_ring.list("acme")) == 2
