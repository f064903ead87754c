"""The IAM policy that limits a role to one tenant, evaluated for every key that the store builds."""

import json
import uuid
from collections.abc import Iterable
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import pytest

from authorizer import items
from inbox.domain.events import DEFAULT_INBOX
from inbox.store.dynamodb import layout

POLICY = json.loads((Path(__file__).parents[2] / "deploy" / "iam" / "tenant.json").read_text())

READ_ACTIONS = {"GetItem", "BatchGetItem", "Query", "ConditionCheckItem"}
WRITE_ACTIONS = {"PutItem", "UpdateItem", "DeleteItem", "BatchWriteItem", "PartiQLUpdate"}
EVENT_INDEXES = (layout.STATUS_INDEX, layout.EVENT_TYPE_INDEX)
TENANTS_INDEXES = ("EmailIndex", "TenantStatusIndex", "ActiveIndex")
SHARDS = [
    layout.UNSHARDED,
    *(make_suffix(number) for make_suffix in (layout.shard_suffix, layout.old_shard_suffix) for number in (0, 99)),
    layout.keyed_suffix(15),
]
INBOXES = [DEFAULT_INBOX, "crm", "3"]
OTHER_TENANTS = ["acm", "acme2", "ACME", "system", "acme.", "acme-2"]


def as_list(value: Any) -> list[str]:
    return [value] if isinstance(value, str) else value


def is_like(text: str, pattern: str) -> bool:
    """Returns True if the text matches. IAM has only the wildcards `*` and `?`."""
    return fnmatchcase(text, pattern.replace("[", "[[]"))


def meets(conditions: dict[str, Any], leading_keys: Iterable[str], tenant_id: str) -> bool:
    assert set(conditions) == {"ForAllValues:StringLike", "Null"}, "other conditions are not supported here"
    assert all(set(each) == {"dynamodb:LeadingKeys"} for each in conditions.values())
    keys = list(leading_keys)
    requires_no_key = conditions["Null"]["dynamodb:LeadingKeys"] == "true"
    patterns = [
        each.replace("${aws:PrincipalTag/tenant_id}", tenant_id)
        for each in as_list(conditions["ForAllValues:StringLike"]["dynamodb:LeadingKeys"])
    ]
    # ForAllValues is true without values, so the policy also needs the condition Null.
    return (not keys) == requires_no_key and all(any(is_like(key, pattern) for pattern in patterns) for key in keys)


def allows(action: str, table: str, leading_keys: Iterable[str], tenant_id: str = "acme") -> bool:
    resource = f"arn:aws:dynamodb:eu-central-1:123456789012:table/{table}"
    keys = list(leading_keys)
    assert all(each["Effect"] == "Allow" for each in POLICY["Statement"])
    return any(
        f"dynamodb:{action}" in as_list(statement["Action"])
        and any(is_like(resource, pattern) for pattern in as_list(statement["Resource"]))
        and meets(statement["Condition"], keys, tenant_id)
        for statement in POLICY["Statement"]
    )


def list_event_partitions(tenant_id: str) -> set[str]:
    event_id = str(uuid.uuid4())
    partitions = [layout.make_partition(tenant_id, shard) for shard in SHARDS]
    return {layout.event_key(each, event_id, inbox)["pk"]["S"] for each in partitions for inbox in INBOXES}


def list_index_partitions(tenant_id: str) -> set[str]:
    return {layout.make_index_partition(tenant_id, inbox, shard) for inbox in INBOXES for shard in SHARDS} | {
        layout.index_partition_of_copy(tenant_id, "crm", layout.make_partition(tenant_id, shard)) for shard in SHARDS
    }


def list_tenants_partitions(tenant_id: str) -> set[str]:
    keys = [
        items.tenant_key(tenant_id),
        layout.inbox_key(tenant_id, "crm"),
        layout.inbox_names_key(tenant_id),
        layout.attempt_key(tenant_id, DEFAULT_INBOX, "attempt"),
    ]
    return {key["PK"]["S"] for key in keys}


@pytest.mark.parametrize("prefix", ["", "dev-"])
def test_tenant_role_reads_all_of_its_items(prefix: str) -> None:
    for action in READ_ACTIONS:
        for key in list_event_partitions("acme"):
            assert allows(action, f"{prefix}Events", [key]), (action, key)
    for key in list_index_partitions("acme"):
        for index in EVENT_INDEXES:
            assert allows("Query", f"{prefix}Events/index/{index}", [key]), (index, key)
    for action in READ_ACTIONS:
        for key in list_tenants_partitions("acme"):
            assert allows(action, f"{prefix}Tenants", [key]), (action, key)
    assert allows("BatchGetItem", f"{prefix}Events", list_event_partitions("acme"))


@pytest.mark.parametrize("other", OTHER_TENANTS)
def test_tenant_role_reaches_no_other_tenant(other: str) -> None:
    other_partitions = list_event_partitions(other) | list_index_partitions(other) | list_tenants_partitions(other)
    tables = ["Events", *(f"Events/index/{index}" for index in EVENT_INDEXES), "Tenants"]
    for action in READ_ACTIONS | WRITE_ACTIONS:
        for table in tables:
            for key in other_partitions:
                assert not allows(action, table, [key]), (action, table, key)
    # Also refused: a call for both tenants, and the other tenant's role for keys of acme.
    assert not allows("BatchGetItem", "Events", list_event_partitions("acme") | list_event_partitions(other))
    for key in list_event_partitions("acme") | list_index_partitions("acme"):
        assert not allows("Query", "Events", [key], other)


def test_requests_without_a_key_are_refused() -> None:
    for action in READ_ACTIONS | WRITE_ACTIONS:
        for table in ("Events", "Events/index/status-index", "Tenants"):
            assert not allows(action, table, []), (action, table)


def test_scan_is_not_allowed() -> None:
    allowed = {action for statement in POLICY["Statement"] for action in as_list(statement["Action"])}
    assert allowed == {f"dynamodb:{action}" for action in READ_ACTIONS}


def test_tenant_role_cannot_write() -> None:
    """`LeadingKeys` does not check index keys: an item that a role writes could show up in another tenant's inbox."""
    for action in WRITE_ACTIONS:
        for key in list_event_partitions("acme"):
            assert not allows(action, "Events", [key])
        for key in list_tenants_partitions("acme"):
            assert not allows(action, "Tenants", [key])


def test_indexes_of_the_table_of_tenants_are_refused() -> None:
    keys = ["acme", "acme@example.com", "REGISTERED", "true", "TENANT#acme"]
    for index in TENANTS_INDEXES:
        for prefix in ("", "dev-"):
            for key in keys:
                assert not allows("Query", f"{prefix}Tenants/index/{index}", [key]), (index, key)


def test_table_of_keys_is_refused() -> None:
    for action in READ_ACTIONS | WRITE_ACTIONS:
        for key in ("acme", items.api_key_key("0" * 64)["pk"]["S"], "TENANT#acme"):
            for prefix in ("", "dev-"):
                assert not allows(action, f"{prefix}TenantApiKeys", [key])
    assert not allows("GetItem", "Tenants", ["KEY#key-1"])
