"""The errors of the service. They know nothing of HTTP: `inbox.api.problems` maps each to a response."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class FieldError:
    """One entry of a problem's `errors`: a JSON pointer or the name of a parameter, and what is wrong there."""

    pointer: str
    detail: str


class InboxError(Exception):
    """The message is shown to the client or the operator. It never contains a key or a payload."""

    field_errors: tuple[FieldError, ...] = ()


class InvalidRequest(InboxError):
    """Invalid body members or parameters, each with a pointer."""

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


class IdempotencyConflict(InboxError):
    """`positions` are the indexes of the conflicting events in a batch."""

    def __init__(self, positions: Sequence[int]) -> None:
        super().__init__("The idempotency key was used for a different event. Nothing was stored.")
        self.positions = tuple(positions)


class NotFound(InboxError):
    """Does not exist, or belongs to another tenant."""


class TenantExists(InboxError):
    def __init__(self, tenant_id: str) -> None:
        super().__init__(f"The tenant {tenant_id} already exists.")


class EmailTaken(InboxError):
    def __init__(self) -> None:
        super().__init__("The e-mail belongs to another tenant.")


class NotAllowed(InboxError):
    """The operation does not apply to this tenant or store."""


class InvalidStatusTransition(InboxError):
    """The tenant cannot change to that status."""


class TooManyKeys(InboxError):
    """The tenant has as many active keys as it may have."""


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
    def __init__(self, limit: int) -> None:
        super().__init__(f"A tenant can have up to {limit} inboxes.")


class InboxExists(InboxError):
    def __init__(self, name: str) -> None:
        super().__init__(f"The inbox {name} already exists. Nothing was changed.")


class InboxClosing(InboxError):
    def __init__(self, name: str) -> None:
        super().__init__(f"The inbox {name} is still being deleted.")


class BackupFailed(InboxError):
    """A backup or restore failed; nothing was changed."""


class Overloaded(InboxError):
    def __init__(self) -> None:
        super().__init__(
            "The service is parsing as many request bodies as fit in its memory. Nothing was changed. Try again."
        )


class StoreUnavailable(InboxError):
    """The store did not respond in time; a retry may succeed."""


class StoreFull(StoreUnavailable):
    """The disk has no room for the write."""


class SettingsError(InboxError):
    """Invalid settings, or settings that do not work on this machine."""
