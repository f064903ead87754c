"""Writes down which rights the product's calls to DynamoDB need: a plugin of botocore, in every process of a test run.

Alone in its folder, which is on the path of all of these processes and must bring nothing else along.
"""

import os
import re
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import FrameType
from typing import Any

FOLDER = "RECORDED_CALLS_FOLDER"

_TABLE = re.compile(r"(?:Events|TenantApiKeys|Tenants)$")
_STATEMENT = re.compile(
    r'\s*(?:(UPDATE)|(INSERT)\s+INTO|(DELETE)\s+FROM|(SELECT)\s.*?\sFROM)\s+"([^"]+)"(?:\."([^"]+)")?',
    re.IGNORECASE | re.DOTALL,
)
# A transaction has no action of its own.
_IN_TRANSACTIONS = {
    "ConditionCheck": "ConditionCheckItem",
    "Delete": "DeleteItem",
    "Get": "GetItem",
    "Put": "PutItem",
    "Update": "UpdateItem",
}
_NAMED_AS_THEIR_ACTION = {
    *("GetItem", "PutItem", "UpdateItem", "DeleteItem", "Query", "Scan"),
    *("CreateTable", "DescribeTable", "DescribeTimeToLive", "UpdateTimeToLive", "UpdateContinuousBackups"),
}

_PRODUCT = ("authorizer.", "inbox.")
_NOT_THE_PRODUCT = ("bench.", "tests.")
# Between a call and who asks for it.
_ON_THE_WAY = (f"{__name__}.", "inbox.store.dynamodb.connection.")
# What no request of a client comes to, where nothing but the function tells whose call it is.
_MODULES_OF_COMMANDS = (
    "inbox.services.store_copy",
    "inbox.store.dynamodb.import_events",
    "inbox.store.dynamodb.tables",
)
_FUNCTIONS_OF_COMMANDS = ("DynamoDBKeys.expire", "DynamoDBTenants.all", "DynamoDBTenants.shard")

_written: set[str] = set()


def initialize_client_plugin(client: Any) -> None:
    # Once for each call, however often it is repeated, and in the thread of who asks.
    client.meta.events.register("provide-client-params.dynamodb", _record)


def needed_rights(operation: str, parameters: dict[str, Any]) -> Iterator[str]:
    """Each as `Action table` or `Action table/index/name`, the table without its prefix."""
    if operation in _NAMED_AS_THEIR_ACTION:
        yield _right(operation, parameters["TableName"], parameters.get("IndexName"))
    elif operation in ("BatchGetItem", "BatchWriteItem"):
        yield from (_right(operation, table) for table in parameters["RequestItems"])
    elif operation in ("TransactGetItems", "TransactWriteItems"):
        for kind, item in (each for part in parameters["TransactItems"] for each in part.items()):
            yield _right(_IN_TRANSACTIONS[kind], item["TableName"])
    elif operation in ("BatchExecuteStatement", "ExecuteStatement"):
        yield from (_of_statement(each["Statement"]) for each in parameters.get("Statements", [parameters]))
    else:
        yield f"{operation} ?"


def _right(action: str, table: str, index: str | None = None) -> str:
    name = _TABLE.search(table)
    return f"{action} {name[0] if name else table}" + (f"/index/{index}" if index else "")


@cache
def _of_statement(statement: str) -> str:
    found = _STATEMENT.match(statement)
    if found is None:
        return "PartiQL ?"
    *verbs, table, index = found.groups()
    return _right(f"PartiQL{''.join(filter(None, verbs)).capitalize()}", table, index)


def _record(params: dict[str, Any], model: Any, **_: Any) -> None:
    frames = list(_frames())
    ours = [frame for frame in frames if _is_ours(frame.f_globals["__name__"])]
    # Nobody is left where a thread of the store's own pool was told to make the call: then it counts too.
    asking = next((frame for frame in ours if not _module(frame).startswith(_ON_THE_WAY)), frames[-1])
    # AWS's own command line makes calls in a test run, too.
    is_product = any(_module(frame).startswith(_PRODUCT) for frame in ours)
    if not is_product or _module(asking).startswith(_NOT_THE_PRODUCT):
        return
    program = _program(ours, asking)
    for right in set(needed_rights(model.name, params)):
        line = f"{program}\t{right}\t{_module(asking)}{asking.f_code.co_qualname}\n"
        if line not in _written:
            _written.add(line)
            # At once: processes are killed. By the process: it may have been forked since.
            with (Path(os.environ[FOLDER]) / str(os.getpid())).open("a") as file:
                file.write(line)


def _frames() -> Iterator[FrameType]:
    frame: FrameType | None = sys._getframe()
    while frame is not None:
        yield frame
        frame = frame.f_back


# Asked of every frame of every call.
@cache
def _is_ours(module: str) -> bool:
    return f"{module}.".startswith((*_PRODUCT, *_NOT_THE_PRODUCT))


def _module(frame: FrameType) -> str:
    """With a dot behind it, so that no other module's name begins with it."""
    return f"{frame.f_globals['__name__']}."


def _program(ours: list[FrameType], asking: FrameType) -> str:
    if _module(asking) == "authorizer.lambda_handler.":
        return "authorizer"
    command = sys.argv[1] if Path(sys.argv[0]).name == "inbox" else None
    if command in (None, "quickstart"):
        return "operator" if any(_is_of_commands(frame) for frame in ours) else "service"
    return {"serve": "service", "backlog": "backlog"}.get(command, "operator")


def _is_of_commands(frame: FrameType) -> bool:
    is_function = frame.f_code.co_qualname in _FUNCTIONS_OF_COMMANDS
    return frame.f_globals["__name__"] in _MODULES_OF_COMMANDS or (
        is_function and _module(frame).startswith("inbox.store.dynamodb.")
    )
