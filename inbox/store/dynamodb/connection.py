"""Calls to DynamoDB: limits, retries, translated errors, full table names."""

import math
import random
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from typing import Any, TypeVar

import boto3
import botocore.session
from botocore.config import Config
from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    ConnectTimeoutError,
    EndpointConnectionError,
    HTTPClientError,
)

from inbox.errors import SettingsError, StoreThrottled, StoreUnavailable
from inbox.store.dynamodb import codec, layout
from inbox.store.dynamodb.keep_alive import set_keep_alive_times
from inbox.store.dynamodb.layout import Item

T = TypeVar("T")
R = TypeVar("R")

MAX_PARALLEL_CALLS = 16
"""The maximum number of calls that a process makes at the same time for requests that need several."""
MAX_BATCH_GET = 100
"""The limit of BatchGetItem."""
MAX_BATCH_WRITE = 25
"""The limit of BatchWriteItem."""
MAX_TRIES = 8
"""Tries for a batch that was only partly carried out. The pauses add up to less than 5 seconds."""
MAX_SECONDS = 10
"""How long a call of the store repeats what DynamoDB throttles, and how long a poll takes."""
MAX_QUERIES = 50
"""The maximum number of pages that one call reads."""
TOO_MANY_ITEMS = "DynamoDB has more items to read than one call reads."
NEXT_PAGE_LIMIT = 1_000
"""Further pages are only read if an index has many entries that are expired, leased or were not asked for."""

_CONNECT_TIMEOUT_SECONDS = 1
_READ_TIMEOUT_SECONDS = 3
_BOTOCORE_ATTEMPTS = 3

# boto3 itself only reads the second variable; everything else from AWS, its container services too, sets the first.
_REGION = {"region": ("region", ["AWS_REGION", "AWS_DEFAULT_REGION"], None, None)}

# Errors that mean that nothing happened: the call, or the statement of a batch, can be repeated.
_THROTTLED = frozenset(
    {
        "LimitExceededException",
        "ProvisionedThroughputExceededException",
        "RequestLimitExceeded",
        "ThrottlingException",
        # Of statements.
        "ProvisionedThroughputExceeded",
        "ThrottlingError",
    }
)

# Errors that neither the client nor a change of this code could fix, by the sentence that tells the operator.
_TRANSIENT = {
    "DynamoDB throttles the requests: a table, a partition or the account is at its limit.": {
        *_THROTTLED,
        "UnprocessedItems",
        "UnprocessedKeys",
    },
    "No AWS credentials. Set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or give the host a role.": {
        "MissingAuthenticationTokenException",
        "NoCredentialsError",
    },
    "AWS refuses the credentials. Check that they are complete, valid and not expired.": {
        "CredentialRetrievalError",
        "ExpiredTokenException",
        "IncompleteSignatureException",
        "InvalidSignatureException",
        "PartialCredentialsError",
        "UnrecognizedClientException",
    },
    "AWS denies access to DynamoDB. Check the IAM permissions of the service.": {
        "AccessDenied",
        "AccessDeniedException",
    },
    "DynamoDB cannot be reached. Check the network, AWS_REGION and AWS_ENDPOINT_URL_DYNAMODB.": {
        "ConnectTimeoutError",
        "ConnectionClosedError",
        "EndpointConnectionError",
        "ProxyConnectionError",
        "SSLError",
    },
    "DynamoDB did not respond in time.": {"ReadTimeoutError"},
    "Another request is writing the same item. Try again.": {
        "ReplicatedWriteConflictException",
        "TransactionCanceledException",
        "TransactionConflict",
        "TransactionConflictException",
        "TransactionInProgressException",
    },
}
_CAUSES = {code: cause for cause, codes in _TRANSIENT.items() for code in codes}

AWS_ERRORS = (BotoCoreError, ClientError)


class ConditionFailed(Exception):
    """The condition of a write does not hold. `item` is the current item, if DynamoDB returned it.

    It may be None although the write asked for it and the item exists: read the item before concluding anything.
    """

    def __init__(self, item: Item | None) -> None:
        super().__init__()
        self.item = item


