"""Removing an inbox with more copies than one call deletes."""

from typing import cast

import pytest

from inbox.domain.inboxes import Inbox
from inbox.errors import InboxClosing, NotFound, StoreUnavailable
from inbox.services.inboxes import InboxService
from inbox.store.interface import InboxStore, TenantStore


class Inboxes:
    """A store with one inbox, whose copies take a second for every step."""

    def __init__(self, steps: int) -> None:
        self.steps = steps
        self.seconds = 0.0
        self.closing = False
        self.inbox: Inbox | None = Inbox("crm", None, 1)

    def save(self, _tenant_id: str, inbox: Inbox, *, replace: bool = True) -> bool:  # noqa: ARG002
        if self.closing:
            raise InboxClosing("It is still being removed.")
        new = self.inbox is None
        self.inbox = inbox
        return new

    def get(self, _tenant_id: str, _name: str) -> Inbox | None:
        return self.inbox

    def all(self, _tenant_id: str) -> list[Inbox]:
        return [self.inbox] if self.inbox else []

    def close(self, _tenant_id: str, _name: str) -> bool:
        there = self.inbox is not None or self.closing
        self.inbox, self.closing = None, there
        return there

    def clear(self, _tenant_id: str, _name: str, most: int) -> int:
        self.seconds += 1
        self.steps -= 1
        self.closing = self.steps > 0
        return most if self.closing else 0


def use_case(store: Inboxes) -> InboxService:
    return InboxService(cast(InboxStore, store), cast(TenantStore, None), lambda: 1, lambda: store.seconds)


def test_a_long_removal_breaks_off_and_repeating_it_goes_on() -> None:
    store = Inboxes(steps=25)
    for _ in range(2):
        with pytest.raises(StoreUnavailable):
            use_case(store).remove("acme", "crm")
    use_case(store).remove("acme", "crm")
    assert store.steps == 0
    with pytest.raises(NotFound):
        use_case(store).remove("acme", "crm")


def test_making_it_anew_goes_on_with_the_removal_first() -> None:
    store = Inboxes(steps=25)
    with pytest.raises(StoreUnavailable):
        use_case(store).remove("acme", "crm")
    with pytest.raises(StoreUnavailable):
        use_case(store).save("acme", "crm", ["a"])
    inbox, new = use_case(store).save("acme", "crm", ["a"])
    assert (inbox, new, store.steps) == (Inbox("crm", ("a",), 1), True, 0)
