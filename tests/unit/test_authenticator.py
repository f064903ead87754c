"""Who may come in, what is asked of the store for it, and where guessing ends."""

import threading
import tracemalloc
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import cast

import pytest
from cachetools import LRUCache

from authorizer import apikey, sealing
from authorizer.resolver import KeyRecord, Principal
from inbox.auth.authenticator import Authenticator, Limits
from inbox.auth.key_cache import KeyCache
from inbox.auth.token_buckets import TokenBuckets
from inbox.errors import StoreUnavailable, TooManyFailures, Unauthenticated
from inbox.store.interface import KeyStore
from tests.unit.test_token_buckets import Seconds

PRINCIPAL = Principal("acme", "Acme", True, "key_1", frozenset({"inbox:read"}))
HERE, THERE = "192.0.2.1", "192.0.2.2"
SECRET = "x" * 32
NOW = 1_000_000_000


@dataclass
class Keys:
    """The part of a store that is asked here, with a count of it."""

    records: dict[str, KeyRecord] = field(default_factory=dict)
    asked: int = 0
    takes: Callable[[], object] = lambda: None
    noted: list[int] = field(default_factory=list)
    fails: bool = False

    def get_by_hash(self, key_hash: str) -> KeyRecord | None:
        self.asked += 1
        self.takes()
        return self.records.get(key_hash)

    def record_use(self, key_hash: str, now_ms: int) -> None:
        if self.fails:
            raise StoreUnavailable
        self.noted.append(now_ms)
        self.records[key_hash] = replace(self.records[key_hash], last_used_at_ms=now_ms)

    def mint(self, principal: Principal = PRINCIPAL, expires_at_ms: int | None = None) -> str:
        key = apikey.mint()
        self.records[apikey.hash_of(key)] = KeyRecord(principal, expires_at_ms, NOW)
        return key


class House:
    def __init__(
        self, *, failures: int = 300, requests: int = 0, cache_seconds: float = 30, secret: str = SECRET
    ) -> None:
        self.keys = Keys()
        self.seconds = Seconds()
        self.now_ms = NOW
        self.looked_up: list[str] = []
        limits = Limits(requests_per_second=requests, failures_per_minute=failures)
        self.authenticator = Authenticator(
            cast(KeyStore, self.keys),
            KeyCache(cache_seconds, TokenBuckets(self.seconds), self.seconds),
            TokenBuckets(self.seconds),
            limits,
            secret,
            lambda: self.now_ms,
            self.looked_up.append,
        )

    def refused(self, key: str | None, address: str = HERE) -> type[Exception] | None:
        try:
            self.authenticator.identify(key, address)
        except (Unauthenticated, TooManyFailures) as error:
            return type(error)
        return None

    def pass_time(self, seconds: float) -> None:
        self.seconds.now += seconds
        self.now_ms += int(seconds * 1000)


def test_a_known_key_is_asked_for_once_and_so_is_an_unknown_one() -> None:
    house = House()
    known, unknown = house.keys.mint(), apikey.mint()
    assert [house.authenticator.identify(known, HERE) for _ in range(3)] == [PRINCIPAL] * 3
    assert [house.refused(unknown) for _ in range(3)] == [Unauthenticated] * 3
    assert house.keys.asked == 2


def test_a_key_that_is_revoked_or_made_counts_when_the_cache_is_over() -> None:
    house = House(cache_seconds=30)
    revoked, made = house.keys.mint(), apikey.mint()
    assert (house.refused(revoked), house.refused(made)) == (None, Unauthenticated)
    house.keys.records = {apikey.hash_of(made): KeyRecord(PRINCIPAL)}

    house.pass_time(29.9)
    assert (house.refused(revoked), house.refused(made)) == (None, Unauthenticated)
    house.pass_time(0.1)
    assert (house.refused(revoked), house.refused(made)) == (Unauthenticated, None)


def test_a_key_expires_even_while_it_is_remembered() -> None:
    house = House()
    key = house.keys.mint(expires_at_ms=NOW + 1000)
    assert house.refused(key) is None
    house.pass_time(1)
    assert house.refused(key) is Unauthenticated


def well_formed(number: int) -> str:
    secret = f"{number:043}"
    return f"ibx_{secret}{apikey._checksum(secret)}"


def test_a_hundred_thousand_made_up_keys_cost_neither_memory_nor_store_reads() -> None:
    house = House(failures=300)
    for number in range(20_000):
        house.refused(f"ibx_{number:049}")
    assert house.keys.asked == 0

    house.pass_time(60)
    for number in range(95_000):
        house.refused(well_formed(number))
    # A hundred bytes for each would be half a million.
    tracemalloc.start()
    for number in range(95_000, 100_000):
        house.refused(well_formed(number))
    kept, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert house.keys.asked <= 300
    assert kept < 50_000


