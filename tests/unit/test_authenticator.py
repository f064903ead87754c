"""Authentication: cache, seals, rate limits and failure limits."""

import threading
import tracemalloc
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import cast

import pytest
from cachetools import LRUCache

from authorizer import apikey, sealing
from authorizer.resolver import KeyRecord, Principal
from inbox.auth.authenticator import Authenticator
from inbox.auth.key_cache import KeyCache
from inbox.auth.token_buckets import TokenBuckets
from inbox.errors import StoreUnavailable, TooManyFailures, Unauthenticated
from inbox.store.interface import KeyStore
from tests.unit.test_token_buckets import FakeClock

PRINCIPAL = Principal("acme", "Acme", True, "key_1", frozenset({"inbox:read"}))
ADDRESS, OTHER_ADDRESS = "192.0.2.1", "192.0.2.2"
SECRET = "x" * 32
NOW_MS = 1_000_000_000


@dataclass
class FakeKeyStore:
    """A key store that counts reads and remembers when keys were used."""

    records: dict[str, KeyRecord] = field(default_factory=dict)
    reads: int = 0
    on_read: Callable[[], object] = lambda: None
    used_at_ms: list[int] = field(default_factory=list)
    fails_to_record: bool = False

    def get_by_hash(self, key_hash: str) -> KeyRecord | None:
        self.reads += 1
        self.on_read()
        return self.records.get(key_hash)

    def record_use(self, key_hash: str, now_ms: int) -> None:
        if self.fails_to_record:
            raise StoreUnavailable
        self.used_at_ms.append(now_ms)
        self.records[key_hash] = replace(self.records[key_hash], last_used_at_ms=now_ms)

    def create_key(self, principal: Principal = PRINCIPAL, expires_at_ms: int | None = None) -> str:
        key = apikey.mint()
        self.records[apikey.hash_of(key)] = KeyRecord(principal, expires_at_ms, NOW_MS)
        return key


class Setup:
    """An authenticator with a fake key store and fake time."""

    def __init__(
        self,
        *,
        failures_per_minute: int = 300,
        requests_per_second: int = 0,
        cache_seconds: float = 30,
        secret: str = SECRET,
    ) -> None:
        self.keys = FakeKeyStore()
        self.clock = FakeClock()
        self.now_ms = NOW_MS
        self.lookups: list[str] = []
        self.authenticator = Authenticator(
            cast(KeyStore, self.keys),
            KeyCache(cache_seconds, TokenBuckets(self.clock), self.clock),
            TokenBuckets(self.clock),
            secret,
            lambda: self.now_ms,
            self.lookups.append,
            requests_per_second=requests_per_second,
            failures_per_minute=failures_per_minute,
        )

    def find_error(self, key: str | None, address: str = ADDRESS) -> type[Exception] | None:
        try:
            self.authenticator.identify(key, address)
        except (Unauthenticated, TooManyFailures) as error:
            return type(error)
        return None

    def advance(self, seconds: float) -> None:
        self.clock.now += seconds
        self.now_ms += int(seconds * 1000)


def test_known_and_unknown_keys_are_cached() -> None:
    setup = Setup()
    known, unknown = setup.keys.create_key(), apikey.mint()
    assert [setup.authenticator.identify(known, ADDRESS) for _ in range(3)] == [PRINCIPAL] * 3
    assert [setup.find_error(unknown) for _ in range(3)] == [Unauthenticated] * 3
    assert setup.keys.reads == 2


def test_revoked_and_new_keys_take_effect_when_the_cache_expires() -> None:
    setup = Setup(cache_seconds=30)
    revoked, new = setup.keys.create_key(), apikey.mint()
    assert (setup.find_error(revoked), setup.find_error(new)) == (None, Unauthenticated)
    setup.keys.records = {apikey.hash_of(new): KeyRecord(PRINCIPAL)}

    setup.advance(29.9)
    assert (setup.find_error(revoked), setup.find_error(new)) == (None, Unauthenticated)
    setup.advance(0.1)
    assert (setup.find_error(revoked), setup.find_error(new)) == (Unauthenticated, None)


def test_cached_key_expires() -> None:
    setup = Setup()
    key = setup.keys.create_key(expires_at_ms=NOW_MS + 1000)
    assert setup.find_error(key) is None
    setup.advance(1)
    assert setup.find_error(key) is Unauthenticated


def make_well_formed_key(number: int) -> str:
    secret = f"{number:043}"
    return f"ibx_{secret}{apikey._checksum(secret)}"


def test_flood_of_unknown_keys_costs_no_memory_and_few_reads() -> None:
    setup = Setup(failures_per_minute=300)
    for number in range(20_000):
        setup.find_error(f"ibx_{number:049}")
    assert setup.keys.reads == 0

    setup.advance(60)
    for number in range(95_000):
        setup.find_error(make_well_formed_key(number))
    # 100 bytes per key would be 500,000.
    tracemalloc.start()
    for number in range(95_000, 100_000):
        setup.find_error(make_well_formed_key(number))
    kept_bytes, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert setup.keys.reads <= 300
    assert kept_bytes < 50_000


