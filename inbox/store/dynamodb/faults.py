"""Which of DynamoDB's errors mean what."""

from typing import Any

from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    ConnectTimeoutError,
    EndpointConnectionError,
    HTTPClientError,
)

from inbox.errors import StoreUnavailable
from inbox.store.dynamodb.layout import Item

# Refused before anything happened: the same call may simply be made again.
_THROTTLED = frozenset(
    {
        "LimitExceededException",
        "ProvisionedThroughputExceededException",
        "RequestLimitExceeded",
        "ThrottlingException",
    }
)

# Nothing that the caller could mend, and nothing wrong with the call.
_PASSING = _THROTTLED | {
    "AccessDeniedException",
    "ExpiredTokenException",
    "IncompleteSignatureException",
    "InvalidSignatureException",
    "MissingAuthenticationTokenException",
    "ReplicatedWriteConflictException",
    "TransactionCanceledException",
    "TransactionConflictException",
    "TransactionInProgressException",
    "UnrecognizedClientException",
}

ERRORS = (BotoCoreError, ClientError)


class ConditionFailed(Exception):
    """The condition of a write does not hold. `there` is the item that it met, if DynamoDB has returned it.

    It may be missing although the write asked for it and the item exists: read the item before concluding anything.
    """

    def __init__(self, there: Item | None) -> None:
        super().__init__()
        self.there = there


def code_of(error: Exception) -> str:
    return str(error.response["Error"]["Code"]) if isinstance(error, ClientError) else type(error).__name__


def is_throttled(error: Exception) -> bool:
    return code_of(error) in _THROTTLED


def may_have_happened(error: Exception) -> bool:
    """Whether a call that brought no answer can have been carried out all the same."""
    if isinstance(error, ClientError):
        return bool(error.response["ResponseMetadata"]["HTTPStatusCode"] >= 500)
    return isinstance(error, HTTPClientError) and not isinstance(error, ConnectTimeoutError | EndpointConnectionError)


def is_conflict(error: BaseException | None) -> bool:
    """Whether a transaction met another one."""
    return isinstance(error, ClientError) and "TransactionConflict" in _reasons(error.response)


def translated(error: Exception) -> Exception:
    """A failed condition and a passing fault become exceptions of ours; anything else is a bug, and stays."""
    code = code_of(error)
    response: dict[str, Any] = error.response if isinstance(error, ClientError) else {}
    if code == "ConditionalCheckFailedException" or "ConditionalCheckFailed" in _reasons(response):
        return ConditionFailed(response.get("Item"))
    if code == "ResourceNotFoundException":
        return StoreUnavailable("A table is missing in DynamoDB; `inbox init` makes it.")
    # A number is a status without a code: whatever answered, it was not DynamoDB.
    passing = isinstance(error, BotoCoreError) or code in _PASSING or code.isdigit()
    if passing or response["ResponseMetadata"]["HTTPStatusCode"] >= 500:
        return StoreUnavailable(f"DynamoDB did not answer ({code}).")
    return error


def _reasons(response: Item) -> list[str | None]:
    return [reason.get("Code") for reason in response.get("CancellationReasons", [])]
