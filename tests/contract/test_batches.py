"""The batch listener."""

from inbox.store.interface import Store
from tests.contract.samples import LATER, NOW, new_event, run_concurrently


def test_batch_listener_receives_the_number_of_requests(store: Store) -> None:
    callers: list[int] = []
    store.set_batch_listener(callers.append)
    store.events.put("acme", [new_event()], NOW, LATER)
    assert callers == [1]

    run_concurrently(20, lambda _: store.events.put("acme", [new_event()], NOW, LATER))
    assert sum(callers) == 21
    assert min(callers) >= 1
