"""Claims whose response was lost (timeout, broken connection).

The write may still have succeeded. The event is then marked delivered and no index lists it, so the only way to deliver
it is to remember the claim and look the event up again on the next poll.
"""

import threading
from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass, replace

from inbox.domain.events import InboxKey, PageSize
from inbox.store.dynamodb.event_states import KnownEvent
from inbox.store.dynamodb.items import to_known_event
from inbox.store.dynamodb.layout import Item, text_in

_MAX_CLAIMS = 10_000
_RETRY_MS = 60_000


@dataclass(frozen=True, slots=True)
class UnconfirmedClaim:
    """One event and the IDs of claims that may have taken it."""

    event: KnownEvent
    claim_ids: frozenset[str]
    claimed_at_ms: int
    may_be_given_back: bool = False
    """True if an update that makes the event undelivered again had no response either."""

    def succeeded(self, item: Item) -> bool:
        """Returns True if one of our claims took the event."""
        return text_in(item, "claim_id") in self.claim_ids

    def may_succeed_later(self, item: Item | None, now_ms: int) -> bool:
        """Returns True if the event still has the state we saw before claiming, and the write may be on its way."""
        if item is None or now_ms - self.claimed_at_ms >= _RETRY_MS:
            return False
        current, event = to_known_event(item), self.event
        return (current.status_key, current.deliveries, current.lease_state) == (
            event.status_key,
            event.deliveries,
            event.lease_state,
        )


class UnconfirmedClaims:
    """Thread-safe, bounded list of unconfirmed claims per inbox."""

    def __init__(self) -> None:
        self._mutex = threading.Lock()
        self._claims: OrderedDict[tuple[InboxKey, str], UnconfirmedClaim] = OrderedDict()

    def add(self, inbox_key: InboxKey, claims: Iterable[UnconfirmedClaim]) -> None:
        with self._mutex:
            for claim in claims:
                key = inbox_key, claim.event.sort_key
                earlier = self._claims[key].claim_ids if key in self._claims else frozenset()
                self._claims[key] = replace(claim, claim_ids=claim.claim_ids | earlier)
            while len(self._claims) > _MAX_CLAIMS:
                self._claims.popitem(last=False)

    def exist(self, inbox_key: InboxKey) -> bool:
        with self._mutex:
            return any(key[0] == inbox_key for key in self._claims)

    def pop(self, inbox_key: InboxKey, page_size: PageSize) -> list[UnconfirmedClaim]:
        """Removes and returns claims, up to one page and at least one if there is any."""
        popped: list[UnconfirmedClaim] = []
        with self._mutex:
            for key in [key for key in self._claims if key[0] == inbox_key][: page_size.events]:
                if sum(claim.event.payload_bytes for claim in popped) >= page_size.payload_bytes:
                    break
                popped.append(self._claims.pop(key))
        return popped
