"""Creates databases with many events, by SQL into the schema of our migrations."""

import time
from contextlib import closing
from pathlib import Path

import apsw

from inbox.domain.events import PageSize
from inbox.services.keys import KeyService
from inbox.services.tenants import TenantService
from inbox.store.sqlite import SQLiteStore

TENANT = "bench"
PAYLOAD = '{"order": 1001, "total": 12.5, "currency": "EUR"}'
RETENTION_SECONDS = 86_400
# No limit on the bytes of a page.
PAGE_SIZE = PageSize(100, 1 << 40)

_CACHE_KIB = 400_000

# Random IDs as in the service, because they determine how fast the index grows.
_FILL = """
    WITH RECURSIVE numbers (number) AS (SELECT 1 UNION ALL SELECT number + 1 FROM numbers WHERE number < :events),
        random_ids (hex) AS (SELECT lower(hex(randomblob(16))) FROM numbers)
    INSERT INTO events (tenant_id, inbox, event_id, event_type, timestamp_ms, status, payload, expires_at_s)
    SELECT :tenant, 'default',
        format('%s-%s-4%s-a%s-%s',
            substr(hex, 1, 8), substr(hex, 9, 4), substr(hex, 14, 3), substr(hex, 18, 3), substr(hex, 21)),
        'order.created', :now_ms, 'undelivered', :payload, :now_ms / 1000 + :retention
    FROM random_ids"""


def add_events(path: Path, count: int) -> None:
    """Adds `count` undelivered events to a database, and creates the database if it does not exist."""
    SQLiteStore(path, max_deliveries=1).close()
    if not count:
        return
    values = {
        "events": count,
        "tenant": TENANT,
        "now_ms": time.time_ns() // 1_000_000,
        "payload": PAYLOAD,
        "retention": RETENTION_SECONDS,
    }
    with closing(apsw.Connection(str(path))) as connection:
        connection.set_busy_timeout(5000)
        # Setup only: speed matters, durability does not.
        connection.pragma("synchronous", "off")
        connection.pragma("cache_size", -_CACHE_KIB)
        connection.execute(_FILL, values)
        # Otherwise the first measured write would checkpoint the log.
        connection.pragma("wal_checkpoint", "truncate")


def create_tenants(path: Path, count: int) -> list[str]:
    """Returns an API key of each new tenant."""
    with closing(SQLiteStore(path, max_deliveries=1)) as store:
        tenants = TenantService(store.tenants, store.now_ms)
        keys = KeyService(store.keys, store.tenants, store.now_ms)
        return [keys.create(tenants.create("bench").tenant_id).key for _ in range(count)]
