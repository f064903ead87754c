"""Many producers and pollers at once, of two tenants: each event comes out once, each producer's in order."""

from collections.abc import Callable

import pytest
import requests

from tests.service import Service, bearer
from tests.torture.counter_checks import miscounted
from tests.torture.delivery_report import Account, Class
from tests.torture.workload import Crowd

PRODUCERS, POLLERS = 8, 16


@pytest.mark.parametrize("lease_seconds", [None, 30], ids=["consume", "lease"])
def test_each_event_comes_out_once_and_each_producers_in_order(
    on_each_engine: Service,
    lease_seconds: int | None,
    torture: bool,
    hand_in: Callable[[Account], None],
    crowd_of: Callable[..., Crowd],
) -> None:
    at_length, short = (10_000, 200) if on_each_engine.is_on_dynamodb else (100_000, 1_000)
    events = at_length if torture else short
    crowd = crowd_of(on_each_engine)
    on_each_engine.start()
    crowd.add_producers(PRODUCERS)
    crowd.add_consumers(POLLERS, lease_seconds)

    account = crowd.work(during=lambda: crowd.wait_for(events))

    hand_in(account)
    assert crowd.unanswered == 0
    assert account.accepted >= events
    # Where DynamoDB Local has not answered in time, on a machine that is busy with other things, that leaves it open.
    if not (on_each_engine.is_on_dynamodb and account.unavailable):
        assert (account.unavailable, account.unconfirmed, account.classes[Class.UNREAD]) == (0, 0, [])
        assert (account.leases_lost, account.came_again) == (0, 0)
        assert miscounted(on_each_engine) == 0


def test_one_producer_through_changing_workers_stays_in_order(on_each_engine: Service) -> None:
    key = on_each_engine.create_key("acme")
    on_each_engine.start()
    for number in range(200):
        # A connection each, so that the workers take turns.
        answer = requests.post(f"{on_each_engine.url}/events", json={"n": number}, headers=bearer(key), timeout=30)
        assert answer.status_code == 201

    taken = requests.get(f"{on_each_engine.url}/inbox?limit=500", headers=bearer(key), timeout=30).json()
    assert [event["payload"]["n"] for event in taken] == list(range(200))
    assert [event["timestamp"] for event in taken] == sorted(event["timestamp"] for event in taken)
