"""inbox backup and inbox restore, as an operator runs them beside a service."""

import os
import pty
import signal
import subprocess
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import apsw
import pytest

from tests.e2e.consumers import Client
from tests.service import INBOX, Service, until


@contextmanager
def sending(client: Client) -> Iterator[list[str]]:
    """The ids of what was answered with 201, by four senders that never pause."""
    accepted: list[str] = []
    stopping = threading.Event()

    def send() -> None:
        while not stopping.is_set():
            accepted.append(client.send({"text": "x" * 1000}))

    senders = [threading.Thread(target=send) for _ in range(4)]
    for sender in senders:
        sender.start()
    try:
        yield accepted
    finally:
        stopping.set()
        for sender in senders:
            sender.join()


def wait_for_more(accepted: list[str]) -> None:
    so_many = len(accepted)
    until(lambda: len(accepted) > so_many + 50)


def event_ids(database: Path) -> set[str]:
    with closing(apsw.Connection(str(database))) as connection:
        assert connection.pragma("integrity_check") == "ok"
        return {event_id for (event_id,) in connection.execute("SELECT event_id FROM events")}


def files(service: Service) -> set[str]:
    return {each.name for each in service.folder.iterdir()}


def test_a_backup_of_a_busy_service_has_all_that_was_accepted_before(service: Service) -> None:
    client = Client(service, service.create_key("acme"))
    service.start()
    with sending(client) as accepted:
        for number in range(3):
            wait_for_more(accepted)
            before = set(accepted)
            made = service.run("backup", f"backup-{number}.db")
            assert (made.returncode, made.stdout, made.stderr) == (0, f"backup-{number}.db\n", "")
            assert before <= event_ids(service.folder / f"backup-{number}.db")
    assert {name for name in files(service) if "backup" in name} == {f"backup-{number}.db" for number in range(3)}


def test_a_restore_brings_a_polled_event_back(service: Service) -> None:
    client = Client(service, service.create_key("acme"))
    service.start()
    first = client.send({"n": 1})
    assert service.run("backup", "backup.db").returncode == 0
    assert [event["id"] for event in client.get("/inbox")] == [first]
    second = client.send({"n": 2})

    refused = service.run("restore", "backup.db")
    assert (refused.returncode, refused.stdout) == (1, "")
    assert "inbox.db is in use: stop the service" in refused.stderr
    assert [event["id"] for event in client.get("/inbox")] == [second]

    service.stop()
    restored = service.run("restore", "backup.db")
    assert (restored.returncode, restored.stdout) == (0, "")
    (kept,) = (name for name in files(service) if "before-restore" in name)
    assert kept in restored.stderr
    assert event_ids(service.folder / kept) == {first, second}
    service.start()
    assert [event["id"] for event in client.get("/inbox")] == [first]
    assert client.get("/inbox") == []


def test_after_a_crash_the_old_log_does_not_meet_the_restored_file(service: Service) -> None:
    client = Client(service, service.create_key("acme"))
    service.start()
    first = client.send({"n": 1})
    assert service.run("backup", "backup.db").returncode == 0
    second = client.send({"n": 2})
    service.kill()
    assert (service.folder / "inbox.db-wal").stat().st_size > 0

    assert service.run("restore", "backup.db").returncode == 0
    service.start()
    assert [event["id"] for event in client.get("/inbox")] == [first]
    third = client.send({"n": 3})
    service.stop()
    assert event_ids(service.folder / "inbox.db") == {first, third}
    (kept,) = service.folder.glob("inbox.db.before-restore-*Z")
    assert event_ids(kept) == {first, second}


def test_a_restore_says_in_full_where_it_was_and_what_became_of_the_rest(service: Service) -> None:
    service.run("init")
    service.run("backup", "backup.db")
    restored = service.run("restore", "backup.db", INBOX_STORE="sqlite:///new/inbox.db")
    assert restored.returncode == 0
    assert restored.stderr == f"{service.folder}/new/inbox.db is restored.\nNothing was there before.\n"
    again = service.run("restore", "backup.db", INBOX_STORE="sqlite:///new/inbox.db")
    (kept,) = (service.folder / "new").glob("inbox.db.before-restore-*")
    assert again.stderr == f"{service.folder}/new/inbox.db is restored.\nWhat was there is kept as {kept}.\n"


