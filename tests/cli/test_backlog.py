"""inbox backlog, as an operator or a schedule runs it."""

import json
from typing import Any

from tests.e2e.consumers import ALL_SCOPES, Client
from tests.service import Service


def metric(service: Service) -> dict[str, Any]:
    """What it prints for a program: one line and no more."""
    printed = service.run("backlog", "--json")
    assert (printed.returncode, printed.stderr) == (0, "")
    (line,) = printed.stdout.splitlines()
    found: dict[str, Any] = json.loads(line)
    return found


def test_nothing_waits_before_the_first_event(on_each_engine: Service) -> None:
    on_each_engine.run("tenants", "create", "acme")
    assert metric(on_each_engine) == {
        "event": "backlog",
        "oldest_undelivered_seconds": 0,
        "tenant_id": None,
        "inbox": None,
        "waiting_inboxes": 0,
    }
    table = on_each_engine.run("backlog")
    assert (table.returncode, table.stdout) == (0, "tenant_id  inbox  oldest_at  age_seconds\n")


def test_the_oldest_of_all_is_told_to_programs_and_every_inbox_to_people(on_each_engine: Service) -> None:
    service = on_each_engine
    acme, beta, gone = (Client(service, service.create_key(each, *ALL_SCOPES)) for each in ("acme", "beta", "gone"))
    service.start()
    gone.send({"n": 0})
    assert service.run("tenants", "delete", "gone").returncode == 0
    acme.call("PUT", "/inboxes/crm", json={})
    acme.send({"n": 1})
    beta.send({"n": 2})
    assert len(acme.get("/inbox")) == 1
    (oldest,) = acme.get("/inbox/crm?mode=peek")

    found = metric(service)
    assert found["oldest_undelivered_seconds"] >= 0
    assert (found["tenant_id"], found["inbox"], found["waiting_inboxes"]) == ("acme", "crm", 2)
    table = [line.split() for line in service.run("backlog").stdout.splitlines()[1:]]
    assert [row[:2] for row in table] == [["acme", "crm"], ["beta", "default"]]
    assert table[0][2] == oldest["created_at"]


def test_the_alarm_clears_once_default_is_off_and_named_inboxes_are_read(on_each_engine: Service) -> None:
    service = on_each_engine
    acme = Client(service, service.create_key("acme", *ALL_SCOPES))
    service.start()
    acme.call("PUT", "/inboxes/crm", json={})
    acme.send({"n": 1})
    assert acme.call("PUT", "/inboxes/default", json={"enabled": False}).status_code == 200
    acme.send({"n": 2})
    assert metric(service)["inbox"] == "crm"
    assert len(acme.get("/inbox/crm")) == 2
    assert metric(service)["waiting_inboxes"] == 0


def test_a_store_that_does_not_answer_is_no_backlog_of_nothing(service: Service) -> None:
    (service.folder / "inbox.db").write_bytes(b"This is not a database. " * 100)
    refused = service.run("backlog", "--json")
    assert (refused.returncode, refused.stdout) == (1, "")
    assert "NotADBError" in refused.stderr


def test_a_store_that_is_not_there_is_no_backlog_of_nothing(service: Service) -> None:
    refused = service.run("backlog", "--json")
    assert (refused.returncode, refused.stdout) == (1, "")
    assert "inbox.db does not exist. Run `inbox init`" in refused.stderr
    assert not (service.folder / "inbox.db").exists()
