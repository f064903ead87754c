"""Disks that are full, locked or failing, and files that are taken away: 503 meanwhile, and nothing lost."""

import os
import resource
import shutil
import signal
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import apsw
import requests

from tests.engines.small_disk import SmallDisk
from tests.service import INBOX, Service, bearer

PROBLEM = "application/problem+json"
LIMIT = 5


class Crowd:
    """Producers and pollers, who write down what they were answered."""

    def __init__(self, service: Service, key: str) -> None:
        self._service, self._headers = service, bearer(key)
        self._over = threading.Event()
        self.accepted: set[str] = set()
        self.taken: Counter[str] = Counter()
        self.answers: Counter[tuple[str, int]] = Counter()
        self.cut_off = 0
        self.wrong: list[str] = []

    @contextmanager
    def at_work(self) -> Iterator[None]:
        jobs = [self.send] * 3 + [self.poll] * 2
        threads = [threading.Thread(target=self._repeat, args=(job,)) for job in jobs]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            self._over.set()
            for thread in threads:
                thread.join()

    def wait_for(self, method: str, status: int) -> None:
        """Until a request that begins from now on is answered so."""
        before = self.answers[method, status]
        # Those under way at this moment may get one too.
        until(lambda: self.answers[method, status] > before + 3)

    def send(self) -> requests.Response | None:
        answer = self._call("POST", "/events", json={"payload": {"text": "x" * 1000}})
        if answer is not None and answer.status_code == 201:
            self.accepted.add(answer.json()["id"])
        return answer

    def poll(self) -> requests.Response | None:
        answer = self._call("GET", f"/inbox?limit={LIMIT}")
        if answer is not None and answer.status_code == 200:
            self.taken.update(event["id"] for event in answer.json())
        return answer

    def take_the_rest(self) -> None:
        while (answer := self.poll()) is not None and answer.json():
            assert answer.status_code == 200

    def _repeat(self, job: Callable[[], object]) -> None:
        while not self._over.is_set():
            job()
            time.sleep(0.01)

    def _call(self, method: str, path: str, **content: Any) -> requests.Response | None:
        try:
            # A connection each, so that the workers take turns.
            answer = requests.request(
                method, f"{self._service.url}{path}", headers=self._headers, timeout=30, **content
            )
        except requests.RequestException:
            self.cut_off += 1
            return None
        self.answers[method, answer.status_code] += 1
        if answer.status_code == 503:
            if (answer.headers["Content-Type"], answer.headers["Retry-After"]) != (PROBLEM, "1"):
                self.wrong.append(f"{answer.headers} {answer.text}")
        elif answer.status_code != {"POST": 201, "GET": 200}[method]:
            self.wrong.append(answer.text)
        return answer


