"""/keys: a tenant's own keys."""

from datetime import UTC, datetime
from itertools import count
from typing import Any

import pytest
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from inbox.domain.keys import MAX_KEYS, Scope
from inbox.services.keys import KeyService
from inbox.store.interface import Store
from tests.api.conftest import ApiClient, Clock, TenantFactory, now_ms, problem


@pytest.fixture
def manager(tenant_factory: TenantFactory) -> ApiClient:
    tenant_factory.register("acme")
    return tenant_factory.create_client("acme", Scope.TENANT_MANAGE)


def create(manager: ApiClient, **members: Any) -> dict[str, Any]:
    response = manager.post("/keys", json=members)
    assert response.status_code == 201, response.text
    key: dict[str, Any] = response.get_json()
    return key


def list_keys(manager: ApiClient) -> list[dict[str, Any]]:
    response = manager.get("/keys")
    assert response.status_code == 200
    keys: list[dict[str, Any]] = response.get_json()
    return keys


def rotate(manager: ApiClient, key: dict[str, Any], **members: Any) -> TestResponse:
    return manager.post(f"/keys/{key['key_id']}/rotate", json=members)


def seconds_until(iso_time: str, clock: Clock) -> float:
    return datetime.fromisoformat(iso_time).timestamp() - clock() / 1000


def get_expiry(manager: ApiClient, key: dict[str, Any]) -> str:
    return str(next(each["expires_at"] for each in list_keys(manager) if each["key_id"] == key["key_id"]))


def iso_time_in(clock: Clock, seconds: int) -> str:
    return datetime.fromtimestamp(clock() / 1000 + seconds, UTC).isoformat()


def test_created_key_works_and_lists_do_not_show_it(manager: ApiClient, client: FlaskClient) -> None:
    new = create(manager, name="zapier", scopes=["inbox:read"])
    assert ApiClient(client, new["key"]).get("/me").get_json() == {
        "tenant_id": "acme",
        "tenant_name": "acme",
        "key_id": new["key_id"],
        "scopes": ["inbox:read"],
    }
    shown = list_keys(manager)[-1]
    assert shown | {"last_used_at": None, "key": new["key"]} == new
    assert new["key"] not in manager.get("/keys").text


def test_key_has_default_scopes_and_no_expiry_by_default(manager: ApiClient) -> None:
    new = manager.post("/keys").get_json()
    assert (new["name"], new["scopes"], new["expires_at"]) == ("", ["events:write", "inbox:read"], None)
    assert (new["status"], new["last_used_at"]) == ("active", None)


def test_hint_is_the_end_of_the_key(manager: ApiClient) -> None:
    new = create(manager)
    assert new["hint"] == "ibx_…" + new["key"][-4:]
    assert list_keys(manager)[-1]["hint"] == new["hint"]


def test_key_works_until_it_expires(manager: ApiClient, client: FlaskClient, clock: Clock) -> None:
    new = create(manager, expires_at=iso_time_in(clock, 60))
    user = ApiClient(client, new["key"])
    assert user.get("/me").status_code == 200
    clock.advance(61)
    assert user.get("/me").status_code == 401
    assert list_keys(manager)[-1]["status"] == "expired"


def test_revoked_key_is_listed_and_does_not_work(manager: ApiClient, client: FlaskClient) -> None:
    new = create(manager)
    for _ in range(2):
        assert manager.delete(f"/keys/{new['key_id']}").status_code == 204
    assert list_keys(manager)[-1]["status"] == "revoked"
    assert ApiClient(client, new["key"]).get("/me").status_code == 401


def test_old_key_works_for_the_overlap_of_its_rotation(manager: ApiClient, client: FlaskClient, clock: Clock) -> None:
    old = create(manager, name="zapier", scopes=["inbox:read"])
    response = rotate(manager, old, overlap_seconds=60)
    new = response.get_json()
    assert response.status_code == 201
    assert (new["name"], new["scopes"], new["expires_at"]) == ("zapier", ["inbox:read"], None)
    assert new["key"] != old["key"]
    for statuses in ([200, 200], [401, 200]):
        assert [ApiClient(client, key["key"]).get("/me").status_code for key in (old, new)] == statuses
        clock.advance(61)


def test_rotation_overlaps_by_a_day_by_default(manager: ApiClient, clock: Clock) -> None:
    old = create(manager)
    manager.post(f"/keys/{old['key_id']}/rotate")
    assert abs(seconds_until(get_expiry(manager, old), clock) - 86_400) < 60


