"""Every call of the store, with the response to each of its writes lost, and with failed conditions without items.

The call returns the same as without a fault, or raises StoreUnavailable. If the client then repeats it, the tables
contain the same as without a fault.
"""

import re
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, get_type_hints

import pytest
from botocore.retries.quota import RetryQuota

from inbox.errors import InboxError, StoreUnavailable
from inbox.store.dynamodb import DynamoDBStore
from inbox.store.dynamodb.connection import Connection
from inbox.store.dynamodb.layout import COUNTERS_PREFIX, EVENTS, TENANT_API_KEYS, TENANTS, UNDELIVERED_COUNT
from inbox.store.dynamodb.schema import SCHEMA_VERSION, SchemaVersion
from inbox.store.dynamodb.tables import DEFINITIONS
from inbox.store.interface import Store
from tests.dynamodb.call_table import READS, WRITES
from tests.dynamodb.conftest import BOTOCORE_ATTEMPTS, list_tables
from tests.dynamodb.store_calls import Act, Call, Scene
from tests.engines.aws import aws_environment
from tests.engines.harnesses import MAX_DELIVERIES, DynamoDBHarness
from tests.engines.wire import Fault, Wire, no_fault

pytestmark = pytest.mark.usefixtures("no_pauses")

SUB_STORES = ("events", "inboxes", "counters", "keys", "tenants")
# They make no calls to DynamoDB, or those of `counters.flush`.
WITHOUT_CALLS = {"now_ms", "set_batch_listener", "watch_arrivals", "close", "events.set_batch_listener", "events.purge"}
TABLES = (EVENTS, TENANTS, TENANT_API_KEYS)

_READS = ("GetItem", "BatchGetItem", "Query", "Scan", "Describe", "List")
_TOKEN_PREFIX = "CLAIM#"
_RANDOM_ATTRIBUTES = frozenset({"claim_id", "seed", "made_by"})
_TIEBREAK = re.compile(r"[0-9a-f]{16}-[0-9a-z]{6}")


class LostResponses:
    """Loses the responses to the tries from `first` on, `times` of them, or to the first try of each request."""

    def __init__(
        self, fault: Fault = Fault.CUT_AFTER, first: int = 0, times: int = 0, *, of_each_request: bool = False
    ) -> None:
        self.tries = self.count = 0
        self._fault = fault
        self._positions = range(first, first + times)
        self._of_each_request = of_each_request
        self._mutex = threading.Lock()
        self._seen: list[dict[str, Any]] = []

    def choose_fault(self, body: dict[str, Any]) -> Fault | None:
        with self._mutex:
            is_lost = body not in self._seen if self._of_each_request else self.tries in self._positions
            self._seen.append(body)
            self.tries += 1
            self.count += is_lost
        return self._fault if is_lost else None


def list_faults(tries: int) -> Iterator[LostResponses]:
    """Yields the faults for a call that makes this number of tries without a fault."""
    for fault in (Fault.CUT_AFTER, Fault.TIMEOUT_AFTER):
        for first in range(tries):
            yield LostResponses(fault, first, times=1)
            yield LostResponses(fault, first, times=BOTOCORE_ATTEMPTS)
        yield LostResponses(fault, times=1_000)
        yield LostResponses(fault, of_each_request=True)


@dataclass(frozen=True)
class Outcome:
    """`raised` is True if the first call raised StoreUnavailable. `result` is that of the last call."""

    raised: bool
    result: object
    items: dict[str, dict[str, str]]
    counts: Counter[tuple[str, str]]


class Stage:
    """Runs calls on tables that are empty before each of them."""

    def __init__(self, harness: DynamoDBHarness) -> None:
        self._harness = harness
        self._connection = harness.connection
        self._wire = Wire(self._connection)

    def close(self) -> None:
        self._wire.remove()
        self._harness.close()

    def run(self, call: Call, lost: LostResponses, *, are_writes: bool, is_bare: bool = False) -> Outcome:
        """Injects faults into the first call, into its writes or its reads. The client's repeats have none."""
        scene = Scene(DynamoDBStore(self._connection, MAX_DELIVERIES, 0, list_delivered=call.list_delivered))
        self._wire.hides_old_items = is_bare
        try:
            call.prepare(scene)
            raised, result = self._call_under_faults(call.act, scene, lost, are_writes=are_writes)
            if raised and call.is_repeated:
                result = _result_of(call.repeat or call.act, scene)
            scene.store.counters.flush()
            return Outcome(raised, result, *self._read_tables())
        finally:
            for table in TABLES:
                self._harness.empty(table)

    def _call_under_faults(
        self, act: Act, scene: Scene, lost: LostResponses, *, are_writes: bool
    ) -> tuple[bool, object]:
        """Returns True if it raised StoreUnavailable, and otherwise its result."""
        self._wire.choose_fault = lambda operation, body: (
            None if operation.startswith(_READS) is are_writes else lost.choose_fault(body)
        )
        try:
            return False, _result_of(act, scene)
        except StoreUnavailable:
            return True, None
        finally:
            self._wire.choose_fault = no_fault

    def _read_tables(self) -> tuple[dict[str, dict[str, str]], Counter[tuple[str, str]]]:
        """Returns the items and the counts, with everything that is random made comparable."""
        items: dict[str, dict[str, str]] = {}
        counts: Counter[tuple[str, str]] = Counter()
        for table in TABLES:
            page = self._connection.call("scan", TableName=self._connection.table(table), ConsistentRead=True)
            assert "LastEvaluatedKey" not in page
            for item in page["Items"]:
                partition, sort_key = (item[each["AttributeName"]]["S"] for each in DEFINITIONS[table]["KeySchema"])
                if sort_key.startswith(COUNTERS_PREFIX):
                    counts |= {(sort_key, name): int(value["N"]) for name, value in item.items() if "N" in value}
                elif not sort_key.startswith(_TOKEN_PREFIX):
                    items[f"{table} {partition} {sort_key}"] = {
                        name: "random" if name in _RANDOM_ATTRIBUTES else repr(value) for name, value in item.items()
                    }
        tiebreaks = sorted(set(_TIEBREAK.findall(repr(items))))
        return {
            key: {
                name: _TIEBREAK.sub(lambda match: str(tiebreaks.index(match[0])), value) for name, value in each.items()
            }
            for key, each in items.items()
        }, counts


