"""kill -9 of every process at any moment: what got a 201 is still there."""

import random
import threading
import time
from collections import Counter

import apsw
import requests

from tests.service import Service, bearer

PRODUCERS = 6


def test_no_crash_loses_what_was_accepted(service: Service, torture: bool) -> None:
    cycles = 100 if torture else 5
    key = service.create_key("acme")
    accepted: set[str] = set()
    taken: Counter[str] = Counter()

    for _ in range(cycles):
        service.start()
        crash = threading.Event()
        threads = [threading.Thread(target=_send, args=(service, key, crash, accepted)) for _ in range(PRODUCERS)]
        threads.append(threading.Thread(target=_poll, args=(service, key, crash, taken)))
        for thread in threads:
            thread.start()
        time.sleep(random.uniform(0.1, 1.0))
        service.kill()
        crash.set()
        for thread in threads:
            thread.join()
        check = apsw.Connection(f"{service.folder}/inbox.db")
        assert check.pragma("integrity_check") == "ok"
        check.close()

    service.start()
    with requests.Session() as session:
        session.headers.update(bearer(key))
        while events := session.get(f"{service.url}/inbox?limit=500", timeout=30).json():
            taken.update(event["id"] for event in events)
        # A poll that was killed may have marked events that nobody read: they are not lost, they are delivered.
        unread = accepted - set(taken)
        lost = [each for each in unread if not session.get(f"{service.url}/events/{each}", timeout=30).ok]

    assert len(accepted) > cycles
    assert lost == []
    assert [event_id for event_id, count in taken.items() if count > 1] == []


def _send(service: Service, key: str, crash: threading.Event, accepted: set[str]) -> None:
    with requests.Session() as session:
        session.headers.update(bearer(key))
        while not crash.is_set():
            try:
                answer = session.post(f"{service.url}/events", json={"payload": {"a": 1}}, timeout=30)
            except requests.RequestException:
                continue
            if answer.status_code == 201:
                accepted.add(answer.json()["id"])


def _poll(service: Service, key: str, crash: threading.Event, taken: Counter[str]) -> None:
    while not crash.is_set():
        try:
            answer = requests.get(f"{service.url}/inbox?limit=3", headers=bearer(key), timeout=30)
        except requests.RequestException:
            continue
        if answer.ok:
            taken.update(event["id"] for event in answer.json())
        time.sleep(0.01)
