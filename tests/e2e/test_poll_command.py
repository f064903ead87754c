"""inbox poll, inbox replay, inbox inboxes, inbox purge."""

import json
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import apsw
import pytest

import inbox.client
from authorizer import apikey
from inbox.cli import poll as event_printer
from inbox.domain.events import NewEvent, random_event_id
from inbox.store.sqlite import SQLiteStore
from tests.e2e.consumers import ALL_SCOPES, Client, following, polling
from tests.service import INBOX, Service, until


def until_delivered(client: Client, count: int) -> None:
    while len(client.get("/events?status=delivered&limit=500")) < count:
        time.sleep(0.05)


def test_following_prints_events_as_they_come_and_acknowledges_them(service: Service) -> None:
    key = service.create_key("acme")
    client = Client(service, key)
    service.start()
    with following(service, key) as consumer:
        assert consumer.stdout is not None
        for number in range(3):
            client.send({"n": number})
            assert json.loads(consumer.stdout.readline())["payload"] == {"n": number}
        until_delivered(client, 3)
        consumer.send_signal(signal.SIGINT)
        stdout, stderr = consumer.communicate(timeout=30)
    assert (consumer.returncode, stdout, stderr) == (0, "", "")


def test_following_a_named_inbox_leaves_the_others_alone(service: Service) -> None:
    key = service.create_key("acme", *ALL_SCOPES)
    client = Client(service, key)
    service.start()
    client.call("PUT", "/inboxes/crm")
    sent = client.send({"n": 1})
    with following(service, key, "--inbox", "crm", "--limit", "1") as consumer:
        assert consumer.stdout is not None
        assert json.loads(consumer.stdout.readline())["id"] == sent
        until_delivered_in = "/events?status=delivered&inbox=crm"
        while not client.get(until_delivered_in):
            time.sleep(0.05)
    assert [event["id"] for event in client.get("/inbox?mode=peek")] == [sent]


def test_what_could_not_be_printed_is_given_back(service: Service) -> None:
    key = service.create_key("acme")
    client = Client(service, key)
    service.start()
    with following(service, key) as consumer:
        assert consumer.stdout is not None
        consumer.stdout.close()
        client.send({"n": 1})
        assert consumer.wait(30) == 1
    assert [event["status"] for event in client.get("/events")] == ["undelivered"]


def numbers_in(client: Client, status: str) -> list[int]:
    return [event["payload"]["n"] for event in client.get(f"/events?status={status}&order=oldest")]


@pytest.mark.parametrize("follow", [[], ["--follow"]])
@pytest.mark.parametrize("taken", [0, 1, 3])
def test_reader_that_ends_early_leaves_the_rest_in_the_inbox(service: Service, follow: list[str], taken: int) -> None:
    key = service.create_key("acme")
    client = Client(service, key)
    service.start()
    for number in range(1, 6):
        client.send({"n": number})
    with polling(service, key, *follow) as poll:
        head = subprocess.run(["head", f"-{taken}"], stdin=poll.stdout, capture_output=True, timeout=30, check=True)
        assert poll.stdout is not None
        poll.stdout.close()
        assert poll.stderr is not None
        assert (poll.wait(30), poll.stderr.read()) == (1, "")
    assert [json.loads(line)["payload"]["n"] for line in head.stdout.splitlines()] == list(range(1, taken + 1))
    assert numbers_in(client, "delivered") == list(range(1, taken + 1))

    rest = service.run("poll", "--key", key)
    assert (rest.returncode, rest.stderr) == (0, "")
    assert [json.loads(line)["payload"]["n"] for line in rest.stdout.splitlines()] == list(range(taken + 1, 6))
    assert numbers_in(client, "delivered") == [1, 2, 3, 4, 5]


def test_output_without_room_keeps_what_was_not_printed(service: Service) -> None:
    key = service.create_key("acme")
    client = Client(service, key)
    service.start()
    client.send({"n": 1})
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [INBOX, "poll", "--key", key], env=service.environment, stdout=full, stderr=subprocess.PIPE, check=False
        )
    assert (done.returncode, b"Traceback" in done.stderr) == (1, False)
    assert numbers_in(client, "undelivered") == [1]


