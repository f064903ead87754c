"""What can go wrong, as classes. They know no HTTP: `inbox.api.problems` says what each becomes there.

InboxError
├── InvalidRequest          members or parameters that break the contract, each with a pointer
├── EventTooLarge           an event above the limit
├── IdempotencyConflict     a key that already stands for another event
├── NotFound                no such thing, or another tenant's
├── AlreadyExists           a tenant of that id
├── EmailTaken              an e-mail that belongs to another tenant
├── NotAllowed              a request that makes no sense for this tenant
├── WrongStep               a status transition that is not allowed
├── TooManyKeys             a tenant's keys are limited
├── Unauthenticated         no valid key
├── TooManyFailures         an address that came without a valid key too often
├── RateLimited             more requests than the tenant may make
├── EventLeased             an event in somebody's hands, which a replay would take away
├── TooManyInboxes          a tenant's inboxes are limited
├── InboxExists             an inbox of that name, which the request must not replace
├── InboxClosing            an inbox of that name is still being removed
├── BackupFailed            a backup that cannot be made or put back; nothing has changed
├── Overloaded              more request bodies than fit in memory at the same time; trying again may work
├── StoreUnavailable        the store did not answer in time; trying again may work
│   └── StoreFull           the disk has no room for the write
└── SettingsError           settings that make no sense, or not on this machine
"""

from collections.abc import Sequence
from dataclasses import dataclass


class InboxError(Exception):
    """The message is for the person who caused it, and quotes neither a key nor a payload."""


@dataclass(frozen=True, slots=True)
class FieldError:
    """One thing wrong with a request: where (a JSON pointer, or a parameter's name) and why."""

    pointer: str
    detail: str


class InvalidRequest(InboxError):
    def __init__(
        self,
        field_errors: Sequence[FieldError],
        detail: str = "The request does not have the form that this call takes.",
    ) -> None:
        super().__init__(detail)
        self.field_errors = tuple(field_errors)


class EventTooLarge(InboxError):
    """`positions` says which of the events sent together."""

    def __init__(self, detail: str, positions: Sequence[int] = ()) -> None:
        super().__init__(detail)
        self.positions = tuple(positions)
        self.field_errors: tuple[FieldError, ...] = ()


class IdempotencyConflict(InboxError):
    """`positions` says which of the events sent together met another event under their key."""

    def __init__(self, positions: Sequence[int]) -> None:
        super().__init__("The idempotency key was used for a different event before. Nothing was stored.")
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
        super().__init__("This call needs a valid API key.")


class TooManyFailures(InboxError):
    def __init__(self, wait_seconds: float) -> None:
        super().__init__("Too many calls without a valid API key came from this address.")
        self.wait_seconds = wait_seconds


class RateLimited(InboxError):
    def __init__(self, requests_per_second: int, wait_seconds: float) -> None:
        super().__init__(f"The tenant may make {requests_per_second} requests a second.")
        self.wait_seconds = wait_seconds


class EventLeased(InboxError):
    def __init__(self) -> None:
        super().__init__("The event is leased. It can be replayed once the lease is over.")


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
        super().__init__("The service is parsing as many request bodies as fit in its memory. Nothing was changed.")


class StoreUnavailable(InboxError):
    pass


class StoreFull(StoreUnavailable):
    pass


class SettingsError(InboxError):
    pass
