"""Disks that are full, locked or failing, and files that are taken away: 503 meanwhile, and nothing lost."""

import resource
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import apsw
import requests

from tests.engines.small_disk import SmallDisk
from tests.service import INBOX, Service, until
from tests.torture.witnesses import LIMIT, Witnesses


def status_of(service: Service, path: str) -> int:
    return requests.get(f"{service.url}{path}", timeout=30).status_code


@contextmanager
def no_workers(service: Service) -> Iterator[None]:
    """Killed, and others not made before it is over. Returns when those are there, whatever state they are in."""
    old = service.workers
    service.ask_to_stop(signal.SIGSTOP)
    service.signal_workers(signal.SIGKILL, old)
    try:
        yield
    finally:
        service.ask_to_stop(signal.SIGCONT)
    until(lambda: len(set(service.workers) - set(old)) == len(old))


def kill_workers(service: Service) -> None:
    with no_workers(service):
        pass


def start_on(disk: SmallDisk, service: Service) -> str:
    """A service whose store is on the disk, and a key for it."""
    key = service.create_key("acme")
    shutil.copy(service.folder / "inbox.db", disk.seen)
    service.variables["INBOX_STORE"] = f"sqlite:///{service.folder}/disk/inbox.db"
    service.start_process([*disk.inside, INBOX, "serve"], service.folder)
    service.wait_for_workers()
    return key


def kept_in(file: Path, copies: Path) -> set[str]:
    """What a sound file holds, looked up in a copy: SQLite does not find its way to a disk of somebody else's."""
    copies.mkdir()
    for each in file.parent.glob(f"{file.name}*"):
        shutil.copy(each, copies)
    store = apsw.Connection(str(copies / file.name))
    assert store.pragma("integrity_check") == "ok"
    kept = {event_id for (event_id,) in store.execute("SELECT event_id FROM events")}
    store.close()
    return kept


def test_a_full_disk_answers_503_and_recovers_by_itself(service: Service, disk: SmallDisk, torture: bool) -> None:
    key = start_on(disk, service)
    witnesses = Witnesses(service, key)
    with witnesses.at_work():
        for cycle in range(20 if torture else 1):
            witnesses.wait_for("POST", 201)
            disk.fill()
            witnesses.wait_for("POST", 503)
            # A checkpoint may have made room in the log meanwhile, which is nobody's fault.
            disk.fill()
            until(lambda: status_of(service, "/readyz") == 503)
            assert status_of(service, "/healthz") == 200
            if cycle % 2:
                kill_workers(service)
                witnesses.wait_for("POST", 503)
            disk.make_room()
            witnesses.wait_for("POST", 201)
            witnesses.wait_for("GET", 200)
            until(lambda: status_of(service, "/readyz") == 200)
    witnesses.take_the_rest()
    service.stop()

    assert witnesses.wrong == []
    assert [event_id for event_id, times in witnesses.taken.items() if times > 1] == []
    kept = kept_in(disk.seen / "inbox.db", service.folder / "copies")
    assert witnesses.accepted <= kept
    assert torture or not witnesses.cut_off
    # What a poll of a killed worker took, nobody read; and who was cut off does not know what was kept.
    assert len(kept - set(witnesses.taken)) <= witnesses.cut_off * LIMIT
    assert len(kept - witnesses.accepted) <= witnesses.cut_off


def test_workers_that_are_killed_on_a_full_disk_come_back(service: Service, disk: SmallDisk) -> None:
    witnesses = Witnesses(service, start_on(disk, service))
    witnesses.send()
    with no_workers(service):
        # The new ones need it, and have no room for another.
        (disk.seen / "inbox.db-shm").unlink()
        disk.fill()
    assert status_of(service, "/healthz") == 200
    assert status_of(service, "/readyz") == 503
    witnesses.send()
    disk.make_room()
    witnesses.send()
    witnesses.take_the_rest()
    # And where nobody but the probe wants to write.
    disk.fill()
    until(lambda: status_of(service, "/readyz") == 503)
    disk.make_room()
    until(lambda: status_of(service, "/readyz") == 200)
    assert witnesses.wrong == []
    assert (witnesses.answers["POST", 201], witnesses.answers["POST", 503], witnesses.cut_off) == (2, 1, 0)
    assert set(witnesses.taken) == witnesses.accepted


