"""`inbox poll` and the confirmation of `inbox replay`: pipes, terminals and signals."""

import json
import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import inbox.client
from authorizer import apikey
from inbox.cli import poll as poll_command
from tests.e2e.consumers import Client, run_poll
from tests.service import INBOX, Service, until


def test_followed_events_are_printed_as_they_arrive_and_acknowledged(tenant: Client) -> None:
    with run_poll(tenant, "--follow") as consumer:
        assert consumer.stdout is not None
        for number in range(3):
            tenant.send({"n": number})
            assert json.loads(consumer.stdout.readline())["payload"] == {"n": number}
        until(lambda: tenant.list_numbers("delivered") == [0, 1, 2])
        consumer.send_signal(signal.SIGINT)
        stdout, stderr = consumer.communicate(timeout=30)
    assert (consumer.returncode, stdout, stderr) == (0, "", "")


def test_following_a_named_inbox_changes_no_other_inbox(tenant: Client) -> None:
    tenant.call("PUT", "/inboxes/crm")
    sent = tenant.send({"n": 1})
    with run_poll(tenant, "--follow", "--inbox", "crm", "--limit", "1") as consumer:
        assert consumer.stdout is not None
        assert json.loads(consumer.stdout.readline())["id"] == sent
        until(lambda: bool(tenant.get("/events?status=delivered&inbox=crm")))
    assert [event["id"] for event in tenant.get("/inbox?mode=peek")] == [sent]


@pytest.mark.parametrize("follow", [[], ["--follow"]])
@pytest.mark.parametrize("count", [0, 1, 3])
def test_reader_that_ends_early_leaves_the_rest_in_the_inbox(tenant: Client, follow: list[str], count: int) -> None:
    for number in range(1, 6):
        tenant.send({"n": number})
    with run_poll(tenant, *follow) as poll:
        head = subprocess.run(["head", f"-{count}"], stdin=poll.stdout, capture_output=True, timeout=30, check=True)
        assert poll.stdout is not None
        poll.stdout.close()
        assert poll.stderr is not None
        assert (poll.wait(30), poll.stderr.read()) == (1, "")
    assert [json.loads(line)["payload"]["n"] for line in head.stdout.splitlines()] == list(range(1, count + 1))
    assert tenant.list_numbers("delivered") == list(range(1, count + 1))
    assert tenant.list_numbers("undelivered") == list(range(count + 1, 6))


def test_events_that_cannot_be_written_stay_in_the_inbox(tenant: Client) -> None:
    tenant.send({"n": 1})
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [INBOX, "poll", "--key", tenant.key],
            env=tenant.service.environment,
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert (done.returncode, done.stderr) == (1, "error: No space left on device.\n")
    assert tenant.list_numbers("undelivered") == [1]


def test_slow_reader_keeps_its_lease(tenant: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(1, 4):
        tenant.send({"n": number})
    monkeypatch.setattr(poll_command, "_RENEWAL_SECONDS", 0)
    output, stdout = os.pipe()
    with os.fdopen(output) as reader, os.fdopen(stdout, "w") as writer, ThreadPoolExecutor() as pool:
        monkeypatch.setattr(sys, "stdout", writer)
        with inbox.client.Client(tenant.service.url, tenant.key) as client:
            printing = pool.submit(poll_command.print_events, client, "default", 100)
            until(lambda: len(tenant.list_numbers("leased")) == 3)
            first_end = tenant.get("/events?status=leased")[0]["lease_expires_at"]
            until(lambda: tenant.get("/events?status=leased")[0]["lease_expires_at"] > first_end)
            assert json.loads(reader.readline())["payload"] == {"n": 1}
            # The first event is acknowledged while the next one waits for the reader.
            until(lambda: tenant.list_numbers("delivered") == [1])
            assert tenant.list_numbers("leased") == [2, 3]
            reader.close()
            assert isinstance(printing.exception(30), BrokenPipeError)
        monkeypatch.undo()
    assert tenant.list_numbers("undelivered") == [2, 3]


def test_following_retries_until_the_service_is_up(service: Service) -> None:
    client = Client(service, service.create_key("acme"))
    with run_poll(client, "--follow") as consumer:
        assert consumer.stdout is not None
        assert consumer.stderr is not None
        assert "Trying again in 1 s." in consumer.stderr.readline()
        service.start()
        client.send({"n": 1})
        assert json.loads(consumer.stdout.readline())["payload"] == {"n": 1}


def test_following_ends_at_a_refusal(tenant: Client) -> None:
    for key, arguments in ((apikey.mint(), ()), (tenant.key, ("--inbox", "none"))):
        refused = tenant.service.run("poll", "--follow", "--key", key, *arguments)
        assert (refused.returncode, refused.stdout, refused.stderr.count("\n")) == (1, "", 1)


def run_on_a_terminal(tenant: Client, typed: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    terminal, stdin = os.openpty()
    environment = tenant.service.environment | {"INBOX_API_KEY": tenant.key}
    try:
        os.write(terminal, typed.encode())
        return subprocess.run(
            [INBOX, *arguments], env=environment, stdin=stdin, capture_output=True, text=True, check=False
        )
    finally:
        os.close(terminal)
        os.close(stdin)


def test_replay_all_asks_for_confirmation(tenant: Client) -> None:
    tenant.send({"n": 1})
    tenant.get("/inbox")
    for typed in ("n\n", "\n"):
        done = run_on_a_terminal(tenant, typed, "replay", "--all")
        assert (done.returncode, done.stdout) == (1, "")
        assert "in the inbox default of tenant t-" in done.stderr
    assert tenant.get("/inbox?mode=peek") == []
    done = run_on_a_terminal(tenant, "y\n", "replay", "--all")
    assert (done.returncode, done.stdout) == (0, "1\n")
    assert len(tenant.get("/inbox?mode=peek")) == 1
