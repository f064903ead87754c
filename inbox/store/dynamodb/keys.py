"""API keys in DynamoDB."""

from typing import Any

from authorizer.items import optional_number, read_key_record
from authorizer.resolver import KeyRecord
from inbox.domain.keys import ApiKey, KeyStatus, Scope
from inbox.errors import NotFound, StoreUnavailable
from inbox.store.dynamodb import layout, writes
from inbox.store.dynamodb.connection import MAX_TRIES, ConditionFailed, Connection, back_off
from inbox.store.dynamodb.layout import TENANT_API_KEYS, TENANT_KEYS_PREFIX, TENANTS, Item, number, text, text_in

_EXISTS = "attribute_exists(pk)"
_TENANT_EXISTS = "attribute_exists(PK)"
# Uses are recorded by several processes, in any order.
_NO_LATER_USE = "(attribute_not_exists(#last_used_at) OR #last_used_at < :last_used_at)"
_EXISTS_WITHOUT_LATER_USE = f"{_EXISTS} AND {_NO_LATER_USE}"
# Another process may have revoked the key since it was read, or changed when it expires.
_STILL_ACTIVE = "#status = :status"
_STILL_WITHOUT_EXPIRY = f"{_STILL_ACTIVE} AND attribute_not_exists(#expires_at)"
_STILL_SAME_EXPIRY = f"{_STILL_ACTIVE} AND #expires_at = :known_expires_at"