def test_a_disk_that_is_locked_answers_503_and_recovers_by_itself(service: Service, disk: SmallDisk) -> None:
    # One, of which we know which files it has open.
    service.variables["INBOX_WORKERS"] = "1"
    witnesses = Witnesses(service, start_on(disk, service))
    witnesses.send()
    disk.lock()
    # Files that are open stay writable, and so does what has them open.
    witnesses.send()
    kill_workers(service)
    for _ in range(4):
        witnesses.send()
        witnesses.poll()
        assert status_of(service, "/readyz") == 503
        assert status_of(service, "/healthz") == 200
    disk.unlock()
    for _ in range(4):
        witnesses.send()
    witnesses.take_the_rest()
    assert witnesses.wrong == []
    assert (witnesses.answers["POST", 201], witnesses.answers["POST", 503], witnesses.answers["GET", 503]) == (6, 4, 4)
    assert set(witnesses.taken) == witnesses.accepted


def test_a_disk_that_fails_every_write_answers_503_and_recovers_by_itself(service: Service) -> None:
    witnesses = Witnesses(service, service.create_key("acme"))
    service.start()
    with witnesses.at_work():
        witnesses.wait_for("POST", 201)
        _, most = resource.getrlimit(resource.RLIMIT_FSIZE)
        for pid in service.workers:
            # Not a byte to any file, open or not.
            resource.prlimit(pid, resource.RLIMIT_FSIZE, (0, most))
        witnesses.wait_for("POST", 503)
        until(lambda: status_of(service, "/readyz") == 503)
        assert status_of(service, "/healthz") == 200
        for pid in service.workers:
            resource.prlimit(pid, resource.RLIMIT_FSIZE, (most, most))
        witnesses.wait_for("POST", 201)
        witnesses.wait_for("GET", 200)
    witnesses.take_the_rest()
    service.stop()
    assert witnesses.wrong == []
    assert set(witnesses.taken) == witnesses.accepted == kept_in(service.folder / "inbox.db", service.folder / "copies")
    assert max(witnesses.taken.values()) == 1


def test_a_file_that_is_taken_away_is_missed_and_not_replaced(service: Service) -> None:
    witnesses = Witnesses(service, service.create_key("acme"))
    service.start()
    witnesses.send()
    file, elsewhere = service.folder / "inbox.db", service.folder / "elsewhere.db"
    file.rename(elsewhere)
    for _ in range(4):  # through both workers
        witnesses.send()
        witnesses.poll()
    kill_workers(service)
    assert status_of(service, "/readyz") == 503
    assert not file.exists()
    # Nor is anything made in an empty one.
    file.touch()
    witnesses.send()
    witnesses.poll()
    assert file.stat().st_size == 0
    elsewhere.rename(file)
    witnesses.send()
    witnesses.take_the_rest()
    assert witnesses.wrong == []
    assert (witnesses.answers["POST", 201], witnesses.answers["POST", 503], witnesses.answers["GET", 503]) == (2, 5, 5)
    assert witnesses.accepted <= set(witnesses.taken)


def test_a_log_on_a_full_disk_keeps_nothing_back(service: Service, disk: SmallDisk) -> None:
    witnesses = Witnesses(service, service.create_key("acme"))
    service.log = disk.seen / "log"
    disk.fill()
    service.start()
    witnesses.send()
    kill_workers(service)
    witnesses.send()
    witnesses.take_the_rest()
    assert witnesses.wrong == []
    assert set(witnesses.taken) == witnesses.accepted
    assert len(witnesses.accepted) == 2
    service.stop()
    assert service.log.stat().st_size == 0


def test_a_start_on_a_full_or_locked_disk_ends_with_one_line(service: Service, disk: SmallDisk) -> None:
    def start() -> subprocess.CompletedProcess[str]:
        command = [*disk.inside, str(INBOX), "serve"]
        return subprocess.run(
            command,
            env=service.environment,
            cwd=service.folder,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    service.create_key("acme")
    shutil.copy(service.folder / "inbox.db", disk.seen)
    service.variables["INBOX_STORE"] = f"sqlite:///{service.folder}/disk/inbox.db"
    disk.fill()
    full = start()
    disk.make_room()
    disk.lock()
    locked = start()
    for done in (full, locked):
        assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1), done.stderr
        assert "inbox.db cannot be opened" in done.stderr
