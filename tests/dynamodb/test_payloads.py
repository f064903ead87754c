"""Payloads are returned as they were sent, as native maps or compressed."""

import json
import secrets
from typing import Any

import orjson
import pytest
from hypothesis import given

from inbox.domain.events import DEFAULT_INBOX
from inbox.errors import EventTooLarge
from inbox.store.dynamodb import DynamoDBStore
from inbox.store.dynamodb.items import MAX_PAYLOAD_BYTES, payload_attribute, payload_of
from tests.dynamodb.conftest import LATER_S, NOW, new_event
from tests.json_documents import OBJECTS, exact


def nested(levels: int) -> bytes:
    return b'{"a":' + b"[" * (levels - 1) + b"]" * (levels - 1) + b"}"


NATIVE = [
    b"{}",
    b'{"n":0,"m":-1,"f":1.5,"g":-0.25,"big":12345678901234567890123456789012345678}',
    b'{"t":true,"f":false,"z":null,"e":"","l":[],"o":{},"u":"\xc3\xa9\xf0\x9f\x8e\x89","nul":"\\u0000"}',
    b'{"list":[1,[2,[3]],{"a":[{"b":"c"}]}]}',
    nested(31),
]

COMPRESSED = [
    b'{"n":1.0}',
    b'{"n":1e3}',
    b'{"n":-0}',
    b'{"n":0.10}',
    b'{"n":1e999}',
    b'{"n":123456789012345678901234567890123456789}',
    b'{"":1}',
    b'{"a":[{"":[]}]}',
    nested(32),
    b'{"long":"' + b"x" * 1024 + b'"}',
]


@pytest.mark.parametrize("payload", NATIVE)
def test_small_payload_is_a_native_map(store: DynamoDBStore, tenant: str, payload: bytes) -> None:
    assert set(payload_attribute(payload)) == {"M"}
    assert exact(put_and_get(store, tenant, payload)) == exact(payload)


@pytest.mark.parametrize("payload", COMPRESSED, ids=lambda payload: payload[:20])
def test_payload_that_is_long_or_that_a_map_would_change_is_compressed(
    store: DynamoDBStore, tenant: str, payload: bytes
) -> None:
    assert set(payload_attribute(payload)) == {"B"}
    assert put_and_get(store, tenant, payload) == payload


def serialize(attribute: dict[str, Any]) -> dict[str, Any]:
    """Returns the attribute as botocore reads it from a response."""
    received: dict[str, Any] = attribute if "B" in attribute else orjson.loads(orjson.dumps(attribute))
    return received


def put_and_get(store: DynamoDBStore, tenant: str, payload: bytes) -> bytes:
    event = new_event(payload)
    store.events.put(tenant, [event], NOW, LATER_S)
    found = store.events.get(tenant, DEFAULT_INBOX, event.event_id, NOW)
    assert found is not None
    return found.payload


@given(OBJECTS)
def test_both_formats_return_the_same_document(document: dict[str, Any]) -> None:
    payload = json.dumps(document).encode()
    assert exact(payload_of(serialize(payload_attribute(payload)))) == exact(payload)


def test_large_payloads_are_compressed() -> None:
    payload = json.dumps({"lines": [{"sku": f"SKU-{n}", "quantity": n} for n in range(1000)]}).encode()
    assert len(payload_attribute(payload)["B"]) < len(payload) / 3


def test_event_that_is_too_large_is_refused_before_anything_is_written(store: DynamoDBStore, tenant: str) -> None:
    huge = new_event(b'{"noise":"' + secrets.token_hex(MAX_PAYLOAD_BYTES + 4096).encode() + b'"}')
    small = new_event()
    with pytest.raises(EventTooLarge) as refused:
        store.events.put(tenant, [small, huge], NOW, LATER_S)

    assert refused.value.positions == (1,)
    assert store.events.get(tenant, DEFAULT_INBOX, small.event_id, NOW) is None


def test_largest_event_is_stored(store: DynamoDBStore, tenant: str) -> None:
    # Random hexadecimal digits compress to a little over half.
    payload = b'{"noise":"' + secrets.token_hex(340 * 1024).encode() + b'"}'
    assert len(payload_attribute(payload)["B"]) > 380 * 1024
    assert put_and_get(store, tenant, payload) == payload
