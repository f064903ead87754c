"""Claim tokens: the polls of an inbox claim events one after the other, in all processes.

Polls that claim at the same time would try the same events, and every failed condition costs a write unit. And a poll
that skips what another one is about to claim would return later events first. A token only saves cost and keeps order:
the condition of an event's update decides which poll gets it, with or without a token.
"""

import random
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import structlog
from cachetools import TTLCache

from inbox.domain.events import InboxKey
from inbox.errors import StoreUnavailable
from inbox.store.dynamodb import layout, writes
from inbox.store.dynamodb.connection import ConditionFailed, Connection
from inbox.store.dynamodb.layout import TENANTS, Item, number, number_in, text

TOKEN_MS = 2_000
"""How long a token is valid. A process that dies with a token blocks the others for this long."""
_MAX_CLOCK_DIFFERENCE_MS = 1_000
# How long a process remembers that others poll the inbox too.
_CONTENTION_SECONDS = 60
_MAX_INBOXES = 10_000
_TURN_SECONDS = 0.3
_IDLE_SECONDS = 0.02
_MIN_PAUSE_SECONDS, _MAX_PAUSE_SECONDS = 0.01, 0.03

# How long a token that was given back is kept for the process that asked for it. Otherwise the process that polls most
# often would take it again at once.
_RESERVED_MS = 200

_NEW = "attribute_not_exists(PK)"
_OURS = "holder = :holder"
_EXPIRED = "expires_at <= :now"
# Written by a machine whose clock is ahead.
_TOO_LATE = "expires_at > :latest"
_NOT_RESERVED = "(attribute_not_exists(wanted_by) OR wanted_by = :holder OR used_at <= :reserved_since)"
_TAKEABLE = f"{_NEW} OR ({_OURS} AND NOT {_EXPIRED}) OR (({_EXPIRED} OR {_TOO_LATE}) AND {_NOT_RESERVED})"
_WANTED_LATER = "attribute_exists(PK) AND (attribute_not_exists(wanted_by) OR wanted_since > :wanted_since)"

_log = structlog.get_logger()


@dataclass(slots=True)
class _LocalState:
    """What this process knows of an inbox's token. Guarded by `mutex`, which the poll that claims holds."""

    mutex: threading.Lock = field(default_factory=threading.Lock)
    valid_until: float = 0.0
    """When our token expires, on the monotonic clock."""
    turn_ends_at: float = 0.0
    last_use: float = 0.0
    contended_until: float = 0.0

    def is_contended(self) -> bool:
        return time.monotonic() < self.contended_until


class ClaimTokens:
    """Tokens are items in the table `Tenants`.

    A process keeps the token of an inbox until it expires, so that its next poll does not pay for another one. If other
    processes poll the inbox too, it gives the token back when it has not polled for _IDLE_SECONDS, or when it has had
    the token for _TURN_SECONDS.
    """

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self.token_ms = TOKEN_MS
        self._mutex = threading.Lock()
        self._states: TTLCache[InboxKey, _LocalState] = TTLCache(_MAX_INBOXES, _CONTENTION_SECONDS)
        self._holder = uuid.uuid4().hex

    @contextmanager
    def acquire(self, inbox_key: InboxKey, now_ms: int, deadline: float) -> Iterator["HeldToken"]:
        """Waits for the token and keeps it in the `with` block. Raises StoreUnavailable if the wait is too long."""
        began = time.monotonic()
        with self._mutex:
            # Stored again, so that it does not expire while the inbox is polled.
            state = self._states[inbox_key] = self._states.get(inbox_key) or _LocalState()
        waited = not state.mutex.acquire(blocking=False)
        if waited and not state.mutex.acquire(timeout=max(0.0, deadline - began)):
            raise _timeout()
        try:
            token = HeldToken(
                self._connection, self._holder, inbox_key, state, self.token_ms, now_ms, began, deadline, waited
            )
            token.take()
            try:
                yield token
            finally:
                if state.is_contended():
                    token.give_back_soon()
        finally:
            state.mutex.release()


