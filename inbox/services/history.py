"""Listing, replaying and erasing events, whatever their status."""

import base64
import hashlib
from collections.abc import Callable, Sequence
from dataclasses import astuple, dataclass

from inbox.domain.events import MAX_PAYLOAD_BYTES, Event, Order, PageSize, ReplayResult, Selection
from inbox.errors import FieldError, InvalidRequest, NotFound
from inbox.services.inboxes import require_inbox
from inbox.store.interface import EventStore, InboxStore

_MAX_REPLAYED = 1000
_DIGEST_BYTES = 12


@dataclass(frozen=True, slots=True)
class HistoryService:
    """`on_arrival` is called with the tenant ID and the inbox after a replay."""

    store: EventStore
    inboxes: InboxStore
    now_ms: Callable[[], int]
    on_arrival: Callable[[str, str], object]

    def list(
        self, tenant_id: str, selection: Selection, order: Order, limit: int, cursor: str | None
    ) -> tuple[Sequence[Event], str | None]:
        """Returns a page of the selected events, and the cursor of the next page, or None on the last one.

        Raises InvalidRequest if `cursor` belongs to a different query.
        """
        query = repr((tenant_id, astuple(selection), str(order)))
        after = None if cursor is None else _position_in(cursor, query)
        require_inbox(self.inboxes, tenant_id, selection.inbox)
        size = PageSize(limit, MAX_PAYLOAD_BYTES)
        listing = self.store.page(tenant_id, selection, order, size, after, self.now_ms())
        return listing.events, None if listing.position is None else _cursor(listing.position, query)

    def get(self, tenant_id: str, inbox: str, event_id: str) -> Event:
        require_inbox(self.inboxes, tenant_id, inbox)
        return _required(self.store.get(tenant_id, inbox, event_id, self.now_ms()))

    def replay(self, tenant_id: str, inbox: str, event_id: str) -> Event:
        """Makes the event undelivered again. Raises EventLeased if it is leased."""
        require_inbox(self.inboxes, tenant_id, inbox)
        replayed = _required(self.store.replay(tenant_id, inbox, event_id, self.now_ms()))
        self.on_arrival(tenant_id, inbox)
        return replayed

    def replay_all(self, tenant_id: str, selection: Selection) -> ReplayResult:
        """Replays up to 1,000 of the selected events that are delivered or dead."""
        require_inbox(self.inboxes, tenant_id, selection.inbox)
        replayed = self.store.replay_all(tenant_id, selection, _MAX_REPLAYED, self.now_ms())
        self.on_arrival(tenant_id, selection.inbox)
        return replayed

    def erase(self, tenant_id: str, event_id: str) -> None:
        """Erases the event in every inbox. Raises NotFound if it does not exist."""
        if not self.store.erase(tenant_id, event_id, self.now_ms()):
            raise NotFound("event")


def _required(event: Event | None) -> Event:
    if event is None:
        raise NotFound("event")
    return event


def _cursor(position: str, query: str) -> str:
    # The digest ties a position to its query. It needs no secret: a forged cursor only points to another position in
    # the client's own list.
    digest = hashlib.blake2b(f"{query}\n{position}".encode(), digest_size=_DIGEST_BYTES).digest()
    return base64.urlsafe_b64encode(digest + position.encode()).rstrip(b"=").decode()


def _position_in(cursor: str, query: str) -> str:
    try:
        position = base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4))[_DIGEST_BYTES:].decode()
    except ValueError:
        position = ""
    if not position or _cursor(position, query) != cursor:
        detail = "`cursor` belongs to a different query. Repeat the request without it."
        raise InvalidRequest([FieldError("/cursor", detail)])
    return position
