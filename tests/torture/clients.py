"""Producers and consumers that log their events, and continue when the service fails."""

import itertools
import math
import random
import time
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException
from typing import Any, NamedTuple

import orjson

from tests.service import Service, bearer
from tests.torture.delivery_report import ConsumerLog, ProducerLog

_BATCH_SIZES = (1, 1, 1, 1, 20, 50)
_RESPONSE_TIMEOUT_SECONDS = 40
PAUSE_SECONDS = 0.02
# If the service is down for longer, the test fails.
TIMEOUT_SECONDS = 120


class Response(NamedTuple):
    status: int
    body: Any
    more: bool
    """True if undelivered events remain."""


class NotSent(Exception):
    """The connection was refused."""


class NoResponse(Exception):
    """The connection broke after the request was sent, so it may have been carried out."""


class Link:
    """One HTTP connection to any of the services that share a store; reconnects when it breaks."""

    def __init__(self, services: Sequence[Service], key: str, record_seconds: Callable[[float], None]) -> None:
        """Calls `record_seconds` with the seconds to each response."""
        self._ports = itertools.cycle(random.sample([service.port for service in services], len(services)))
        self._record_seconds = record_seconds
        self._headers = bearer(key) | {"Content-Type": "application/json"}
        self._connection: HTTPConnection | None = None
        self.lost_responses = 0

    def call(self, method: str, path: str, document: Any = None, headers: dict[str, str] | None = None) -> Response:
        sent = None if document is None else orjson.dumps(document)
        connection = self._connection or self._connect()
        began = time.monotonic()
        try:
            connection.request(method, path, sent, self._headers | (headers or {}))
            with connection.getresponse() as received:
                body = received.read()
                more = received.getheader("Inbox-More") == "true"
                self._connection = None if received.will_close else connection
            self._record_seconds(time.monotonic() - began)
            return Response(received.status, orjson.loads(body) if body else None, more)
        except (OSError, HTTPException) as error:
            self._connection = None
            connection.close()
            self.lost_responses += 1
            raise NoResponse from error

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()

    def _connect(self) -> HTTPConnection:
        connection = HTTPConnection("127.0.0.1", next(self._ports), timeout=_RESPONSE_TIMEOUT_SECONDS)
        try:
            connection.connect()
        except OSError as error:
            raise NotSent from error
        return connection

    def retry(self, method: str, path: str, document: Any = None, headers: dict[str, str] | None = None) -> Response:
        """Repeats an idempotent request until it gets a response other than 503, and returns that response."""
        deadline = time.monotonic() + TIMEOUT_SECONDS
        while time.monotonic() < deadline:
            try:
                response = self.call(method, path, document, headers)
            except (NotSent, NoResponse):
                pass
            else:
                if response.status != 503:
                    return response
            time.sleep(PAUSE_SECONDS)
        raise AssertionError(f"{method} {path} got no response in {TIMEOUT_SECONDS} s")


