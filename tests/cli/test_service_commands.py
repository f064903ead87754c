"""inbox send, poll --peek, replay and inboxes. tests/e2e tests `inbox poll`, which needs a real stdout."""

import json

import requests

from tests.cli.conftest import Tenant
from tests.service import Service, bearer


def test_send_and_peek_keep_numbers_exact(tenant: Tenant) -> None:
    sent = tenant.run("send", "--type", "order.created", '{"n": 1.0}')
    assert (sent.returncode, json.loads(sent.stdout)["event_type"], sent.stdout.count("\n")) == (0, "order.created", 1)
    assert tenant.run("send", "-", stdin='{"n": 123456789012345678901234567890}').returncode == 0
    first, second = tenant.run("poll", "--peek").stdout.splitlines()
    assert '"payload":{"n":1.0}' in first
    assert '"payload":{"n":123456789012345678901234567890}' in second


def test_event_of_the_maximum_depth_is_printed(tenant: Tenant, running_service: Service) -> None:
    deepest = '{"a":' * 31 + "{}" + "}" * 31
    headers = bearer(tenant.key) | {"Content-Type": "application/json"}
    assert requests.post(f"{running_service.url}/events", deepest, headers=headers, timeout=30).status_code == 201
    assert deepest in tenant.run("poll", "--peek").stdout


def test_one_event_and_ranges_are_replayed(tenant: Tenant) -> None:
    client = tenant.client
    client.call("PUT", "/inboxes/crm")
    tenant.run("send", "--type", "a", '{"n": 0}')
    sent = [client.send({"n": number}) for number in range(1, 3)]
    tenant.run("send", '{"n": 3}')

    def replay(*arguments: str, replayed: int, inbox: str = "default") -> list[int]:
        client.get(f"/inbox/{inbox}?limit=500")
        done = tenant.run("replay", *arguments)
        assert (done.returncode, done.stdout, done.stderr) == (0, f"{replayed}\n", "")
        return [event["payload"]["n"] for event in client.get(f"/inbox/{inbox}?mode=peek")]

    assert replay(sent[0], replayed=1) == [1]
    assert replay("--all", "--yes", replayed=4) == [0, 1, 2, 3]
    assert replay("--type", "a", replayed=1) == [0]
    assert replay("--since", client.get("/events?limit=1")[0]["created_at"], replayed=1) == [3]
    assert replay("--until", str(client.get("/events?order=oldest&limit=2")[1]["timestamp"]), replayed=1) == [0]
    assert replay("--status", "dead", replayed=0) == []
    assert replay("--status", "delivered", "--inbox", "crm", replayed=4, inbox="crm") == [0, 1, 2, 3]
    assert replay(sent[1], "--inbox", "crm", replayed=1, inbox="crm") == [2]


def test_replay_of_many_events_takes_several_calls(tenant: Tenant) -> None:
    for _ in range(3):
        tenant.client.call("POST", "/events/batch", json=[{}] * 400)
        tenant.client.get("/inbox?limit=500")
    assert tenant.run("replay", "--all", "--yes").stdout == "1200\n"


def test_inboxes_are_created_shown_listed_and_deleted(tenant: Tenant) -> None:
    created = tenant.run("inboxes", "create", "crm", "--event-type", "order.*", "--event-type", "invoice.paid")
    assert (created.returncode, json.loads(created.stdout)["event_types"]) == (0, ["order.*", "invoice.paid"])
    assert tenant.run("inboxes", "create", "all").returncode == 0
    assert tenant.run("inboxes", "show", "crm").stdout == created.stdout

    table = tenant.run("inboxes", "list").stdout.splitlines()
    assert [line.split()[:2] for line in table] == [
        ["name", "event_types"],
        ["all", "-"],
        ["crm", "order.*,invoice.paid"],
    ]
    rows = [json.loads(line) for line in tenant.run("inboxes", "list", "--json").stdout.splitlines()]
    assert rows[1] == json.loads(created.stdout)

    tenant.run("send", "--type", "order.created", '{"n": 1}')
    assert tenant.read_payloads("poll", "--peek", "--inbox", "crm") == [{"n": 1}]
    deleted = tenant.run("inboxes", "delete", "crm")
    assert (deleted.returncode, deleted.stdout) == (0, "")
    assert tenant.run("inboxes", "show", "crm").returncode == 1


def test_default_is_disabled_and_enabled(tenant: Tenant) -> None:
    assert tenant.run("inboxes", "list").stderr == ""
    disabled = tenant.run("inboxes", "disable", "default")
    assert (disabled.returncode, json.loads(disabled.stdout)["enabled"]) == (0, False)
    assert tenant.run("inboxes", "show", "default").stdout == disabled.stdout
    listed = tenant.run("inboxes", "list", "--json")
    assert (listed.returncode, listed.stdout, listed.stderr) == (0, "", "default is disabled.\n")

    assert json.loads(tenant.run("send", '{"n": 1}').stdout)["status"] == "delivered"
    enabled = tenant.run("inboxes", "enable", "default")
    assert (enabled.returncode, json.loads(enabled.stdout)["enabled"]) == (0, True)
    tenant.run("send", '{"n": 2}')
    assert tenant.read_payloads("poll", "--peek") == [{"n": 2}]
    assert "enable default" in tenant.run("inboxes", "create", "default").stderr


def test_existing_inbox_is_only_replaced_with_replace(tenant: Tenant) -> None:
    created = tenant.run("inboxes", "create", "crm", "--event-type", "order.*", "--event-type", "invoice.paid")
    refused = tenant.run("inboxes", "create", "crm", "--event-type", "order.*")
    assert (refused.returncode, refused.stdout) == (1, "")
    assert "receives order.*, invoice.paid" in refused.stderr
    assert "--replace" in refused.stderr
    assert tenant.run("inboxes", "create", "crm").returncode == 1
    again = tenant.run("inboxes", "create", "crm", "--event-type", "invoice.paid", "--event-type", "order.*")
    assert (again.returncode, again.stdout) == (0, created.stdout)

    replaced = tenant.run("inboxes", "create", "crm", "--replace")
    assert (replaced.returncode, json.loads(replaced.stdout)["event_types"]) == (0, None)
    refused = tenant.run("inboxes", "create", "crm", "--event-type", "order.*")
    assert (refused.returncode, "receives every event" in refused.stderr) == (1, True)


def test_creating_an_inbox_needs_tenant_manage(running_service: Service) -> None:
    refused = Tenant(running_service).run("inboxes", "create", "crm")
    assert (refused.returncode, refused.stdout) == (1, "")
    assert "tenant:manage" in refused.stderr