def test_slow_reader_keeps_its_lease(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    key = service.create_key("acme")
    client = Client(service, key)
    service.start()
    for number in range(1, 4):
        client.send({"n": number})
    monkeypatch.setattr(event_printer, "_RENEWAL_SECONDS", 0)
    output, stdout = os.pipe()
    with os.fdopen(output) as reader, os.fdopen(stdout, "w") as writer, ThreadPoolExecutor() as pool:
        monkeypatch.setattr(sys, "stdout", writer)
        with inbox.client.Client(service.url, key) as caller:
            printing = pool.submit(event_printer.print_events, caller, "default", 100)
            until(lambda: len(numbers_in(client, "leased")) == 3)
            first_end = client.get("/events?status=leased")[0]["lease_expires_at"]
            until(lambda: client.get("/events?status=leased")[0]["lease_expires_at"] > first_end)
            assert json.loads(reader.readline())["payload"] == {"n": 1}
            # It is acknowledged while the next one waits for the reader.
            until(lambda: numbers_in(client, "delivered") == [1])
            assert numbers_in(client, "leased") == [2, 3]
            reader.close()
            assert isinstance(printing.exception(30), BrokenPipeError)
        monkeypatch.undo()
    assert numbers_in(client, "undelivered") == [2, 3]


def test_following_outlives_a_service_that_is_away(service: Service) -> None:
    key = service.create_key("acme")
    client = Client(service, key)
    with following(service, key) as consumer:
        assert consumer.stdout is not None
        assert consumer.stderr is not None
        assert "Trying again in 1 s." in consumer.stderr.readline()
        service.start()
        client.send({"n": 1})
        assert json.loads(consumer.stdout.readline())["payload"] == {"n": 1}


def test_following_ends_where_patience_does_not_help(service: Service) -> None:
    key = service.create_key("acme")
    service.start()
    for wrong_key, arguments in ((apikey.mint(), ()), (key, ("--inbox", "none"))):
        refused = service.run("poll", "--follow", "--key", wrong_key, *arguments)
        assert (refused.returncode, refused.stdout, refused.stderr.count("\n")) == (1, "", 1)


def test_one_event_and_ranges_are_replayed(service: Service) -> None:
    key = service.create_key("acme", *ALL_SCOPES)
    client = Client(service, key)
    service.start()
    client.call("PUT", "/inboxes/crm")
    service.run("send", "--type", "a", "--key", key, '{"n": 0}')
    sent = [client.send({"n": number}) for number in range(1, 3)]
    service.run("send", "--key", key, '{"n": 3}')

    def replay(*arguments: str, replayed: int, path: str = "/inbox") -> list[int]:
        client.get(f"{path}?limit=500")
        done = service.run("replay", *arguments, INBOX_API_KEY=key)
        assert (done.returncode, done.stdout, done.stderr) == (0, f"{replayed}\n", "")
        return [event["payload"]["n"] for event in client.get(f"{path}?mode=peek")]

    assert replay(sent[0], replayed=1) == [1]
    assert replay("--all", "--yes", replayed=4) == [0, 1, 2, 3]
    assert replay("--type", "a", replayed=1) == [0]
    assert replay("--since", client.get("/events?limit=1")[0]["created_at"], replayed=1) == [3]
    assert replay("--until", str(client.get("/events?order=oldest&limit=2")[1]["timestamp"]), replayed=1) == [0]
    assert replay("--status", "dead", replayed=0) == []
    assert replay("--status", "delivered", "--inbox", "crm", replayed=4, path="/inbox/crm") == [0, 1, 2, 3]
    assert replay(sent[1], "--inbox", "crm", replayed=1, path="/inbox/crm") == [2]


def test_a_range_takes_as_many_calls_as_it_needs(service: Service) -> None:
    key = service.create_key("acme")
    client = Client(service, key)
    service.start()
    for _ in range(3):
        client.call("POST", "/events/batch", json=[{}] * 400)
        client.get("/inbox?limit=500")
    assert service.run("replay", "--all", "--yes", "--key", key).stdout == "1200\n"


def test_inboxes_are_made_shown_listed_and_deleted(service: Service) -> None:
    key = service.create_key("acme", *ALL_SCOPES)
    service.variables["INBOX_API_KEY"] = key
    service.start()
    made = service.run("inboxes", "create", "crm", "--event-type", "order.*", "--event-type", "invoice.paid")
    assert (made.returncode, json.loads(made.stdout)["event_types"]) == (0, ["order.*", "invoice.paid"])
    assert service.run("inboxes", "create", "all").returncode == 0
    assert service.run("inboxes", "show", "crm").stdout == made.stdout

    table = service.run("inboxes", "list").stdout.splitlines()
    assert [line.split()[:2] for line in table] == [
        ["name", "event_types"],
        ["all", "-"],
        ["crm", "order.*,invoice.paid"],
    ]
    rows = [json.loads(line) for line in service.run("inboxes", "list", "--json").stdout.splitlines()]
    assert rows[1] == json.loads(made.stdout)

    service.run("send", "--type", "order.created", '{"n": 1}')
    polled = service.run("poll", "--inbox", "crm")
    assert json.loads(polled.stdout)["event_type"] == "order.created"
    deleted = service.run("inboxes", "delete", "crm")
    assert (deleted.returncode, deleted.stdout) == (0, "")
    for arguments in (("inboxes", "show", "crm"), ("inboxes", "delete", "crm"), ("poll", "--inbox", "crm")):
        refused = service.run(*arguments)
        assert (refused.returncode, refused.stdout, refused.stderr.count("\n")) == (1, "", 1)
        assert "404" in refused.stderr


def test_default_is_turned_off_and_on(service: Service) -> None:
    service.variables["INBOX_API_KEY"] = service.create_key("acme", *ALL_SCOPES)
    service.start()
    assert service.run("inboxes", "list").stderr == ""
    off = service.run("inboxes", "disable", "default")
    assert (off.returncode, json.loads(off.stdout)["enabled"]) == (0, False)
    assert service.run("inboxes", "show", "default").stdout == off.stdout
    listed = service.run("inboxes", "list", "--json")
    assert (listed.returncode, listed.stdout, listed.stderr) == (0, "", "default is off.\n")

    assert json.loads(service.run("send", '{"n": 1}').stdout)["status"] == "delivered"
    on = service.run("inboxes", "enable", "default")
    assert (on.returncode, json.loads(on.stdout)["enabled"]) == (0, True)
    service.run("send", '{"n": 2}')
    assert json.loads(service.run("poll").stdout)["payload"] == {"n": 2}
    refused = service.run("inboxes", "create", "default")
    assert (refused.returncode, refused.stdout, "enable default" in refused.stderr) == (2, "", True)


def test_existing_inbox_is_replaced_only_if_asked_for(on_each_engine: Service) -> None:
    service = on_each_engine
    service.variables["INBOX_API_KEY"] = service.create_key("acme", *ALL_SCOPES)
    service.start()
    made = service.run("inboxes", "create", "crm", "--event-type", "order.*", "--event-type", "invoice.paid")
    assert made.returncode == 0

    refused = service.run("inboxes", "create", "crm", "--event-type", "order.*")
    assert (refused.returncode, refused.stdout) == (1, "")
    assert "gets order.*, invoice.paid" in refused.stderr
    assert "--replace" in refused.stderr
    assert service.run("inboxes", "create", "crm").returncode == 1
    again = service.run("inboxes", "create", "crm", "--event-type", "invoice.paid", "--event-type", "order.*")
    assert (again.returncode, again.stdout) == (0, made.stdout)

    replaced = service.run("inboxes", "create", "crm", "--replace")
    assert (replaced.returncode, json.loads(replaced.stdout)["event_types"]) == (0, None)
    refused = service.run("inboxes", "create", "crm", "--event-type", "order.*")
    assert (refused.returncode, "gets every event" in refused.stderr) == (1, True)


def on_a_terminal(service: Service, answer: str, *arguments: str) -> tuple[int, str, str]:
    """Runs a command that reads `answer` from a terminal. Returns its exit status, stdout and stderr."""
    terminal, stdin = os.openpty()
    try:
        os.write(terminal, answer.encode())
        done = subprocess.run(
            [INBOX, *arguments], env=service.environment, stdin=stdin, capture_output=True, text=True, check=False
        )
    finally:
        os.close(terminal)
        os.close(stdin)
    return done.returncode, done.stdout, done.stderr


def test_replaying_everything_asks_first(service: Service) -> None:
    service.variables["INBOX_API_KEY"] = key = service.create_key("acme")
    client = Client(service, key)
    service.start()
    client.send({"n": 1})
    client.get("/inbox")

    refused = service.run("replay", "--all", stdin="y\n")
    assert (refused.returncode, refused.stdout, "--yes" in refused.stderr) == (2, "", True)
    for answer in ("n\n", "\n"):
        status, stdout, stderr = on_a_terminal(service, answer, "replay", "--all")
        assert (status, stdout) == (1, "")
        assert "in the inbox default of tenant acme" in stderr
    assert client.get("/inbox?mode=peek") == []
    assert on_a_terminal(service, "y\n", "replay", "--all")[:2] == (0, "1\n")
    assert len(client.get("/inbox?mode=peek")) == 1


def test_making_an_inbox_takes_a_key_that_may(service: Service) -> None:
    key = service.create_key("acme")
    service.start()
    refused = service.run("inboxes", "create", "crm", "--key", key)
    assert (refused.returncode, refused.stdout) == (1, "")
    assert "tenant:manage" in refused.stderr


def test_the_first_key_of_a_quickstart_may_make_inboxes(service: Service) -> None:
    service.start("quickstart")
    (key,) = {word for word in service.log.read_text().split() if apikey.is_well_formed(word)}
    assert service.run("inboxes", "create", "crm", "--key", key).returncode == 0


def expire(folder: Path, count: int) -> None:
    """Events that were past their time before they came, as a clock put forward would make them."""
    with closing(SQLiteStore(folder / "inbox.db", 10)) as store:
        store.events.put("acme", [NewEvent(random_event_id(), None, b"{}") for _ in range(count)], 1_000, 1)


def test_what_is_past_its_retention_is_purged(service: Service) -> None:
    key = service.create_key("acme")
    expire(service.folder, 250)
    for purged in ("250\n", "0\n"):
        done = service.run("purge")
        assert (done.returncode, done.stdout, done.stderr) == (0, purged, "")
    service.start()
    client = Client(service, key)
    sent = client.send({"n": 1})
    expire(service.folder, 5)
    # The service purges by itself, too, and may have been there before.
    assert int(service.run("purge").stdout) in range(6)
    with closing(apsw.Connection(f"{service.folder}/inbox.db")) as connection:
        assert connection.execute("SELECT event_id FROM events").fetchall() == [(sent,)]
    assert [event["id"] for event in client.get("/inbox")] == [sent]


@pytest.mark.parametrize(
    "arguments",
    [
        ["poll", "--follow", "--peek"],
        ["poll", "--key", ""],
        ["poll", "--key", "ibx_secret\nkey"],
        ["poll", "--url", ""],
        ["poll", "--url", "127.0.0.1:8080"],
        ["send", "[1]"],
        ["send", "{"],
        ["poll", "--inbox", "../me"],
        ["poll", "--inbox", "Crm"],
        ["poll", "--follow", "--limit", "0"],
        ["replay"],
        ["replay", "--inbox", "crm"],
        ["replay", "not-an-id"],
        ["replay", "6f7dd7a3-6f0c-4c1e-9a53-0d7b1f0c6a55", "--all"],
        ["replay", "6f7dd7a3-6f0c-4c1e-9a53-0d7b1f0c6a55", "--since", "0"],
        ["replay", "--all", "--type", "a"],
        ["replay", "--all"],
        ["replay", "--since", "yesterday"],
        ["replay", "--status", "leased"],
        ["inboxes"],
        ["inboxes", "create"],
        ["inboxes", "create", "Crm"],
        ["inboxes", "show", ".."],
        ["inboxes", "disable"],
        ["inboxes", "disable", "crm"],
        ["inboxes", "enable", "crm"],
        ["inboxes", "delete", ""],
        ["inboxes", "list", "crm"],
        ["purge", "everything"],
    ],
)
def test_wrong_usage_ends_with_2_and_says_why(service: Service, arguments: list[str]) -> None:
    done = service.run(*arguments, INBOX_API_KEY="k", INBOX_URL="http://127.0.0.1:1")
    assert (done.returncode, done.stdout) == (2, "")
    assert "Traceback" not in done.stderr
    assert "secret" not in done.stderr
    assert done.stderr