def test_address_with_too_many_failures_must_wait() -> None:
    setup = Setup(failures_per_minute=10)
    assert [setup.find_error("nonsense") for _ in range(12)] == [Unauthenticated] * 10 + [TooManyFailures] * 2
    assert setup.find_error(None) is TooManyFailures
    assert setup.find_error("nonsense", OTHER_ADDRESS) is Unauthenticated
    with pytest.raises(TooManyFailures) as caught:
        setup.authenticator.identify(None, ADDRESS)
    assert caught.value.retry_after_seconds in range(1, 7)
    setup.advance(6)
    assert setup.find_error(None) is Unauthenticated


def send_guesses(setup: Setup, count: int) -> None:
    for number in range(count):
        setup.find_error(make_well_formed_key(number))


def test_recently_valid_key_is_accepted_despite_guesses() -> None:
    setup = Setup(failures_per_minute=10, cache_seconds=30)
    known, new = setup.keys.create_key(), setup.keys.create_key()
    setup.find_error(known)
    setup.advance(31)
    send_guesses(setup, 10)

    assert setup.find_error(known) is None
    assert setup.find_error(new) is TooManyFailures
    assert setup.find_error(new, OTHER_ADDRESS) is None
    setup.advance(6)
    assert setup.find_error(new) is None


def test_repeated_invalid_key_does_not_block_valid_keys() -> None:
    setup = Setup(failures_per_minute=10)
    unknown = apikey.mint()
    assert [setup.find_error(unknown) for _ in range(11)] == [Unauthenticated] * 10 + [TooManyFailures]
    assert setup.find_error("nonsense") is TooManyFailures
    assert setup.find_error(setup.keys.create_key()) is None


def test_bypass_cache_ignores_cache_and_seal() -> None:
    setup = Setup()
    revoked, new = setup.keys.create_key(), apikey.mint()
    assert (setup.find_error(revoked), setup.find_error(new)) == (None, Unauthenticated)
    sealed = seal(setup, revoked)
    setup.keys.records = {apikey.hash_of(new): KeyRecord(PRINCIPAL, None, NOW_MS)}

    with pytest.raises(Unauthenticated):
        setup.authenticator.identify(revoked, ADDRESS, sealed, bypass_cache=True)
    assert setup.authenticator.identify(new, ADDRESS, bypass_cache=True) == PRINCIPAL


def test_cache_time_starts_before_the_read() -> None:
    setup = Setup(cache_seconds=30)
    key = setup.keys.create_key()
    setup.keys.on_read = lambda: setup.advance(20)
    setup.find_error(key)
    setup.keys.records.clear()
    setup.advance(10)
    assert setup.find_error(key) is Unauthenticated


@pytest.mark.parametrize(
    ("addresses", "are_counted_together"),
    [
        (["192.0.2.1", "192.0.2.1:4711"], True),
        (["2001:db8::1", "[2001:db8::2]:1", "[2001:db8::3]", "2001:db8::ffff:1"], True),
        (["unknown 1", "unknown 2"], True),
        (["2001:db8::1", "2001:db8:0:1::1"], False),
        (["::ffff:192.0.2.7", "::ffff:192.0.2.8"], False),
    ],
)
def test_failures_are_counted_by_address_or_ipv6_network(addresses: list[str], are_counted_together: bool) -> None:
    setup = Setup(failures_per_minute=1)
    setup.find_error(None, addresses[0])
    for address in addresses[1:]:
        assert (setup.find_error(None, address) is TooManyFailures) is are_counted_together


def test_limit_of_zero_allows_any_number_of_failures() -> None:
    setup = Setup(failures_per_minute=0)
    assert {setup.find_error(None) for _ in range(1000)} == {Unauthenticated}


@pytest.mark.parametrize(
    ("tenant_limit", "default_limit", "allowed"), [(None, 0, None), (None, 2, 2), (3, 2, 3), (0, 2, None), (3, 0, 3)]
)
def test_rate_limit_of_the_tenant_overrides_the_default(
    tenant_limit: int | None, default_limit: int, allowed: int | None
) -> None:
    setup = Setup(requests_per_second=default_limit)
    principal = replace(PRINCIPAL, rate_limit=tenant_limit)
    states = [setup.authenticator.count_request(principal) for _ in range(5)]
    if allowed is None:
        assert states == [None] * 5
    else:
        waits = [state.wait_seconds > 0 for state in states if state]
        assert waits == [number >= allowed for number in range(5)]


def test_tenants_have_separate_rate_limits() -> None:
    setup = Setup(requests_per_second=1)
    for tenant in ("acme", "globex"):
        state = setup.authenticator.count_request(replace(PRINCIPAL, tenant_id=tenant))
        assert state is not None
        assert state.wait_seconds == 0