def _result_of(act: Act, scene: Scene) -> object:
    """Returns the result, or the name of another error than StoreUnavailable."""
    try:
        return act(scene)
    except StoreUnavailable:
        raise
    except InboxError as error:
        return type(error).__name__


@pytest.fixture(scope="module")
def stage(dynamodb_local_url: str) -> Iterator[Stage]:
    with pytest.MonkeyPatch.context() as patch:
        for name, value in aws_environment(dynamodb_local_url).items():
            patch.setenv(name, value)
        # botocore stops to repeat calls if too many of a client fail.
        patch.setattr(RetryQuota, "acquire", lambda _quota, _amount: True)
        stage = Stage(DynamoDBHarness(group="faults"))
        yield stage
        stage.close()


def test_every_method_of_the_store_is_tried(store: DynamoDBStore) -> None:
    methods = _public_names(Store, store) - set(SUB_STORES)
    for sub_store in SUB_STORES:
        protocol = get_type_hints(vars(Store)[sub_store].fget)["return"]
        methods |= {f"{sub_store}.{name}" for name in _public_names(protocol, getattr(store, sub_store))}
    assert {call.method for call in WRITES + READS} == methods - WITHOUT_CALLS


def _public_names(protocol: type, implementation: object) -> set[str]:
    """Returns the names of the methods, also of those that the protocol does not have."""
    promised = set(vars(protocol)) | {name for name in dir(implementation) if callable(getattr(implementation, name))}
    return {name for name in promised if not name.startswith("_")}


@pytest.mark.parametrize("is_bare", [False, True], ids=["with items", "bare"])
@pytest.mark.parametrize("call", WRITES, ids=lambda call: call.name)
def test_write_survives_lost_responses(stage: Stage, call: Call, is_bare: bool) -> None:
    check(call, partial(stage.run, call, are_writes=True, is_bare=is_bare))


@pytest.mark.parametrize("call", READS, ids=lambda call: call.name)
def test_read_survives_lost_responses(stage: Stage, call: Call) -> None:
    check(call, partial(stage.run, call, are_writes=False))


def check(call: Call, run: Callable[[LostResponses], Outcome]) -> None:
    faultless = LostResponses()
    expected = run(faultless)
    assert faultless.tries
    for lost in list_faults(faultless.tries):
        outcome = run(lost)
        assert lost.count
        # The store or botocore tries again.
        assert not (outcome.raised and lost.count == 1)
        compare(call, outcome, expected)


def test_creation_of_tables_survives_lost_responses(empty_connection: Connection) -> None:
    wire, store = Wire(empty_connection), DynamoDBStore(empty_connection, MAX_DELIVERIES)

    def init_under(lost: LostResponses) -> list[dict[str, Any]]:
        """Returns descriptions of the tables."""
        wire.choose_fault = lambda operation, body: None if operation.startswith(_READS) else lost.choose_fault(body)
        with suppress(StoreUnavailable):
            store.init()
        wire.choose_fault = no_fault
        # Safe to repeat, also if it has succeeded.
        store.init()
        assert SchemaVersion(empty_connection).get() == SCHEMA_VERSION
        descriptions = []
        for name in list_tables(empty_connection):
            ttl = empty_connection.call("describe_time_to_live", TableName=name)["TimeToLiveDescription"]
            table = empty_connection.call("describe_table", TableName=name)["Table"]
            indexes = {index["IndexName"] for index in table.get("GlobalSecondaryIndexes", [])}
            descriptions.append({"name": name, "ttl": ttl, "keys": table["KeySchema"], "indexes": indexes})
            empty_connection.call("delete_table", TableName=name)
        return descriptions

    faultless = LostResponses()
    expected = init_under(faultless)
    assert len(expected) == len(TABLES)
    for lost in list_faults(faultless.tries):
        assert init_under(lost) == expected
        assert lost.count


def compare(call: Call, outcome: Outcome, expected: Outcome) -> None:
    if not outcome.raised:
        assert outcome.result == expected.result
    elif call.is_repeated:
        assert call.is_repeat_right(outcome.result, expected.result)
    if outcome.raised and not call.is_repeated:
        assert outcome.items.items() <= expected.items.items()
    else:
        ignored = call.changed_by_repeat if outcome.raised else frozenset()
        assert _without(ignored, outcome.items) == _without(ignored, expected.items)
    if call.may_lose_counts:
        # A count of undelivered events is also wrong if the event left them, and that was not counted.
        assert not {count for count in outcome.counts - expected.counts if count[1] != UNDELIVERED_COUNT}
    else:
        assert outcome.counts == expected.counts


def _without(ignored: frozenset[str], items: dict[str, dict[str, str]]) -> dict[str, dict[str, str]]:
    return {key: {name: value for name, value in item.items() if name not in ignored} for key, item in items.items()}
