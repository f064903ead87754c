"""/inboxes, and GET /inbox/{name}."""

from typing import Any

import pytest

from inbox.domain.inboxes import MAX_INBOXES
from inbox.domain.timestamps import format_timestamp
from inbox.errors import InboxClosing
from inbox.store.interface import Store
from tests.api.conftest import ApiClient, Clock, pointers


def numbers(caller: ApiClient, path: str) -> list[int]:
    return [event["payload"]["n"] for event in caller.poll(path)]


def test_an_inbox_is_made_shown_and_listed(acme: ApiClient, acme_manager: ApiClient) -> None:
    made = acme_manager.put("/inboxes/crm", json={"event_types": ["order.*", "invoice.paid"]})
    document = made.get_json()
    assert (made.status_code, made.headers["Location"]) == (201, "/inboxes/crm")
    assert document | {"created_at": ""} == {
        "name": "crm",
        "event_types": ["order.*", "invoice.paid"],
        "created_at": "",
    }
    everything = acme_manager.put("/inboxes/all", json={}).get_json()
    assert everything["event_types"] is None
    for caller in (acme, acme_manager):
        assert caller.get("/inboxes/crm").get_json() == document
        assert caller.get("/inboxes").get_json() == [everything, document]


def test_making_it_again_changes_what_it_takes(acme: ApiClient, acme_manager: ApiClient, clock: Clock) -> None:
    made = acme_manager.put("/inboxes/crm", json={"event_types": ["a"]}).get_json()
    clock.advance(60)
    changed = acme_manager.put("/inboxes/crm", json={"event_types": ["b"]})
    assert (changed.status_code, changed.get_json()) == (200, made | {"event_types": ["b"]})
    for number, event_type in enumerate(["a", "b"]):
        acme.send({"n": number}, event_type=event_type)
    assert numbers(acme, "/inbox/crm") == [1]


def test_if_none_match_creates_and_never_changes(acme: ApiClient, acme_manager: ApiClient) -> None:
    only_create = {"If-None-Match": "*"}
    made = acme_manager.put("/inboxes/crm", json={"event_types": ["a"]}, headers=only_create)
    assert made.status_code == 201
    for types in (["b"], ["a"], None):
        refused = acme_manager.put("/inboxes/crm", json={"event_types": types}, headers=only_create)
        assert (refused.status_code, refused.get_json()["type"]) == (412, "/problems/precondition-failed")
    assert acme.get("/inboxes").get_json() == [made.get_json()]
    assert acme_manager.put("/inboxes/crm", json={"event_types": ["b"]}).status_code == 200
    acme_manager.delete("/inboxes/crm")
    assert acme_manager.put("/inboxes/crm", headers=only_create).status_code == 201


def test_default_always_exists_for_if_none_match(acme_manager: ApiClient) -> None:
    refused = acme_manager.put("/inboxes/default", json={"enabled": False}, headers={"If-None-Match": "*"})
    assert (refused.status_code, acme_manager.get("/inboxes/default").get_json()["enabled"]) == (412, True)


@pytest.mark.parametrize("value", ['"tag"', "", "*, *", "crm"])
def test_if_none_match_takes_nothing_but_a_star(acme: ApiClient, acme_manager: ApiClient, value: str) -> None:
    refused = acme_manager.put("/inboxes/crm", headers={"If-None-Match": value})
    assert (refused.status_code, pointers(refused)) == (422, ["/If-None-Match"])
    assert acme.get("/inboxes").get_json() == []


def test_a_missing_body_means_everything(acme_manager: ApiClient) -> None:
    bodies: list[dict[str, Any]] = [
        {},
        {"content_type": "application/json"},
        {"json": {}},
        {"json": {"event_types": None}},
    ]
    for number, options in enumerate(bodies):
        made = acme_manager.put(f"/inboxes/i{number}", **options)
        assert (made.status_code, made.get_json()["event_types"]) == (201, None)


def test_each_inbox_gets_its_own_copy_from_its_making_on(acme: ApiClient, acme_manager: ApiClient) -> None:
    acme.send({"n": 0})
    acme_manager.put("/inboxes/crm", json={"event_types": ["order.*"]})
    acme_manager.put("/inboxes/log")
    for number, event_type in enumerate(["order.created", "orders", None, "order."], 1):
        acme.send({"n": number}, event_type=event_type)

    assert numbers(acme, "/inbox/crm?limit=1") == [1]
    assert numbers(acme, "/inbox/crm") == [4]
    assert numbers(acme, "/inbox/log") == [1, 2, 3, 4]
    assert numbers(acme, "/inbox") == [0, 1, 2, 3, 4]