@dataclass
class Producer:
    link: Link
    log: ProducerLog
    keyed: bool
    """True if it sends idempotency keys, and retries with them until it gets a response."""
    together: int
    """Maximum number of events of a batch that become visible together, in any order."""
    pace_seconds: float = 0
    """The minimum time between two requests."""
    requests: int = 0

    def run(self, is_running: Callable[[], bool]) -> None:
        next_at = time.monotonic()
        while is_running():
            next_at = max(next_at + self.pace_seconds, time.monotonic() - 1)
            time.sleep(max(0.0, next_at - time.monotonic()))
            self.requests += 1
            first = self.log.next_number
            numbers = range(first, first + random.choice(_BATCH_SIZES))
            self.log.next_number = numbers.stop
            events = [self._event(number, rank=first + (number - first) // self.together) for number in numbers]
            path, document = ("/events", events[0]) if len(events) == 1 else ("/events/batch", events)
            if self.keyed:
                self._log_accepted(self.link.retry("POST", path, document), numbers)
            else:
                self._try(path, document, numbers)

    def _event(self, number: int, rank: int) -> dict[str, Any]:
        payload = {"tenant": self.log.tenant, "producer": self.log.producer, "number": number, "rank": rank}
        event: dict[str, Any] = {"event_type": "torture", "payload": payload}
        if self.keyed:
            event["idempotency_key"] = f"{self.log.producer}-{number}"
        return event

    def _try(self, path: str, document: Any, numbers: range) -> None:
        try:
            response = self.link.call("POST", path, document)
        except (NotSent, NoResponse):
            time.sleep(PAUSE_SECONDS)
            return
        if response.status == 503:
            self.log.unavailable += 1
            time.sleep(PAUSE_SECONDS)
        else:
            self._log_accepted(response, numbers)

    def _log_accepted(self, response: Response, numbers: range) -> None:
        assert response.status in (200, 201), response
        stored = response.body if isinstance(response.body, list) else [response.body]
        accepted = dict(zip((each["id"] for each in stored), numbers, strict=True))
        assert len(accepted) == len(numbers), "two events have the same id"
        assert self.log.accepted.keys().isdisjoint(accepted), "an event has the id of an earlier one"
        self.log.accepted |= accepted


@dataclass
class Consumer:
    link: Link
    log: ConsumerLog
    limit: int
    lease_seconds: int | None = None
    repeatable: bool = False
    """True if it polls with an Inbox-Attempt, and repeats a poll with the same one if there is no response."""
    pause_seconds: float = 0
    may_lose_by_503: bool = False
    """True if a 503 leaves open which events were claimed, as on DynamoDB."""
    _leases_end: float = 0
    """The time at which all leases of lost responses have expired."""

    def run(self, is_running: Callable[[], bool]) -> None:
        """Polls until `is_running` returns False and the inbox is empty, or until the timeout."""
        deadline = math.inf
        while time.monotonic() < deadline:
            # Read before the poll, because an event that arrives during the poll needs another round.
            last_round = not is_running()
            if last_round:
                deadline = min(deadline, time.monotonic() + TIMEOUT_SECONDS)
            time.sleep(self.pause_seconds)
            response = self._poll()
            if response is None:
                time.sleep(PAUSE_SECONDS)
            elif response.body:
                self._log_received(response.body)
                deadline = math.inf
            elif last_round and not response.more and time.monotonic() > self._leases_end:
                return

    def _poll(self) -> Response | None:
        """Returns None if there is no response, or a 503."""
        path = f"/inbox?limit={self.limit}"
        if self.lease_seconds is not None:
            path += f"&mode=lease&lease_seconds={self.lease_seconds}"
        try:
            if self.repeatable:
                response = self.link.retry("GET", path, headers={"Inbox-Attempt": uuid.uuid4().hex})
            else:
                response = self.link.call("GET", path)
        except NotSent:
            return None
        except NoResponse:
            self.log.lost_responses += 1
            self._note_lost_response()
            return None
        if response.status == 503:
            self.log.unavailable += 1
            if self.may_lose_by_503:
                self._note_lost_response()
            return None
        assert response.status == 200, response
        return response

    def _note_lost_response(self) -> None:
        if self.lease_seconds is None:
            self.log.at_risk += self.limit
        else:
            # The lease expires and the event is delivered again.
            self._leases_end = time.monotonic() + self.lease_seconds + 1

    def _log_received(self, events: list[dict[str, Any]]) -> None:
        if self.lease_seconds is not None:
            response = self.link.retry("POST", "/inbox/ack", {"receipts": [event["receipt"] for event in events]})
            assert response.status == 200, response
            ours, lost = set(response.body["acknowledged"]), response.body["lost"]
            assert len(ours) + len(lost) == len(events), response
            self.log.leases_lost += len(lost)
            # Events of another tenant are an error even if the acknowledgement failed.
            events = [event for event in events if event["id"] in ours or not self.log.is_own(event)]
        self.log.add(events)