def test_new_key_has_the_lifetime_of_the_old_one(manager: ApiClient, clock: Clock) -> None:
    old = create(manager, expires_at=iso_time_in(clock, 1000))
    clock.advance(900)
    new = rotate(manager, old).get_json()
    assert abs(seconds_until(new["expires_at"], clock) - 1000) < 60
    # The overlap does not extend the life of the old key.
    assert get_expiry(manager, old) == old["expires_at"]


def test_second_rotation_gives_the_same_lifetime_as_the_first(manager: ApiClient, clock: Clock) -> None:
    permanent, temporary = create(manager), create(manager, expires_at=iso_time_in(clock, 1000))
    # A client that lost the response with the new key rotates again.
    for _ in range(2):
        assert rotate(manager, permanent, overlap_seconds=60).get_json()["expires_at"] is None
        expires_at = rotate(manager, temporary, overlap_seconds=60).get_json()["expires_at"]
        assert abs(seconds_until(expires_at, clock) - 1000) < 30


def test_key_that_does_not_work_cannot_be_rotated(manager: ApiClient, clock: Clock) -> None:
    revoked, rotated = create(manager), create(manager)
    expired = create(manager, expires_at=iso_time_in(clock, 1))
    manager.delete(f"/keys/{revoked['key_id']}")
    assert rotate(manager, rotated, overlap_seconds=0).status_code == 201
    clock.advance(2)
    for key in (revoked, rotated, expired):
        assert problem(rotate(manager, key)) == (409, "not-allowed")
    assert len(list_keys(manager)) == 5


def test_call_for_unknown_key_returns_404(manager: ApiClient) -> None:
    assert manager.delete("/keys/key_none").status_code == 404
    assert manager.post("/keys/key_none/rotate").status_code == 404


def test_manager_of_system_cannot_create_or_change_admin_keys(tenant_factory: TenantFactory, admin: ApiClient) -> None:
    manager = tenant_factory.create_client("system", Scope.TENANT_MANAGE)
    admin_key_id = tenant_factory.key_service.list("system")[0].key_id

    for response in (
        manager.post("/keys", json={"scopes": ["admin"]}),
        manager.post(f"/keys/{admin_key_id}/rotate"),
        manager.delete(f"/keys/{admin_key_id}"),
    ):
        assert problem(response) == (403, "missing-scope")
    assert admin.get("/admin/tenants").status_code == 200
    both = tenant_factory.create_client("system", Scope.TENANT_MANAGE, Scope.ADMIN)
    assert both.post("/keys", json={"scopes": ["admin"]}).status_code == 201


def test_last_use_of_a_key_is_accurate_to_the_hour(manager: ApiClient, client: FlaskClient, clock: Clock) -> None:
    user = ApiClient(client, create(manager)["key"])

    def last_used() -> float:
        return datetime.fromisoformat(list_keys(manager)[-1]["last_used_at"]).timestamp()

    for _ in range(10):
        user.get("/me")
        assert 0 <= clock() / 1000 - last_used() < 3600
        clock.advance(1200)


def test_number_of_active_keys_is_limited(manager: ApiClient, tenant_factory: TenantFactory) -> None:
    keys = [tenant_factory.key_service.create("acme") for _ in range(MAX_KEYS - 1)]
    for path in ("/keys", f"/keys/{keys[0].metadata.key_id}/rotate"):
        assert problem(manager.post(path)) == (409, "too-many-keys")
    tenant_factory.key_service.revoke(keys[0].metadata.key_id)
    assert manager.post("/keys").status_code == 201


def test_only_the_latest_revoked_keys_are_listed(manager: ApiClient, store: Store) -> None:
    # Keys created in the same millisecond have no defined order.
    milliseconds = count(now_ms())
    keys = KeyService(store.keys, store.tenants, lambda: next(milliseconds))
    for number in range(MAX_KEYS + 5):
        keys.revoke(keys.create("acme", str(number)).metadata.key_id)
    keys.create("acme", "last")
    names = [key["name"] for key in list_keys(manager)]
    assert names == ["", *(str(number) for number in range(5, MAX_KEYS + 5)), "last"]


@pytest.mark.parametrize("call", ["create", "rotate"])
def test_revoked_key_cannot_create_or_rotate_keys_while_it_is_cached(
    manager: ApiClient, tenant_factory: TenantFactory, call: str
) -> None:
    [own] = tenant_factory.key_service.list("acme")
    other = tenant_factory.key_service.create("acme").metadata.key_id
    assert manager.get("/inboxes").status_code == 200
    tenant_factory.key_service.revoke(own.key_id)

    assert manager.get("/inboxes").status_code == 200
    assert manager.post("/keys" if call == "create" else f"/keys/{other}/rotate").status_code == 401
    assert len(tenant_factory.key_service.list("acme")) == 2
