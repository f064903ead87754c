"""Hooks in botocore that count calls and units of DynamoDB and inject faults."""

import json
import re
import socket
import threading
from collections import Counter
from collections.abc import Callable
from enum import Enum
from http import HTTPStatus
from itertools import count
from typing import Any

from botocore.awsrequest import AWSResponse
from botocore.exceptions import ConnectionClosedError, ReadTimeoutError
from botocore.httpsession import URLLib3Session

from inbox.store.dynamodb.connection import Connection


class Fault(Enum):
    TIMEOUT_BEFORE = "timeout before the commit"
    TIMEOUT_AFTER = "timeout after the commit"
    CUT_AFTER = "connection cut after the commit"
    THROTTLED = "throttled"
    SERVER_ERROR = "500"
    SERVER_ERROR_AFTER = "500 after the commit"
    HALF_UNPROCESSED = "half of a batch unprocessed"
    ALL_UNPROCESSED = "a whole batch unprocessed"


_FAULTS_AFTER_COMMIT = (Fault.TIMEOUT_AFTER, Fault.CUT_AFTER, Fault.SERVER_ERROR_AFTER)

ChooseFault = Callable[[str, dict[str, Any]], Fault | None]


def no_fault(_operation: str, _body: dict[str, Any]) -> None:
    return None


WRITES = ("PutItem", "UpdateItem", "DeleteItem", "BatchWriteItem", "BatchExecuteStatement", "TransactWriteItems")