def test_a_file_in_use_is_no_backup(service: Service) -> None:
    service.start()
    refused = service.run("restore", "inbox.db", INBOX_STORE=f"sqlite:///{service.folder}/other.db")
    assert refused.returncode == 1
    assert "inbox.db is in use" in refused.stderr
    assert not any(name.startswith("other.db") for name in files(service))


@pytest.mark.parametrize(
    ("arguments", "status", "said"),
    [
        (("backup",), 2, "FILE"),
        (("backup", "-"), 2, "path of a new file"),
        (("backup", "."), 2, "path of a new file"),
        (("backup", "new/"), 2, "path of a new file"),
        (("backup", "inbox.db"), 1, "store itself"),
        (("backup", "log"), 1, "is there already"),
        (("backup", "no/such.db"), 1, "There is no folder no."),
        (("restore",), 2, "FILE"),
        (("restore", "missing.db"), 2, "file that is there"),
        (("restore", "."), 2, "file that is there"),
        (("restore", "inbox.db"), 1, "store itself"),
        (("restore", "log"), 1, "not a database"),
    ],
)
def test_what_makes_no_sense_is_refused(service: Service, arguments: tuple[str, ...], status: int, said: str) -> None:
    service.run("init")
    service.log.write_text("some words\n" * 100)
    before = files(service)
    refused = service.run(*arguments)
    assert (refused.returncode, refused.stdout) == (status, "")
    assert said in refused.stderr
    assert files(service) == before


@pytest.mark.parametrize("command", ["backup", "restore"])
def test_dynamodb_is_refused_in_one_line(service: Service, command: str) -> None:
    service.log.touch()
    file = {"backup": "backup.db", "restore": "log"}[command]
    refused = service.run(command, file, INBOX_STORE="dynamodb://")
    assert (refused.returncode, refused.stdout) == (1, "")
    assert refused.stderr == "error: This is for SQLite. On DynamoDB, point-in-time recovery and AWS Backup do it.\n"


def test_a_terminal_shows_how_far_it_is(service: Service) -> None:
    service.run("init")
    ours, theirs = pty.openpty()
    subprocess.run(
        [INBOX, "backup", "backup.db"],
        env=service.environment,
        cwd=service.folder,
        stdout=subprocess.PIPE,
        stderr=theirs,
        check=True,
    )
    os.close(theirs)
    shown = os.read(ours, 65_536).decode()
    os.close(ours)
    assert "Copying the database" in shown
    assert "100%" in shown


def test_who_is_told_to_stop_leaves_nothing(service: Service) -> None:
    service.run("init")
    before = files(service)
    with closing(apsw.Connection(f"{service.folder}/inbox.db")) as connection:
        # It has to wait for this, and is stopped meanwhile.
        connection.pragma("locking_mode", "exclusive")
        connection.execute("BEGIN EXCLUSIVE")
        stopped = {
            each: subprocess.Popen(
                [INBOX, "backup", f"{each.name}.db"],
                env=service.environment,
                cwd=service.folder,
                stderr=subprocess.DEVNULL,
            )
            for each in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
        }
        until(lambda: len(list(service.folder.glob("partial-backup-*"))) == len(stopped))
        for each, process in stopped.items():
            process.send_signal(each)
        assert [process.wait(30) for process in stopped.values()] == [1, 1, 1]
    assert files(service) == before


@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize(("command", "sign"), [("backup", "new.db"), ("restore", "inbox.db.before-restore-*")])
def test_who_is_told_to_stop_when_it_is_done_says_so(
    service: Service, command: str, sign: str, stop: signal.Signals
) -> None:
    service.run("init")
    service.run("backup", "old.db")
    file = {"backup": "new.db", "restore": "old.db"}[command]
    with subprocess.Popen(
        [INBOX, command, file],
        env=service.environment,
        cwd=service.folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        while not list(service.folder.glob(sign)):
            # It may have been done and over since we looked.
            assert process.poll() is None or list(service.folder.glob(sign))
        process.send_signal(stop)
        said, told = process.communicate(timeout=30)
    assert process.returncode == 0
    assert said + told.partition("\n")[0] in ("new.db\n", f"{service.folder}/inbox.db is restored.")
    assert not list(service.folder.glob("partial-*"))