def test_a_copy_has_a_life_of_its_own(acme: ApiClient, acme_manager: ApiClient) -> None:
    acme_manager.put("/inboxes/crm")
    event_id = acme.send({"n": 1})["id"]
    (leased,) = acme.poll("/inbox/crm?mode=lease")
    assert acme.get(f"/events/{event_id}").get_json()["status"] == "undelivered"
    assert acme.get(f"/events/{event_id}?inbox=crm").get_json() == leased
    acme.poll("/inbox")
    assert acme.get(f"/events/{event_id}?inbox=crm").get_json()["status"] == "leased"
    assert acme.settle("ack", [leased["receipt"]]) == {"acknowledged": [event_id], "lost": []}


def test_leases_of_several_inboxes_are_settled_together(acme: ApiClient, acme_manager: ApiClient) -> None:
    acme_manager.put("/inboxes/crm")
    event_id = acme.send({"n": 1})["id"]
    receipts = [acme.poll(f"{path}?mode=lease")[0]["receipt"] for path in ("/inbox", "/inbox/crm")]
    assert len(set(receipts)) == 2
    assert acme.settle("ack", receipts) == {"acknowledged": [event_id, event_id], "lost": []}


def test_the_default_inbox_has_a_name_too(acme: ApiClient, acme_manager: ApiClient) -> None:
    acme.send({"n": 1})
    assert numbers(acme, "/inbox/default") == [1]
    assert numbers(acme, "/inbox") == []
    for method, pointer in ((acme_manager.put, "/enabled"), (acme_manager.delete, "/name")):
        response = method("/inboxes/default")
        assert (response.status_code, pointers(response)) == (422, [pointer])


def test_default_is_shown_but_not_listed(acme: ApiClient, acme_manager: ApiClient, store: Store) -> None:
    tenant = store.tenants.get("acme")
    assert tenant is not None
    on = {"name": "default", "event_types": None, "created_at": format_timestamp(tenant.created_at_ms), "enabled": True}
    assert acme.get("/inboxes/default").get_json() == on
    off = acme_manager.put("/inboxes/default", json={"enabled": False})
    assert (off.status_code, off.get_json()) == (200, on | {"enabled": False})
    for caller in (acme, acme_manager):
        assert caller.get("/inboxes/default").get_json() == on | {"enabled": False}
        assert caller.get("/inboxes").get_json() == []
    again = acme_manager.put("/inboxes/default", json={"event_types": None, "enabled": True})
    assert (again.status_code, again.get_json()) == (200, on)


def test_events_sent_while_default_is_off_are_only_in_named_inboxes(acme: ApiClient, acme_manager: ApiClient) -> None:
    acme_manager.put("/inboxes/orders", json={"event_types": ["order.*"]})
    acme_manager.put("/inboxes/default", json={"enabled": False})
    taken, kept = acme.send({"n": 1}, event_type="order.created"), acme.send({"n": 2})
    assert [(each["status"], each["deliveries"]) for each in (taken, kept)] == [("delivered", 0)] * 2
    assert acme.post("/events/batch", json=[{"n": 3}]).get_json()[0]["status"] == "delivered"

    assert (numbers(acme, "/inbox?mode=peek"), numbers(acme, "/inbox")) == ([], [])
    assert numbers(acme, "/inbox/orders") == [1]
    found = acme.get(f"/events/{kept['id']}").get_json()
    assert found == kept | {"payload": {"n": 2}}
    assert [event["payload"]["n"] for event in acme.get("/events").get_json()] == [3, 2, 1]
    assert [event["payload"]["n"] for event in acme.get("/events?status=delivered").get_json()] == [3, 2, 1]

    acme_manager.put("/inboxes/default", json={"enabled": True})
    assert acme.send({"n": 4})["status"] == "undelivered"
    assert acme.post(f"/events/{kept['id']}/replay").get_json()["status"] == "undelivered"
    assert numbers(acme, "/inbox") == [2, 4]