class Wire:
    """Hooks into botocore below its retries, so that it sees every try."""

    def __init__(self, connection: Connection) -> None:
        self.calls: Counter[str] = Counter()
        self.units: Counter[str] = Counter()
        self.index_units: Counter[tuple[str, str]] = Counter()
        self._mutex = threading.Lock()
        self.fault_count = 0
        self.measures_statements = False
        """Sends statements as single updates, because DynamoDB Local does not report the units of statements."""
        self.failed_conditions = 0
        """Failed conditions of statements, each billed like a write of the stored item."""
        self.throttles: Callable[[dict[str, Any]], bool] | None = None
        """Decides which statements of a batch are throttled."""
        self.leaves_unprocessed: Callable[[dict[str, Any]], bool] | None = None
        """Decides which requests of a BatchWriteItem are not processed."""
        self.throttled_parts: Counter[str] = Counter()
        """Throttled statements and unprocessed requests, by operation."""
        self.choose_fault: ChooseFault = no_fault
        """Chooses a fault for each try that `fail` has not planned, from its operation and body."""
        self.hides_old_items = False
        """Removes the item from responses to failed conditions: DynamoDB does not always send it."""
        self._plans: dict[str, list[Fault | None]] = {}
        self._faulty_table = ""
        self._then: Callable[[dict[str, Any]], object] = lambda _body: None
        # As in botocore's clients. Otherwise each request waits 40 ms for the other side.
        self._session = URLLib3Session(socket_options=[(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)])
        self._clients = (connection.client, connection._client_without_retries)
        self._hooks = {
            "provide-client-params.dynamodb.*": self._ask_for_units,
            "before-send.dynamodb.*": self._send,
            "after-call.dynamodb.*": self._count_units,
        }
        for client in self._clients:
            for event, hook in self._hooks.items():
                client.meta.events.register(event, hook)

    def remove(self) -> None:
        """Removes the hooks from a connection that other tests use too."""
        for client in self._clients:
            for event, hook in self._hooks.items():
                client.meta.events.unregister(event, hook)

    def fail(
        self,
        operation: str,
        fault: Fault,
        times: int,
        *,
        after: int = 0,
        table: str = "",
        then: Callable[[dict[str, Any]], object] = lambda _body: None,
    ) -> None:
        """Forwards `after` tries, then injects `fault` into the next `times`. Calls `then` with their bodies.

        With `table`, it counts only the tries for that table.
        """
        self._plans[operation] = [None] * after + [fault] * times
        self._faulty_table = table
        self._then = then

    def reset(self) -> None:
        self.calls.clear()
        self.units.clear()
        self.index_units.clear()
        self._plans.clear()
        self.throttled_parts.clear()
        self.fault_count = 0
        self.failed_conditions = 0

    @property
    def write_calls(self) -> int:
        return sum(self.calls[operation] for operation in WRITES)

    @property
    def write_units(self) -> float:
        return sum(self.units[operation] for operation in WRITES)

    @property
    def read_units(self) -> float:
        return self.units.total() - self.write_units

    def write_units_of(self, index: str) -> float:
        return sum(self.index_units[operation, index] for operation in WRITES)

    def _ask_for_units(
        self, params: dict[str, Any], model: Any, context: dict[str, Any], **_: Any
    ) -> dict[str, Any] | None:
        context["least_units"] = _least_units(model.name, params)
        asks = "ReturnConsumedCapacity" in model.input_shape.members
        return {**params, "ReturnConsumedCapacity": "INDEXES"} if asks else None

    def _count_units(self, parsed: dict[str, Any], model: Any, context: dict[str, Any], **_: Any) -> None:
        consumed = parsed.get("ConsumedCapacity") or []
        # Threads count at the same time, and `+=` on a counter is not atomic.
        with self._mutex:
            for part in parsed.get("Responses", []) if model.name == "BatchExecuteStatement" else []:
                self.failed_conditions += part.get("Error", {}).get("Code") == "ConditionalCheckFailed"
            for each in consumed if isinstance(consumed, list) else [consumed]:
                self.units[model.name] += max(each["CapacityUnits"], context["least_units"])
                for index, of_index in each.get("GlobalSecondaryIndexes", {}).items():
                    self.index_units[model.name, index] += of_index["CapacityUnits"]

    def _send(self, request: Any, event_name: str, **_: Any) -> AWSResponse | None:
        operation = event_name.rpartition(".")[2]
        with self._mutex:
            self.calls[operation] += 1
        body = json.loads(request.body)
        is_planned = self._plans.get(operation) and self._faulty_table in body.get("TableName", "")
        fault = self._plans[operation].pop(0) if is_planned else self.choose_fault(operation, body)
        if fault is None:
            return self._execute(operation, request)
        with self._mutex:
            self.fault_count += 1
        if fault in _FAULTS_AFTER_COMMIT:
            self._session.send(request).content  # noqa: B018 - read to its end, so that the write is committed
        self._then(json.loads(request.body))
        match fault:
            case Fault.TIMEOUT_BEFORE | Fault.TIMEOUT_AFTER:
                raise ReadTimeoutError(endpoint_url=request.url)
            case Fault.CUT_AFTER:
                raise ConnectionClosedError(endpoint_url=request.url)
            case Fault.THROTTLED:
                return _make_error_response(request, 400, "ProvisionedThroughputExceededException")
            case Fault.SERVER_ERROR | Fault.SERVER_ERROR_AFTER:
                return _make_error_response(request, 500, "InternalServerError")
            case Fault.HALF_UNPROCESSED | Fault.ALL_UNPROCESSED:
                return self._execute_partly(operation, request, skip_all=fault is Fault.ALL_UNPROCESSED)

    def _execute(self, operation: str, request: Any) -> AWSResponse | None:
        """Executes what is not throttled. Returns None if botocore is to send the request."""
        if operation == "BatchExecuteStatement" and self.throttles is not None:
            return self._execute_unthrottled(request, self.throttles)
        if operation == "BatchExecuteStatement" and self.measures_statements:
            return self._execute_as_updates(request)
        if operation == "BatchWriteItem" and self.leaves_unprocessed is not None:
            return self._write_unthrottled(request, self.leaves_unprocessed)
        return self._without_old_items(request) if self.hides_old_items and operation in WRITES else None

    def _without_old_items(self, request: Any) -> AWSResponse:
        response = self._session.send(request)
        document: dict[str, Any] = json.loads(response.content)
        if response.status_code != HTTPStatus.OK:
            document.pop("Item", None)
        _remove_old_items(document)
        return _make_response(request, response.status_code, document)

    def _execute_partly(self, operation: str, request: Any, *, skip_all: bool) -> AWSResponse:
        """Sends half of the batch to DynamoDB, or nothing. The response reports the rest as unprocessed."""
        body = json.loads(request.body)
        if operation == "BatchExecuteStatement":
            position = count()
            return self._execute_unthrottled(request, lambda _statement: skip_all or next(position) % 2 == 1)
        if operation == "BatchWriteItem":
            position = count()
            return self._write_unthrottled(request, lambda _request: skip_all or next(position) % 2 == 1)
        ((table, wanted),) = body["RequestItems"].items()
        kept, rest = ([], wanted["Keys"]) if skip_all else (wanted["Keys"][::2], wanted["Keys"][1::2])
        kept_request, left = {table: wanted | {"Keys": kept}}, {table: wanted | {"Keys": rest}}
        response = self._forward(request, body | {"RequestItems": kept_request}) if kept else {"Responses": {table: []}}
        return _make_response(request, 200, response | {"UnprocessedKeys": left if rest else {}})

    def _write_unthrottled(self, request: Any, leaves: Callable[[dict[str, Any]], bool]) -> AWSResponse:
        """Executes the requests of a BatchWriteItem that are not left unprocessed."""
        body = json.loads(request.body)
        ((table, wanted),) = body["RequestItems"].items()
        decided = [(each, leaves(each)) for each in wanted]
        kept = [each for each, is_left in decided if not is_left]
        left = [each for each, is_left in decided if is_left]
        self._count_throttled("BatchWriteItem", len(left))
        response = self._forward(request, body | {"RequestItems": {table: kept}}) if kept else {}
        return _make_response(request, 200, response | {"UnprocessedItems": {table: left} if left else {}})

    def _execute_unthrottled(self, request: Any, throttles: Callable[[dict[str, Any]], bool]) -> AWSResponse:
        """Executes the statements of a batch that are not throttled."""
        body = json.loads(request.body)
        statements = [(statement, throttles(statement)) for statement in body["Statements"]]
        kept = [statement for statement, throttled in statements if not throttled]
        self._count_throttled("BatchExecuteStatement", len(statements) - len(kept))
        responses = iter(self._forward(request, body | {"Statements": kept})["Responses"] if kept else [])
        refused = {"Error": {"Code": "ThrottlingError", "Message": "Throughput exceeds the current capacity."}}
        parts = [refused if throttled else next(responses) for _, throttled in statements]
        document = {"Responses": parts}
        if self.hides_old_items:
            _remove_old_items(document)
        return _make_response(request, 200, document)

    def _count_throttled(self, operation: str, parts: int) -> None:
        with self._mutex:
            self.throttled_parts[operation] += parts

    def _execute_as_updates(self, request: Any) -> AWSResponse:
        """Executes each statement as an UpdateItem, and reports the units of all."""
        responses, consumed = [], []
        for statement in json.loads(request.body)["Statements"]:
            update = _to_update(statement)
            request.headers["X-Amz-Target"] = "DynamoDB_20120810.UpdateItem"
            result = self._forward(request, update)
            if "Attributes" in result:
                responses.append({"TableName": update["TableName"], "Item": result["Attributes"]})
                consumed.append(result["ConsumedCapacity"])
            else:
                current = {"Item": result["Item"]} if "Item" in result else {}
                responses.append(
                    {"TableName": update["TableName"], "Error": {"Code": "ConditionalCheckFailed", **current}}
                )
                consumed.append({"TableName": update["TableName"], "CapacityUnits": _units_of(current)})
        return _make_response(request, 200, {"Responses": responses, "ConsumedCapacity": consumed})

    def _forward(self, request: Any, body: dict[str, Any]) -> dict[str, Any]:
        request.body = json.dumps(body).encode()
        request.headers["Content-Length"] = str(len(request.body))
        response: dict[str, Any] = json.loads(self._session.send(request).content)
        return response