class Connection:
    """Create it after the fork: its sockets and threads belong to one process."""

    def __init__(self, table_prefix: str, threads: int) -> None:
        self._table_prefix = table_prefix
        self._pool = ThreadPoolExecutor(MAX_PARALLEL_CALLS, "dynamodb")
        sockets = threads + MAX_PARALLEL_CALLS
        try:
            session = boto3.session.Session(botocore_session=botocore.session.Session(_REGION))
            if not session.region_name:
                raise SettingsError("AWS_REGION is not set, and DynamoDB needs it.")
            self.client = session.client("dynamodb", config=_config(sockets, _BOTOCORE_ATTEMPTS))
            self._client_without_retries = session.client("dynamodb", config=_config(sockets, 1))
        except (BotoCoreError, ValueError) as error:
            # botocore names the setting that is wrong: the region, the endpoint, the profile, incomplete credentials, …
            raise SettingsError(f"The AWS configuration is invalid. {str(error).rstrip('.')}.") from None
        for client in (self.client, self._client_without_retries):
            codec.install(client)
            set_keep_alive_times(client)

    def table(self, name: str) -> str:
        return self._table_prefix + name

    def call(self, operation: str, **parameters: Any) -> dict[str, Any]:
        """Calls an operation that is safe to repeat. botocore repeats it if no response arrives."""
        try:
            response: dict[str, Any] = getattr(self.client, operation)(**parameters)
        except AWS_ERRORS as error:
            raise translate_error(error) from error
        return response

    def call_once(self, operation: str, **parameters: Any) -> dict[str, Any]:
        """Calls an operation that is not safe to repeat. Raises AWS_ERRORS untranslated."""
        response: dict[str, Any] = getattr(self._client_without_retries, operation)(**parameters)
        return response

    def write(self, write: dict[str, Any], **parameters: Any) -> dict[str, Any]:
        """Carries out a single write, which costs half as much as a transaction."""
        ((kind, expression),) = write.items()
        return self.call(f"{kind.lower()}_item", **expression, **parameters)

    def transact(self, *writes: dict[str, Any]) -> None:
        """Carries out all writes or none. Raises ConditionFailed if a condition does not hold."""
        for attempt in range(MAX_TRIES):
            try:
                # botocore's retries carry the same token. It would add one only after the codec has run.
                token = uuid.uuid4().hex
                self.call("transact_write_items", TransactItems=list(writes), ClientRequestToken=token)
                return
            except StoreUnavailable as error:
                if attempt == MAX_TRIES - 1 or not _is_transaction_conflict(error.__cause__):
                    raise
            back_off(attempt)

    def try_write(self, *writes: dict[str, Any]) -> bool:
        """Carries out all writes or none. Returns False if a condition does not hold."""
        try:
            if len(writes) == 1:
                self.write(writes[0])
            else:
                self.transact(*writes)
        except ConditionFailed:
            return False
        return True

    def get(self, table: str, key: Item) -> dict[str, Any] | None:
        response = self.call("get_item", TableName=self.table(table), Key=key, ConsistentRead=True)
        return response.get("Item")

    def get_many(self, table: str, keys: Sequence[Item], **projection: Any) -> list[dict[str, Any]]:
        """Returns the items that exist, in any order."""
        found = []
        # BatchGetItem refuses a key that is given twice.
        distinct = {tuple(value["S"] for value in key.values()): key for key in keys}
        for group in groups_of(MAX_BATCH_GET, distinct.values()):
            request = {self.table(table): {"Keys": group, "ConsistentRead": True, **projection}}
            for response in self.call_batch("batch_get_item", request, "UnprocessedKeys"):
                found += response["Responses"].get(self.table(table), [])
        return found

    def call_batch(self, operation: str, request: Item, unprocessed: str) -> list[dict[str, Any]]:
        """Repeats the call with what DynamoDB has not processed. Returns all responses."""
        responses = []
        for attempt in range(MAX_TRIES):
            responses.append(self.call(operation, RequestItems=request))
            request = responses[-1].get(unprocessed) or {}
            if not request:
                return responses
            back_off(attempt)
        raise no_result(unprocessed)

    def query(self, **query: Any) -> dict[str, Any]:
        """Returns one page. Every read of an index goes through here: entries that do not belong in it are left out."""
        page = self.call("query", **query)
        if "IndexName" in query:
            page["Items"] = [item for item in page["Items"] if layout.is_own_entry(query["IndexName"], item)]
        return page

    def query_items(self, table: str, **query: Any) -> Iterator[dict[str, Any]]:
        """Yields the items of a query and reads pages as they are needed, up to MAX_QUERIES."""
        query["TableName"] = self.table(table)
        for _ in range(MAX_QUERIES):
            page = self.query(**query)
            yield from page["Items"]
            if "LastEvaluatedKey" not in page:
                return
            query |= {"Limit": NEXT_PAGE_LIMIT, "ExclusiveStartKey": page["LastEvaluatedKey"]}
        raise StoreUnavailable(TOO_MANY_ITEMS)

    def all_items(self, table: str, **query: Any) -> Iterator[dict[str, Any]]:
        """Yields every item of a query, however many there are. For operators' commands only."""
        while True:
            page = self.query(TableName=self.table(table), **query)
            yield from page["Items"]
            if "LastEvaluatedKey" not in page:
                return
            query["ExclusiveStartKey"] = page["LastEvaluatedKey"]

    def map_parallel(self, function: Callable[[T], R], values: Iterable[T]) -> list[R]:
        """Returns the results in the order of `values`. `function` must not call this method: it could deadlock."""
        values = list(values)
        return [function(value) for value in values] if len(values) < 2 else list(self._pool.map(function, values))

    def close(self) -> None:
        self._pool.shutdown()
        self.client.close()
        self._client_without_retries.close()


