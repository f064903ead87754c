"""GET /inbox?wait=…"""

from collections.abc import Callable
from typing import Any

import pytest

from inbox.app import Shared, create_app
from inbox.settings import Settings
from inbox.store.interface import Store
from tests.api.conftest import ApiClient, Tenancy, pointers


class Time:
    """Time that passes only where somebody sleeps, and what happens then."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self.meanwhile: Callable[[], Any] = lambda: None

    def monotonic(self) -> float:
        return self.seconds

    def sleep(self, seconds: float) -> None:
        self.seconds += seconds
        self.meanwhile()


@pytest.fixture
def time(monkeypatch: pytest.MonkeyPatch) -> Time:
    time = Time()
    monkeypatch.setattr("inbox.services.long_polling.time", time)
    return time


@pytest.mark.parametrize("mode", ["consume", "lease", "peek"])
def test_a_wait_ends_when_an_event_comes(acme: ApiClient, time: Time, mode: str) -> None:
    def send_in_the_third_second() -> None:
        if time.seconds > 2 and not acme.waiting():
            acme.send({"n": 1})

    time.meanwhile = send_in_the_third_second
    (event,) = acme.poll(f"/inbox?mode={mode}&wait=20")
    assert event["payload"] == {"n": 1}
    assert 2 < time.seconds < 3


def test_a_wait_ends_when_its_seconds_are_over(acme: ApiClient, time: Time) -> None:
    response = acme.get("/inbox?wait=20")
    assert (response.status_code, response.get_json(), response.headers["Inbox-More"]) == (200, [], "false")
    assert time.seconds == pytest.approx(20)


def test_what_is_there_is_not_waited_for(acme: ApiClient, time: Time) -> None:
    acme.send({"n": 1})
    assert len(acme.poll("/inbox?wait=20")) == 1
    assert acme.poll("/inbox") == acme.poll("/inbox?wait=0") == []
    assert time.seconds == 0


def test_an_inbox_that_is_removed_ends_the_wait(acme: ApiClient, acme_manager: ApiClient, time: Time) -> None:
    acme_manager.put("/inboxes/crm")
    time.meanwhile = lambda: acme_manager.delete("/inboxes/crm")
    assert acme.get("/inbox/crm?wait=20").status_code == 404
    assert time.seconds < 1


def test_a_key_that_is_revoked_meanwhile_gets_nothing_more(
    tenancy: Tenancy, store: Store, acme: ApiClient, time: Time
) -> None:
    caller = ApiClient(create_app(Settings(key_cache_seconds=0), store, Shared()).test_client(), acme.key)
    other = tenancy.caller("acme")

    def revoke_and_send() -> None:
        tenancy.key_ring.revoke(tenancy.key_ring.list("acme")[0].key_id)
        other.send({"n": 1})

    time.meanwhile = revoke_and_send
    assert caller.get("/inbox?wait=20").status_code == 401
    assert len(other.poll()) == 1


@pytest.mark.parametrize("wait", ["21", "-1", "1.5", "", "long"])
def test_a_bad_wait_is_refused_before_any_event_is_touched(acme: ApiClient, wait: str) -> None:
    acme.send({"n": 1})
    response = acme.get(f"/inbox?wait={wait}")
    assert (response.status_code, pointers(response)) == (422, ["/wait"])
    assert len(acme.poll()) == 1