def test_use_is_recorded_once_an_hour() -> None:
    setup = Setup()
    key = setup.keys.create_key()
    for _ in range(9 * 4):
        setup.advance(1000)
        setup.find_error(key)
    assert [used_at_ms - NOW_MS for used_at_ms in setup.keys.used_at_ms] == [hour * 4_000_000 for hour in range(1, 10)]


def test_key_is_accepted_if_its_use_cannot_be_recorded() -> None:
    setup = Setup()
    key = setup.keys.create_key()
    setup.keys.fails_to_record = True
    setup.advance(3601)
    assert setup.find_error(key) is None
    # The next request after a minute retries.
    setup.keys.fails_to_record = False
    for seconds, count in ((59, 0), (1, 1)):
        setup.advance(seconds)
        setup.find_error(key)
        assert len(setup.keys.used_at_ms) == count


class GuardedCache(LRUCache[str, int]):
    """An LRU cache whose methods fail unless the lock is held, because reads reorder its entries too."""

    def __init__(self, lock: threading.Lock) -> None:
        super().__init__(10)
        self._guard = lock

    def __getitem__(self, key: str) -> int:
        assert self._guard.locked()
        return super().__getitem__(key)

    def __setitem__(self, key: str, value: int) -> None:
        assert self._guard.locked()
        super().__setitem__(key, value)


def test_recorded_uses_change_only_under_the_lock() -> None:
    setup = Setup()
    setup.authenticator._recorded_uses = GuardedCache(setup.authenticator._mutex)
    key = setup.keys.create_key()
    setup.advance(4000)
    for fails_to_record in (True, False):
        setup.keys.fails_to_record = fails_to_record
        setup.authenticator.identify(key, ADDRESS)
        setup.advance(60)
    assert setup.keys.used_at_ms == [setup.now_ms - 60_000]


def seal(setup: Setup, key: str, secret: str = SECRET) -> str:
    return sealing.seal(apikey.hash_of(key), KeyRecord(PRINCIPAL, None, NOW_MS), setup.now_ms, secret)


def test_sealed_key_is_not_read_again() -> None:
    setup = Setup(cache_seconds=30)
    key = apikey.mint()
    sealed = seal(setup, key)
    setup.advance(10)
    assert setup.authenticator.identify(key, ADDRESS, sealed) == PRINCIPAL
    setup.advance(19)
    assert setup.authenticator.identify(key, ADDRESS) == PRINCIPAL
    assert setup.keys.reads == 0
    # The cache time counts from the authorizer's read.
    setup.advance(1)
    assert setup.find_error(key) is Unauthenticated
    assert setup.keys.reads == 1


def test_source_of_each_key_is_reported() -> None:
    setup = Setup()
    known, sealed, unknown = setup.keys.create_key(), apikey.mint(), apikey.mint()
    setup.authenticator.identify(known, ADDRESS)
    setup.authenticator.identify(known, ADDRESS)
    setup.authenticator.identify(known, ADDRESS, bypass_cache=True)
    setup.authenticator.identify(sealed, ADDRESS, seal(setup, sealed))
    setup.authenticator.identify(sealed, ADDRESS)
    for key in (unknown, unknown, "no key", None):
        setup.find_error(key)
    assert setup.lookups == ["store", "cache", "store", "seal", "cache", "store", "cache"]


@pytest.mark.parametrize("age_seconds", [-1, 30])
def test_old_or_future_seal_is_ignored(age_seconds: int) -> None:
    setup = Setup(cache_seconds=30)
    key = apikey.mint()
    sealed = seal(setup, key)
    setup.advance(age_seconds)
    with pytest.raises(Unauthenticated):
        setup.authenticator.identify(key, ADDRESS, sealed)
    assert setup.keys.reads == 1


def test_seal_of_another_key_or_secret_is_ignored() -> None:
    setup = Setup()
    key = apikey.mint()
    for sealed in (seal(setup, apikey.mint()), seal(setup, key, "y" * 32), "nonsense", ""):
        with pytest.raises(Unauthenticated):
            setup.authenticator.identify(key, ADDRESS, sealed)
    with pytest.raises(Unauthenticated):
        setup.authenticator.identify(None, ADDRESS, seal(setup, key))


def test_seal_is_ignored_without_a_cache() -> None:
    setup = Setup(cache_seconds=0)
    key = apikey.mint()
    with pytest.raises(Unauthenticated):
        setup.authenticator.identify(key, ADDRESS, seal(setup, key))


def test_seal_is_ignored_without_a_secret() -> None:
    setup = Setup(secret="")
    key = apikey.mint()
    for secret in ("", SECRET):
        with pytest.raises(Unauthenticated):
            setup.authenticator.identify(key, ADDRESS, seal(setup, key, secret))


def test_sealed_key_expires() -> None:
    setup = Setup()
    key = apikey.mint()
    sealed = sealing.seal(apikey.hash_of(key), KeyRecord(PRINCIPAL, NOW_MS, NOW_MS), NOW_MS, SECRET)
    with pytest.raises(Unauthenticated):
        setup.authenticator.identify(key, ADDRESS, sealed)