def _config(sockets: int, attempts: int) -> Config:
    return Config(
        connect_timeout=_CONNECT_TIMEOUT_SECONDS,
        read_timeout=_READ_TIMEOUT_SECONDS,
        max_pool_connections=sockets,
        retries={"mode": "standard", "total_max_attempts": attempts},
        tcp_keepalive=True,
        # Only this package builds parameters, and validating them costs more CPU than sending them.
        parameter_validation=False,
        # botocore builds its own for each call, which takes a fifth of the call's CPU.
        user_agent=f"polling-inbox Boto3/{boto3.__version__}",
    )


def error_code(error: Exception) -> str:
    return str(error.response["Error"]["Code"]) if isinstance(error, ClientError) else type(error).__name__


def is_throttled(error: Exception) -> bool:
    return error_code(error) in _THROTTLED


def may_have_succeeded(error: Exception) -> bool:
    """Returns True if DynamoDB may have carried out the call although no response arrived."""
    if isinstance(error, ClientError):
        return bool(error.response["ResponseMetadata"]["HTTPStatusCode"] >= 500)
    return isinstance(error, HTTPClientError) and not isinstance(error, ConnectTimeoutError | EndpointConnectionError)


def translate_error(error: Exception) -> Exception:
    """Returns ConditionFailed, StoreUnavailable for a transient error, or the error itself, which is then a bug."""
    code = error_code(error)
    response: dict[str, Any] = error.response if isinstance(error, ClientError) else {}
    if code == "ConditionalCheckFailedException" or "ConditionalCheckFailed" in _cancellation_reasons(response):
        return ConditionFailed(response.get("Item"))
    if code == "ResourceNotFoundException":
        return StoreUnavailable(
            "A table is missing in DynamoDB. Check AWS_REGION and INBOX_TABLE_PREFIX, or run `inbox init`."
        )
    # A code that is a number is the status of a response that did not come from DynamoDB.
    is_transient = isinstance(error, BotoCoreError) or code in _CAUSES or code.isdigit()
    if is_transient or response["ResponseMetadata"]["HTTPStatusCode"] >= 500:
        # The operations of a transaction that did not fail have the reason "None".
        reasons = (reason for reason in _cancellation_reasons(response) if reason not in (None, "None"))
        return no_result(next(reasons, code))
    return error


def no_result(code: str) -> StoreUnavailable:
    cause = _CAUSES.get(code, f"DynamoDB returned no result ({code}).")
    return StoreThrottled(cause) if code in _THROTTLED else StoreUnavailable(cause)


def _is_transaction_conflict(error: BaseException | None) -> bool:
    """Returns True if another transaction wrote one of the items at the same time."""
    return isinstance(error, ClientError) and "TransactionConflict" in _cancellation_reasons(error.response)


def _cancellation_reasons(response: Item) -> list[str | None]:
    return [reason.get("Code") for reason in response.get("CancellationReasons", [])]


def groups_of(size: int, values: Iterable[T]) -> Iterator[list[T]]:
    remaining = iter(values)
    while group := list(islice(remaining, size)):
        yield group


def new_deadline() -> float:
    """Returns the time on the monotonic clock at which a call of the store that begins now has to end."""
    return time.monotonic() + MAX_SECONDS


def back_off(attempt: int, deadline: float = math.inf) -> bool:
    """Pauses before the next try. Returns False, without a pause, if that would be after the deadline."""
    pause_seconds = random.uniform(0, min(1.0, 0.05 * 2 ** min(attempt, 5)))  # noqa: S311 - a jitter, not a secret
    if time.monotonic() + pause_seconds > deadline:
        return False
    time.sleep(pause_seconds)
    return True
