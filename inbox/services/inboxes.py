"""Named inboxes, each with its own copy of every matching event, and enabling or disabling `default`."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from inbox.domain.events import DEFAULT_INBOX
from inbox.domain.inboxes import INBOX_NAME_RULE, Inbox, is_inbox_name
from inbox.errors import FieldError, InboxClosing, InboxExists, InvalidRequest, NotFound, StoreUnavailable
from inbox.services.tenants import find_tenant
from inbox.store.interface import InboxStore, TenantStore

_STEP_EVENTS = 500
_MAX_SECONDS = 10


def require_inbox(inboxes: InboxStore, tenant_id: str, name: str) -> None:
    """Raises NotFound unless the tenant has the inbox. Every tenant has `default`."""
    if name != DEFAULT_INBOX:
        find_inbox(inboxes, tenant_id, name)


def find_inbox(inboxes: InboxStore, tenant_id: str, name: str) -> Inbox:
    found = inboxes.get(tenant_id, name) if is_inbox_name(name) else None
    if found is None:
        raise NotFound("inbox")
    return found


@dataclass(frozen=True, slots=True)
class InboxService:
    """`on_deletion` is called with the tenant ID and the name of a deleted inbox."""

    store: InboxStore
    tenants: TenantStore
    now_ms: Callable[[], int]
    timer: Callable[[], float] = time.monotonic
    on_deletion: Callable[[str, str], object] = lambda _tenant_id, _inbox: None

    def save(
        self,
        tenant_id: str,
        name: str,
        event_types: Sequence[str] | None,
        enabled: bool | None = None,
        *,
        replace: bool = True,
    ) -> tuple[Inbox, bool]:
        """Creates the inbox, or changes which events it receives. `default` can only be enabled or disabled.

        Returns the inbox, and True if it is new. Raises InboxExists if it exists and `replace` is False.
        """
        if name == DEFAULT_INBOX:
            if not replace:
                raise InboxExists(name)
            return self._switch_default(tenant_id, event_types, enabled), False
        if not is_inbox_name(name):
            raise InvalidRequest([FieldError("/name", f"`name` must be {INBOX_NAME_RULE}.")])
        if enabled is not None:
            raise InvalidRequest([FieldError("/enabled", "`enabled` is only allowed for `default`.")])
        inbox = Inbox(name, None if event_types is None else tuple(event_types), self.now_ms())
        try:
            new = self.store.save(tenant_id, inbox, replace=replace)
        except InboxClosing:
            self._delete_copies(tenant_id, name)
            new = self.store.save(tenant_id, inbox, replace=replace)
        # An inbox that existed keeps its creation time.
        return self.store.get(tenant_id, name) or inbox, new

    def get(self, tenant_id: str, name: str) -> Inbox:
        if name == DEFAULT_INBOX:
            return self._default(tenant_id, self.store.is_default_enabled(tenant_id))
        return find_inbox(self.store, tenant_id, name)

    def all(self, tenant_id: str) -> list[Inbox]:
        """Returns the named inboxes."""
        return self.store.all(tenant_id)

    def delete(self, tenant_id: str, name: str) -> None:
        """Deletes the inbox and its events. Raises StoreUnavailable if a repeated request has to delete the rest."""
        if name == DEFAULT_INBOX:
            raise InvalidRequest([FieldError("/name", "`default` cannot be deleted, only disabled.")])
        if not is_inbox_name(name) or not self.store.close(tenant_id, name):
            raise NotFound("inbox")
        self.on_deletion(tenant_id, name)
        self._delete_copies(tenant_id, name)

    def _switch_default(self, tenant_id: str, event_types: Sequence[str] | None, enabled: bool | None) -> Inbox:
        if event_types is not None:
            detail = "`event_types` is not allowed for `default`, which receives every event."
            raise InvalidRequest([FieldError("/event_types", detail)])
        if enabled is None:
            raise InvalidRequest([FieldError("/enabled", "`enabled` is required for `default`: true or false.")])
        inbox = self._default(tenant_id, enabled)
        self.store.set_default_enabled(tenant_id, enabled)
        return inbox

    def _default(self, tenant_id: str, enabled: bool) -> Inbox:
        created_at_ms = find_tenant(self.tenants, tenant_id).created_at_ms
        return Inbox(DEFAULT_INBOX, None, created_at_ms, enabled)

    def _delete_copies(self, tenant_id: str, name: str) -> None:
        deadline = self.timer() + _MAX_SECONDS
        while self.store.delete_copies(tenant_id, name, _STEP_EVENTS) == _STEP_EVENTS:
            if self.timer() > deadline:
                raise StoreUnavailable(
                    "The inbox has more events than one request can delete. Repeat the request to continue."
                )
