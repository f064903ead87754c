"""Producers and consumers that accept every response and count the statuses."""

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import requests

from tests.service import Service, bearer, until

POLL_LIMIT = 5


class RecordingClients:
    def __init__(self, service: Service, key: str) -> None:
        self._service, self._headers = service, bearer(key)
        self._stop = threading.Event()
        self.accepted: set[str] = set()
        self.deliveries: Counter[str] = Counter()
        """Event ID → how often polls returned the event."""
        self.responses: Counter[tuple[str, int]] = Counter()
        """Method and status → number of responses."""
        self.lost_responses = 0
        self.wrong: list[str] = []
        """Responses that are neither a success nor a correct 503."""

    @contextmanager
    def run(self) -> Iterator[None]:
        """Sends and polls in threads until the end of the block."""
        jobs = [self.send] * 3 + [self.poll] * 2
        threads = [threading.Thread(target=self._repeat, args=(job,)) for job in jobs]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            self._stop.set()
            for thread in threads:
                thread.join()

    def wait_for(self, method: str, status: int) -> None:
        """Waits until a request that starts from now on gets this status."""
        before = self.responses[method, status]
        # Requests that have already started may get it too.
        until(lambda: self.responses[method, status] > before + 3)

    def send(self) -> None:
        response = self._call("POST", "/events", json={"payload": {"text": "x" * 1000}})
        if response is not None and response.status_code == 201:
            self.accepted.add(response.json()["id"])

    def poll(self) -> list[dict[str, Any]]:
        """Returns the events in the response, or none if it is not a success."""
        response = self._call("GET", f"/inbox?limit={POLL_LIMIT}")
        events: list[dict[str, Any]] = []
        if response is not None and response.status_code == 200:
            events = response.json()
            self.deliveries.update(event["id"] for event in events)
        return events

    def poll_the_rest(self) -> None:
        failures = self.responses["GET", 503], self.lost_responses
        while self.poll():
            pass
        assert (self.responses["GET", 503], self.lost_responses) == failures

    def _repeat(self, job: Callable[[], object]) -> None:
        while not self._stop.is_set():
            job()
            time.sleep(0.01)

    def _call(self, method: str, path: str, **content: Any) -> requests.Response | None:
        try:
            # A new connection per request, so that every worker gets some requests.
            response = requests.request(
                method, f"{self._service.url}{path}", headers=self._headers, timeout=30, **content
            )
        except requests.RequestException:
            self.lost_responses += 1
            return None
        self.responses[method, response.status_code] += 1
        headers = response.headers
        if response.status_code == 503:
            is_correct = (headers["Content-Type"], headers["Retry-After"]) == ("application/problem+json", "1")
        else:
            is_correct = response.status_code == {"POST": 201, "GET": 200}[method]
        if not is_correct:
            self.wrong.append(f"{headers} {response.text}")
        return response