def test_an_address_that_fails_too_often_has_to_wait_and_others_do_not() -> None:
    house = House(failures=10)
    assert [house.refused("nonsense") for _ in range(12)] == [Unauthenticated] * 10 + [TooManyFailures] * 2
    assert house.refused(None) is TooManyFailures
    assert house.refused("nonsense", THERE) is Unauthenticated
    with pytest.raises(TooManyFailures) as caught:
        house.authenticator.identify(None, HERE)
    assert 0 < caught.value.wait_seconds <= 6
    house.pass_time(6)
    assert house.refused(None) is Unauthenticated


def guess(house: House, count: int) -> None:
    for number in range(count):
        house.refused(well_formed(number))


def test_whoever_has_come_with_a_key_before_is_let_in_beside_a_guesser() -> None:
    house = House(failures=10, cache_seconds=30)
    known, new = house.keys.mint(), house.keys.mint()
    house.refused(known)
    house.pass_time(31)
    guess(house, 10)

    assert house.refused(known) is None
    assert house.refused(new) is TooManyFailures
    assert house.refused(new, THERE) is None
    house.pass_time(6)
    assert house.refused(new) is None


def test_whoever_fails_with_the_same_key_again_and_again_keeps_nobody_out() -> None:
    house = House(failures=10)
    unknown = apikey.mint()
    assert [house.refused(unknown) for _ in range(11)] == [Unauthenticated] * 10 + [TooManyFailures]
    assert house.refused("nonsense") is TooManyFailures
    assert house.refused(house.keys.mint()) is None


def test_a_look_afresh_goes_past_whatever_is_remembered_or_sealed() -> None:
    house = House()
    revoked, made = house.keys.mint(), apikey.mint()
    assert (house.refused(revoked), house.refused(made)) == (None, Unauthenticated)
    sealed = seal(house, revoked)
    house.keys.records = {apikey.hash_of(made): KeyRecord(PRINCIPAL, None, NOW)}

    with pytest.raises(Unauthenticated):
        house.authenticator.identify(revoked, HERE, sealed, bypass_cache=True)
    assert house.authenticator.identify(made, HERE, bypass_cache=True) == PRINCIPAL


def test_a_slow_store_does_not_make_the_answer_younger() -> None:
    house = House(cache_seconds=30)
    key = house.keys.mint()
    house.keys.takes = lambda: house.pass_time(20)
    house.refused(key)
    house.keys.records.clear()
    house.pass_time(10)
    assert house.refused(key) is Unauthenticated


@pytest.mark.parametrize(
    "forms", [("192.0.2.1", "192.0.2.1:4711"), ("2001:db8::1", "[2001:db8::2]:1", "[2001:db8::3]")]
)
def test_a_port_behind_an_address_changes_nothing(forms: tuple[str, ...]) -> None:
    house = House(failures=2)
    for number in range(2):
        house.refused(None, forms[number % len(forms)])
    assert {house.refused(None, form) for form in forms} == {TooManyFailures}


def test_what_is_no_address_is_one_for_all() -> None:
    house = House(failures=2)
    assert [house.refused(None, f"unknown {number}") for number in range(3)][2] is TooManyFailures


def test_one_ipv6_network_is_one_address() -> None:
    house = House(failures=2)
    for number in range(2):
        house.refused(None, f"2001:db8::{number}")
    assert house.refused(None, "2001:db8::ffff:1") is TooManyFailures
    assert house.refused(None, "2001:db8:0:1::1") is Unauthenticated
    for number in range(2):
        house.refused(None, f"::ffff:192.0.2.{number + 7}")
    assert house.refused(None, "::ffff:192.0.2.9") is Unauthenticated


def test_failures_need_not_be_limited() -> None:
    house = House(failures=0)
    assert {house.refused(None) for _ in range(1000)} == {Unauthenticated}


@pytest.mark.parametrize(
    ("own", "service", "allowed"), [(None, 0, None), (None, 2, 2), (3, 2, 3), (0, 2, None), (3, 0, 3)]
)
def test_a_tenants_own_limit_goes_before_that_of_the_service(
    own: int | None, service: int, allowed: int | None
) -> None:
    house = House(requests=service)
    principal = replace(PRINCIPAL, rate_limit=own)
    allowances = [house.authenticator.count_request(principal) for _ in range(5)]
    if allowed is None:
        assert allowances == [None] * 5
    else:
        waits = [allowance.bucket.wait_seconds > 0 for allowance in allowances if allowance]
        assert waits == [number >= allowed for number in range(5)]


def test_tenants_do_not_use_up_each_others_limit() -> None:
    house = House(requests=1)
    for tenant in ("acme", "globex"):
        allowance = house.authenticator.count_request(replace(PRINCIPAL, tenant_id=tenant))
        assert allowance is not None
        assert allowance.bucket.wait_seconds == 0


