"""Full, read-only and failing disks, and a missing database: 503 meanwhile, and no event is lost."""

import resource
import shutil
import signal
import uuid
from collections.abc import Callable
from pathlib import Path

import requests

from inbox.domain.events import NewEvent
from inbox.store.sqlite import SQLiteStore
from tests.e2e.consumers import ALL_SCOPES, Client
from tests.engines.small_disk import SmallDisk
from tests.service import Service, until
from tests.torture.recording_clients import POLL_LIMIT, RecordingClients
from tests.torture.stored_events import read_events


def get_status(service: Service, path: str) -> int:
    return requests.get(f"{service.url}{path}", timeout=30).status_code


def replace_workers(service: Service, meanwhile: Callable[[], object] = lambda: None) -> None:
    """Kills the workers, and lets the master start new ones only after `meanwhile` has returned."""
    old = service.worker_pids
    service.signal_master(signal.SIGSTOP)
    service.kill_workers(old)
    try:
        meanwhile()
    finally:
        service.signal_master(signal.SIGCONT)
    until(lambda: len(set(service.worker_pids) - set(old)) == len(old))


def move_store(disk: SmallDisk, service: Service) -> None:
    """Moves the store to the disk, with SQLite's temporary files beside it as on a machine with one disk."""
    shutil.copy(service.folder / "inbox.db", disk.seen)
    service.variables["INBOX_STORE"] = f"sqlite:///{service.folder}/disk/inbox.db"
    service.variables["SQLITE_TMPDIR"] = f"{service.folder}/disk"
    service.command_prefix = disk.inside


def start_on(disk: SmallDisk, service: Service, *key_options: str) -> str:
    """Starts a service whose store is on the disk. Returns a key."""
    key = service.create_key("acme", *key_options)
    move_store(disk, service)
    service.start()
    return key


def read_event_ids(folder: Path) -> set[str]:
    return {event.event_id for event in read_events(folder / "inbox.db")}


def test_full_disk_returns_503_and_recovers(service: Service, disk: SmallDisk, torture: bool) -> None:
    key = start_on(disk, service)
    clients = RecordingClients(service, key)
    with clients.run():
        for cycle in range(20 if torture else 1):
            clients.wait_for("POST", 201)
            disk.fill()
            clients.wait_for("POST", 503)
            # A checkpoint may have made space in the log meanwhile.
            disk.fill()
            until(lambda: get_status(service, "/readyz") == 503)
            assert get_status(service, "/healthz") == 200
            if cycle % 2:
                replace_workers(service)
                clients.wait_for("POST", 503)
            disk.make_room()
            clients.wait_for("POST", 201)
            clients.wait_for("GET", 200)
            until(lambda: get_status(service, "/readyz") == 200)
    clients.poll_the_rest()
    service.stop()

    assert clients.wrong == []
    assert [event_id for event_id, times in clients.deliveries.items() if times > 1] == []
    # SQLite cannot open files in another namespace.
    stored = read_event_ids(shutil.copytree(disk.seen, service.folder / "copy"))
    assert clients.accepted <= stored
    assert torture or not clients.lost_responses
    # A killed worker may have claimed or stored events without a response.
    assert len(stored - set(clients.deliveries)) <= clients.lost_responses * POLL_LIMIT
    assert len(stored - clients.accepted) <= clients.lost_responses


def send_bytes(client: Client, count: int) -> requests.Response:
    return client.call("POST", "/events", json={"payload": {"text": "x" * count}})


def is_ready(service: Service) -> bool | None:
    """Returns None if the workers disagree. Asks ten times, so that each worker gets a request."""
    statuses = {get_status(service, "/readyz") for _ in range(10)}
    return None if len(statuses) > 1 else statuses == {200}


def test_full_disk_is_not_ready_and_events_can_be_erased(service: Service, disk: SmallDisk) -> None:
    client = Client(service, start_on(disk, service, *ALL_SCOPES))
    assert client.call("PUT", "/inboxes/crm", json={}).status_code == 201
    ids = []
    while (response := send_bytes(client, 200_000)).status_code == 201:
        ids.append(response.json()["id"])
    assert response.status_code == 503
    until(lambda: is_ready(service) is False)

    assert client.call("DELETE", f"/events/{ids[0]}").status_code == 204
    assert [send_bytes(client, 1000).status_code for _ in range(5)] == [201] * 5
    assert [client.call("DELETE", f"/events/{event_id}").status_code for event_id in ids[1:10]] == [204] * 9
    until(lambda: is_ready(service) is True)
    assert send_bytes(client, 200_000).status_code == 201

    while send_bytes(client, 200_000).status_code == 201:
        pass
    until(lambda: is_ready(service) is False)
    assert client.call("DELETE", "/inboxes/crm").status_code == 204
    until(lambda: is_ready(service) is True)
    assert send_bytes(client, 200_000).status_code == 201
    assert is_ready(service) is True


def test_event_too_large_for_the_disk_leaves_space_for_smaller_ones(service: Service, disk: SmallDisk) -> None:
    service.variables["INBOX_MAX_EVENT_BYTES"] = "20000000"
    client = Client(service, start_on(disk, service))
    assert [send_bytes(client, size).status_code for size in (15_000_000, 1000)] == [503, 201]
    until(lambda: is_ready(service) is False)
    assert [send_bytes(client, 200_000).status_code for _ in range(20)] == [201] * 20
    assert is_ready(service) is False


