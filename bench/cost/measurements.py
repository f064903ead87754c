"""Counts the units that the store uses for each step of an event's life, as DynamoDB Local reports them.

Caches are warm in every step except those that measure a look-up.
"""

import random
import threading
import uuid
from base64 import b64encode
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from hashlib import sha256
from typing import Any

from cachetools import TTLCache
from cachetools.keys import methodkey

from bench.cost.sizes import stored_bytes
from bench.sample_data import PAGE_SIZE
from inbox.domain.events import DEFAULT_INBOX, Event, NewEvent, Order, Receipt, Selection, Status
from inbox.domain.inboxes import Inbox
from inbox.domain.keys import ApiKey, KeyStatus, Scope
from inbox.domain.tenants import AuditAction, AuditEntry, Tenant, TenantStatus
from inbox.store.dynamodb import DynamoDBStore
from inbox.store.dynamodb.arrivals import DynamoDBArrivalWatch
from inbox.store.dynamodb.connection import Connection
from inbox.store.dynamodb.layout import STATUS_INDEX
from inbox.store.dynamodb.shards import CHECK_INTERVAL_MS
from tests.engines.wire import Wire

# In the far future: DynamoDB Local deletes expired items by its own clock.
NOW_MS = 4_102_444_800_123
EXPIRES_AT_S = NOW_MS // 1000 + 30 * 86_400
SMALL = b'{"order": 1001, "total": 12.5, "currency": "EUR"}'
# Random bytes cannot be compressed, so this payload is stored as 10 KB.
LARGE = b'{"document": "%s"}' % b64encode(random.Random(6).randbytes(10_000))  # noqa: S311 - no secret
_SAMPLE_SIZE = 10
_PAGE = PAGE_SIZE.events
_PRODUCERS = 32
_SHARDS = 8
_CACHE_SECONDS = 3600.0
_MAX_DELIVERIES = 10
_WAIT_SECONDS = 20
# How often the service looks up the key of a waiting poll.
_CHECK_KEYS_SECONDS = 5


@dataclass(frozen=True)
class Units:
    """Units of one event, or of one call that is not about an event. `writes` includes `status_index_writes`."""

    writes: float
    reads: float
    status_index_writes: float

    def minus(self, other: "Units") -> "Units":
        return Units(
            self.writes - other.writes, self.reads - other.reads, self.status_index_writes - other.status_index_writes
        )


