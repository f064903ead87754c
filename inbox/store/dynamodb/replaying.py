"""Making delivered and dead events undelivered again."""

from itertools import chain, islice

from inbox.domain.events import Event, Order, ReplayResult, Selection, Status
from inbox.errors import EventLeased, FieldError, InvalidRequest, StoreUnavailable
from inbox.store.dynamodb.changes import AT_A_TIME, Change, Changes, raise_fault
from inbox.store.dynamodb.event_states import Entry, standing
from inbox.store.dynamodb.history import History, is_of_type
from inbox.store.dynamodb.items import to_entry, to_event
from inbox.store.dynamodb.layout import Item, until_of

_TRIES = 3
# Events of other types, and leases, lie between those that are looked for. It is less than a walk may read.
_MAX_EXAMINED = 49_000
_REPLAYABLE = frozenset({Status.DELIVERED, Status.DEAD})


class Replaying:
    def __init__(self, changes: Changes, history: History, max_deliveries: int) -> None:
        self._changes = changes
        self._history = history
        self._max_deliveries = max_deliveries

    def replay(self, item: Item, now_ms: int) -> Event | None:
        for _ in range(_TRIES):
            status = standing(item, now_ms, self._max_deliveries).status
            if status is Status.LEASED:
                raise EventLeased
            if status is Status.UNDELIVERED:
                return to_event(item, now_ms, self._max_deliveries)
            entry = to_entry(item)
            (outcome,) = outcomes = self._changes.make([Change(entry, entry.replayed())], now_ms)
            raise_fault(outcomes)
            if outcome.item is None and outcome.met is None:
                return None
            # Somebody has changed it meanwhile, or we have, and only the answer was lost.
            item = outcome.item or outcome.met or item
        raise StoreUnavailable("The event kept changing.")

    def replay_all(self, tenant_id: str, selection: Selection, limit: int, now_ms: int) -> ReplayResult:
        statuses = _REPLAYABLE if selection.status is None else _REPLAYABLE & {selection.status}
        if not statuses:
            return ReplayResult(0, more=False)
        walk = self._history.entries(tenant_id, selection, statuses, Order.OLDEST, now_ms)
        examined = islice(walk, _MAX_EXAMINED)
        entries = (entry for entry in examined if is_of_type(entry, selection) and self._is_over(entry, now_ms))
        count = 0
        while group := list(islice(entries, min(AT_A_TIME, limit - count))):
            outcomes = self._changes.make([Change(entry, entry.replayed()) for entry in group], now_ms)
            raise_fault(outcomes)
            count += sum(outcome.item is not None for outcome in outcomes)
        more = next(chain(entries, walk), None) is not None
        if more and not count:
            raise InvalidRequest(
                [FieldError("/since", "There is more before the first of them than one call looks through.")]
            )
        return ReplayResult(count, more)

    def _is_over(self, entry: Entry, now_ms: int) -> bool:
        """Delivered or dead: of the leases only those that were the last and have run out."""
        until_ms = until_of(entry.status_key)
        return until_ms is None or (until_ms <= now_ms and entry.is_doomed(self._max_deliveries))
