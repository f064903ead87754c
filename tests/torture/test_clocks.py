"""Two services on one store, the wall clock of one five minutes ahead and of the other five minutes behind."""

import os
import re
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import requests

from tests.service import Service, bearer

FIVE_MINUTES = 300
# Long enough for a release that comes late on a busy machine.
LEASE_SECONDS = 5
# DynamoDB tells the time in whole seconds: on a machine that is too busy to see one begin, it is not known better.
SHORTER_SECONDS = {"sqlite": 0.0, "dynamodb": 1.0}
PATIENCE_SECONDS = 30

# What a process sees as the wall clock is the machine's, put forward or back by what stands in a file.
SITECUSTOMIZE = """
import time
from pathlib import Path

shift = Path(__file__).with_name("shift_seconds")
real_ns = time.time_ns
time.time_ns = lambda: real_ns() + int(shift.read_text()) * 10**9
time.time = lambda: time.time_ns() / 10**9
"""


class WallClock:
    """Of the commands that a service is made of."""

    def __init__(self, folder: Path, service: Service) -> None:
        self._folder = folder
        folder.joinpath("sitecustomize.py").write_text(SITECUSTOMIZE)
        service.variables["PYTHONPATH"] = os.pathsep.join([str(folder), os.environ.get("PYTHONPATH", "")])

    def shift(self, seconds: int) -> None:
        # In one step: somebody may be reading it.
        self._folder.joinpath("new").write_text(str(seconds))
        self._folder.joinpath("new").rename(self._folder / "shift_seconds")


@dataclass(frozen=True)
class Consumer:
    """And producer: calls one of the services, about one inbox."""

    service: Service
    inbox: str
    key: str

    def call(self, method: str, path: str, headers: dict[str, str] | None = None, **body: Any) -> Any:
        headers = bearer(self.key) | (headers or {})
        answer = requests.request(method, f"{self.service.url}{path}", json=body or None, headers=headers, timeout=30)
        assert answer.ok, answer.text
        return answer.json()

    def send(self, number: int) -> int:
        """Its timestamp."""
        event = self.call("POST", "/events", event_type=self.inbox, payload={"number": number})
        return int(event["timestamp"])

    def poll(self, query: str = "", attempt: str | None = None) -> list[dict[str, Any]]:
        headers = {} if attempt is None else {"Inbox-Attempt": attempt}
        events: list[dict[str, Any]] = self.call("GET", f"/inbox/{self.inbox}{query}", headers)
        return events

    def lease(self) -> list[dict[str, Any]]:
        return self.poll(f"?mode=lease&lease_seconds={LEASE_SECONDS}")

    def arrivals(self, count: int) -> dict[int, float]:
        """When each of so many events came, in their order."""
        arrived: dict[int, float] = {}
        deadline = time.monotonic() + PATIENCE_SECONDS
        while len(arrived) < count and time.monotonic() < deadline:
            arrived |= dict.fromkeys(numbers(self.poll("?wait=5")), time.monotonic())
        return arrived


def numbers(events: list[dict[str, Any]]) -> list[int]:
    return [event["payload"]["number"] for event in events]


@dataclass(frozen=True)
class Pair:
    engine: str
    ahead: Service
    behind: Service
    clock_ahead: WallClock
    clock_behind: WallClock
    key: str

    def consumers(self, inbox: str) -> tuple[Consumer, Consumer]:
        """Of a new inbox, through the service that is ahead and through the one that is behind."""
        both = Consumer(self.ahead, inbox, self.key), Consumer(self.behind, inbox, self.key)
        both[0].call("PUT", f"/inboxes/{inbox}", event_types=[inbox])
        return both

    def is_early(self, arrived: float, begun: float) -> bool:
        return arrived - begun < LEASE_SECONDS - SHORTER_SECONDS[self.engine]


