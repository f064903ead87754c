"""/inboxes, and GET /inbox/{name}."""

from typing import Any

import pytest

from inbox.domain.inboxes import MAX_INBOXES
from inbox.domain.timestamps import format_timestamp
from inbox.errors import InboxClosing
from inbox.store.interface import Store
from tests.api.conftest import ApiClient, Clock, numbers, problem


def test_created_inbox_is_shown_and_listed(acme: ApiClient, acme_manager: ApiClient, globex: ApiClient) -> None:
    created = acme_manager.put("/inboxes/crm", json={"event_types": ["order.*", "invoice.paid"]})
    document = created.get_json()
    assert (created.status_code, created.headers["Location"]) == (201, "/inboxes/crm")
    assert document | {"created_at": ""} == {
        "name": "crm",
        "event_types": ["order.*", "invoice.paid"],
        "created_at": "",
    }
    everything = acme_manager.put("/inboxes/all", json={}).get_json()
    assert everything["event_types"] is None
    for client in (acme, acme_manager):
        assert client.get("/inboxes/crm").get_json() == document
        assert client.get("/inboxes").get_json() == [everything, document]
    assert globex.get("/inboxes").get_json() == []


def test_second_put_changes_the_patterns(acme: ApiClient, acme_manager: ApiClient, clock: Clock) -> None:
    created = acme_manager.put("/inboxes/crm", json={"event_types": ["a"]}).get_json()
    clock.advance(60)
    changed = acme_manager.put("/inboxes/crm", json={"event_types": ["b"]})
    assert (changed.status_code, changed.get_json()) == (200, created | {"event_types": ["b"]})
    for number, event_type in enumerate(["a", "b"]):
        acme.send({"n": number}, event_type=event_type)
    assert numbers(acme.poll("/inbox/crm")) == [1]


def test_put_with_if_none_match_only_creates(acme: ApiClient, acme_manager: ApiClient) -> None:
    only_create = {"If-None-Match": "*"}
    created = acme_manager.put("/inboxes/crm", json={"event_types": ["a"]}, headers=only_create)
    assert created.status_code == 201
    for types in (["b"], ["a"], None):
        refused = acme_manager.put("/inboxes/crm", json={"event_types": types}, headers=only_create)
        assert problem(refused) == (412, "precondition-failed")
    assert acme.get("/inboxes").get_json() == [created.get_json()]
    assert acme_manager.put("/inboxes/crm", json={"event_types": ["b"]}).status_code == 200
    acme_manager.delete("/inboxes/crm")
    assert acme_manager.put("/inboxes/crm", headers=only_create).status_code == 201


def test_put_with_if_none_match_never_changes_default(acme_manager: ApiClient) -> None:
    refused = acme_manager.put("/inboxes/default", json={"enabled": False}, headers={"If-None-Match": "*"})
    assert (refused.status_code, acme_manager.get("/inboxes/default").get_json()["enabled"]) == (412, True)


def test_inbox_without_patterns_receives_every_event(acme_manager: ApiClient) -> None:
    empty_body = {"content_type": "application/json"}
    requests: list[dict[str, Any]] = [{}, empty_body, {"json": {}}, {"json": {"event_types": None}}]
    for number, options in enumerate(requests):
        created = acme_manager.put(f"/inboxes/i{number}", **options)
        assert (created.status_code, created.get_json()["event_types"]) == (201, None)


def test_inbox_receives_copies_of_matching_events_since_its_creation(acme: ApiClient, acme_manager: ApiClient) -> None:
    acme.send({"n": 0})
    acme_manager.put("/inboxes/crm", json={"event_types": ["order.*"]})
    acme_manager.put("/inboxes/log")
    for number, event_type in enumerate(["order.created", "orders", None, "order."], 1):
        acme.send({"n": number}, event_type=event_type)

    assert numbers(acme.poll("/inbox/crm?limit=1")) == [1]
    assert numbers(acme.poll("/inbox/crm")) == [4]
    assert numbers(acme.poll("/inbox/log")) == [1, 2, 3, 4]
    assert numbers(acme.poll("/inbox")) == [0, 1, 2, 3, 4]


def test_receipts_of_several_inboxes_can_be_settled_together(acme: ApiClient, acme_manager: ApiClient) -> None:
    acme_manager.put("/inboxes/crm")
    event_id = acme.send({"n": 1})["id"]
    receipts = [acme.poll(f"{path}?mode=lease")[0]["receipt"] for path in ("/inbox", "/inbox/crm")]
    assert len(set(receipts)) == 2
    assert acme.settle("ack", receipts) == {"acknowledged": [event_id, event_id], "lost": []}


def test_default_is_a_name_of_the_default_inbox(acme: ApiClient) -> None:
    acme.send({"n": 1})
    assert numbers(acme.poll("/inbox/default")) == [1]
    assert numbers(acme.poll("/inbox")) == []


def test_default_is_shown_but_not_listed(acme: ApiClient, acme_manager: ApiClient, store: Store) -> None:
    tenant = store.tenants.get("acme")
    assert tenant is not None
    enabled = {
        "name": "default",
        "event_types": None,
        "created_at": format_timestamp(tenant.created_at_ms),
        "enabled": True,
    }
    assert acme.get("/inboxes/default").get_json() == enabled
    disabled = acme_manager.put("/inboxes/default", json={"enabled": False})
    assert (disabled.status_code, disabled.get_json()) == (200, enabled | {"enabled": False})
    for client in (acme, acme_manager):
        assert client.get("/inboxes/default").get_json() == enabled | {"enabled": False}
        assert client.get("/inboxes").get_json() == []
    again = acme_manager.put("/inboxes/default", json={"event_types": None, "enabled": True})
    assert (again.status_code, again.get_json()) == (200, enabled)


