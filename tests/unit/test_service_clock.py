"""The time as DynamoDB tells it. `inbox.store.dynamodb.clock`."""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import boto3
import pytest
from botocore.awsrequest import AWSResponse

from inbox.store.dynamodb.clock import ServiceClock

SECOND = 10**9
FIVE_MINUTES = 300 * SECOND
START_NS = 1_732_140_249_400_000_000
ANSWER_NS = 4_000_000


class World:
    """The service's clock, which is right, and those of a machine."""

    def __init__(self, wall_ahead_ns: int = 0) -> None:
        self.ns = START_NS
        self.wall_ahead_ns = wall_ahead_ns
        self.steady_drift = 0.0
        self.date_off_ns = 0
        self.clock = ServiceClock(lambda: self.ns + self.wall_ahead_ns, self.steady_ns)

    def steady_ns(self) -> int:
        since_ns = self.ns - START_NS
        return 5 * SECOND + since_ns + round(since_ns * self.steady_drift)

    def wait(self, seconds: float) -> None:
        self.ns += round(seconds * SECOND)

    def ask(self) -> None:
        """The time is read somewhere between question and answer."""
        sent_ns = self.steady_ns()
        self.ns += ANSWER_NS // 4
        told_ns = (self.ns + self.date_off_ns) // SECOND * SECOND
        self.ns += ANSWER_NS * 3 // 4
        self.clock.learn(told_ns, sent_ns, self.steady_ns())

    def error_ms(self) -> int:
        return self.clock.now_ms() - self.ns // 10**6


@pytest.fixture
def world() -> World:
    return World()


def world_with_its_wall_clock(ahead_ns: int, monkeypatch: pytest.MonkeyPatch) -> World:
    world = World(ahead_ns)
    monkeypatch.setattr("time.sleep", world.wait)
    return world


def test_a_wall_clock_that_is_right_is_kept_to_the_millisecond(world: World) -> None:
    world.clock.make_sure(world.ask)
    assert world.ns - START_NS == ANSWER_NS, "One answer is enough."
    for _ in range(500):
        assert world.error_ms() == 0
        world.wait(0.37)
        world.ask()