def test_a_repeated_send_gets_the_answer_of_the_first(acme: ApiClient, acme_manager: ApiClient) -> None:
    acme_manager.put("/inboxes/default", json={"enabled": False})
    body = {"payload": {"n": 1}, "idempotency_key": "k"}
    first = acme.post("/events", json=body)
    acme_manager.put("/inboxes/default", json={"enabled": True})
    again = acme.post("/events", json=body)
    assert (first.status_code, again.status_code) == (201, 200)
    assert again.get_json() == first.get_json()


def test_what_came_while_default_was_off_is_neither_undelivered_nor_delivered(
    acme: ApiClient, acme_manager: ApiClient
) -> None:
    acme.send({"n": 1})
    acme_manager.put("/inboxes/default", json={"enabled": False})
    acme.send({"n": 2})
    figures = acme.get("/stats").get_json()
    totals = figures["totals"]
    assert (figures["undelivered"], totals["received"], totals["delivered"]) == (1, 2, 0)


@pytest.mark.parametrize(
    ("name", "body", "pointer"),
    [
        ("crm", {"enabled": False}, "/enabled"),
        ("crm", {"enabled": True, "event_types": ["a"]}, "/enabled"),
        ("A", {"enabled": False}, "/name"),
        ("default", {}, "/enabled"),
        ("default", {"event_types": ["a"]}, "/event_types"),
        ("default", {"enabled": False, "event_types": ["a"]}, "/event_types"),
        ("default", {"enabled": None}, "/enabled"),
        ("default", {"enabled": "false"}, "/enabled"),
        ("default", {"enabled": 0}, "/enabled"),
    ],
)
def test_only_default_can_be_turned_off_and_nothing_else_of_it_changed(
    acme: ApiClient, acme_manager: ApiClient, name: str, body: Any, pointer: str
) -> None:
    refused = acme_manager.put(f"/inboxes/{name}", json=body)
    assert (refused.status_code, pointers(refused)) == (422, [pointer])
    assert acme.get("/inboxes").get_json() == []
    assert acme.get("/inboxes/default").get_json()["enabled"] is True


def test_turning_default_off_takes_a_key_that_may_manage(acme: ApiClient) -> None:
    assert acme.put("/inboxes/default", json={"enabled": False}).status_code == 403
    assert acme.get("/inboxes/default").get_json()["enabled"] is True


@pytest.mark.parametrize("name", ["ack", "release", "extend", "0", "a-", "x" * 63])
def test_any_name_of_the_right_form_can_be_polled(acme: ApiClient, acme_manager: ApiClient, name: str) -> None:
    assert acme_manager.put(f"/inboxes/{name}").status_code == 201
    acme.send({"n": 1})
    assert numbers(acme, f"/inbox/{name}?mode=peek") == [1]
    assert acme.client.head(f"/inbox/{name}", headers=acme.headers).status_code == 405
    assert acme.get(f"/inbox/{name}", headers={"Purpose": "prefetch"}).status_code == 403
    assert acme.post(f"/inbox/{name}", json={"receipts": ["x"]}).status_code == (
        200 if name in ("ack", "release", "extend") else 405
    )
    assert numbers(acme, f"/inbox/{name}") == [1]


@pytest.mark.parametrize("name", ["A", "-a", "a_b", "a.b", "x" * 64, "%C3%A9", "a%0A", "%20", "%25"])
def test_a_name_of_another_form_is_refused_and_never_found(acme: ApiClient, acme_manager: ApiClient, name: str) -> None:
    refused = acme_manager.put(f"/inboxes/{name}")
    assert (refused.status_code, pointers(refused)) == (422, ["/name"])
    assert acme_manager.delete(f"/inboxes/{name}").status_code == 404
    assert acme.get(f"/inboxes/{name}").status_code == 404
    assert acme.get(f"/inbox/{name}").status_code == 404


def test_an_inbox_that_nobody_made_is_a_404(acme: ApiClient, globex: ApiClient, acme_manager: ApiClient) -> None:
    acme_manager.put("/inboxes/crm")
    acme.send({"n": 1})
    for path in ("/inbox/none", "/inbox/none?mode=peek", "/inbox/none?mode=lease&wait=20", "/inboxes/none"):
        assert acme.get(path).status_code == 404
        assert globex.get(path.replace("none", "crm")).status_code == 404
    assert globex.get("/inboxes").get_json() == []
    assert acme_manager.delete("/inboxes/none").status_code == 404


