"""A key into a principal, and the cache between."""

from dataclasses import dataclass, field

from authorizer import apikey
from authorizer.resolver import KeyRecord, Principal, Resolver

PRINCIPAL = Principal("acme", "Acme", True, "key_1", frozenset({"inbox:read"}))


@dataclass
class Keys:
    """A store that counts how often it is asked."""

    records: dict[str, KeyRecord] = field(default_factory=dict)
    asked: int = 0

    def find(self, key_hash: str) -> KeyRecord | None:
        self.asked += 1
        return self.records.get(key_hash)

    def mint(self, expires_at_ms: int | None = None) -> str:
        key = apikey.mint()
        self.records[apikey.hash_of(key)] = KeyRecord(PRINCIPAL, expires_at_ms)
        return key


def test_a_known_key_is_asked_for_once() -> None:
    keys = Keys()
    key = keys.mint()
    resolver = Resolver(keys.find, 60, lambda: 0)

    assert [resolver.resolve(key) for _ in range(3)] == [PRINCIPAL] * 3
    assert keys.asked == 1


def test_an_unknown_key_is_asked_for_once() -> None:
    keys = Keys()
    resolver = Resolver(keys.find, 60, lambda: 0)
    key = apikey.mint()

    assert [resolver.resolve(key) for _ in range(3)] == [None] * 3
    assert keys.asked == 1


def test_a_key_with_a_wrong_checksum_never_reaches_the_store() -> None:
    keys = Keys()
    key = keys.mint()
    resolver = Resolver(keys.find, 60, lambda: 0)

    assert resolver.resolve(key[:-1] + ("0" if key[-1] != "0" else "1")) is None
    assert resolver.resolve("nonsense") is None
    assert keys.asked == 0


def test_a_key_expires_even_while_it_is_cached() -> None:
    keys = Keys()
    key = keys.mint(expires_at_ms=1000)
    now = [999]
    resolver = Resolver(keys.find, 60, lambda: now[0])

    assert resolver.resolve(key) == PRINCIPAL
    now[0] = 1000
    assert resolver.resolve(key) is None


def test_nothing_is_remembered_for_longer_than_the_cache_time() -> None:
    keys = Keys()
    revoked, created = keys.mint(), apikey.mint()
    seconds = [0.0]
    resolver = Resolver(keys.find, 30, lambda: 0, timer=lambda: seconds[0])
    assert (resolver.resolve(revoked), resolver.resolve(created)) == (PRINCIPAL, None)
    keys.records = {apikey.hash_of(created): KeyRecord(PRINCIPAL, None)}

    seconds[0] = 29.9
    assert (resolver.resolve(revoked), resolver.resolve(created)) == (PRINCIPAL, None)
    seconds[0] = 30.0
    assert (resolver.resolve(revoked), resolver.resolve(created)) == (None, PRINCIPAL)


def test_without_a_cache_every_call_asks() -> None:
    keys = Keys()
    key = keys.mint()
    resolver = Resolver(keys.find, 0, lambda: 0)

    assert resolver.resolve(key) == PRINCIPAL
    keys.records.clear()
    assert resolver.resolve(key) is None


def test_a_flood_of_unknown_keys_neither_grows_memory_nor_pushes_known_ones_out() -> None:
    keys = Keys()
    key = keys.mint()
    resolver = Resolver(keys.find, 600, lambda: 0)
    resolver.resolve(key)
    for _ in range(10_500):
        resolver.resolve(apikey.mint())
    asked = keys.asked

    assert len(resolver._unknown) == 10_000
    assert resolver.resolve(key) == PRINCIPAL
    assert keys.asked == asked
