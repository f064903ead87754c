"""A simple in-memory model of a tenant's inboxes, to compare engines with."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import count

from inbox.domain.events import (
    ATTEMPT_MS,
    DEFAULT_INBOX,
    Event,
    Lease,
    NewEvent,
    Order,
    Page,
    PageSize,
    Receipt,
    ReplayResult,
    Selection,
    Status,
)
from inbox.domain.inboxes import Inbox
from inbox.errors import EventLeased


@dataclass(eq=False)
class Copy:
    """An event in one inbox. `claim` is the number of its last claim."""

    event: Event
    expires_at_s: int
    claim: str = ""
    available_at_ms: int = 0
    lost_leases: int = 0

    def set_status(self, status: Status, delivered_at_ms: int | None = None, lease: Lease | None = None) -> None:
        self.event = self.event._replace(status=status, delivered_at_ms=delivered_at_ms, lease=lease)

    def is_selected_by(self, selection: Selection) -> bool:
        return (
            selection.status in (None, self.event.status)
            and selection.event_type in (None, self.event.event_type)
            and (selection.since_ms is None or selection.since_ms <= self.event.timestamp_ms)
            and (selection.until_ms is None or self.event.timestamp_ms < selection.until_ms)
        )


@dataclass
class Attempt:
    began_at_ms: int
    copies: list[Copy]
    claims: set[str]


@dataclass
class Model:
    inboxes: Sequence[Inbox]
    max_deliveries: int
    copies: list[Copy] = field(default_factory=list)
    attempts: dict[tuple[str, str], Attempt] = field(default_factory=dict)
    claim_numbers: "count[int]" = field(default_factory=count)
    counts: Counter[tuple[str, str]] = field(default_factory=Counter)
    default_enabled: bool = True

    def pass_time(self, now_ms: int) -> None:
        self.copies = [copy for copy in self.copies if now_ms < copy.expires_at_s * 1000]
        self.attempts = {key: one for key, one in self.attempts.items() if now_ms < one.began_at_ms + ATTEMPT_MS}
        for copy in self.copies:
            if copy.event.lease is not None and copy.event.lease.expires_at_ms <= now_ms:
                copy.lost_leases += 1
                copy.claim = ""
                copy.set_status(Status.DEAD if copy.lost_leases == self.max_deliveries else Status.UNDELIVERED)

    def put(self, events: Sequence[NewEvent], now_ms: int, expires_at_s: int) -> None:
        for event in events:
            for inbox in (Inbox(DEFAULT_INBOX, None, 0, self.default_enabled), *self.inboxes):
                if inbox.receives(event.event_type):
                    status = Status.UNDELIVERED if inbox.enabled else Status.DELIVERED
                    stored = Event(event.event_id, event.event_type, now_ms, status, 0, None, event.payload)
                    self.copies.append(Copy(stored._replace(inbox=inbox.name), expires_at_s))
                    self.counts[inbox.name, "received"] += 1
                    self.counts[inbox.name, "bytes"] += len(event.payload)

    def get(self, inbox: str, event_id: str) -> Copy | None:
        return next((copy for copy in self.copies_in(inbox) if copy.event.event_id == event_id), None)

    def copies_in(self, inbox: str) -> list[Copy]:
        return [copy for copy in self.copies if copy.event.inbox == inbox]

    def page(self, selection: Selection, order: Order) -> list[Event]:
        chosen = [copy.event for copy in self.copies_in(selection.inbox) if copy.is_selected_by(selection)]
        return chosen if order == Order.OLDEST else chosen[::-1]

    def eligible(self, inbox: str, now_ms: int) -> list[Copy]:
        undelivered = [copy for copy in self.copies_in(inbox) if copy.event.status == Status.UNDELIVERED]
        return [copy for copy in undelivered if copy.available_at_ms <= now_ms]

    def peek(self, inbox: str, order: Order, size: PageSize, now_ms: int) -> Page:
        eligible = self.eligible(inbox, now_ms)[:: 1 if order == Order.OLDEST else -1]
        fitting = first_page(eligible, size)
        return Page([copy.event for copy in fitting], len(fitting) < len(eligible))

    def claim(self, inbox: str, size: PageSize, now_ms: int, until_ms: int | None, attempt: str | None) -> Page:
        claim, eligible = str(next(self.claim_numbers)), self.eligible(inbox, now_ms)
        known = self.attempts.get((inbox, attempt or ""))
        wanted = first_page(eligible, size) if known is None else known.copies
        taken = [copy for copy in wanted if copy in eligible]
        if known is not None:
            known.claims.add(claim)
        elif attempt and taken:
            known = self.attempts[inbox, attempt] = Attempt(now_ms, taken, {claim})
        for copy in taken:
            self.counts[inbox, "delivered" if until_ms is None else "leased"] += 1
            copy.claim = claim
            copy.event = copy.event._replace(deliveries=copy.event.deliveries + 1)
            if until_ms is None:
                copy.set_status(Status.DELIVERED, now_ms)
            else:
                copy.set_status(Status.LEASED, lease=Lease(claim, until_ms))
        own_claims = known.claims if known else {claim}
        claimed = (Status.LEASED, Status.DELIVERED)
        mine = [one for one in wanted if one in self.copies and one.claim in own_claims and one.event.status in claimed]
        return Page([copy.event for copy in mine], bool(self.eligible(inbox, now_ms)))

    def acknowledge(self, receipts: Sequence[Receipt], now_ms: int) -> list[bool]:
        def act(copy: Copy) -> None:
            copy.set_status(Status.DELIVERED, now_ms)
            self.counts[copy.event.inbox, "delivered"] += 1

        return self._settle(receipts, {Status.DELIVERED}, act)

    def release(self, receipts: Sequence[Receipt], available_at_ms: int, failed: bool) -> list[bool]:
        def act(copy: Copy) -> None:
            copy.lost_leases += failed
            copy.set_status(Status.DEAD if copy.lost_leases == self.max_deliveries else Status.UNDELIVERED)
            copy.available_at_ms = available_at_ms

        return self._settle(receipts, {Status.UNDELIVERED, Status.DEAD}, act)

    def extend(self, receipts: Sequence[Receipt], until_ms: int) -> list[bool]:
        return self._settle(
            receipts, set(), lambda copy: copy.set_status(Status.LEASED, lease=Lease(copy.claim, until_ms))
        )

    def replay(self, inbox: str, event_id: str) -> Event | None:
        copy = self.get(inbox, event_id)
        if copy is None:
            return None
        if copy.event.status == Status.LEASED:
            raise EventLeased
        if copy.event.status in (Status.DELIVERED, Status.DEAD):
            copy.set_status(Status.UNDELIVERED)
            self.counts[inbox, "replayed"] += 1
            copy.claim, copy.lost_leases, copy.available_at_ms = "", 0, 0
        return copy.event

    def replay_all(self, selection: Selection, limit: int) -> ReplayResult:
        selected = [copy for copy in self.copies_in(selection.inbox) if copy.is_selected_by(selection)]
        chosen = [copy for copy in selected if copy.event.status in (Status.DELIVERED, Status.DEAD)]
        for copy in chosen[:limit]:
            self.replay(selection.inbox, copy.event.event_id)
        return ReplayResult(len(chosen[:limit]), len(chosen) > limit)

    def erase(self, event_id: str) -> bool:
        before = len(self.copies)
        self.copies = [copy for copy in self.copies if copy.event.event_id != event_id]
        return len(self.copies) < before

    def _settle(
        self, receipts: Sequence[Receipt], statuses_after: set[Status], act: Callable[[Copy], None]
    ) -> list[bool]:
        """Applies `act` to the events that are leased with these receipts. It leads to one of `statuses_after`.

        Returns True for each of these events, and for each whose last change was the same action.
        """
        outcomes = []
        for receipt in receipts:
            copy = self.get(receipt.inbox, receipt.event_id)
            is_claimed = copy is not None and copy.claim == receipt.claim_id
            if copy is not None and is_claimed and copy.event.status == Status.LEASED:
                act(copy)
                outcomes.append(True)
            else:
                outcomes.append(copy is not None and is_claimed and copy.event.status in statuses_after)
        return outcomes


def first_page(copies: Sequence[Copy], size: PageSize) -> list[Copy]:
    fitting: list[Copy] = []
    for copy in copies[: size.events]:
        if sum(len(other.event.payload) for other in fitting) >= size.payload_bytes:
            break
        fitting.append(copy)
    return fitting
