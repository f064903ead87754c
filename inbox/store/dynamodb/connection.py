"""The way to DynamoDB: clients with limits, errors translated, tables by their full names."""

import random
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
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
    NoRegionError,
)

from inbox.errors import SettingsError, StoreUnavailable
from inbox.store.dynamodb import codec
from inbox.store.dynamodb.layout import EVENT_INDEXES, Item, own_entries

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


def translate_error(error: Exception) -> Exception:
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


T = TypeVar("T")

AT_ONCE = 16
"""Calls that a process has under way at the same time for requests that need many of them."""

_CONNECT_SECONDS = 1
_READ_SECONDS = 3
_ATTEMPTS = 3
READ_AT_ONCE = 100
"""What BatchGetItem takes."""
PATIENCE = 8
"""How often part of a batch is sent again; the pauses add up to 4.5 seconds at most."""

# Further queries are for an index with many entries that nobody can have any more, or that nobody asked for.
LATER_LIMIT = 1_000
MAX_QUERIES = 50

# boto3 itself reads only the second; everything else from AWS, its container services too, sets the first.
_REGION = {"region": ("region", ["AWS_REGION", "AWS_DEFAULT_REGION"], None, None)}


class Connection:
    """Made after the fork: its sockets and threads belong to one process."""

    def __init__(self, table_prefix: str, threads: int) -> None:
        self._table_prefix = table_prefix
        self._pool = ThreadPoolExecutor(AT_ONCE, "dynamodb")
        sockets = threads + AT_ONCE
        try:
            session = boto3.session.Session(botocore_session=botocore.session.Session(_REGION))
            self.client = session.client("dynamodb", config=_config(sockets, _ATTEMPTS))
            self._once = session.client("dynamodb", config=_config(sockets, 1))
        except NoRegionError:
            raise SettingsError("AWS_REGION is not set, and DynamoDB needs it") from None
        except (BotoCoreError, ValueError) as error:
            raise SettingsError(f"DynamoDB cannot be used: {error}") from None
        for client in (self.client, self._once):
            codec.take_over(client)

    def table(self, name: str) -> str:
        return self._table_prefix + name

    def call(self, operation: str, **parameters: Any) -> dict[str, Any]:
        """Any operation that may be repeated without harm, and is, where an answer fails to come."""
        try:
            answer: dict[str, Any] = getattr(self.client, operation)(**parameters)
        except ERRORS as error:
            raise translate_error(error) from error
        return answer

    def call_once(self, operation: str, **parameters: Any) -> dict[str, Any]:
        """An operation that could do harm when repeated. Its errors come as they are."""
        answer: dict[str, Any] = getattr(self._once, operation)(**parameters)
        return answer

    def transact(self, *writes: dict[str, Any]) -> None:
        """All of the writes or none. ConditionFailed where a condition of any does not hold."""
        for attempt in range(PATIENCE):
            try:
                self.call("transact_write_items", TransactItems=list(writes))
                return
            except StoreUnavailable as error:
                # Somebody else writes one of the items at the same moment.
                if attempt == PATIENCE - 1 or not is_conflict(error.__cause__):
                    raise
            pause(attempt)

    def get(self, table: str, key: Item) -> dict[str, Any] | None:
        answer = self.call("get_item", TableName=self.table(table), Key=key, ConsistentRead=True)
        return answer.get("Item")

    def get_many(self, table: str, keys: Sequence[Item], **only: Any) -> list[dict[str, Any]]:
        """Those of the items that are there, in any order."""
        found = []
        # BatchGetItem refuses a key that is given twice.
        distinct = {tuple(value["S"] for value in key.values()): key for key in keys}
        for some in groups_of(READ_AT_ONCE, distinct.values()):
            waiting: dict[str, Any] = {self.table(table): {"Keys": some, "ConsistentRead": True, **only}}
            for attempt in range(PATIENCE):
                answer = self.call("batch_get_item", RequestItems=waiting)
                found += answer["Responses"].get(self.table(table), [])
                waiting = answer.get("UnprocessedKeys") or {}
                if not waiting:
                    break
                pause(attempt)
            else:
                raise StoreUnavailable("DynamoDB did not answer (UnprocessedKeys).")
        return found

    def query(self, **query: Any) -> dict[str, Any]:
        """Returns one page, without index entries that point to events of another tenant than the one asked for."""
        page = self.call("query", **query)
        if query.get("IndexName") in EVENT_INDEXES:
            page["Items"] = own_entries(query["ExpressionAttributeValues"][":partition"]["S"], page["Items"])
        return page

    def walk(self, **query: Any) -> Iterator[dict[str, Any]]:
        """What a query finds, fetched as it is asked for."""
        page = self.query(**query)
        for _ in range(MAX_QUERIES):
            yield from page["Items"]
            if "LastEvaluatedKey" not in page:
                return
            later = query | {"Limit": LATER_LIMIT, "ExclusiveStartKey": page["LastEvaluatedKey"]}
            page = self.query(**later)
        raise too_much()

    def all_pages(self, operation: str, **parameters: Any) -> Iterator[dict[str, Any]]:
        """Every item of a query or scan that an operator asked for; a request of a client never walks a table."""
        while True:
            answer = self.call(operation, **parameters)
            yield from answer["Items"]
            if "LastEvaluatedKey" not in answer:
                return
            parameters["ExclusiveStartKey"] = answer["LastEvaluatedKey"]

    def at_once(self, act: Any, things: Iterable[T]) -> list[Any]:
        """`act` on each, several at a time, answers in the order of the things. `act` itself must not come here."""
        things = list(things)
        return [act(each) for each in things] if len(things) < 2 else list(self._pool.map(act, things))

    def close(self) -> None:
        self._pool.shutdown()
        self.client.close()
        self._once.close()


