"""inbox backup and inbox restore, as an operator runs them beside a service."""

import os
import pty
import signal
import subprocess
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import apsw
import pytest

from tests.e2e.consumers import Client
from tests.service import INBOX, Service, until


@contextmanager
def run_senders(client: Client) -> Iterator[list[str]]:
    """Yields the IDs of accepted events, while four senders send without a pause."""
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
    before = len(accepted)
    until(lambda: len(accepted) > before + 50)


def read_event_ids(database: Path) -> set[str]:
    with closing(apsw.Connection(str(database))) as connection:
        assert connection.pragma("integrity_check") == "ok"
        return {event_id for (event_id,) in connection.execute("SELECT event_id FROM events")}


def list_file_names(service: Service) -> set[str]:
    return {each.name for each in service.folder.iterdir()}


def test_backup_of_a_busy_service_has_every_event_accepted_before(service: Service) -> None:
    client = Client(service, service.create_key("acme"))
    service.start()
    with run_senders(client) as accepted:
        for number in range(3):
            wait_for_more(accepted)
            before = set(accepted)
            made = service.run("backup", f"backup-{number}.db")
            assert (made.returncode, made.stdout, made.stderr) == (0, f"backup-{number}.db\n", "")
            assert before <= read_event_ids(service.folder / f"backup-{number}.db")
    assert {name for name in list_file_names(service) if "backup" in name} == {
        f"backup-{number}.db" for number in range(3)
    }


def test_restore_brings_a_polled_event_back(service: Service) -> None:
    client = Client(service, service.create_key("acme"))
    service.start()
    first = client.send({"n": 1})
    assert service.run("backup", "backup.db").returncode == 0
    assert [event["id"] for event in client.get("/inbox")] == [first]
    second = client.send({"n": 2})

    refused = service.run("restore", "backup.db")
    assert (refused.returncode, refused.stdout) == (1, "")
    assert "inbox.db is in use. Stop the service" in refused.stderr
    assert [event["id"] for event in client.get("/inbox")] == [second]

    service.stop()
    restored = service.run("restore", "backup.db")
    assert (restored.returncode, restored.stdout) == (0, "")
    # A worker that a second signal stops leaves its write-ahead log, which is kept too.
    (kept,) = service.folder.glob("inbox.db.before-restore-*Z")
    assert str(kept) in restored.stderr
    assert read_event_ids(kept) == {first, second}
    service.start()
    assert [event["id"] for event in client.get("/inbox")] == [first]
    assert client.get("/inbox") == []


def test_restore_prints_where_both_databases_are(service: Service) -> None:
    service.run("init")
    service.run("backup", "backup.db")
    restored = service.run("restore", "backup.db", INBOX_STORE="sqlite:///new/inbox.db")
    assert restored.returncode == 0
    assert restored.stderr == f"{service.folder}/new/inbox.db is restored.\nThere was no database before.\n"
    again = service.run("restore", "backup.db", INBOX_STORE="sqlite:///new/inbox.db")
    (kept,) = (service.folder / "new").glob("inbox.db.before-restore-*")
    assert again.stderr == f"{service.folder}/new/inbox.db is restored.\nThe previous database is kept as {kept}.\n"


def test_file_in_use_is_not_restored(service: Service) -> None:
    service.start()
    refused = service.run("restore", "inbox.db", INBOX_STORE=f"sqlite:///{service.folder}/other.db")
    assert refused.returncode == 1
    assert "inbox.db is in use" in refused.stderr
    assert not any(name.startswith("other.db") for name in list_file_names(service))


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (("backup",), 2, "FILE"),
        (("backup", "-"), 2, "path of a new file"),
        (("backup", "."), 2, "path of a new file"),
        (("backup", "new/"), 2, "path of a new file"),
        (("backup", "inbox.db"), 1, "store itself"),
        (("backup", "log"), 1, "already exists"),
        (("backup", "no/such.db"), 1, "The folder no does not exist."),
        (("restore",), 2, "FILE"),
        (("restore", "missing.db"), 2, "does not exist"),
        (("restore", "."), 2, "is a directory"),
        (("restore", "inbox.db"), 1, "store itself"),
        (("restore", "log"), 1, "log is not a backup of Polling Inbox."),
    ],
)
def test_wrong_paths_change_nothing(service: Service, arguments: tuple[str, ...], status: int, message: str) -> None:
    service.run("init")
    service.log.write_text("some words\n" * 100)
    before = list_file_names(service)
    refused = service.run(*arguments)
    assert (refused.returncode, refused.stdout) == (status, "")
    assert message in refused.stderr
    assert list_file_names(service) == before


@pytest.mark.parametrize("command", ["backup", "restore"])
def test_commands_are_refused_on_dynamodb(service: Service, command: str) -> None:
    service.log.touch()
    file = {"backup": "backup.db", "restore": "log"}[command]
    refused = service.run(command, file, INBOX_STORE="dynamodb://")
    assert (refused.returncode, refused.stdout) == (1, "")
    message = "This command is for SQLite. On DynamoDB, use point-in-time recovery and AWS Backup."
    assert refused.stderr == f"error: {message}\n"


def test_terminal_shows_progress(service: Service) -> None:
    service.run("init")
    terminal, command_stderr = pty.openpty()
    subprocess.run(
        [INBOX, "backup", "backup.db"],
        env=service.environment,
        cwd=service.folder,
        stdout=subprocess.PIPE,
        stderr=command_stderr,
        check=True,
    )
    os.close(command_stderr)
    shown = ""
    # A read after the last byte fails with EIO. One read may return only a part.
    with suppress(OSError):
        while piece := os.read(terminal, 65_536):
            shown += piece.decode()
    os.close(terminal)
    assert "Copying the database" in shown
    assert "100%" in shown


def test_stopped_backup_leaves_no_files(service: Service) -> None:
    service.run("init")
    before = list_file_names(service)
    with closing(apsw.Connection(f"{service.folder}/inbox.db")) as connection:
        # The backups wait for this lock.
        connection.pragma("locking_mode", "exclusive")
        connection.execute("BEGIN EXCLUSIVE")
        backups = {
            each: subprocess.Popen(
                [INBOX, "backup", f"{each.name}.db"],
                env=service.environment,
                cwd=service.folder,
                stderr=subprocess.DEVNULL,
            )
            for each in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
        }
        until(lambda: len(list(service.folder.glob("partial-backup-*"))) == len(backups))
        for each, process in backups.items():
            process.send_signal(each)
        assert [process.wait(30) for process in backups.values()] == [1, 1, 1]
    assert list_file_names(service) == before