class UnitMeter:
    """Counts units of calls on a connection that nothing else uses. The tables must exist."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._wire = Wire(connection)
        # Without a cache time, a change of an inbox does not wait until the caches of other processes have expired.
        self._store_without_cache = DynamoDBStore(connection, _MAX_DELIVERIES, 0)
        self._store = DynamoDBStore(connection, _MAX_DELIVERIES, _CACHE_SECONDS)
        self._store_without_list = DynamoDBStore(connection, _MAX_DELIVERIES, _CACHE_SECONDS, list_delivered=False)
        for store in (self._store, self._store_without_list):
            # Neither the cache nor a claim token may expire on a slow machine.
            store.events._shards._cache = TTLCache(1_000, _CACHE_SECONDS)
            store.events._claims._tokens.token_ms = int(_CACHE_SECONDS * 1000)
            store.schema.get()
        self._wire.measures_statements = True

    def measure_figures(self) -> dict[str, Any]:
        """Returns the content of bench/units.json. `bytes` is the size of a small, delivered event."""
        steps = (
            self._measure_sends()
            | self._measure_polls()
            | self._measure_leases()
            | self._measure_history()
            | self._measure_look_ups()
        )
        return {
            "steps": {step: asdict(units) for step, units in steps.items()},
            "bytes": stored_bytes(self._connection, self._create_tenant()),
        }

    def _measure_sends(self) -> dict[str, Units]:
        tenant, copied = self._create_tenant(), _create_tenant_id()
        self._store_without_cache.inboxes.save(copied, Inbox("shipping", None, NOW_MS))
        self._put(copied, [_create_event()])
        alone = self._measure(1, lambda: self._put(tenant, [_create_event()]))
        with_copy = self._measure(1, lambda: self._put(copied, [_create_event()]))
        return {
            "sent alone": alone,
            "sent by 32 producers at once": self._measure(_SAMPLE_SIZE * _PRODUCERS, lambda: self._produce(tenant)),
            "sent in a batch of 100": self._measure(
                100, lambda: self._put(tenant, [_create_event() for _ in range(100)])
            ),
            "sent without a type": self._measure(1, lambda: self._put(tenant, [_create_event(event_type=None)])),
            "sent alone with an idempotency key": self._measure(1, lambda: self._put(tenant, [_create_keyed_event()])),
            "sent in a batch of 100 with keys": self._measure(
                100, lambda: self._put(tenant, [_create_keyed_event() for _ in range(100)])
            ),
            "sent alone with a key, and copied": self._measure(1, lambda: self._put(copied, [_create_keyed_event()])),
            "sent alone, 10 KB": self._measure(1, lambda: self._put(tenant, [_create_event(LARGE)])),
            "copied to a named inbox": with_copy.minus(alone),
        }

    def _measure_polls(self) -> dict[str, Units]:
        tenant, emptied, large, sharded = (
            self._create_tenant(2 * _PAGE),
            self._create_tenant(),
            self._create_tenant(),
            _create_tenant_id(),
        )
        self._put(large, [_create_event(LARGE)])
        self._register_tenant(sharded)
        # The second call removes the first partition, which is empty, from those that a poll reads.
        for now_ms in (NOW_MS - 2 * CHECK_INTERVAL_MS, NOW_MS):
            self._store_without_cache.tenants.shard(sharded, _SHARDS, now_ms)
        self._claim(sharded)
        waiting = _create_tenant_id()
        key_hash = self._create_key(waiting)
        without_list, unlisted = self._store_without_list.events, _create_tenant_id()
        self._put(unlisted, [_create_event()])
        without_list.claim(unlisted, DEFAULT_INBOX, PAGE_SIZE, NOW_MS)
        self._put(unlisted, [_create_event() for _ in range(2 * _PAGE)])
        return {
            "consumed, 100 a poll": self._measure(_PAGE, lambda: self._claim(tenant)),
            "consumed, 100 a poll, not listed": self._measure(
                _PAGE, lambda: without_list.claim(unlisted, DEFAULT_INBOX, PAGE_SIZE, NOW_MS)
            ),
            "consumed alone, 10 KB": self._measure(1, lambda: self._claim(large)),
            "an empty poll": self._measure(1, lambda: self._claim(emptied)),
            "an empty poll, 8 shards": self._measure(1, lambda: self._claim(sharded)),
            "an hour of waiting polls that find nothing": self._measure(
                1, lambda: self._wait_for_an_hour(waiting, key_hash)
            ),
        }

    def _wait_for_an_hour(self, tenant: str, key_hash: str) -> None:
        """Does what an hour of polls with `wait=20`, one after the other, makes the service do."""
        now = 0.0
        watch = DynamoDBArrivalWatch(self._store.events.claimable, lambda: now)
        waiting = frozenset({(tenant, DEFAULT_INBOX)})
        for tenth in range(3600 * 10):
            # A little more than tenths of a second, or 0.2 + 0.4 would be later than 0.6.
            now = tenth * 0.100_000_001
            if tenth % (_WAIT_SECONDS * 10) == 0:
                watch.check(frozenset(), NOW_MS)
                # The cache of shards expires in the same interval.
                self._store.events._shards._cache.pop(methodkey(self._store.events._shards, tenant), None)
                self._claim(tenant)
            if tenth % (_CHECK_KEYS_SECONDS * 10) == 0:
                self._store.keys.get_by_hash(key_hash)
            watch.check(waiting, NOW_MS)
        watch.close()

    def _measure_leases(self) -> dict[str, Units]:
        tenant, large = self._create_tenant(2 * _PAGE), self._create_tenant()
        self._put(large, [_create_event(LARGE)])
        leased: list[Event] = []
        units_of_lease = self._measure(_PAGE, lambda: leased.extend(self._claim(tenant, NOW_MS + 60_000)))
        receipts = [_receipt_of(event) for event in leased]
        acknowledged, released = receipts[:_SAMPLE_SIZE], receipts[_SAMPLE_SIZE : 2 * _SAMPLE_SIZE]
        of_large: list[Receipt] = []
        units_of_large = self._measure(
            1, lambda: of_large.extend(map(_receipt_of, self._claim(large, NOW_MS + 60_000)))
        )
        events, without_list = self._store.events, self._store_without_list.events
        unlisted = receipts[2 * _SAMPLE_SIZE : 3 * _SAMPLE_SIZE]
        without_list.get(tenant, DEFAULT_INBOX, unlisted[0].event_id, NOW_MS)
        return {
            "leased, 100 a poll": units_of_lease,
            "leased alone, 10 KB": units_of_large,
            "extended": self._measure(
                _SAMPLE_SIZE, lambda: events.extend(tenant, acknowledged, NOW_MS + 90_000, NOW_MS)
            ),
            "acknowledged": self._measure(_SAMPLE_SIZE, lambda: events.acknowledge(tenant, acknowledged, NOW_MS)),
            "acknowledged, not listed": self._measure(
                _SAMPLE_SIZE, lambda: without_list.acknowledge(tenant, unlisted, NOW_MS)
            ),
            "acknowledged, 10 KB": self._measure(1, lambda: events.acknowledge(large, of_large, NOW_MS)),
            "released": self._measure(_SAMPLE_SIZE, lambda: events.release(tenant, released, NOW_MS, NOW_MS)),
        }

    def _measure_history(self) -> dict[str, Units]:
        tenant = self._create_tenant(_PAGE)
        events = self._store.events
        peeked = self._measure(_PAGE, lambda: events.peek(tenant, DEFAULT_INBOX, Order.OLDEST, PAGE_SIZE, NOW_MS))
        delivered = self._claim(tenant)
        one, selection = delivered[0].event_id, Selection(status=Status.DELIVERED)
        listed = self._measure(_PAGE, lambda: events.page(tenant, Selection(), Order.NEWEST, PAGE_SIZE, None, NOW_MS))
        alone = self._measure(1, lambda: events.replay(tenant, DEFAULT_INBOX, one, NOW_MS))
        return {
            "peeked at, 100 at a time": peeked,
            "listed, 100 at a time": listed,
            "replayed alone": alone,
            "replayed in a range": self._measure(_PAGE, lambda: events.replay_all(tenant, selection, 1000, NOW_MS)),
        }

    def _measure_look_ups(self) -> dict[str, Units]:
        tenant = _create_tenant_id()
        key_hash = self._create_key(tenant)
        events = self._store.events
        return {
            "a key looked up": self._measure(1, lambda: self._store.keys.get_by_hash(key_hash)),
            "a key's use recorded": self._measure(1, lambda: self._store.keys.record_use(key_hash, NOW_MS)),
            "a tenant's shards looked up": self._measure(1, lambda: events._shards.get(tenant)),
            "a tenant's inboxes looked up": self._measure(1, lambda: events._put_events._inboxes.get(tenant)),
        }

    def _measure(self, events: int, work: Callable[[], object]) -> Units:
        # Every poll that is measured takes a claim token. Otherwise the time since the previous poll would decide.
        for store in (self._store, self._store_without_list):
            store.events._claims._tokens._states.clear()
        self._wire.reset()
        work()
        in_index = self._wire.write_units_of(STATUS_INDEX)
        return Units(*(round(units / events, 4) for units in (self._wire.write_units, self._wire.read_units, in_index)))

    def _create_tenant(self, events: int = 0) -> str:
        """Creates a tenant with `events` undelivered events, fills the caches for it, and returns its ID."""
        tenant = _create_tenant_id()
        self._put(tenant, [_create_event()])
        self._claim(tenant)
        self._put(tenant, [_create_event() for _ in range(events)])
        return tenant

    def _create_key(self, tenant: str) -> str:
        """Registers the tenant with an API key. Returns the hash of the key."""
        key_hash = sha256(uuid.uuid4().bytes).hexdigest()
        key = ApiKey(f"key_{key_hash[:16]}", key_hash, tenant, "", frozenset(Scope), KeyStatus.ACTIVE, NOW_MS, None)
        self._register_tenant(tenant)
        self._store.keys.create(key)
        return key_hash

    def _register_tenant(self, tenant: str) -> None:
        new = Tenant(
            tenant_id=tenant,
            status=TenantStatus.REGISTERED,
            created_at_ms=NOW_MS,
            updated_at_ms=NOW_MS,
            updated_by="cost",
        )
        self._store.tenants.create(new, [AuditEntry(1, NOW_MS, "cost", AuditAction.CREATED, {})])

    def _put(self, tenant: str, events: Sequence[NewEvent]) -> None:
        self._store.events.put(tenant, events, NOW_MS, EXPIRES_AT_S)

    def _produce(self, tenant: str) -> None:
        start = threading.Barrier(_PRODUCERS)

        def produce(_producer: int) -> None:
            start.wait(30)
            for _ in range(_SAMPLE_SIZE):
                self._put(tenant, [_create_event()])

        with ThreadPoolExecutor(_PRODUCERS) as pool:
            list(pool.map(produce, range(_PRODUCERS)))

    def _claim(self, tenant: str, lease_until_ms: int | None = None) -> list[Event]:
        return self._store.events.claim(tenant, DEFAULT_INBOX, PAGE_SIZE, NOW_MS, lease_until_ms).events


def _create_tenant_id() -> str:
    return f"tenant-{uuid.uuid4().hex[:8]}"


def _create_event(payload: bytes = SMALL, event_type: str | None = "order.created") -> NewEvent:
    return NewEvent(str(uuid.uuid4()), event_type, payload)


def _create_keyed_event() -> NewEvent:
    return NewEvent(str(uuid.uuid4()), "order.created", SMALL, sha256(SMALL).digest())


def _receipt_of(event: Event) -> Receipt:
    if event.lease is None:
        raise RuntimeError(f"the event {event.event_id} is not leased")
    return Receipt(event.inbox, event.event_id, event.lease.claim_id)