def too_much() -> StoreUnavailable:
    return StoreUnavailable("There is too much to look through in DynamoDB.")


def _config(sockets: int, attempts: int) -> Config:
    return Config(
        connect_timeout=_CONNECT_SECONDS,
        read_timeout=_READ_SECONDS,
        max_pool_connections=sockets,
        retries={"mode": "standard", "total_max_attempts": attempts},
        tcp_keepalive=True,
        # What goes in is built by this package alone, and checking it costs more CPU than sending it.
        parameter_validation=False,
        # botocore puts its own together anew for each call, which takes a fifth of the call's CPU.
        user_agent=f"polling-inbox Boto3/{boto3.__version__}",
    )


def groups_of(size: int, things: Iterable[T]) -> Iterator[list[T]]:
    remaining = iter(things)
    while group := list(islice(remaining, size)):
        yield group


def pause(attempt: int) -> None:
    """Longer after each attempt, and never the same for two who were refused together."""
    time.sleep(random.uniform(0, min(1.0, 0.05 * 2**attempt)))  # noqa: S311 - a jitter, not a secret


def optional(attribute: Callable[[T], dict[str, str]], value: T | None) -> dict[str, str] | None:
    return None if value is None else attribute(value)


def put(table: str, item: Item, condition: str | None = None) -> dict[str, Any]:
    there = {name: value for name, value in item.items() if value is not None}
    write = {"TableName": table, "Item": there}
    return write if condition is None else {**write, "ConditionExpression": condition}


def update(
    table: str, key: Item, attributes: Item, condition: str, values: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Sets these attributes and no others. The condition has them too: `#name` as it was, `:name` as it will be."""
    kept = {name: value for name, value in attributes.items() if value is not None}
    dropped = [f"#{name}" for name in attributes if name not in kept]
    expression = "SET " + ", ".join(f"#{name} = :{name}" for name in kept)
    return {
        "TableName": table,
        "Key": key,
        "UpdateExpression": f"{expression} REMOVE {', '.join(dropped)}" if dropped else expression,
        "ConditionExpression": condition,
        "ExpressionAttributeNames": {f"#{name}": name for name in attributes},
        "ExpressionAttributeValues": {f":{name}": value for name, value in kept.items()} | dict(values or {}),
    }