def until(happens: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 20
    while not happens():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def status_of(service: Service, path: str) -> int:
    return requests.get(f"{service.url}{path}", timeout=30).status_code


def workers_of(service: Service) -> list[int]:
    assert service._process is not None
    parent = service._process.pid
    return [int(pid) for pid in Path(f"/proc/{parent}/task/{parent}/children").read_text().split()]


def kill_workers(service: Service) -> None:
    """Returns when others are there, whatever state they are in."""
    old = workers_of(service)
    for pid in old:
        os.kill(pid, signal.SIGKILL)
    until(lambda: len(set(workers_of(service)) - set(old)) == len(old))


def start_on(disk: SmallDisk, service: Service) -> str:
    """A service whose store is on the disk, and a key for it."""
    key = service.create_key("acme")
    shutil.copy(service.folder / "inbox.db", disk.seen)
    service.variables["INBOX_STORE"] = f"sqlite:///{service.folder}/disk/inbox.db"
    service.start_process([*disk.inside, INBOX, "serve"], service.folder)
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
    crowd = Crowd(service, key)
    with crowd.at_work():
        for cycle in range(20 if torture else 1):
            crowd.wait_for("POST", 201)
            disk.fill()
            crowd.wait_for("POST", 503)
            # A checkpoint may have made room in the log meanwhile, which is nobody's fault.
            disk.fill()
            until(lambda: status_of(service, "/readyz") == 503)
            assert status_of(service, "/healthz") == 200
            if cycle % 2:
                kill_workers(service)
                crowd.wait_for("POST", 503)
            disk.make_room()
            crowd.wait_for("POST", 201)
            crowd.wait_for("GET", 200)
            assert status_of(service, "/readyz") == 200
    crowd.take_the_rest()
    service.stop()

    assert crowd.wrong == []
    assert [event_id for event_id, times in crowd.taken.items() if times > 1] == []
    kept = kept_in(disk.seen / "inbox.db", service.folder / "copies")
    assert crowd.accepted <= kept
    # What a poll of a killed worker took, nobody read; and who was cut off does not know what was kept.
    assert len(kept - set(crowd.taken)) <= crowd.cut_off * LIMIT
    assert len(kept - crowd.accepted) <= crowd.cut_off


def test_workers_that_are_killed_on_a_full_disk_come_back(service: Service, disk: SmallDisk) -> None:
    crowd = Crowd(service, start_on(disk, service))
    crowd.send()
    kill_workers(service)
    # The new ones need it, and have no room for another.
    (disk.seen / "inbox.db-shm").unlink()
    disk.fill()
    assert status_of(service, "/healthz") == 200
    assert status_of(service, "/readyz") == 503
    crowd.send()
    disk.make_room()
    crowd.send()
    crowd.take_the_rest()
    # And where nobody but the probe wants to write.
    disk.fill()
    assert status_of(service, "/readyz") == 503
    disk.make_room()
    assert status_of(service, "/readyz") == 200
    assert crowd.wrong == []
    assert (crowd.answers["POST", 201], crowd.answers["POST", 503], crowd.cut_off) == (2, 1, 0)
    assert set(crowd.taken) == crowd.accepted


def test_a_disk_that_is_locked_answers_503_and_recovers_by_itself(service: Service, disk: SmallDisk) -> None:
    crowd = Crowd(service, start_on(disk, service))
    crowd.send()
    disk.lock()
    # Files that are open stay writable, and so does what has them open.
    crowd.send()
    kill_workers(service)
    for _ in range(4):  # through both workers
        crowd.send()
        crowd.poll()
        assert status_of(service, "/readyz") == 503
        assert status_of(service, "/healthz") == 200
    disk.unlock()
    for _ in range(4):
        crowd.send()
    crowd.take_the_rest()
    assert crowd.wrong == []
    assert (crowd.answers["POST", 201], crowd.answers["POST", 503], crowd.answers["GET", 503]) == (6, 4, 4)
    assert set(crowd.taken) == crowd.accepted


def test_a_disk_that_fails_every_write_answers_503_and_recovers_by_itself(service: Service) -> None:
    crowd = Crowd(service, service.create_key("acme"))
    service.start()
    with crowd.at_work():
        crowd.wait_for("POST", 201)
        _, most = resource.getrlimit(resource.RLIMIT_FSIZE)
        for pid in workers_of(service):
            # Not a byte to any file, open or not.
            resource.prlimit(pid, resource.RLIMIT_FSIZE, (0, most))
        crowd.wait_for("POST", 503)
        assert status_of(service, "/readyz") == 503
        assert status_of(service, "/healthz") == 200
        for pid in workers_of(service):
            resource.prlimit(pid, resource.RLIMIT_FSIZE, (most, most))
        crowd.wait_for("POST", 201)
        crowd.wait_for("GET", 200)
    crowd.take_the_rest()
    service.stop()
    assert crowd.wrong == []
    assert set(crowd.taken) == crowd.accepted == kept_in(service.folder / "inbox.db", service.folder / "copies")
    assert max(crowd.taken.values()) == 1


def test_a_file_that_is_taken_away_is_missed_and_not_replaced(service: Service) -> None:
    crowd = Crowd(service, service.create_key("acme"))
    service.start()
    crowd.send()
    file, elsewhere = service.folder / "inbox.db", service.folder / "elsewhere.db"
    file.rename(elsewhere)
    for _ in range(4):  # through both workers
        crowd.send()
        crowd.poll()
    kill_workers(service)
    assert status_of(service, "/readyz") == 503
    assert not file.exists()
    # Nor is anything made in an empty one.
    file.touch()
    crowd.send()
    crowd.poll()
    assert file.stat().st_size == 0
    elsewhere.rename(file)
    crowd.send()
    crowd.take_the_rest()
    assert crowd.wrong == []
    assert (crowd.answers["POST", 201], crowd.answers["POST", 503], crowd.answers["GET", 503]) == (2, 5, 5)
    assert crowd.accepted <= set(crowd.taken)


def test_a_log_on_a_full_disk_keeps_nothing_back(service: Service, disk: SmallDisk) -> None:
    crowd = Crowd(service, service.create_key("acme"))
    service.log = disk.seen / "log"
    disk.fill()
    service.start()
    crowd.send()
    kill_workers(service)
    crowd.send()
    crowd.take_the_rest()
    assert crowd.wrong == []
    assert set(crowd.taken) == crowd.accepted
    assert len(crowd.accepted) == 2
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
