"""Demo data for screenshots: three days of events of a fictional shop, written to a store with past timestamps."""

import json
import math
import random
import uuid
from collections.abc import Iterator
from contextlib import closing
from typing import Any

from inbox.domain.events import DEFAULT_INBOX, NewEvent, PageSize, Receipt
from inbox.domain.inboxes import Inbox
from inbox.settings import SQLITE, Settings
from inbox.store.factory import open_store
from inbox.store.interface import Store
from tests.service import Service

SHOP = "harbour-coffee"
SHOP_NAME = "Harbour Coffee"
# The payload of the newest event, which the screenshot of the drawer shows.
_NEWEST_PAYLOAD = """{"order": 10482, "customer": {"id": "c_7731", "name": "Zoë Lindqvist", "since": "2021-03-14"},
"total": 35.90, "currency": "EUR", "items": [{"sku": "ETH-YIRG-250", "quantity": 2, "price": 14.50},
{"sku": "FLT-V60-100", "quantity": 1, "price": 6.90}], "ship_to": {"city": "Göteborg", "country": "SE"}}"""
_TYPE_WEIGHTS = {
    "order.created": 30,
    "order.paid": 24,
    "order.shipped": 16,
    "customer.updated": 10,
    "invoice.paid": 8,
    "stock.low": 4,
    "refund.requested": 2,
}
_INBOXES = {"crm": ("customer.*", "order.created"), "warehouse": ("order.*", "stock.low")}
_HOURS = 72
_STEP_MINUTES = 12
_MINUTE_MS = 60_000
_DAY_MS = 24 * 60 * _MINUTE_MS
_MAX_PAGE = PageSize(500, 16_000_000)
# One expired lease makes an event dead.
_MAX_DELIVERIES = 1


def create(service: Service) -> str:
    """Creates the shop before the service starts. Returns a key for the console."""
    assert service.run("tenants", "create", SHOP, "--name", SHOP_NAME).returncode == 0
    scopes = ("events:write", "inbox:read", "tenant:manage")
    for name in ("web shop", "zapier"):
        service.create_key(SHOP, "--name", name)
    key = service.create_key(SHOP, "--name", "console", *(word for scope in scopes for word in ("--scope", scope)))
    service.variables["INBOX_MAX_DELIVERIES"] = str(_MAX_DELIVERIES)
    settings = Settings(store=f"{SQLITE}{service.folder}/inbox.db", max_deliveries=_MAX_DELIVERIES)
    with closing(open_store(settings)) as store:
        now_ms = store.now_ms()
        for name, patterns in _INBOXES.items():
            store.inboxes.save(SHOP, Inbox(name, patterns, now_ms - _HOURS * 60 * _MINUTE_MS))
        _write_history(store, now_ms)
    return key


def _write_history(store: Store, now_ms: int) -> None:
    rng = random.Random(7)
    starts = range(now_ms - _HOURS * 60 * _MINUTE_MS, now_ms - 1, _STEP_MINUTES * _MINUTE_MS)
    for step, at_ms in enumerate(starts):
        events = list(_generate_events(rng, at_ms))
        offsets_ms = sorted(rng.randrange(_STEP_MINUTES * _MINUTE_MS) for _ in events)
        for offset_ms, event in zip(offsets_ms, events, strict=True):
            _put(store, event, at_ms + offset_ms)
        steps_left, end_ms = len(starts) - step, at_ms + _STEP_MINUTES * _MINUTE_MS - 1
        # The newest events stay undelivered, more of them in the inbox crm.
        if steps_left > 1:
            store.events.claim(SHOP, DEFAULT_INBOX, _MAX_PAGE, end_ms)
        if steps_left > 5:
            store.events.claim(SHOP, "crm", _MAX_PAGE, end_ms)
        if steps_left > 1:
            _lease_and_acknowledge(store, end_ms)
        if steps_left == 40:
            # Becomes dead when its lease expires.
            _put(store, _new_event("invoice.paid", {"invoice": 2210, "total": 512.40}), end_ms)
            store.events.claim(SHOP, DEFAULT_INBOX, _MAX_PAGE, end_ms, end_ms + _MINUTE_MS)
    store.events.claim(SHOP, DEFAULT_INBOX, PageSize(1, 1_000_000), now_ms, now_ms + 60 * _MINUTE_MS)
    _put(store, NewEvent(str(uuid.uuid4()), "order.created", _NEWEST_PAYLOAD.encode()), now_ms)


def _put(store: Store, event: NewEvent, at_ms: int) -> None:
    store.events.put(SHOP, [event], at_ms, at_ms // 1000 + 30 * 86_400)


def _generate_events(rng: random.Random, at_ms: int) -> Iterator[NewEvent]:
    """Yields more events around noon than at night."""
    daylight = 1 - math.cos(2 * math.pi * (at_ms % _DAY_MS) / _DAY_MS)
    for _ in range(round(rng.uniform(0.5, 4) * daylight + rng.uniform(0, 1.2))):
        (event_type,) = rng.choices(list(_TYPE_WEIGHTS), list(_TYPE_WEIGHTS.values()))
        payload = {"order": rng.randrange(9000, 10482), "total": round(rng.uniform(8, 140), 2), "currency": "EUR"}
        yield _new_event(event_type, payload)


def _new_event(event_type: str, payload: dict[str, Any]) -> NewEvent:
    return NewEvent(str(uuid.uuid4()), event_type, json.dumps(payload, ensure_ascii=False).encode())


def _lease_and_acknowledge(store: Store, at_ms: int) -> None:
    leased = store.events.claim(SHOP, "warehouse", _MAX_PAGE, at_ms, at_ms + 5 * _MINUTE_MS).events
    receipts = [Receipt(each.inbox, each.event_id, each.lease.claim_id) for each in leased if each.lease is not None]
    store.events.acknowledge(SHOP, receipts, at_ms)
