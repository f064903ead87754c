"""Every call of the DynamoDB store."""

from dataclasses import replace

from inbox.domain.events import (
    DEFAULT_INBOX,
    Order,
    PutResult,
)
from inbox.domain.stats import Span
from inbox.domain.tenants import TenantSelection
from tests.contract.samples import (
    MINUTE,
    NOW,
    page_of,
    update_entries,
)
from tests.dynamodb.store_calls import (
    ACME,
    ALL,
    KEY,
    LEASE_UNTIL,
    LONG_AUDIT_LOG,
    ORDERS,
    RENAMED,
    SUCCESSOR,
    TENANT_AND_KEY,
    WARM_UP,
    Call,
    after,
    claim,
    claim_ids,
    close,
    create_inboxes,
    create_key,
    create_tenant,
    delete_copies,
    drain,
    export,
    exported,
    flush,
    import_events,
    large_event,
    lease_events,
    lose_leases,
    new_event,
    nothing,
    put,
    put_keyed,
    put_new,
    release,
    replay_all,
    save,
)
from tests.engines.harnesses import MAX_DELIVERIES


def _is_same_event(again: list[PutResult], first: list[PutResult]) -> bool:
    """Compares everything but whether the event was stored before."""
    return [each._replace(repeated=False) for each in again] == first


def _is_anything(_again: object, _first: object) -> bool:
    return True


_EVENT_WRITES = [
    # Without an idempotency key the client cannot tell if the event was stored, and a repeat would be another event.
    Call("events.put: one event", put_new(1), is_repeated=False),
    Call("events.put: one event with copies", put_new(1), create_inboxes, is_repeated=False),
    Call("events.put: batch", put_new(27), is_repeated=False),
    Call("events.put: batch with copies", put_new(3), create_inboxes, is_repeated=False),
    Call("events.put: large event", put(large_event(0)), is_repeated=False),
    Call("events.put: large events with copies", put(*map(large_event, range(3))), create_inboxes, is_repeated=False),
    Call(
        "events.put: large event with a key and copies",
        put(large_event(0)._replace(fingerprint=b"first")),
        create_inboxes,
        is_repeat_right=_is_same_event,
    ),
    *(
        Call(f"events.put: {name}", put_keyed(count), prepare, is_repeat_right=_is_same_event)
        for name, count, prepare in (
            ("one event with a key", 1, nothing),
            ("one event with a key and copies", 1, create_inboxes),
            ("batch with keys", 3, nothing),
            ("batch with keys and copies", 2, create_inboxes),
        )
    ),
    Call("events.claim: consume", claim_ids(), after(WARM_UP, put_new(3))),
    Call("events.claim: consume large events", claim_ids(), after(WARM_UP, put(large_event(0), large_event(1)))),
    Call("events.claim: consume unlisted events", claim_ids(), after(WARM_UP, put_new(3)), list_delivered=False),
    Call("events.claim: consume in the first call", claim_ids(), put_new(3)),
    Call("events.claim: consume in several batches", drain, after(WARM_UP, put_new(27))),
    Call("events.claim: consume from a named inbox", claim_ids(inbox="orders"), after(create_inboxes, put_new(3))),
    Call(
        "events.claim: consume with an attempt",
        claim_ids(attempt="a"),
        after(WARM_UP, put_new(3)),
        changed_by_repeat=frozenset({"asked_again"}),
    ),
    Call("events.claim: consume after leases", claim_ids(LEASE_UNTIL), lease_events(3)),
    Call("events.claim: mark dead", claim_ids(LEASE_UNTIL), lose_leases(3, MAX_DELIVERIES)),
    # The client does not get the receipts, so the events come back when their leases have expired.
    Call(
        "events.claim: lease",
        claim_ids(lease_until_ms=LEASE_UNTIL),
        after(WARM_UP, put_new(3)),
        repeat=claim_ids(LEASE_UNTIL, LEASE_UNTIL + MINUTE),
        changed_by_repeat=frozenset({"deliveries", "lost_leases", "lease_expires_at", "gsi1sk"}),
    ),
    Call(
        "events.claim: lease with an attempt",
        claim_ids(lease_until_ms=LEASE_UNTIL, attempt="a"),
        after(WARM_UP, put_new(3)),
        changed_by_repeat=frozenset({"asked_again"}),
    ),
    Call(
        "events.acknowledge",
        lambda scene: scene.store.events.acknowledge(ACME.tenant_id, scene.receipts, NOW),
        lease_events(3),
    ),
    Call("events.release", release(), lease_events(3)),
    Call("events.release: with a delay", release(NOW + MINUTE), lease_events(3)),
    Call("events.release: failed", release(failed=True), lease_events(3)),
    Call("events.release: failed for the last time", release(failed=True), lose_leases(3, MAX_DELIVERIES)),
    Call(
        "events.extend",
        lambda scene: scene.store.events.extend(ACME.tenant_id, scene.receipts, LEASE_UNTIL + MINUTE, NOW),
        lease_events(3),
    ),
    Call(
        "events.replay",
        lambda scene: scene.store.events.replay(ACME.tenant_id, DEFAULT_INBOX, new_event(0).event_id, NOW),
        after(put_new(1), claim),
    ),
    Call(
        "events.replay: unlisted event",
        lambda scene: scene.store.events.replay(ACME.tenant_id, DEFAULT_INBOX, new_event(0).event_id, NOW),
        after(put_new(1), claim),
        list_delivered=False,
    ),
    # The number of events that the repeat replayed.
    Call("events.replay_all", replay_all, after(put_new(3), claim), is_repeat_right=_is_anything),
    # False if the first call deleted all of it.
    Call(
        "events.erase",
        lambda scene: scene.store.events.erase(ACME.tenant_id, new_event(0).event_id, NOW),
        after(create_inboxes, put_new(2)),
        is_repeat_right=_is_anything,
    ),
    Call(
        "events.erase: large event",
        lambda scene: scene.store.events.erase(ACME.tenant_id, new_event(0).event_id, NOW),
        after(create_inboxes, put(large_event(0))),
        is_repeat_right=_is_anything,
    ),
    # The number of events that this call wrote.
    Call(
        "events.import_events",
        import_events(exported(0), exported(1), exported(2, fingerprint=b"first")),
        is_repeat_right=_is_anything,
    ),
    Call(
        "events.import_events: changed event",
        import_events(exported(0, deliveries=1)),
        import_events(exported(0)),
        is_repeat_right=_is_anything,
    ),
]

