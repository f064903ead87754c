"""The batch listener."""

from inbox.store.interface import Store
from tests.contract.samples import LATER_S, NOW, new_event, run_concurrently


def test_batch_listener_receives_the_number_of_requests(store: Store) -> None:
    request_counts: list[int] = []
    store.set_batch_listener(request_counts.append)
    store.events.put("acme", [new_event()], NOW, LATER_S)
    assert request_counts == [1]

    run_concurrently(20, lambda _: store.events.put("acme", [new_event()], NOW, LATER_S))
    assert sum(request_counts) == 21
    assert min(request_counts) >= 1