class DynamoDBKeys:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._table = connection.table(TENANT_API_KEYS)
        self._tenants_table = connection.table(TENANTS)

    def create(self, key: ApiKey) -> None:
        tenant_exists = {
            "TableName": self._tenants_table,
            "Key": layout.tenant_key(key.tenant_id),
            "ConditionExpression": _TENANT_EXISTS,
        }
        if not self._connection.try_write({"ConditionCheck": tenant_exists}, *self._puts(key)):
            raise NotFound("tenant")

    def get(self, key_id: str) -> ApiKey | None:
        item = self._item(key_id)
        return None if item is None else _to_key(item)

    def get_by_hash(self, key_hash: str) -> KeyRecord | None:
        return read_key_record(self._connection.get, key_hash)

    def all(self, tenant_id: str) -> list[ApiKey]:
        query = layout.tenant_items_query(tenant_id, layout.prefix_range(TENANT_KEYS_PREFIX))
        pointers = self._connection.all_items(TENANTS, **query, ConsistentRead=True)
        hashes = [pointer["key_hash"]["S"] for pointer in pointers]
        items = self._connection.get_many(TENANT_API_KEYS, [layout.api_key_key(each) for each in hashes])
        # A role with permission to write the tenant's items can add a pointer to another tenant's key.
        keys = [key for key in map(_to_key, items) if key.tenant_id == tenant_id]
        return sorted(keys, key=lambda key: (key.created_at_ms, key.key_id))

    def revoke(self, key_id: str) -> bool:
        pointer = self._connection.get(TENANTS, layout.key_id_item_key(key_id))
        if pointer is None:
            return False
        key = layout.api_key_key(pointer["key_hash"]["S"])
        self._connection.write(writes.update(self._table, key, {"status": text(KeyStatus.REVOKED)}, _EXISTS))
        return True

    def rotate(self, key_id: str, successor: ApiKey, expires_at_ms: int) -> bool:
        return self._expire(key_id, expires_at_ms, self._puts(successor), successor.created_at_ms)

    def expire(self, key_id: str, expires_at_ms: int) -> bool:
        # At -1 ms no key had expired, so that expired keys count as active.
        return self._expire(key_id, expires_at_ms, [], now_ms=-1)

    def delete(self, key_id: str) -> None:
        item = self._item(key_id)
        if item is None:
            return
        self._connection.transact(
            writes.delete(self._table, layout.key_of(item)),
            writes.delete(self._tenants_table, layout.tenant_api_key_item_key(item["tenant_id"]["S"], key_id)),
            writes.delete(self._tenants_table, layout.key_id_item_key(key_id)),
        )

    def record_use(self, key_hash: str, now_ms: int) -> None:
        key, last_use = layout.api_key_key(key_hash), {"last_used_at": number(now_ms)}
        self._connection.try_write(writes.update(self._table, key, last_use, _EXISTS_WITHOUT_LATER_USE))

    def _expire(self, key_id: str, at_ms: int, puts: list[dict[str, Any]], now_ms: int) -> bool:
        """Makes the key expire with `puts`, or returns False if it is missing, revoked, or expired at `now_ms`."""
        for attempt in range(MAX_TRIES):
            item = self._item(key_id)
            if item is None or _to_key(item).as_of(now_ms).status is not KeyStatus.ACTIVE:
                return False
            try:
                self._connection.transact(*puts, self._expiry_update(item, at_ms))
                return True
            except ConditionFailed:
                back_off(attempt)
        raise StoreUnavailable(f"Other requests kept changing the key {key_id}.")

    def _item(self, key_id: str) -> Item | None:
        pointer = self._connection.get(TENANTS, layout.key_id_item_key(key_id))
        if pointer is None:
            return None
        return self._connection.get(TENANT_API_KEYS, layout.api_key_key(pointer["key_hash"]["S"]))

    def _puts(self, key: ApiKey) -> list[dict[str, Any]]:
        """Returns writes for one transaction, so that every key that works is listed, and every listed key works."""
        pointer = {"key_hash": text(key.key_hash)}
        return [
            writes.put(self._table, layout.api_key_key(key.key_hash) | _attributes(key)),
            writes.put(self._tenants_table, layout.tenant_api_key_item_key(key.tenant_id, key.key_id) | pointer),
            writes.put(self._tenants_table, layout.key_id_item_key(key.key_id) | pointer),
        ]

    def _expiry_update(self, item: Item, expires_at_ms: int) -> dict[str, Any]:
        known_ms = optional_number(item, "expires_at")
        condition, values = _STILL_WITHOUT_EXPIRY, {}
        if known_ms is not None:
            expires_at_ms = min(known_ms, expires_at_ms)
            condition, values = _STILL_SAME_EXPIRY, {":known_expires_at": number(known_ms)}
        # The status does not change; the condition needs it.
        attributes = {"status": text(KeyStatus.ACTIVE), "expires_at": number(expires_at_ms)}
        return writes.update(self._table, layout.key_of(item), attributes, condition, values)


def _attributes(key: ApiKey) -> dict[str, Any]:
    return {
        "key_id": text(key.key_id),
        "tenant_id": text(key.tenant_id),
        "name": text(key.name),
        # A list: DynamoDB has no empty set.
        "scopes": {"L": [text(scope) for scope in sorted(key.scopes)]},
        "status": text(key.status),
        "created_at": number(key.created_at_ms),
        "expires_at": writes.optional(number, key.expires_at_ms),
        "lifetime": writes.optional(number, key.lifetime_ms),
        "hint": writes.optional(text, key.hint),
        "last_used_at": writes.optional(number, key.last_used_at_ms),
    }


def _to_key(item: Item) -> ApiKey:
    return ApiKey(
        key_id=item["key_id"]["S"],
        key_hash=item["pk"]["S"],
        tenant_id=item["tenant_id"]["S"],
        name=item["name"]["S"],
        scopes=frozenset(Scope(scope["S"]) for scope in item["scopes"]["L"]),
        status=KeyStatus(item["status"]["S"]),
        created_at_ms=int(item["created_at"]["N"]),
        expires_at_ms=optional_number(item, "expires_at"),
        lifetime_ms=optional_number(item, "lifetime"),
        hint=text_in(item, "hint"),
        last_used_at_ms=optional_number(item, "last_used_at"),
    )
