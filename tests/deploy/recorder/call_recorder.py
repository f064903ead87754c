"""A botocore plugin that records which permissions the product's calls to DynamoDB need.

Every process of a test run loads it. It has its own folder because that folder is on the PYTHONPATH of these processes.
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
# IAM has no action for transactions.
_IN_TRANSACTIONS = {
    "ConditionCheck": "ConditionCheckItem",
    "Delete": "DeleteItem",
    "Get": "GetItem",
    "Put": "PutItem",
    "Update": "UpdateItem",
}
_NAMED_LIKE_ACTIONS = {
    *("GetItem", "PutItem", "UpdateItem", "DeleteItem", "Query", "Scan"),
    *("CreateTable", "DescribeTable", "UpdateTable", "ListTagsOfResource", "DescribeTimeToLive", "UpdateTimeToLive"),
    *("DescribeContinuousBackups", "UpdateContinuousBackups"),
}

_PRODUCT = ("authorizer.", "inbox.")
_NOT_THE_PRODUCT = ("bench.", "tests.")
# Frames between a call and the code that makes it.
_INTERMEDIATE = (f"{__name__}.", "inbox.store.dynamodb.connection.")
# Only the operator's commands call these, so they identify the program in tests that run in one process.
_MODULES_OF_COMMANDS = (
    "inbox.services.store_copy",
    "inbox.store.dynamodb.export_events",
    "inbox.store.dynamodb.import_events",
    "inbox.store.dynamodb.table_setup",
)
_FUNCTIONS_OF_COMMANDS = ("DynamoDBKeys.expire", "DynamoDBTenants.all", "Shards.change")

_written: set[str] = set()


def initialize_client_plugin(client: Any) -> None:
    # botocore emits this event once per call, not per attempt, and in the thread of the caller.
    client.meta.events.register("provide-client-params.dynamodb", _record)


def needed_permissions(operation: str, parameters: dict[str, Any]) -> Iterator[str]:
    """Yields each permission as `Action table` or `Action table/index/name`, without the table's prefix."""
    if operation in _NAMED_LIKE_ACTIONS:
        table = parameters["ResourceArn" if operation == "ListTagsOfResource" else "TableName"]
        yield _format_permission(operation, table, parameters.get("IndexName"))
    elif operation in ("BatchGetItem", "BatchWriteItem"):
        yield from (_format_permission(operation, table) for table in parameters["RequestItems"])
    elif operation in ("TransactGetItems", "TransactWriteItems"):
        for kind, item in (each for part in parameters["TransactItems"] for each in part.items()):
            yield _format_permission(_IN_TRANSACTIONS[kind], item["TableName"])
    elif operation in ("BatchExecuteStatement", "ExecuteStatement"):
        yield from (_parse_statement(each["Statement"]) for each in parameters.get("Statements", [parameters]))
    else:
        yield f"{operation} ?"


def _format_permission(action: str, table: str, index: str | None = None) -> str:
    name = _TABLE.search(table)
    return f"{action} {name[0] if name else table}" + (f"/index/{index}" if index else "")


@cache
def _parse_statement(statement: str) -> str:
    found = _STATEMENT.match(statement)
    if found is None:
        return "PartiQL ?"
    *verbs, table, index = found.groups()
    return _format_permission(f"PartiQL{''.join(filter(None, verbs)).capitalize()}", table, index)


def _record(params: dict[str, Any], model: Any, **_: Any) -> None:
    frames = list(_iterate_frames())
    own_frames = [frame for frame in frames if _is_own_module(frame.f_globals["__name__"])]
    # A thread of the store's pool has no caller on its stack. Its calls count too.
    caller = next((frame for frame in own_frames if not _module_of(frame).startswith(_INTERMEDIATE)), frames[-1])
    # AWS's command line also makes calls in a test run.
    is_product = any(_module_of(frame).startswith(_PRODUCT) for frame in own_frames)
    if not is_product or _module_of(caller).startswith(_NOT_THE_PRODUCT):
        return
    program = _identify_program(own_frames, caller)
    for permission in set(needed_permissions(model.name, params)):
        line = f"{program}\t{permission}\t{_module_of(caller)}{caller.f_code.co_qualname}\n"
        if line not in _written:
            _written.add(line)
            # Written at once because processes are killed, and to a file per process because they fork.
            with (Path(os.environ[FOLDER]) / str(os.getpid())).open("a") as file:
                file.write(line)


def _iterate_frames() -> Iterator[FrameType]:
    frame: FrameType | None = sys._getframe()
    while frame is not None:
        yield frame
        frame = frame.f_back


# Called for every frame of every call.
@cache
def _is_own_module(module: str) -> bool:
    return f"{module}.".startswith((*_PRODUCT, *_NOT_THE_PRODUCT))


def _module_of(frame: FrameType) -> str:
    """Returns the module name and a dot, so that prefixes match whole names."""
    return f"{frame.f_globals['__name__']}."


def _identify_program(own_frames: list[FrameType], caller: FrameType) -> str:
    if _module_of(caller) == "authorizer.lambda_handler.":
        return "authorizer"
    command = sys.argv[1] if Path(sys.argv[0]).name == "inbox" else None
    if command in (None, "quickstart"):
        return "operator" if any(_belongs_to_command(frame) for frame in own_frames) else "service"
    return {"serve": "service", "backlog": "backlog"}.get(command, "operator")


def _belongs_to_command(frame: FrameType) -> bool:
    is_function = frame.f_code.co_qualname in _FUNCTIONS_OF_COMMANDS
    return frame.f_globals["__name__"] in _MODULES_OF_COMMANDS or (
        is_function and _module_of(frame).startswith("inbox.store.dynamodb.")
    )
