"""The time as DynamoDB tells it: the same for all machines, whatever their own clocks say.

Every answer has the service's time in it, in whole seconds. With the moments of the question and of the answer, that
bounds how far the service's clock lies ahead of this machine's steady one. So the wall clock is asked once, for what a
whole second does not tell, and believed as far as it keeps within the bounds.
"""

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, NamedTuple

from inbox import clock

_SECOND_NS = 10**9
_UNREAD = object()
_DATE = "%a, %d %b %Y %H:%M:%S GMT"
_SHARP_NS = _SECOND_NS // 20
_ASK_EVERY_SECONDS = 0.02
_ASK_AT_MOST_NS = _SECOND_NS * 3 // 2
# One machine of many may be wrong; what all say for so long is true.
_BELIEVED_AFTER_NS = 5 * _SECOND_NS


class _Bounds(NamedTuple):
    """Between which two the lead over the steady clock lies."""

    least_ns: int
    most_ns: int

    def nearest(self, lead_ns: int) -> int:
        return max(self.least_ns, min(lead_ns, self.most_ns))

    def within(self, other: "_Bounds") -> "_Bounds":
        return _Bounds(other.nearest(self.least_ns), other.nearest(self.most_ns))


_ANYTHING = _Bounds(-(10**30), 10**30)


class _Reckoning(NamedTuple):
    """Never before a time that was told already."""

    lead_ns: int
    not_before_ms: int = 0


class _Sending(threading.local):
    at_ns = 0


class ServiceClock:
    """`is_sure` once it knows better than to the second. Until the first answer it is the wall clock."""

    def __init__(
        self, wall_ns: Callable[[], int] = clock.wall_ns, steady_ns: Callable[[], int] = clock.steady_ns
    ) -> None:
        self.is_sure = False
        self._wall_ns = wall_ns
        self._steady_ns = steady_ns
        self._mutex = threading.Lock()
        self._sending = _Sending()
        self._read: tuple[Any, int] = (_UNREAD, 0)
        self._bounds = _ANYTHING
        self._reckoning: _Reckoning | None = None
        self._doubted_since_ns: int | None = None

    def now_ms(self) -> int:
        reckoning = self._reckoning
        if reckoning is None:
            return self._wall_ns() // 1_000_000
        return max((self._steady_ns() + reckoning.lead_ns) // 1_000_000, reckoning.not_before_ms)

    def make_sure(self, ask: Callable[[], None]) -> None:
        """Asks once, and again and again until a second begins where the wall clock is known to be wrong.

        Where the answers tell no time, the wall clock has to do.
        """
        give_up_at_ns = self._steady_ns() + _ASK_AT_MOST_NS
        ask()
        while not self.is_sure and self._reckoning is not None and self._steady_ns() < give_up_at_ns:
            time.sleep(_ASK_EVERY_SECONDS)
            ask()
        self.is_sure = True

    def listen(self, client: Any) -> None:
        client.meta.events.register("before-send.dynamodb", self._note_sending)
        client.meta.events.register("before-parse.dynamodb", self._hear)

    def _note_sending(self, **_: Any) -> None:
        self._sending.at_ns = self._steady_ns()

    def _hear(self, response_dict: dict[str, Any], **_: Any) -> None:
        received_ns = self._steady_ns()
        headers = response_dict["headers"]
        date = headers.get("date")
        known, second_ns = self._read
        if date != known:
            # What has no such id is a proxy's own answer, by the proxy's clock.
            if "x-amzn-requestid" not in headers or (read := _second_ns(date)) is None:
                return
            second_ns = read
            self._read = date, second_ns
        self.learn(second_ns, self._sending.at_ns, received_ns)

    def learn(self, second_ns: int, sent_ns: int, received_ns: int) -> None:
        """That the service's clock was in that second at some moment between the two."""
        least_ns, most_ns = second_ns - received_ns, second_ns + _SECOND_NS - sent_ns
        reckoning = self._reckoning
        if self.is_sure and reckoning is not None and least_ns <= reckoning.lead_ns <= most_ns:
            self._doubted_since_ns = None
            return
        bounds = _Bounds(least_ns, most_ns)
        with self._mutex:
            if self._reckoning is None or not self.is_sure:
                self._approach(bounds)
            else:
                self._correct(bounds, self._reckoning.lead_ns, received_ns)

    def _approach(self, bounds: _Bounds) -> None:
        is_first = self._reckoning is None
        guess_ns = self._wall_ns() - self._steady_ns() if self._reckoning is None else self._reckoning.lead_ns
        self._bounds = bounds.within(self._bounds)
        self._reckoning = _Reckoning(self._bounds.nearest(guess_ns))
        is_right = is_first and self._reckoning.lead_ns == guess_ns
        self.is_sure = is_right or self._bounds.most_ns - self._bounds.least_ns < _SHARP_NS

    def _correct(self, bounds: _Bounds, lead_ns: int, received_ns: int) -> None:
        nearest_ns = bounds.nearest(lead_ns)
        if abs(nearest_ns - lead_ns) <= _SECOND_NS:
            # Where it has been ahead, it stands still until the service's clock has caught up.
            self._reckoning = _Reckoning(nearest_ns, self.now_ms())
            self._doubted_since_ns = None
            return
        if self._doubted_since_ns is None:
            self._doubted_since_ns = received_ns
        if received_ns - self._doubted_since_ns >= _BELIEVED_AFTER_NS:
            self._reckoning = _Reckoning(nearest_ns)
            self._doubted_since_ns = None


def _second_ns(date: str | None) -> int | None:
    with suppress(ValueError):
        return int(datetime.strptime(date or "", _DATE).replace(tzinfo=UTC).timestamp()) * _SECOND_NS
    return None