def test_use_is_noted_once_an_hour() -> None:
    house = House()
    key = house.keys.mint()
    for _ in range(9 * 4):
        house.pass_time(1000)
        house.refused(key)
    assert [noted - NOW for noted in house.keys.noted] == [hour * 4_000_000 for hour in range(1, 10)]


def test_a_use_that_cannot_be_noted_turns_nobody_away() -> None:
    house = House()
    key = house.keys.mint()
    house.keys.fails = True
    house.pass_time(3601)
    assert house.refused(key) is None
    # And it is tried again soon.
    house.keys.fails = False
    for seconds, noted in ((59, 0), (1, 1)):
        house.pass_time(seconds)
        house.refused(key)
        assert len(house.keys.noted) == noted


class GuardedCache(LRUCache[str, int]):
    """An LRU cache that reorders its entries only while the lock is held."""

    def __init__(self, lock: threading.Lock) -> None:
        super().__init__(10)
        self._guard = lock

    def __getitem__(self, key: str) -> int:
        assert self._guard.locked()
        return super().__getitem__(key)

    def __setitem__(self, key: str, value: int) -> None:
        assert self._guard.locked()
        super().__setitem__(key, value)


def test_noted_uses_change_only_under_the_lock() -> None:
    house = House()
    house.authenticator._recorded_uses = GuardedCache(house.authenticator._mutex)
    key = house.keys.mint()
    house.pass_time(4000)
    for fails in (True, False):
        house.keys.fails = fails
        house.authenticator.identify(key, HERE)
        house.pass_time(60)
    assert house.keys.noted == [house.now_ms - 60_000]


def seal(house: House, key: str, secret: str = SECRET) -> str:
    return sealing.seal(apikey.hash_of(key), KeyRecord(PRINCIPAL, None, NOW), house.now_ms, secret)


def test_what_the_authorizer_has_found_out_is_not_asked_again() -> None:
    house = House(cache_seconds=30)
    key = apikey.mint()
    sealed = seal(house, key)
    house.pass_time(10)
    assert house.authenticator.identify(key, HERE, sealed) == PRINCIPAL
    house.pass_time(19)
    assert house.authenticator.identify(key, HERE) == PRINCIPAL
    assert house.keys.asked == 0
    # And never for longer than the cache time, from when the authorizer looked.
    house.pass_time(1)
    assert house.refused(key) is Unauthenticated
    assert house.keys.asked == 1


def test_it_is_told_where_a_key_was_found() -> None:
    house = House()
    known, sealed, unknown = house.keys.mint(), apikey.mint(), apikey.mint()
    house.authenticator.identify(known, HERE)
    house.authenticator.identify(known, HERE)
    house.authenticator.identify(known, HERE, bypass_cache=True)
    house.authenticator.identify(sealed, HERE, seal(house, sealed))
    house.authenticator.identify(sealed, HERE)
    for key in (unknown, unknown, "no key", None):
        house.refused(key)
    assert house.looked_up == ["store", "cache", "store", "seal", "cache", "store", "cache"]


@pytest.mark.parametrize("age", [-1, 30])
def test_a_seal_of_another_time_is_not_taken(age: int) -> None:
    house = House(cache_seconds=30)
    key = apikey.mint()
    sealed = seal(house, key)
    house.pass_time(age)
    with pytest.raises(Unauthenticated):
        house.authenticator.identify(key, HERE, sealed)
    assert house.keys.asked == 1


def test_a_seal_of_another_key_or_secret_is_not_taken() -> None:
    house = House()
    key = apikey.mint()
    for sealed in (seal(house, apikey.mint()), seal(house, key, "y" * 32), "nonsense", ""):
        with pytest.raises(Unauthenticated):
            house.authenticator.identify(key, HERE, sealed)
    with pytest.raises(Unauthenticated):
        house.authenticator.identify(None, HERE, seal(house, key))


def test_without_a_cache_no_seal_is_taken() -> None:
    house = House(cache_seconds=0)
    key = apikey.mint()
    with pytest.raises(Unauthenticated):
        house.authenticator.identify(key, HERE, seal(house, key))


def test_without_a_secret_no_seal_is_taken() -> None:
    house = House(secret="")
    key = apikey.mint()
    for secret in ("", SECRET):
        with pytest.raises(Unauthenticated):
            house.authenticator.identify(key, HERE, seal(house, key, secret))


def test_an_expired_key_stays_expired_under_its_seal() -> None:
    house = House()
    key = apikey.mint()
    sealed = sealing.seal(apikey.hash_of(key), KeyRecord(PRINCIPAL, NOW, NOW), NOW, SECRET)
    with pytest.raises(Unauthenticated):
        house.authenticator.identify(key, HERE, sealed)
