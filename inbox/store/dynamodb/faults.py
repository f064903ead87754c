"""Which of DynamoDB's errors mean what."""

from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from inbox.errors import StoreUnavailable

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
    "TransactionConflictException",
    "TransactionInProgressException",
    "UnrecognizedClientException",
}

ERRORS = (BotoCoreError, ClientError)


def code_of(error: Exception) -> str:
    return str(error.response["Error"]["Code"]) if isinstance(error, ClientError) else type(error).__name__


def is_throttled(error: Exception) -> bool:
    return code_of(error) in _THROTTLED


def translated(error: Exception) -> Exception:
    """A passing fault becomes a StoreUnavailable; anything else is a bug, or a condition that failed, and stays."""
    code = code_of(error)
    if code == "ResourceNotFoundException":
        return StoreUnavailable("A table is missing in DynamoDB; `inbox init` makes it.")
    if isinstance(error, BotoCoreError) or code in _PASSING or _status(error.response) >= 500:  # type: ignore[attr-defined]
        return StoreUnavailable(f"DynamoDB did not answer ({code}).")
    return error


def _status(response: dict[str, Any]) -> int:
    return int(response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0))


def met_another_item(error: ClientError) -> bool:
    """Whether it was the condition that failed."""
    return code_of(error) == "ConditionalCheckFailedException"