def _remove_old_items(document: dict[str, Any]) -> None:
    for each in document.get("Responses", []):
        each.get("Error", {}).pop("Item", None)


def _to_update(statement: dict[str, Any]) -> dict[str, Any]:
    """Returns the UpdateItem that does the same as a statement of the store."""
    changes, where = statement["Statement"].split(" WHERE ")
    parameters = iter(statement["Parameters"])
    names, values, conditions, key = {}, {}, [], {}
    assignments = re.findall(r'SET "(\w+)" = \?', changes)
    removed = re.findall(r'REMOVE "(\w+)"', changes)
    for name in assignments:
        names[f"#{name}"], values[f":{name}"] = name, next(parameters)
    names |= {f"#{name}": name for name in removed}
    for name, comparison in re.findall(r'"(\w+)" (= \?|IS MISSING)', where):
        if name in ("pk", "sk"):
            key[name] = next(parameters)
        elif comparison == "IS MISSING":
            conditions.append(f"attribute_not_exists({name})")
        else:
            conditions.append(f"{name} = :known_{name}")
            values[f":known_{name}"] = next(parameters)
    actions = {"SET": [f"#{name} = :{name}" for name in assignments], "REMOVE": [f"#{name}" for name in removed]}
    return {
        "TableName": re.findall(r'UPDATE "([^"]+)"', changes)[0],
        "Key": key,
        "UpdateExpression": " ".join(f"{action} {', '.join(parts)}" for action, parts in actions.items() if parts),
        "ConditionExpression": " AND ".join([*conditions, "attribute_exists(pk)"]),
        "ExpressionAttributeNames": names,
        "ExpressionAttributeValues": values,
        "ReturnValues": "ALL_NEW",
        "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
        "ReturnConsumedCapacity": "INDEXES",
    }


def _units_of(document: dict[str, Any]) -> int:
    """Returns the write units of an item, estimated from its JSON, which is a little larger."""
    return -(-len(json.dumps(document)) // 1024)


def _least_units(operation: str, params: dict[str, Any]) -> float:
    """Returns the read units that AWS bills at least, even if nothing is found. DynamoDB Local counts 0."""
    if operation in ("GetItem", "Query", "Scan"):
        return 1.0 if params.get("ConsistentRead") else 0.5
    if operation == "BatchGetItem":
        return sum(
            len(wanted["Keys"]) * (1.0 if wanted.get("ConsistentRead") else 0.5)
            for wanted in params["RequestItems"].values()
        )
    return 0.0


class _RawBody:
    def __init__(self, body: bytes) -> None:
        self._body = body

    def stream(self) -> list[bytes]:
        return [self._body]


def _make_response(request: Any, status: int, body: dict[str, Any]) -> AWSResponse:
    headers = {"content-type": "application/x-amz-json-1.0"}
    return AWSResponse(request.url, status, headers, _RawBody(json.dumps(body).encode()))


def _make_error_response(request: Any, status: int, code: str) -> AWSResponse:
    return _make_response(
        request, status, {"__type": f"com.amazonaws.dynamodb.v20120810#{code}", "message": "injected"}
    )
