"""Producers and pollers that accept every response and count them."""

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import requests

from tests.service import Service, bearer, until

PROBLEM = "application/problem+json"
LIMIT = 5


class RecordingClients:
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
        """Waits until a request that starts from now on gets this status."""
        before = self.answers[method, status]
        # Requests that have already started may get it too.
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

    def poll_the_rest(self) -> None:
        while (answer := self.poll()) is not None and answer.json():
            assert answer.status_code == 200

    def _repeat(self, job: Callable[[], object]) -> None:
        while not self._over.is_set():
            job()
            time.sleep(0.01)

    def _call(self, method: str, path: str, **content: Any) -> requests.Response | None:
        try:
            # A new connection per request, so that every worker gets some.
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
