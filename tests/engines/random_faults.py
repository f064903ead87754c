"""Faults in a random share of all writes, none of which ends a call with an error: the store makes three tries."""

import json
import random
import threading
import time
from collections import Counter
from types import SimpleNamespace
from typing import Any

import pytest
from botocore.retries.quota import RetryQuota

from inbox.store.dynamodb.connection import Connection
from inbox.store.dynamodb.layout import COUNTERS_PREFIX
from tests.engines.wire import WRITES, Fault, Wire

# The tries but one.
_MAX_FAULTS = 2
_PAUSES_DIVISOR = 50


class RandomFaults:
    """Throttles a share of the parts of batches, and loses the responses to a share of the writes.

    With lost responses, failed conditions come without items. The same seed gives the same faults to a test with one
    thread.
    """

    def __init__(self, seed: str, *, throttled_share: float = 0.0, lost_share: float = 0.0) -> None:
        self._random = random.Random(seed)
        self._throttled_share = throttled_share
        self._lost_share = lost_share
        self._mutex = threading.Lock()
        self._throttled: Counter[str] = Counter()
        self._lost: Counter[str] = Counter()
        self._patch = pytest.MonkeyPatch()
        self.wire: Wire | None = None

    def begin(self, connection: Connection) -> None:
        self.wire = Wire(connection)
        self.wire.choose_fault = self._choose_fault
        self.wire.hides_old_items = self._lost_share > 0
        if self._throttled_share:
            self.wire.throttles = self.wire.leaves_unprocessed = self._throttles
        # Pauses before the next try would take most of the time.
        short = SimpleNamespace(monotonic=time.monotonic, sleep=lambda seconds: time.sleep(seconds / _PAUSES_DIVISOR))
        self._patch.setattr("inbox.store.dynamodb.connection.time", short)
        self._patch.setattr("botocore.endpoint.time", short)
        # botocore stops to repeat calls if too many of a client fail.
        self._patch.setattr(RetryQuota, "acquire", lambda _quota, _amount: True)

    def end(self) -> None:
        self._patch.undo()
        if self.wire is not None:
            self.wire.remove()

    def _choose_fault(self, operation: str, body: dict[str, Any]) -> Fault | None:
        if operation not in WRITES or _is_addition(body):
            return None
        is_lost = self._is_hit(self._lost_share, self._lost, _parts_of(body))
        return Fault.CUT_AFTER if is_lost else None

    def _throttles(self, part: dict[str, Any]) -> bool:
        return self._is_hit(self._throttled_share, self._throttled, [part])

    def _is_hit(self, share: float, hits: Counter[str], parts: list[dict[str, Any]]) -> bool:
        """Returns True for a random share, unless a part was hit too often before: the call would fail."""
        keys = [json.dumps(part, sort_keys=True) for part in parts]
        with self._mutex:
            if self._random.random() >= share or any(hits[key] == _MAX_FAULTS for key in keys):
                return False
            hits.update(keys)
            return True


def _parts_of(body: dict[str, Any]) -> list[dict[str, Any]]:
    """Returns the statements or requests of a batch. A repeated batch contains only those that were not carried out."""
    if "RequestItems" in body:
        return [request for requests in body["RequestItems"].values() for request in requests]
    return list(body.get("Statements", [body]))


def _is_addition(body: dict[str, Any]) -> bool:
    """Returns True for counts, which may get lost: the store does not repeat an addition whose response is lost."""
    return bool(body.get("Key", {}).get("SK", {}).get("S", "").startswith(COUNTERS_PREFIX))
