"""Who comes together shares a write, and whoever asked for it is told for how many it was."""

from inbox.store.interface import Store
from tests.contract.samples import LATER, NOW, at_the_same_time, new_event


def test_it_is_told_for_how_many_each_write_was(store: Store) -> None:
    callers: list[int] = []
    store.set_batch_listener(callers.append)
    store.events.put("acme", [new_event()], NOW, LATER)
    assert callers == [1]

    at_the_same_time(20, lambda _: store.events.put("acme", [new_event()], NOW, LATER))
    assert sum(callers) == 21
    assert min(callers) >= 1