def test_a_removed_inbox_is_gone_with_its_copies(acme: ApiClient, acme_manager: ApiClient) -> None:
    acme_manager.put("/inboxes/crm")
    event_id = acme.send({"n": 1})["id"]
    (leased,) = acme.poll("/inbox/crm?mode=lease")
    removed = acme_manager.delete("/inboxes/crm")
    assert (removed.status_code, removed.data) == (204, b"")
    assert acme.get("/inboxes").get_json() == []
    for path in ("/inbox/crm", "/inboxes/crm", "/events?inbox=crm", f"/events/{event_id}?inbox=crm"):
        assert acme.get(path).status_code == 404
    assert acme.settle("ack", [leased["receipt"]])["lost"] == [leased["receipt"]]
    assert acme_manager.delete("/inboxes/crm").status_code == 404
    assert numbers(acme, "/inbox") == [1]

    assert acme_manager.put("/inboxes/crm").status_code == 201
    assert numbers(acme, "/inbox/crm") == []


def test_an_inbox_whose_removal_broke_off_can_be_made_anew(
    acme: ApiClient, acme_manager: ApiClient, store: Store
) -> None:
    acme_manager.put("/inboxes/crm")
    acme.post("/events/batch", json=[{"n": number} for number in range(500)])
    acme.send({"n": 500})
    store.inboxes.close("acme", "crm")
    assert store.inboxes.delete_copies("acme", "crm", 1) == 1
    assert acme.get("/inbox/crm").status_code == 404
    assert acme_manager.put("/inboxes/crm").status_code == 201
    assert numbers(acme, "/inbox/crm") == []


def test_a_removal_that_broke_off_goes_on(acme: ApiClient, acme_manager: ApiClient, store: Store) -> None:
    acme_manager.put("/inboxes/crm")
    acme.send({"n": 1})
    store.inboxes.close("acme", "crm")
    assert acme_manager.delete("/inboxes/crm").status_code == 204
    assert acme_manager.delete("/inboxes/crm").status_code == 404


def test_an_inbox_that_stays_in_the_way_is_a_503(
    acme_manager: ApiClient, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    def closing(*_: object, **__: object) -> None:
        raise InboxClosing("It is still being removed.")

    monkeypatch.setattr(type(store.inboxes), "save", closing)
    response = acme_manager.put("/inboxes/crm")
    assert (response.status_code, response.headers["Retry-After"]) == (503, "1")


def test_a_tenant_has_so_many_inboxes_and_no_more(acme_manager: ApiClient) -> None:
    for number in range(MAX_INBOXES):
        assert acme_manager.put(f"/inboxes/i{number}").status_code == 201
    refused = acme_manager.put("/inboxes/one-more")
    assert (refused.status_code, refused.get_json()["type"]) == (409, "/problems/too-many-inboxes")
    assert acme_manager.put("/inboxes/i0", json={"event_types": ["a"]}).status_code == 200
    acme_manager.delete("/inboxes/i1")
    assert acme_manager.put("/inboxes/one-more").status_code == 201


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({"event_types": []}, "/event_types"),
        ({"event_types": "order.*"}, "/event_types"),
        ({"event_types": ["a"] * 51}, "/event_types"),
        ({"event_types": [""]}, "/event_types/0"),
        ({"event_types": ["a", "b?"]}, "/event_types/1"),
        ({"event_types": ["[ab]"]}, "/event_types/0"),
        ({"event_types": ["a\n"]}, "/event_types/0"),
        ({"event_types": ["x" * 129]}, "/event_types/0"),
        ({"event_types": [7]}, "/event_types/0"),
        ({"event_type": ["a"]}, "/event_type"),
        ({"name": "crm"}, "/name"),
        ([], ""),
        (7, ""),
    ],
)
def test_a_body_of_another_form_is_refused(acme: ApiClient, acme_manager: ApiClient, body: Any, pointer: str) -> None:
    response = acme_manager.put("/inboxes/crm", json=body)
    assert (response.status_code, pointers(response)) == (422, [pointer])
    assert acme.get("/inboxes").get_json() == []


def test_what_is_not_json_is_refused(acme_manager: ApiClient) -> None:
    for options, status in (
        ({"data": b"{"}, 415),
        ({"data": b"{", "content_type": "application/json"}, 400),
        ({"data": b" ", "content_type": "application/json"}, 400),
        ({"data": b" " * 300_000, "content_type": "application/json"}, 413),
    ):
        assert acme_manager.put("/inboxes/crm", **options).status_code == status
