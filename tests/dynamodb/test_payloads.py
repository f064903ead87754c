"""Payloads come out as they went in, whichever form they are kept in."""

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
from tests.dynamodb.conftest import LATER, NOW, fresh
from tests.json_documents import OBJECTS, exact


def nested(levels: int) -> bytes:
    return b'{"a":' + b"[" * (levels - 1) + b"]" * (levels - 1) + b"}"


EXACT = [
    b"{}",
    b'{"n":0,"m":-1,"f":1.5,"g":-0.25,"big":12345678901234567890123456789012345678}',
    b'{"t":true,"f":false,"z":null,"e":"","l":[],"o":{},"u":"\xc3\xa9\xf0\x9f\x8e\x89","nul":"\\u0000"}',
    b'{"list":[1,[2,[3]],{"a":[{"b":"c"}]}]}',
    nested(31),
]

NOT_EXACT = [
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


@pytest.mark.parametrize("payload", EXACT)
def test_a_small_payload_is_a_native_map(store: DynamoDBStore, tenant: str, payload: bytes) -> None:
    assert set(payload_attribute(payload)) == {"M"}
    assert exact(kept(store, tenant, payload)) == exact(payload)


@pytest.mark.parametrize("payload", NOT_EXACT, ids=lambda payload: payload[:20])
def test_what_a_map_would_change_is_kept_as_text(store: DynamoDBStore, tenant: str, payload: bytes) -> None:
    assert set(payload_attribute(payload)) == {"B"}
    assert kept(store, tenant, payload) == payload


def as_received(attribute: dict[str, Any]) -> dict[str, Any]:
    """Returns the attribute as an answer has it."""
    received: dict[str, Any] = attribute if "B" in attribute else orjson.loads(orjson.dumps(attribute))
    return received


def kept(store: DynamoDBStore, tenant: str, payload: bytes) -> bytes:
    event = fresh(payload)
    store.events.put(tenant, [event], NOW, LATER)
    found = store.events.get(tenant, DEFAULT_INBOX, event.event_id, NOW)
    assert found is not None
    return found.payload


@given(OBJECTS)
def test_both_forms_give_back_the_same_document(document: dict[str, Any]) -> None:
    payload = json.dumps(document).encode()
    assert exact(payload_of(as_received(payload_attribute(payload)))) == exact(payload)


def test_large_payloads_shrink() -> None:
    payload = json.dumps({"lines": [{"sku": f"SKU-{n}", "quantity": n} for n in range(1000)]}).encode()
    assert len(payload_attribute(payload)["B"]) < len(payload) / 3


def test_what_does_not_fit_is_refused_before_anything_is_written(store: DynamoDBStore, tenant: str) -> None:
    huge = fresh(b'{"noise":"' + secrets.token_hex(MAX_PAYLOAD_BYTES + 4096).encode() + b'"}')
    small = fresh()
    with pytest.raises(EventTooLarge) as refused:
        store.events.put(tenant, [small, huge], NOW, LATER)

    assert refused.value.positions == (1,)
    assert store.events.get(tenant, DEFAULT_INBOX, small.event_id, NOW) is None


def test_the_largest_that_fits_is_taken(store: DynamoDBStore, tenant: str) -> None:
    # Random hexadecimal digits compress to a little over half.
    payload = b'{"noise":"' + secrets.token_hex(340 * 1024).encode() + b'"}'
    assert len(payload_attribute(payload)["B"]) > 380 * 1024
    assert kept(store, tenant, payload) == payload
