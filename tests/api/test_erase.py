"""DELETE /events/{id}."""

from tests.api.conftest import ApiClient, pointers


def test_an_erased_event_is_gone_everywhere(acme: ApiClient, acme_manager: ApiClient) -> None:
    acme_manager.put("/inboxes/crm")
    event_id = acme.send({"secret": "x"})["id"]
    kept = acme.send({"n": 2})["id"]
    (leased, _) = acme.poll("/inbox/crm?mode=lease")

    erased = acme_manager.delete(f"/events/{event_id}")
    assert (erased.status_code, erased.data) == (204, b"")
    for path in (f"/events/{event_id}", f"/events/{event_id}?inbox=crm"):
        assert acme.get(path).status_code == 404
    for path in ("/events", "/events?inbox=crm", "/inbox?mode=peek"):
        assert [event["id"] for event in acme.poll(path)] == [kept]
    assert acme.settle("ack", [leased["receipt"]])["lost"] == [leased["receipt"]]
    assert acme.post(f"/events/{event_id}/replay").status_code == 404


def test_erasing_twice_is_a_404(acme: ApiClient, acme_manager: ApiClient) -> None:
    event_id = acme.send({})["id"]
    assert [acme_manager.delete(f"/events/{event_id}").status_code for _ in range(2)] == [204, 404]


def test_another_tenants_event_is_a_404_and_stays(acme_manager: ApiClient, globex: ApiClient) -> None:
    event_id = globex.send({})["id"]
    assert acme_manager.delete(f"/events/{event_id}").status_code == 404
    assert globex.get(f"/events/{event_id}").status_code == 200


def test_the_idempotency_key_is_free_again(acme: ApiClient, acme_manager: ApiClient) -> None:
    first = acme.send({"n": 1}, idempotency_key="k")
    acme_manager.delete(f"/events/{first['id']}")
    acme.send({"n": 2}, idempotency_key="k")
    assert [event["payload"] for event in acme.waiting()] == [{"n": 2}]


def test_it_cannot_be_limited_to_one_inbox(acme: ApiClient, acme_manager: ApiClient) -> None:
    event_id = acme.send({})["id"]
    response = acme_manager.delete(f"/events/{event_id}?inbox=default")
    assert (response.status_code, pointers(response)) == (422, ["/inbox"])
    assert acme.get(f"/events/{event_id}").status_code == 200