_INBOX_WRITES = [
    # False if the first call created the inbox.
    Call(
        "inboxes.save: new",
        lambda scene: scene.store.inboxes.save(ACME.tenant_id, ORDERS),
        is_repeat_right=_is_anything,
    ),
    Call("inboxes.save: replace", save(replace(ORDERS, event_types=None)), create_inboxes),
    Call(
        "inboxes.save: without replace",
        save(ORDERS, replaces=False),
        is_repeat_right=lambda again, first: again in (first, "InboxExists"),
    ),
    Call("inboxes.close", close, create_inboxes),
    Call("inboxes.delete_copies", delete_copies(500), after(create_inboxes, put_new(27), close)),
    Call("inboxes.delete_copies: in several steps", delete_copies(2), after(create_inboxes, put_new(2), close)),
    Call("inboxes.set_default_enabled", lambda scene: scene.store.inboxes.set_default_enabled(ACME.tenant_id, False)),
]

_COUNTER_WRITES = [
    Call("counters.flush", lambda scene: scene.store.counters.flush(), put_new(3)),
    # The number of counts that this call changed.
    Call(
        "counters.recount",
        lambda scene: scene.store.counters.recount(ACME.tenant_id, 0, NOW),
        lambda scene: import_events(exported(0), exported(1, deliveries=1))(scene),
        is_repeat_right=_is_anything,
    ),
]

