"""Deleting an inbox with more events than one request can delete."""

from typing import cast

import pytest

from inbox.domain.inboxes import Inbox
from inbox.errors import InboxClosing, NotFound, StoreUnavailable
from inbox.services.inboxes import InboxService
from inbox.store.interface import InboxStore, TenantStore


class FakeInboxStore:
    """A store with one inbox. Each step of deleting it takes a second."""

    def __init__(self, remaining_steps: int) -> None:
        self.remaining_steps = remaining_steps
        self.seconds = 0.0
        self.is_closing = False
        self.inbox: Inbox | None = Inbox("crm", None, 1)

    def save(self, _tenant_id: str, inbox: Inbox, *, replace: bool = True) -> bool:  # noqa: ARG002
        if self.is_closing:
            raise InboxClosing("crm")
        is_new = self.inbox is None
        self.inbox = inbox
        return is_new

    def get(self, _tenant_id: str, _name: str) -> Inbox | None:
        return self.inbox

    def all(self, _tenant_id: str) -> list[Inbox]:
        return [self.inbox] if self.inbox else []

    def close(self, _tenant_id: str, _name: str) -> bool:
        exists = self.inbox is not None or self.is_closing
        self.inbox, self.is_closing = None, exists
        return exists

    def delete_copies(self, _tenant_id: str, _name: str, limit: int) -> int:
        self.seconds += 1
        self.remaining_steps -= 1
        self.is_closing = self.remaining_steps > 0
        return limit if self.is_closing else 0


def make_service(store: FakeInboxStore) -> InboxService:
    return InboxService(cast(InboxStore, store), cast(TenantStore, None), lambda: 1, lambda: store.seconds)


def test_deletion_stops_after_ten_seconds_and_continues_when_repeated() -> None:
    store = FakeInboxStore(remaining_steps=25)
    for _ in range(2):
        with pytest.raises(StoreUnavailable):
            make_service(store).delete("acme", "crm")
    make_service(store).delete("acme", "crm")
    assert store.remaining_steps == 0
    with pytest.raises(NotFound):
        make_service(store).delete("acme", "crm")


def test_creating_a_closing_inbox_finishes_its_deletion_first() -> None:
    store = FakeInboxStore(remaining_steps=25)
    with pytest.raises(StoreUnavailable):
        make_service(store).delete("acme", "crm")
    with pytest.raises(StoreUnavailable):
        make_service(store).save("acme", "crm", ["a"])
    inbox, is_new = make_service(store).save("acme", "crm", ["a"])
    assert (inbox, is_new, store.remaining_steps) == (Inbox("crm", ("a",), 1), True, 0)