@pytest.mark.parametrize("ahead", [FIVE_MINUTES, -FIVE_MINUTES, 2 * SECOND, -2 * SECOND])
@pytest.mark.parametrize("phase", [0.0, 0.3, 0.599, 0.7])
def test_a_wall_clock_that_is_wrong_is_put_right_before_anything_goes_by_it(
    ahead: int, phase: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = world_with_its_wall_clock(ahead, monkeypatch)
    world.wait(phase)
    world.clock.make_sure(world.ask)
    assert world.clock.is_sure
    assert abs(world.error_ms()) < 50
    # The first second is over by then.
    assert world.ns - START_NS < (phase + 1.2) * SECOND


def test_an_answer_that_came_by_itself_does_not_make_sure(monkeypatch: pytest.MonkeyPatch) -> None:
    world = world_with_its_wall_clock(FIVE_MINUTES, monkeypatch)
    world.ask()
    assert not world.clock.is_sure
    assert abs(world.error_ms()) <= 1000
    world.clock.make_sure(world.ask)
    assert abs(world.error_ms()) < 50


def test_a_step_of_the_wall_clock_is_not_noticed(world: World) -> None:
    world.clock.make_sure(world.ask)
    for ahead in (FIVE_MINUTES, -FIVE_MINUTES):
        world.wall_ahead_ns = ahead
        for _ in range(100):
            world.wait(0.37)
            world.ask()
            assert world.error_ms() == 0


def test_a_time_that_turns_out_to_be_ahead_stands_still_until_the_service_has_caught_up(world: World) -> None:
    world.wall_ahead_ns = SECOND // 2
    world.clock.make_sure(world.ask)
    world.wait(0.55)
    told_ms = world.clock.now_ms()
    assert world.error_ms() == 500
    world.ask()
    assert told_ms <= world.clock.now_ms() < told_ms + 10
    world.wait(0.6)
    assert 0 <= world.error_ms() < 50


@pytest.mark.parametrize("drift", [0.0002, -0.0002])
def test_a_machine_that_runs_fast_or_slow_is_kept_near_and_its_time_never_falls(world: World, drift: float) -> None:
    world.steady_drift = drift
    world.clock.make_sure(world.ask)
    newest_ms = world.clock.now_ms()
    for _ in range(20_000):
        world.wait(0.37)
        world.ask()
        assert world.clock.now_ms() >= newest_ms
        newest_ms = world.clock.now_ms()
        assert abs(world.error_ms()) < 500


def test_an_answer_that_is_far_off_is_not_believed_unless_all_say_so(world: World) -> None:
    world.clock.make_sure(world.ask)
    for _ in range(3):
        for off_ns in (3600 * SECOND, 0, -3600 * SECOND, 0):
            world.date_off_ns = off_ns
            for _ in range(4):
                world.wait(1)
                world.ask()
                assert world.error_ms() == 0

    world.date_off_ns = 3600 * SECOND
    for _ in range(7):
        world.wait(1)
        world.ask()
    assert abs(world.error_ms() - 3_600_000) <= 1000


class Answering:
    """boto3's client, with answers that were made before; what it hears of the time is the clock's."""

    def __init__(self, clock: ServiceClock) -> None:
        session = boto3.Session("key", "secret", region_name="eu-central-1")
        self._client = session.client("dynamodb")
        self._client.meta.events.register("before-send.dynamodb.*", self._send)
        self._headers: dict[str, str] = {}
        clock.listen(self._client)

    def ask(self, date: str | None, *, by_dynamodb: bool = True) -> None:
        self._headers = {} if date is None else {"Date": date}
        self._headers |= {"x-amzn-RequestId": "8d3c"} if by_dynamodb else {}
        self._client.list_tables()

    def _send(self, request: Any, **_: Any) -> AWSResponse:
        response = AWSResponse(request.url, 200, self._headers, None)
        response._content = b"{}"
        return response


@pytest.fixture
def answering(world: World) -> Iterator[Answering]:
    answering = Answering(world.clock)
    yield answering
    answering._client.close()


def as_date(ns: int) -> str:
    return datetime.fromtimestamp(ns // SECOND, UTC).strftime("%a, %d %b %Y %H:%M:%S GMT")


def test_the_time_is_read_from_the_answers(world: World, answering: Answering) -> None:
    world.wall_ahead_ns = FIVE_MINUTES
    assert world.error_ms() == 300_000
    answering.ask(as_date(world.ns))
    assert abs(world.error_ms()) <= 1000
    world.wait(0.7)
    answering.ask(as_date(world.ns))
    answering.ask(as_date(world.ns))
    assert abs(world.error_ms()) <= 700


@pytest.mark.parametrize("date", [None, "", "yesterday", "Thu, 99 Nov 2024 22:04:09 GMT", "1732140249"])
def test_answers_without_a_time_leave_the_wall_clock(world: World, answering: Answering, date: str | None) -> None:
    world.wall_ahead_ns = FIVE_MINUTES
    world.clock.make_sure(lambda: answering.ask(date))
    assert world.clock.is_sure
    assert world.error_ms() == 300_000


def test_the_time_of_a_proxy_is_nobodys(world: World, answering: Answering) -> None:
    world.wall_ahead_ns = FIVE_MINUTES
    answering.ask(as_date(world.ns), by_dynamodb=False)
    assert world.error_ms() == 300_000
    answering.ask(as_date(world.ns))
    assert not world.clock.is_sure
    assert abs(world.error_ms()) <= 1000


def test_who_cannot_ask_is_not_sure(world: World) -> None:
    def fail() -> None:
        raise ConnectionError

    with pytest.raises(ConnectionError):
        world.clock.make_sure(fail)
    assert not world.clock.is_sure