@dataclass(slots=True)
class HeldToken:
    _connection: Connection
    _holder: str
    _inbox_key: InboxKey
    _state: _LocalState
    _token_ms: int
    _now_ms: int
    _began: float
    _deadline: float
    has_waited: bool
    is_stale: bool = False
    """True if another poll may have claimed what this one has read from the index."""

    @property
    def waited_ms(self) -> int:
        return int((time.monotonic() - self._began) * 1000) if self.has_waited else 0

    def take(self) -> None:
        """Waits for the token, unless this process has it for long enough."""
        if self._is_valid():
            self.is_stale = self.has_waited
            return
        while (previous := self._try_to_take()) is None:
            self.has_waited = True
            self._wait_until_free()
        # Another process may have claimed what this poll has read from the index before it took the token.
        was_used_lately = number_in(previous, "used_at") > self._now_ms - self._token_ms - _MAX_CLOCK_DIFFERENCE_MS
        self.is_stale = self.has_waited or (was_used_lately and self._is_of_another_process(previous))

    def renew(self) -> bool:
        """Extends the token if it is about to expire. Returns False if another process has taken it."""
        if self._is_valid():
            return True
        previous = self._try_to_take()
        return previous is not None and not self._is_of_another_process(previous)

    def give_back_soon(self) -> None:
        """Gives the token back now if the turn is over, otherwise once the process stops polling the inbox."""
        last_use = self._state.last_use = time.monotonic()
        try:
            if last_use > self._state.turn_ends_at:
                self._give_back()
            else:
                timer = threading.Timer(_IDLE_SECONDS, self._give_back_if_idle, [last_use])
                timer.daemon = True
                timer.start()
        except Exception as error:
            # It expires anyway, and the events that the poll has claimed must be returned.
            _log.warning("claim token not given back", cause=str(error), error=type(error).__name__)

    def _give_back_if_idle(self, last_use: float) -> None:
        # If another poll has the lock, it gives the token back.
        if self._state.mutex.acquire(blocking=False):
            try:
                if self._state.last_use == last_use:
                    self._give_back()
            except StoreUnavailable as error:
                _log.warning("claim token not given back", cause=str(error))
            finally:
                self._state.mutex.release()

    def _give_back(self) -> None:
        values = {":holder": text(self._holder)}
        returned = {"expires_at": number(0), "used_at": number(self._time_ms())}
        self._state.valid_until = 0.0
        self._connection.try_write(writes.update(self._table, self._key, returned, _OURS, values))

    def _try_to_take(self) -> Item | None:
        """Returns the previous token, which is empty if there was none, or None if another process has the token."""
        now_ms, now = self._time_ms(), time.monotonic()
        attributes: dict[str, Any] = {
            "holder": text(self._holder),
            "used_at": number(now_ms),
            "expires_at": number(now_ms + self._token_ms),
            "ttl": number(now_ms // 1000 + _CONTENTION_SECONDS),
        }
        is_extension = now < self._state.valid_until
        if not is_extension:
            attributes |= {"wanted_by": None, "wanted_since": None}
        values = {
            ":now": number(now_ms),
            ":latest": number(now_ms + self._token_ms + _MAX_CLOCK_DIFFERENCE_MS),
            ":reserved_since": number(now_ms - _RESERVED_MS),
        }
        update = writes.update(self._table, self._key, attributes, _TAKEABLE, values)
        try:
            response = self._connection.write(update, ReturnValues="ALL_OLD")
        except ConditionFailed:
            self._state.valid_until = 0.0
            return None
        previous: Item = response.get("Attributes", {})
        was_used_lately = number_in(previous, "used_at") > now_ms - _CONTENTION_SECONDS * 1000
        if "wanted_by" in previous or (was_used_lately and self._is_of_another_process(previous)):
            self._state.contended_until = now + _CONTENTION_SECONDS
        if not is_extension:
            self._state.turn_ends_at = now + _TURN_SECONDS
        self._state.valid_until = now + self._token_ms / 1000
        return previous

    def _wait_until_free(self) -> None:
        self._state.contended_until = time.monotonic() + _CONTENTION_SECONDS
        # Reads are cheaper than failed conditions.
        while (token := self._connection.get(TENANTS, self._key)) is not None:
            now_ms = self._time_ms()
            latest_ms = now_ms + self._token_ms + _MAX_CLOCK_DIFFERENCE_MS
            is_wanted_by_us = token.get("wanted_by") == text(self._holder)
            is_reserved = number_in(token, "used_at") > now_ms - _RESERVED_MS
            is_held = now_ms < number_in(token, "expires_at") <= latest_ms
            if not is_held and (is_wanted_by_us or "wanted_by" not in token or not is_reserved):
                return
            if time.monotonic() > self._deadline:
                raise _timeout()
            if "wanted_by" not in token or number_in(token, "wanted_since") > self._now_ms:
                # The process that has the token reads this when it extends it. The poll that came first is next.
                wanted = {"wanted_by": text(self._holder), "wanted_since": number(self._now_ms)}
                self._connection.try_write(writes.update(self._table, self._key, wanted, _WANTED_LATER))
            time.sleep(random.uniform(_MIN_PAUSE_SECONDS, _MAX_PAUSE_SECONDS))  # noqa: S311 - a jitter, not a secret

    def _is_valid(self) -> bool:
        return self._state.valid_until - time.monotonic() > self._token_ms / 2000

    def _is_of_another_process(self, token: Item) -> bool:
        return "holder" in token and token["holder"] != text(self._holder)

    def _time_ms(self) -> int:
        """Returns the time of the poll's clock."""
        return self._now_ms + int((time.monotonic() - self._began) * 1000)

    @property
    def _table(self) -> str:
        return self._connection.table(TENANTS)

    @property
    def _key(self) -> Item:
        return layout.claim_token_key(*self._inbox_key)


def _timeout() -> StoreUnavailable:
    return StoreUnavailable("Other polls of the inbox take too long.")
