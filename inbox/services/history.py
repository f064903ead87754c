"""Looking back: events in whatever status, replayed or erased."""

import base64
import hashlib
from collections.abc import Callable
from dataclasses import astuple, dataclass

from inbox.domain.events import MAX_PAYLOAD_BYTES, Event, Order, PageSize, ReplayResult, Selection
from inbox.errors import FieldError, InvalidRequest, NotFound
from inbox.services.inboxes import require_inbox
from inbox.store.interface import EventStore, InboxStore

_MAX_REPLAYED = 1000
_SEAL_BYTES = 12


@dataclass(frozen=True, slots=True)
class EventPage:
    """Events in order, and a cursor for those behind them; None at the end."""

    events: list[Event]
    cursor: str | None


class HistoryService:
    """`on_arrival` is called with the tenant ID and the inbox after events were replayed."""

    def __init__(
        self,
        store: EventStore,
        inboxes: InboxStore,
        now_ms: Callable[[], int],
        on_arrival: Callable[[str, str], object] = lambda _tenant_id, _inbox: None,
    ) -> None:
        self._on_arrival = on_arrival
        self._store = store
        self._inboxes = inboxes
        self._now_ms = now_ms

    def list(self, tenant_id: str, selection: Selection, order: Order, limit: int, cursor: str | None) -> EventPage:
        """The selected events, from the beginning or from where a cursor for just these goes on."""
        question = repr((tenant_id, astuple(selection), str(order)))
        after = None if cursor is None else _position(cursor, question)
        require_inbox(self._inboxes, tenant_id, selection.inbox)
        size = PageSize(limit, MAX_PAYLOAD_BYTES)
        listing = self._store.page(tenant_id, selection, order, size, after, self._now_ms())
        return EventPage(listing.events, None if listing.position is None else _cursor(listing.position, question))

    def get(self, tenant_id: str, inbox: str, event_id: str) -> Event:
        require_inbox(self._inboxes, tenant_id, inbox)
        return _there(self._store.get(tenant_id, inbox, event_id, self._now_ms()))

    def replay(self, tenant_id: str, inbox: str, event_id: str) -> Event:
        """Makes the event undelivered again. EventLeased while it is in somebody's hands."""
        require_inbox(self._inboxes, tenant_id, inbox)
        replayed = _there(self._store.replay(tenant_id, inbox, event_id, self._now_ms()))
        self._on_arrival(tenant_id, inbox)
        return replayed

    def replay_all(self, tenant_id: str, selection: Selection) -> ReplayResult:
        """The same for the selected events that are delivered or dead, as many as one call should do."""
        require_inbox(self._inboxes, tenant_id, selection.inbox)
        replayed = self._store.replay_all(tenant_id, selection, _MAX_REPLAYED, self._now_ms())
        self._on_arrival(tenant_id, selection.inbox)
        return replayed

    def erase(self, tenant_id: str, event_id: str) -> None:
        """Deletes the event in every inbox."""
        if not self._store.erase(tenant_id, event_id, self._now_ms()):
            raise NotFound("There is no event of that id.")


def _there(event: Event | None) -> Event:
    if event is None:
        raise NotFound("There is no event of that id.")
    return event


def _cursor(position: str, question: str) -> str:
    return base64.urlsafe_b64encode(_seal(position, question) + position.encode()).rstrip(b"=").decode()


def _position(cursor: str, question: str) -> str:
    try:
        position = base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4))[_SEAL_BYTES:].decode()
    except ValueError:
        position = ""
    if not position or _cursor(position, question) != cursor:
        raise InvalidRequest([FieldError("/cursor", "Goes on from no earlier answer to the same question.")])
    return position


def _seal(position: str, question: str) -> bytes:
    """Ties a position to its question. No secret: whoever makes one up only gets to another place in his own list."""
    return hashlib.blake2b(f"{question}\n{position}".encode(), digest_size=_SEAL_BYTES).digest()
