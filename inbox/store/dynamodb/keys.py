"""API keys in DynamoDB."""

from contextlib import suppress
from typing import Any

from authorizer.items import find_key, number_in
from authorizer.resolver import KeyRecord
from inbox.domain.keys import ApiKey, KeyStatus, Scope
from inbox.errors import NotFound, StoreUnavailable
from inbox.store.dynamodb.connection import PATIENCE, ConditionFailed, Connection, optional, pause, put, update
from inbox.store.dynamodb.layout import (
    KEYS_OF_TENANT,
    TENANT_API_KEYS,
    TENANTS,
    Item,
    api_key_key,
    key_id_key,
    key_of,
    key_of_tenant_key,
    number,
    tenant_key,
    text,
)

# The conditions, and why.
_THERE = "attribute_exists(pk)"
# Two who note uses may come in any order.
_NOT_USED_SINCE = f"{_THERE} AND (attribute_not_exists(#last_used_at) OR #last_used_at < :last_used_at)"
# Nobody has revoked it since it was read, or made it expire at another time.
_ACTIVE_AND_LASTING = "#status = :status AND attribute_not_exists(#expires_at)"
_ACTIVE_AND_EXPIRING = "#status = :status AND #expires_at = :seen"


class DynamoDBKeys:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def create(self, key: ApiKey) -> None:
        there_is_a_tenant = {
            "TableName": self._connection.table(TENANTS),
            "Key": tenant_key(key.tenant_id),
            "ConditionExpression": "attribute_exists(PK)",
        }
        try:
            self._connection.transact({"ConditionCheck": there_is_a_tenant}, *self._puts(key))
        except ConditionFailed:
            raise NotFound(f"There is no tenant {key.tenant_id}.") from None

    def get(self, key_id: str) -> ApiKey | None:
        item = self._item(key_id)
        return None if item is None else _key(item)

    def get_by_hash(self, key_hash: str) -> KeyRecord | None:
        return find_key(self._connection.get, key_hash)

    def all(self, tenant_id: str) -> list[ApiKey]:
        pointers = self._connection.all_pages(
            "query",
            TableName=self._connection.table(TENANTS),
            KeyConditionExpression="PK = :tenant AND begins_with(SK, :keys)",
            ExpressionAttributeValues={":tenant": tenant_key(tenant_id)["PK"], ":keys": text(KEYS_OF_TENANT)},
            ConsistentRead=True,
        )
        hashes = [pointer["key_hash"]["S"] for pointer in pointers]
        items = self._connection.get_many(TENANT_API_KEYS, [api_key_key(each) for each in hashes])
        return sorted((_key(item) for item in items), key=lambda key: (key.created_at_ms, key.key_id))

    def revoke(self, key_id: str) -> bool:
        pointer = self._connection.get(TENANTS, key_id_key(key_id))
        if pointer is None:
            return False
        revoked = {"status": text(KeyStatus.REVOKED)}
        self._connection.call("update_item", **self._update(pointer["key_hash"]["S"], revoked, _THERE))
        return True

    def rotate(self, key_id: str, successor: ApiKey, expires_at_ms: int) -> bool:
        return self._let_expire(key_id, expires_at_ms, self._puts(successor), successor.created_at_ms)

    def expire(self, key_id: str, expires_at_ms: int) -> bool:
        return self._let_expire(key_id, expires_at_ms, [])

    def delete(self, key_id: str) -> None:
        item = self._item(key_id)
        if item is None:
            return
        self._connection.transact(
            self._delete(TENANT_API_KEYS, key_of(item)),
            self._delete(TENANTS, key_of_tenant_key(item["tenant_id"]["S"], key_id)),
            self._delete(TENANTS, key_id_key(key_id)),
        )

    def record_use(self, key_hash: str, now_ms: int) -> None:
        with suppress(ConditionFailed):
            self._connection.call(
                "update_item", **self._update(key_hash, {"last_used_at": number(now_ms)}, _NOT_USED_SINCE)
            )

    def _let_expire(self, key_id: str, at_ms: int, writes: list[dict[str, Any]], now_ms: int = -1) -> bool:
        """Together with those writes. Whether there is such a key that is not revoked, and has not expired by then."""
        for attempt in range(PATIENCE):
            item = self._item(key_id)
            if item is None or _key(item).as_of(now_ms).status is not KeyStatus.ACTIVE:
                return False
            try:
                self._connection.transact(*writes, {"Update": self._expiring(item, at_ms)})
                return True
            except ConditionFailed:
                pause(attempt)
        raise StoreUnavailable(f"The key {key_id} is changed all the time.")

    def _item(self, key_id: str) -> Item | None:
        pointer = self._connection.get(TENANTS, key_id_key(key_id))
        return None if pointer is None else self._connection.get(TENANT_API_KEYS, api_key_key(pointer["key_hash"]["S"]))

    def _puts(self, key: ApiKey) -> list[dict[str, Any]]:
        """Only ever together, so that no key works that is not listed, and none is listed that does not work."""
        pointer = {"key_hash": text(key.key_hash)}
        keys, tenants = self._connection.table(TENANT_API_KEYS), self._connection.table(TENANTS)
        return [
            {"Put": put(keys, api_key_key(key.key_hash) | _attributes(key))},
            {"Put": put(tenants, key_of_tenant_key(key.tenant_id, key.key_id) | pointer)},
            {"Put": put(tenants, key_id_key(key.key_id) | pointer)},
        ]

    def _delete(self, table: str, key: Item) -> dict[str, Any]:
        return {"Delete": {"TableName": self._connection.table(table), "Key": key}}

    def _expiring(self, item: Item, expires_at_ms: int) -> dict[str, Any]:
        seen_ms = number_in(item, "expires_at")
        condition, seen = _ACTIVE_AND_LASTING, {}
        if seen_ms is not None:
            expires_at_ms = min(seen_ms, expires_at_ms)
            condition, seen = _ACTIVE_AND_EXPIRING, {":seen": number(seen_ms)}
        # The status stays as it is; it is there for the condition.
        attributes = {"status": text(KeyStatus.ACTIVE), "expires_at": number(expires_at_ms)}
        return self._update(item["pk"]["S"], attributes, condition, seen)

    def _update(
        self, key_hash: str, attributes: Item, condition: str, values: dict[str, Any] | None = None
    ) -> dict[str, Any]:
        table = self._connection.table(TENANT_API_KEYS)
        return update(table, api_key_key(key_hash), attributes, condition, values)