_KEY_WRITES = [
    Call("keys.create", create_key, create_tenant),
    Call("keys.revoke", lambda scene: scene.store.keys.revoke(KEY.key_id), TENANT_AND_KEY),
    Call("keys.rotate", lambda scene: scene.store.keys.rotate(KEY.key_id, SUCCESSOR, NOW + MINUTE), TENANT_AND_KEY),
    Call("keys.expire", lambda scene: scene.store.keys.expire(KEY.key_id, NOW + MINUTE), TENANT_AND_KEY),
    Call("keys.delete", lambda scene: scene.store.keys.delete(KEY.key_id), TENANT_AND_KEY),
    Call("keys.record_use", lambda scene: scene.store.keys.record_use(KEY.key_hash, NOW), TENANT_AND_KEY),
]

_TENANT_WRITES = [
    Call(
        "tenants.create",
        create_tenant,
        is_repeat_right=lambda again, first: again in (first, "TenantExists"),
    ),
    Call(
        "tenants.create: with a long audit log",
        lambda scene: scene.store.tenants.create(ACME, LONG_AUDIT_LOG),
        is_repeat_right=lambda again, first: again in (first, "TenantExists"),
    ),
    # False if the first call wrote the next version.
    Call(
        "tenants.update",
        lambda scene: scene.store.tenants.update(RENAMED, ACME.version, update_entries(RENAMED)),
        create_tenant,
        is_repeat_right=_is_anything,
    ),
    Call("tenants.shard", lambda scene: scene.store.tenants.shard(ACME.tenant_id, 2, NOW), create_tenant),
]

_STORE_WRITES = [
    Call("check", lambda scene: scene.store.check()),
    Call("init", lambda scene: scene.store.init()),
]

_EVENTS_OF_BOTH_INBOXES = after(create_inboxes, put_new(3))
READS = [
    Call(
        "events.get",
        lambda scene: scene.store.events.get(ACME.tenant_id, "orders", new_event(1).event_id, NOW),
        _EVENTS_OF_BOTH_INBOXES,
    ),
    Call(
        "events.page",
        lambda scene: scene.store.events.page(ACME.tenant_id, ALL, Order.OLDEST, page_of(9), None, NOW),
        put_new(3),
    ),
    Call(
        "events.peek",
        lambda scene: scene.store.events.peek(ACME.tenant_id, DEFAULT_INBOX, Order.NEWEST, page_of(9), NOW),
        put_new(3),
    ),
    Call("events.export_events", export, _EVENTS_OF_BOTH_INBOXES),
    Call("inboxes.get", lambda scene: scene.store.inboxes.get(ACME.tenant_id, "orders"), create_inboxes),
    Call("inboxes.all", lambda scene: scene.store.inboxes.all(ACME.tenant_id), create_inboxes),
    Call("inboxes.is_default_enabled", lambda scene: scene.store.inboxes.is_default_enabled(ACME.tenant_id)),
    Call(
        "counters.list_counts",
        lambda scene: scene.store.counters.list_counts(ACME.tenant_id, DEFAULT_INBOX, Span.DAY, 0),
        after(put_new(3), flush),
    ),
    Call(
        "counters.undelivered",
        lambda scene: scene.store.counters.undelivered(ACME.tenant_id, DEFAULT_INBOX, NOW),
        put_new(3),
    ),
    Call("keys.get", lambda scene: scene.store.keys.get(KEY.key_id), TENANT_AND_KEY),
    Call("keys.get_by_hash", lambda scene: scene.store.keys.get_by_hash(KEY.key_hash), TENANT_AND_KEY),
    Call("keys.all", lambda scene: scene.store.keys.all(ACME.tenant_id), TENANT_AND_KEY),
    Call("tenants.get", lambda scene: scene.store.tenants.get(ACME.tenant_id), create_tenant),
    Call("tenants.get_by_email", lambda scene: scene.store.tenants.get_by_email("OPS@acme.example"), create_tenant),
    Call("tenants.page", lambda scene: scene.store.tenants.page(TenantSelection(), 9, None), create_tenant),
    Call("tenants.audit_log", lambda scene: scene.store.tenants.audit_log(ACME.tenant_id, 9, None), create_tenant),
    Call("tenants.all", lambda scene: scene.store.tenants.all(), create_tenant),
]

WRITES = [*_EVENT_WRITES, *_INBOX_WRITES, *_COUNTER_WRITES, *_KEY_WRITES, *_TENANT_WRITES, *_STORE_WRITES]