@pytest.fixture(scope="module", params=["sqlite", "dynamodb"])
def pair(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    ahead, behind = (Service(tmp_path_factory.mktemp("service")) for _ in range(2))
    if request.param == "dynamodb":
        ahead.keep_in_dynamodb(request.getfixturevalue("dynamodb_local_url"))
    ahead.variables |= {"INBOX_WORKERS": "1", "INBOX_THREADS": "8", "INBOX_STORE": ahead.environment["INBOX_STORE"]}
    behind.variables |= ahead.variables
    clock_ahead, clock_behind = (WallClock(tmp_path_factory.mktemp("clock"), service) for service in (ahead, behind))
    clock_ahead.shift(FIVE_MINUTES)
    clock_behind.shift(-FIVE_MINUTES)
    try:
        ahead.start("quickstart")
        behind.start()
        (key,) = re.findall(r"API key +(ibx_\w+)", ahead.log.read_text())
        yield Pair(request.param, ahead, behind, clock_ahead, clock_behind, key)
    finally:
        ahead.kill()
        behind.kill()


def at_once(*acts: Callable[[], Any]) -> list[Any]:
    with ThreadPoolExecutor(len(acts)) as pool:
        return [future.result() for future in [pool.submit(act) for act in acts]]


def test_a_lease_and_a_delay_end_at_their_time_for_the_other_one(pair: Pair) -> None:
    def hold_and_look(holder: Consumer, looker: Consumer) -> None:
        for number in range(2):
            holder.send(number)
        begun = time.monotonic()
        leased, released = (event["receipt"] for event in holder.lease())
        assert holder.call("POST", "/inbox/release", receipts=[released], delay_seconds=LEASE_SECONDS)["lost"] == []

        arrived = looker.arrivals(2)
        assert not [number for number, moment in arrived.items() if pair.is_early(moment, begun)]
        assert sorted(arrived) == [0, 1]
        assert holder.call("POST", "/inbox/ack", receipts=[leased])["lost"] == [leased]

    at_once(
        lambda: hold_and_look(*pair.consumers("held-ahead")),
        lambda: hold_and_look(*reversed(pair.consumers("held-behind"))),
    )


def test_what_comes_in_through_both_comes_out_of_both_once_and_in_order(pair: Pair) -> None:
    both = pair.consumers("through-both")

    def produce(number: int) -> list[int]:
        return [both[number % 2].send(number * 100 + each) for each in range(10)]

    stamps = at_once(*(partial(produce, number) for number in range(4)))
    assert all(each == sorted(each) for each in stamps)
    assert max(map(max, stamps)) - min(map(min, stamps)) < FIVE_MINUTES * 1000

    first = both[0].poll("?limit=10", attempt="first")
    assert both[1].poll("?limit=10", attempt="first") == first
    polled = numbers(first)
    while got := [number for consumer in both for number in numbers(consumer.poll("?limit=6"))]:
        polled += got
    assert sorted(polled) == [number * 100 + each for number in range(4) for each in range(10)]
    for number in range(4):
        of_one = [each for each in polled if each // 100 == number]
        assert of_one == sorted(of_one)


def test_a_key_that_was_made_through_one_works_at_the_other_for_its_time(pair: Pair) -> None:
    # By the wall clock that is ahead it expired a minute ago.
    made = pair.behind.run("keys", "create", "demo", "--expires-in", "9m")
    assert Consumer(pair.ahead, "default", made.stdout.strip()).call("GET", "/me")["tenant_id"] == "demo"


def test_a_clock_that_steps_under_a_running_service_is_not_noticed(pair: Pair) -> None:
    def step(consumer: Consumer, clock: WallClock, to_seconds: int) -> None:
        stamps = [consumer.send(number) for number in range(2)]
        (attempted,) = consumer.poll("?limit=1", attempt="before")
        begun = time.monotonic()
        assert numbers(consumer.lease()) == [1]

        clock.shift(to_seconds)
        stamps += [consumer.send(number) for number in range(2, 6)]
        assert stamps == sorted(stamps)
        assert stamps[-1] - stamps[0] < FIVE_MINUTES * 1000
        assert consumer.poll("?limit=1", attempt="before") == [attempted]
        arrived = consumer.arrivals(5)
        assert sorted(arrived) == [1, 2, 3, 4, 5]
        assert not pair.is_early(arrived.pop(1), begun)
        assert list(arrived) == [2, 3, 4, 5]

    try:
        at_once(
            lambda: step(pair.consumers("steps-back")[0], pair.clock_ahead, -FIVE_MINUTES),
            lambda: step(pair.consumers("steps-forward")[1], pair.clock_behind, FIVE_MINUTES),
        )
    finally:
        pair.clock_ahead.shift(FIVE_MINUTES)
        pair.clock_behind.shift(-FIVE_MINUTES)
