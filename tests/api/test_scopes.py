"""What keys with one scope may do to events."""

import pytest

from inbox.domain.keys import Scope
from tests.api.conftest import ApiClient, Tenancy


@pytest.fixture
def support(tenancy: Tenancy, acme: ApiClient) -> ApiClient:  # noqa: ARG001 - the tenant
    return tenancy.caller("acme", Scope.EVENTS_READ)


def test_a_key_with_events_read_sees_everything(support: ApiClient, acme: ApiClient, acme_manager: ApiClient) -> None:
    acme_manager.put("/inboxes/crm")
    event_id = acme.send({"n": 1}, event_type="order.created")["id"]

    for path in ("/inbox?mode=peek", "/inbox/crm?mode=peek", "/inbox?mode=peek&wait=1&order=newest", "/events"):
        assert [event["id"] for event in support.poll(path)] == [event_id], path
    assert support.get(f"/events/{event_id}?inbox=crm").get_json()["payload"] == {"n": 1}
    assert support.get("/stats").get_json()["undelivered"] == 1
    assert support.get("/inboxes").get_json() == [support.get("/inboxes/crm").get_json()]
    assert support.get("/me").get_json()["scopes"] == ["events:read"]


@pytest.mark.parametrize(
    "path",
    [
        "/inbox",
        "/inbox?mode=consume",
        "/inbox?mode=lease",
        "/inbox?mode=lease&wait=20",
        "/inbox/crm",
        "/inbox/crm?mode=lease&lease_seconds=5",
        "/inbox/nothing-of-that-name",
    ],
)
def test_a_key_with_events_read_takes_nothing(
    support: ApiClient, acme: ApiClient, acme_manager: ApiClient, path: str
) -> None:
    acme_manager.put("/inboxes/crm")
    acme.send({"n": 1})
    before = acme.get("/events").get_json(), acme.get("/events?inbox=crm").get_json()

    refused = support.get(path, headers={"Inbox-Attempt": "1"})
    assert (refused.status_code, refused.get_json()["type"]) == (403, "/problems/missing-scope")
    assert refused.get_json()["detail"] == "This request needs a key with the scope inbox:read."
    assert (acme.get("/events").get_json(), acme.get("/events?inbox=crm").get_json()) == before


def test_a_key_with_events_read_changes_nothing(support: ApiClient, acme: ApiClient) -> None:
    acme.send({"n": 1})
    (leased,) = acme.lease()
    before = acme.get("/events").get_json()
    for verb in ("ack", "release", "extend"):
        assert support.post(f"/inbox/{verb}", json={"receipts": [leased["receipt"]]}).status_code == 403
    for path in ("/events/replay", f"/events/{leased['id']}/replay"):
        assert support.post(path, json={}).status_code == 403
    assert support.post("/events", json={}).status_code == 403
    assert support.delete(f"/events/{leased['id']}").status_code == 403
    assert acme.get("/events").get_json() == before


def test_erasing_needs_tenant_manage(acme: ApiClient, acme_manager: ApiClient) -> None:
    event_id = acme.send({})["id"]

    refused = acme.delete(f"/events/{event_id}")
    assert (refused.status_code, refused.get_json()["type"]) == (403, "/problems/missing-scope")
    assert refused.get_json()["detail"] == "This request needs a key with the scope tenant:manage."
    assert acme.get(f"/events/{event_id}").status_code == 200
    assert acme_manager.delete(f"/events/{event_id}").status_code == 204
    assert acme.get(f"/events/{event_id}").status_code == 404
