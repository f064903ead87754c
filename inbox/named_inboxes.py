"""Inboxes that a tenant names, each with its own copy of every event that matches."""

import time
from collections.abc import Callable, Sequence

from inbox.errors import Fault, InboxClosing, InvalidRequest, NotFound, StoreUnavailable
from inbox.events import DEFAULT_INBOX
from inbox.store.port import InboxStore
from inbox.tenants import Inbox, is_inbox_name

_COPIES_A_STEP = 500
_MOST_SECONDS = 10


def require_inbox(inboxes: InboxStore, tenant_id: str, name: str) -> None:
    """NotFound unless the tenant has that inbox. Everybody has `default`."""
    if name != DEFAULT_INBOX:
        find_inbox(inboxes, tenant_id, name)


def find_inbox(inboxes: InboxStore, tenant_id: str, name: str) -> Inbox:
    found = inboxes.get(tenant_id, name) if is_inbox_name(name) else None
    if found is None:
        raise NotFound("There is no inbox of that name.")
    return found


class NamedInboxes:
    def __init__(
        self, store: InboxStore, now_ms: Callable[[], int], seconds: Callable[[], float] = time.monotonic
    ) -> None:
        self._store = store
        self._now_ms = now_ms
        self._seconds = seconds

    def save(self, tenant_id: str, name: str, event_types: Sequence[str] | None) -> tuple[Inbox, bool]:
        """Makes the inbox, or changes what it takes from now on. The inbox, and whether it is new."""
        _refuse_default(name)
        if not is_inbox_name(name):
            raise InvalidRequest(
                [Fault("/name", "Has to be 1 to 63 of a-z 0-9 and hyphens, and not begin with a hyphen.")]
            )
        inbox = Inbox(name, None if event_types is None else tuple(event_types), self._now_ms())
        try:
            new = self._store.save(tenant_id, inbox)
        except InboxClosing:
            self._clear(tenant_id, name)
            new = self._store.save(tenant_id, inbox)
        # One that was there already keeps the time of its making.
        return self._store.get(tenant_id, name) or inbox, new

    def get(self, tenant_id: str, name: str) -> Inbox:
        return find_inbox(self._store, tenant_id, name)

    def all(self, tenant_id: str) -> list[Inbox]:
        return self._store.all(tenant_id)

    def remove(self, tenant_id: str, name: str) -> None:
        """Removes the inbox with all of its copies. StoreUnavailable where they are too many: repeating it goes on."""
        _refuse_default(name)
        if not is_inbox_name(name) or not self._store.close(tenant_id, name):
            raise NotFound("There is no inbox of that name.")
        self._clear(tenant_id, name)

    def _clear(self, tenant_id: str, name: str) -> None:
        deadline = self._seconds() + _MOST_SECONDS
        while self._store.clear(tenant_id, name, _COPIES_A_STEP) == _COPIES_A_STEP:
            if self._seconds() > deadline:
                raise StoreUnavailable("The inbox holds more events than could be deleted in one call.")


def _refuse_default(name: str) -> None:
    if name == DEFAULT_INBOX:
        raise InvalidRequest([Fault("/name", "The inbox `default` is always there and takes every event.")])
