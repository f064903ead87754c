"""Statistics of an inbox: undelivered events now, and counts by hour, day and event type."""

from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum
from functools import reduce
from typing import TypeVar

from inbox.domain.stats import Counts, Span, SpanCounts, UndeliveredSummary
from inbox.services.inboxes import require_inbox
from inbox.services.tenants import find_tenant
from inbox.store.interface import CounterStore, InboxStore, Store

Key = TypeVar("Key")


class Window(StrEnum):
    """Ends with the current hour or day."""

    DAY = "24h"
    WEEK = "7d"
    MONTH = "30d"


# The number of hours and days in a response. Totals are computed from the first of the two.
_SHOWN = {
    Window.DAY: {Span.HOUR: 24, Span.DAY: 2},
    Window.WEEK: {Span.DAY: 7, Span.HOUR: 72},
    Window.MONTH: {Span.DAY: 30, Span.HOUR: 72},
}


@dataclass(frozen=True, slots=True)
class InboxStats:
    """`by_type` starts with the most received type. `per` has an entry for every hour and day shown, oldest first."""

    undelivered: UndeliveredSummary
    oldest_age_seconds: int | None
    totals: Counts
    by_type: list[tuple[str | None, Counts]]
    per: dict[Span, list[tuple[int, Counts]]]


@dataclass(frozen=True, slots=True)
class StatsService:
    counters: CounterStore
    inboxes: InboxStore
    now_ms: Callable[[], int]

    def get(self, tenant_id: str, inbox: str, window: Window) -> InboxStats:
        require_inbox(self.inboxes, tenant_id, inbox)
        now_ms = self.now_ms()
        # First, because it also writes and counts leases that have expired.
        undelivered = self.counters.undelivered(tenant_id, inbox, now_ms)
        counted: dict[Span, list[SpanCounts]] = {}
        per: dict[Span, list[tuple[int, Counts]]] = {}
        for span, shown in _SHOWN[window].items():
            last_ms = span.start_ms(now_ms)
            starts = range(last_ms - (shown - 1) * span.ms, last_ms + 1, span.ms)
            counted[span] = self.counters.list_counts(tenant_id, inbox, span, starts[0])
            # Timestamps may be in the future if the clock was ahead. They count as now.
            sums = _sums((min(each.start_ms, last_ms), each.counts) for each in counted[span])
            per[span] = [(start_ms, sums.get(start_ms, Counts())) for start_ms in starts]
        of_window = counted[next(iter(_SHOWN[window]))]
        by_type = _sums((each.event_type, each.counts) for each in of_window)
        return InboxStats(
            undelivered,
            None if undelivered.oldest_ms is None else max(now_ms - undelivered.oldest_ms, 0) // 1000,
            reduce(Counts.plus, by_type.values(), Counts()),
            sorted(by_type.items(), key=lambda each: (-each[1].received, each[0] or "")),
            per,
        )


def recount(store: Store, tenant_id: str, retention_days: int) -> int:
    """Recomputes the counts of the retention period, which a killed process or a restored backup may have lost.

    Returns the number of counts that changed.
    """
    find_tenant(store.tenants, tenant_id)
    now_ms = store.now_ms()
    return store.counters.recount(tenant_id, now_ms - retention_days * Span.DAY.ms, now_ms)


def _sums(counts: Iterable[tuple[Key, Counts]]) -> dict[Key, Counts]:
    sums: defaultdict[Key, Counts] = defaultdict(Counts)
    for key, each in counts:
        sums[key] = sums[key].plus(each)
    return sums
