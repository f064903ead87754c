"""A key into what is known of it."""

from collections.abc import Mapping

import pytest

from authorizer import apikey
from authorizer.resolver import KeyRecord, Principal, resolve

PRINCIPAL = Principal("acme", "Acme", True, "key_1", frozenset({"inbox:read"}))


class Store:
    def __init__(self, records: Mapping[str, KeyRecord]) -> None:
        self.records = records
        self.asked: list[str] = []

    def find(self, key_hash: str) -> KeyRecord | None:
        self.asked.append(key_hash)
        return self.records.get(key_hash)


def test_a_key_is_found_by_its_hash() -> None:
    key = apikey.mint()
    record = KeyRecord(PRINCIPAL)
    store = Store({apikey.hash_of(key): record})
    assert resolve(key, store.find, 0) == record
    assert resolve(apikey.mint(), store.find, 0) is None


@pytest.mark.parametrize(("now_ms", "works"), [(999, True), (1000, False)])
def test_a_key_works_until_it_expires(now_ms: int, works: bool) -> None:
    key = apikey.mint()
    store = Store({apikey.hash_of(key): KeyRecord(PRINCIPAL, expires_at_ms=1000)})
    assert (resolve(key, store.find, now_ms) is not None) == works


def test_a_key_with_a_wrong_checksum_never_reaches_the_store() -> None:
    key, store = apikey.mint(), Store({})
    assert resolve(key[:-1] + ("0" if key[-1] != "0" else "1"), store.find, 0) is None
    assert resolve("nonsense", store.find, 0) is None
    assert store.asked == []
