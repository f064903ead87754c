"""The errors of the service. They know nothing of HTTP: `inbox.api.problems` maps each to a response.

InboxError
├── InvalidRequest            invalid body members or parameters, each with a pointer
├── EventTooLarge             an event is larger than the limit
├── IdempotencyConflict       the idempotency key belongs to a different event
├── NotFound                  does not exist, or belongs to another tenant
├── TenantExists              the tenant ID is taken
├── EmailTaken                the e-mail belongs to another tenant
├── NotAllowed                the operation does not apply to this tenant or store
├── InvalidStatusTransition   the tenant cannot change to that status
├── TooManyKeys               the tenant has as many active keys as it may have
├── Unauthenticated           no valid key
├── TooManyFailures           too many requests without a valid key from one address
├── RateLimited               more requests than the tenant may make
├── EventLeased               a leased event cannot be replayed
├── TooManyInboxes            the tenant has as many inboxes as it may have
├── InboxExists               the inbox exists, and the request must not replace it
├── InboxClosing              an inbox with that name is still being deleted
├── BackupFailed              a backup or restore failed; nothing was changed
├── Overloaded                request bodies take all of the memory that they may take; a retry may succeed
├── StoreUnavailable          the store did not respond in time; a retry may succeed
│   └── StoreFull             the disk has no room for the write
└── SettingsError             invalid settings, or settings that do not work on this machine
"""

from collections.abc import Sequence
from dataclasses import dataclass


class InboxError(Exception):
    """The message is shown to the client or the operator. It never contains a key or a payload."""


@dataclass(frozen=True, slots=True)
class FieldError:
    """One entry of a problem's `errors`: a JSON pointer or the name of a parameter, and what is wrong there."""

    pointer: str
    detail: str


class InvalidRequest(InboxError):
    def __init__(
        self,
        field_errors: Sequence[FieldError],
        detail: str = "`errors` lists what is wrong with the request.",
    ) -> None:
        super().__init__(detail)
        self.field_errors = tuple(field_errors)


class EventTooLarge(InboxError):
    """`positions` are the indexes of the events in a batch."""

    def __init__(self, detail: str, positions: Sequence[int] = ()) -> None:
        super().__init__(detail)
        self.positions = tuple(positions)
        self.field_errors: tuple[FieldError, ...] = ()


class IdempotencyConflict(InboxError):
    """`positions` are the indexes of the conflicting events in a batch."""

    def __init__(self, positions: Sequence[int]) -> None:
        super().__init__("The idempotency key was used for a different event. Nothing was stored.")
        self.positions = tuple(positions)
        self.field_errors: tuple[FieldError, ...] = ()


class NotFound(InboxError):
    pass


class TenantExists(InboxError):
    pass


class EmailTaken(InboxError):
    def __init__(self) -> None:
        super().__init__("The e-mail belongs to another tenant.")


class NotAllowed(InboxError):
    pass


class InvalidStatusTransition(InboxError):
    pass


class TooManyKeys(InboxError):
    pass


class Unauthenticated(InboxError):
    def __init__(self) -> None:
        super().__init__("Send a valid API key as `Authorization: Bearer KEY`.")


class TooManyFailures(InboxError):
    def __init__(self, wait_seconds: float) -> None:
        super().__init__("Too many requests without a valid API key came from this address.")
        self.wait_seconds = wait_seconds


class RateLimited(InboxError):
    def __init__(self, requests_per_second: int, wait_seconds: float) -> None:
        super().__init__(f"The tenant may make {requests_per_second} requests per second.")
        self.wait_seconds = wait_seconds


class EventLeased(InboxError):
    def __init__(self) -> None:
        super().__init__("The event is leased. Replay it after the lease has ended.")


class TooManyInboxes(InboxError):
    pass


class InboxExists(InboxError):
    def __init__(self, name: str) -> None:
        super().__init__(f"The inbox {name} already exists. Nothing was changed.")


class InboxClosing(InboxError):
    pass


class BackupFailed(InboxError):
    pass


class Overloaded(InboxError):
    def __init__(self) -> None:
        super().__init__(
            "The service is parsing as many request bodies as fit in its memory. Nothing was changed. Try again."
        )


class StoreUnavailable(InboxError):
    pass


class StoreFull(StoreUnavailable):
    pass


class SettingsError(InboxError):
    pass