def _attributes(key: ApiKey) -> dict[str, Any]:
    return {
        "key_id": text(key.key_id),
        "tenant_id": text(key.tenant_id),
        "name": text(key.name),
        # A list: DynamoDB has no empty set.
        "scopes": {"L": [text(scope) for scope in sorted(key.scopes)]},
        "status": text(key.status),
        "created_at": number(key.created_at_ms),
        "expires_at": optional(number, key.expires_at_ms),
        "lifetime": optional(number, key.lifetime_ms),
        "hint": optional(text, key.hint),
        "last_used_at": optional(number, key.last_used_at_ms),
    }


def _key(item: Item) -> ApiKey:
    return ApiKey(
        key_id=item["key_id"]["S"],
        key_hash=item["pk"]["S"],
        tenant_id=item["tenant_id"]["S"],
        name=item["name"]["S"],
        scopes=frozenset(Scope(scope["S"]) for scope in item["scopes"]["L"]),
        status=KeyStatus(item["status"]["S"]),
        created_at_ms=int(item["created_at"]["N"]),
        expires_at_ms=number_in(item, "expires_at"),
        lifetime_ms=number_in(item, "lifetime"),
        hint=item["hint"]["S"] if "hint" in item else None,
        last_used_at_ms=number_in(item, "last_used_at"),
    )