def test_expired_events_are_purged_with_little_space(service: Service, disk: SmallDisk) -> None:
    store = SQLiteStore(service.folder / "inbox.db", max_deliveries=5)
    events = [NewEvent(str(uuid.uuid4()), None, b"{}") for _ in range(3000)]
    store.events.put("acme", events, store.now_ms(), expires_at_s=1)
    store.close()
    move_store(disk, service)
    disk.fill(leave_bytes=131_072)
    purged = service.run("purge")
    assert (purged.stdout, purged.returncode) == ("3000\n", 0), purged.stderr


def test_workers_killed_on_a_full_disk_restart(service: Service, disk: SmallDisk) -> None:
    clients = RecordingClients(service, start_on(disk, service))
    clients.send()

    def fill_disk() -> None:
        # The new workers need this file, and have no space for a new one.
        (disk.seen / "inbox.db-shm").unlink()
        disk.fill()

    replace_workers(service, meanwhile=fill_disk)
    assert get_status(service, "/healthz") == 200
    assert get_status(service, "/readyz") == 503
    clients.send()
    disk.make_room()
    clients.send()
    clients.poll_the_rest()
    # This time, only the readiness check writes.
    disk.fill()
    until(lambda: get_status(service, "/readyz") == 503)
    disk.make_room()
    until(lambda: get_status(service, "/readyz") == 200)
    assert clients.wrong == []
    assert (clients.responses["POST", 201], clients.responses["POST", 503], clients.lost_responses) == (2, 1, 0)
    assert set(clients.deliveries) == clients.accepted


def test_read_only_disk_returns_503_and_recovers(service: Service, disk: SmallDisk) -> None:
    # With one worker, the test knows which files are open.
    service.variables["INBOX_WORKERS"] = "1"
    clients = RecordingClients(service, start_on(disk, service))
    clients.send()
    disk.lock()
    # Files that are open stay writable.
    clients.send()
    replace_workers(service)
    for _ in range(4):
        clients.send()
        clients.poll()
        assert get_status(service, "/readyz") == 503
        assert get_status(service, "/healthz") == 200
    disk.unlock()
    for _ in range(4):
        clients.send()
    clients.poll_the_rest()
    assert clients.wrong == []
    assert (clients.responses["POST", 201], clients.responses["POST", 503], clients.responses["GET", 503]) == (6, 4, 4)
    assert set(clients.deliveries) == clients.accepted


def test_failing_disk_returns_503_and_recovers(service: Service) -> None:
    clients = RecordingClients(service, service.create_key("acme"))
    service.start()
    with clients.run():
        clients.wait_for("POST", 201)
        _, max_bytes = resource.getrlimit(resource.RLIMIT_FSIZE)
        for pid in service.worker_pids:
            # Every write fails, also to files that are open.
            resource.prlimit(pid, resource.RLIMIT_FSIZE, (0, max_bytes))
        clients.wait_for("POST", 503)
        until(lambda: get_status(service, "/readyz") == 503)
        assert get_status(service, "/healthz") == 200
        for pid in service.worker_pids:
            resource.prlimit(pid, resource.RLIMIT_FSIZE, (max_bytes, max_bytes))
        clients.wait_for("POST", 201)
        clients.wait_for("GET", 200)
    clients.poll_the_rest()
    service.stop()
    assert clients.wrong == []
    assert set(clients.deliveries) == clients.accepted == read_event_ids(service.folder)
    assert max(clients.deliveries.values()) == 1


def test_missing_database_returns_503_and_is_not_recreated(service: Service) -> None:
    clients = RecordingClients(service, service.create_key("acme"))
    service.start()
    clients.send()
    file, elsewhere = service.folder / "inbox.db", service.folder / "elsewhere.db"
    file.rename(elsewhere)
    # Four requests reach both workers.
    for _ in range(4):
        clients.send()
        clients.poll()
    replace_workers(service)
    assert get_status(service, "/readyz") == 503
    assert not file.exists()
    # An empty file is not used either.
    file.touch()
    clients.send()
    clients.poll()
    assert file.stat().st_size == 0
    elsewhere.rename(file)
    clients.send()
    clients.poll_the_rest()
    assert clients.wrong == []
    assert (clients.responses["POST", 201], clients.responses["POST", 503], clients.responses["GET", 503]) == (2, 5, 5)
    assert clients.accepted <= set(clients.deliveries)


def test_full_disk_of_the_log_delays_no_request(service: Service, disk: SmallDisk) -> None:
    clients = RecordingClients(service, service.create_key("acme"))
    service.log = disk.seen / "log"
    disk.fill()
    service.start()
    clients.send()
    replace_workers(service)
    clients.send()
    clients.poll_the_rest()
    assert clients.wrong == []
    assert set(clients.deliveries) == clients.accepted
    assert len(clients.accepted) == 2
    service.stop()
    assert service.log.stat().st_size == 0


def test_start_on_a_full_or_read_only_disk_fails_with_one_line(service: Service, disk: SmallDisk) -> None:
    service.create_key("acme")
    move_store(disk, service)
    disk.fill()
    full = service.run("serve")
    disk.make_room()
    disk.lock()
    read_only = service.run("serve")
    for failed in (full, read_only):
        assert (failed.returncode, failed.stdout, failed.stderr.count("\n")) == (1, "", 1), failed.stderr
        assert "inbox.db cannot be " in failed.stderr