def test_events_go_to_named_inboxes_only_while_default_is_disabled(acme: ApiClient, acme_manager: ApiClient) -> None:
    acme_manager.put("/inboxes/orders", json={"event_types": ["order.*"]})
    acme_manager.put("/inboxes/default", json={"enabled": False})
    copied, kept = acme.send({"n": 1}, event_type="order.created"), acme.send({"n": 2})
    assert [(each["status"], each["deliveries"]) for each in (copied, kept)] == [("delivered", 0)] * 2
    assert acme.post("/events/batch", json=[{"n": 3}]).get_json()[0]["status"] == "delivered"

    assert (numbers(acme.poll("/inbox?mode=peek")), numbers(acme.poll("/inbox"))) == ([], [])
    assert numbers(acme.poll("/inbox/orders")) == [1]
    found = acme.get(f"/events/{kept['id']}").get_json()
    assert found == kept | {"payload": {"n": 2}}
    assert numbers(acme.get("/events").get_json()) == [3, 2, 1]
    assert numbers(acme.get("/events?status=delivered").get_json()) == [3, 2, 1]

    acme_manager.put("/inboxes/default", json={"enabled": True})
    assert acme.send({"n": 4})["status"] == "undelivered"
    assert acme.post(f"/events/{kept['id']}/replay").get_json()["status"] == "undelivered"
    assert numbers(acme.poll("/inbox")) == [2, 4]


@pytest.mark.parametrize("name", ["ack", "release", "extend", "0", "a-", "x" * 63])
def test_every_valid_name_can_be_polled(acme: ApiClient, acme_manager: ApiClient, name: str) -> None:
    assert acme_manager.put(f"/inboxes/{name}").status_code == 201
    acme.send({"n": 1})
    assert numbers(acme.poll(f"/inbox/{name}?mode=peek")) == [1]
    assert acme.client.head(f"/inbox/{name}", headers=acme.headers).status_code == 405
    assert acme.get(f"/inbox/{name}", headers={"Purpose": "prefetch"}).status_code == 403
    assert acme.post(f"/inbox/{name}", json={"receipts": ["x"]}).status_code == (
        200 if name in ("ack", "release", "extend") else 405
    )
    assert numbers(acme.poll(f"/inbox/{name}")) == [1]


@pytest.mark.parametrize("name", ["A", "-a", "a_b", "a.b", "x" * 64, "%C3%A9", "a%0A", "%20", "%25"])
def test_invalid_name_is_not_found(acme: ApiClient, acme_manager: ApiClient, name: str) -> None:
    assert acme_manager.delete(f"/inboxes/{name}").status_code == 404
    assert acme.get(f"/inboxes/{name}").status_code == 404
    assert acme.get(f"/inbox/{name}").status_code == 404


def test_deleted_inbox_is_gone_with_its_copies(acme: ApiClient, acme_manager: ApiClient) -> None:
    acme_manager.put("/inboxes/crm")
    event_id = acme.send({"n": 1})["id"]
    (leased,) = acme.poll("/inbox/crm?mode=lease")
    deleted = acme_manager.delete("/inboxes/crm")
    assert (deleted.status_code, deleted.data) == (204, b"")
    assert acme.get("/inboxes").get_json() == []
    for path in ("/inbox/crm", "/inboxes/crm", "/events?inbox=crm", f"/events/{event_id}?inbox=crm"):
        assert acme.get(path).status_code == 404
    assert acme.settle("ack", [leased["receipt"]])["lost"] == [leased["receipt"]]
    assert acme_manager.delete("/inboxes/crm").status_code == 404
    assert numbers(acme.poll("/inbox")) == [1]

    assert acme_manager.put("/inboxes/crm").status_code == 201
    assert numbers(acme.poll("/inbox/crm")) == []


def test_inbox_can_be_created_again_after_an_interrupted_deletion(
    acme: ApiClient, acme_manager: ApiClient, store: Store
) -> None:
    acme_manager.put("/inboxes/crm")
    acme.send_numbered(500)
    acme.send({"n": 500})
    store.inboxes.close("acme", "crm")
    assert store.inboxes.delete_copies("acme", "crm", 1) == 1
    assert acme.get("/inbox/crm").status_code == 404
    assert acme_manager.put("/inboxes/crm").status_code == 201
    assert numbers(acme.poll("/inbox/crm")) == []


def test_interrupted_deletion_can_be_repeated(acme: ApiClient, acme_manager: ApiClient, store: Store) -> None:
    acme_manager.put("/inboxes/crm")
    acme.send({"n": 1})
    store.inboxes.close("acme", "crm")
    assert acme_manager.delete("/inboxes/crm").status_code == 204
    assert acme_manager.delete("/inboxes/crm").status_code == 404


def test_creating_an_inbox_that_is_still_being_deleted_returns_503(
    acme_manager: ApiClient, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise InboxClosing("crm")

    monkeypatch.setattr(type(store.inboxes), "save", fail)
    response = acme_manager.put("/inboxes/crm")
    assert (response.status_code, response.headers["Retry-After"]) == (503, "1")


def test_number_of_inboxes_is_limited(acme_manager: ApiClient) -> None:
    for number in range(MAX_INBOXES):
        assert acme_manager.put(f"/inboxes/i{number}").status_code == 201
    refused = acme_manager.put("/inboxes/one-more")
    assert problem(refused) == (409, "too-many-inboxes")
    assert acme_manager.put("/inboxes/i0", json={"event_types": ["a"]}).status_code == 200
    acme_manager.delete("/inboxes/i1")
    assert acme_manager.put("/inboxes/one-more").status_code == 201
