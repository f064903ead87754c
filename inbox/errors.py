"""The errors of the service. Independent of HTTP: `inbox.api.problems` maps each to a response."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil


@dataclass(frozen=True, slots=True)
class FieldError:
    """One entry of a problem's `errors`: a JSON pointer or the name of a parameter, and what is wrong there."""

    pointer: str
    detail: str


class InboxError(Exception):
    """The client or the operator sees the message, so it never contains a key or a payload."""

    field_errors: tuple[FieldError, ...] = ()
    retry_after_seconds: int | None = None


class InvalidRequest(InboxError):
    """Invalid body members or parameters. The message is the only field error or refers to the list, plus `advice`."""

    def __init__(self, field_errors: Sequence[FieldError], advice: str = "") -> None:
        is_single = len(field_errors) == 1
        detail = field_errors[0].detail if is_single else "`errors` lists what is wrong with the request."
        super().__init__(f"{detail} {advice}".rstrip())
        self.field_errors = tuple(field_errors)


class EventTooLarge(InboxError):
    """`positions` are the indexes of the too large events in a batch."""

    def __init__(self, detail: str, positions: Sequence[int] = ()) -> None:
        super().__init__(detail)
        self.positions = tuple(positions)


class IdempotencyConflict(InboxError):
    """`positions` are the indexes of the conflicting events in a batch."""

    def __init__(self, positions: Sequence[int]) -> None:
        super().__init__("The idempotency key was used for a different event. Nothing was stored. Use a new key.")
        self.positions = tuple(positions)


class NotFound(InboxError):
    """A resource that does not exist or belongs to another tenant.

    The message does not contain its ID or name: a client may have sent a key in their place.
    """

    def __init__(self, kind: str) -> None:
        super().__init__(f"The {kind} does not exist.")


class TenantExists(InboxError):
    def __init__(self, tenant_id: str) -> None:
        super().__init__(f"The tenant {tenant_id} already exists.")


class EmailTaken(InboxError):
    def __init__(self) -> None:
        super().__init__("Another tenant uses this email address. Use a different one.")


class NotAllowed(InboxError):
    """The operation is not possible for this tenant, key or store, or with this value."""


class InvalidStatusTransition(InboxError):
    """The tenant cannot change to that status."""


class TooManyKeys(InboxError):
    """The tenant has reached its limit of active keys."""

    def __init__(self, limit: int) -> None:
        super().__init__(f"The tenant has {limit} active keys. Revoke one first.")


class Unauthenticated(InboxError):
    def __init__(self) -> None:
        super().__init__("Send a valid API key as `Authorization: Bearer KEY`.")


class TooManyFailures(InboxError):
    """An address has reached its limit of requests without a valid API key."""

    def __init__(self, wait_seconds: float) -> None:
        self.retry_after_seconds = ceil(wait_seconds)
        retry_after = _quantity(self.retry_after_seconds, "second")
        super().__init__(f"This address sent too many requests without a valid API key. Retry after {retry_after}.")


class RateLimited(InboxError):
    """The tenant has reached its limit of requests per second."""

    def __init__(self, requests_per_second: int, wait_seconds: float) -> None:
        self.retry_after_seconds = ceil(wait_seconds)
        limit = _quantity(requests_per_second, "request")
        retry_after = _quantity(self.retry_after_seconds, "second")
        super().__init__(f"The tenant exceeded {limit} per second. Retry after {retry_after}.")


class EventLeased(InboxError):
    def __init__(self) -> None:
        super().__init__("The event is leased. Replay it after the lease has ended.")


class TooManyInboxes(InboxError):
    """The tenant has reached its limit of named inboxes."""

    def __init__(self, limit: int) -> None:
        super().__init__(f"The tenant has {limit} named inboxes. Delete one first.")


class InboxExists(InboxError):
    def __init__(self, name: str) -> None:
        super().__init__(f"The inbox {name} already exists. Nothing was changed.")


class InboxClosing(InboxError):
    retry_after_seconds = 1

    def __init__(self, name: str) -> None:
        super().__init__(f"The inbox {name} is still being deleted.")


class BackupFailed(InboxError):
    """A backup or restore failed; nothing was changed."""


class Overloaded(InboxError):
    """The process is parsing as many request bodies as fit into its memory."""

    retry_after_seconds = 1


class StoreUnavailable(InboxError):
    """The store does not respond or cannot be used now; a retry may succeed."""

    retry_after_seconds = 1


class StoreThrottled(StoreUnavailable):
    """The store has not carried out a call, or a part of it, because of its limits."""


class StoreFull(StoreUnavailable):
    """The disk has no room for the write."""


class SettingsError(InboxError):
    """Invalid settings, or settings that do not work on this machine."""


def _quantity(number: int, unit: str) -> str:
    return f"1 {unit}" if number == 1 else f"{number} {unit}s"
