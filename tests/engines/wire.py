"""Hooks in botocore that count calls and units of DynamoDB and inject faults."""

import json
import threading
from collections import Counter
from collections.abc import Callable
from enum import Enum
from http import HTTPStatus
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

_WRITES = ("PutItem", "UpdateItem", "DeleteItem", "BatchWriteItem", "BatchExecuteStatement", "TransactWriteItems")


class Wire:
    """Hooks into botocore below its retries, so that it sees every try."""

    def __init__(self, connection: Connection) -> None:
        self.calls: Counter[str] = Counter()
        self.units: Counter[str] = Counter()
        self.index_units: Counter[tuple[str, str]] = Counter()
        self._mutex = threading.Lock()
        self.fault_count = 0
        self.hides_old_items = False
        """Removes the item from responses to failed conditions: DynamoDB does not always send it."""
        self._plans: dict[str, list[Fault | None]] = {}
        self._then: Callable[[dict[str, Any]], object] = lambda _body: None
        self._session = URLLib3Session()
        for client in (connection.client, connection._client_without_retries):
            client.meta.events.register("provide-client-params.dynamodb.*", self._ask_for_units)
            client.meta.events.register("before-send.dynamodb.*", self._send)
            client.meta.events.register("after-call.dynamodb.*", self._count_units)

    def fail(
        self,
        operation: str,
        fault: Fault,
        times: int,
        *,
        after: int = 0,
        then: Callable[[dict[str, Any]], object] = lambda _body: None,
    ) -> None:
        """Forwards `after` tries, then injects `fault` into the next `times`. Calls `then` with their bodies."""
        self._plans[operation] = [None] * after + [fault] * times
        self._then = then

    def reset(self) -> None:
        self.calls.clear()
        self.units.clear()
        self.index_units.clear()
        self._plans.clear()
        self.fault_count = 0

    @property
    def write_calls(self) -> int:
        return sum(self.calls[operation] for operation in _WRITES)

    @property
    def write_units(self) -> float:
        return sum(self.units[operation] for operation in _WRITES)

    @property
    def read_units(self) -> float:
        return self.units.total() - self.write_units

    def write_units_of(self, index: str) -> float:
        return sum(self.index_units[operation, index] for operation in _WRITES)

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
            for each in consumed if isinstance(consumed, list) else [consumed]:
                self.units[model.name] += max(each["CapacityUnits"], context["least_units"])
                for index, of_index in each.get("GlobalSecondaryIndexes", {}).items():
                    self.index_units[model.name, index] += of_index["CapacityUnits"]

    def _send(self, request: Any, event_name: str, **_: Any) -> AWSResponse | None:
        operation = event_name.rpartition(".")[2]
        with self._mutex:
            self.calls[operation] += 1
        fault = self._plans[operation].pop(0) if self._plans.get(operation) else None
        if fault is None:
            return self._without_old_items(request) if self.hides_old_items and operation in _WRITES else None
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

    def _without_old_items(self, request: Any) -> AWSResponse:
        response = self._session.send(request)
        document: dict[str, Any] = json.loads(response.content)
        if response.status_code != HTTPStatus.OK:
            document.pop("Item", None)
        for each in document.get("Responses", []):
            each.get("Error", {}).pop("Item", None)
        return _make_response(request, response.status_code, document)

    def _execute_partly(self, operation: str, request: Any, *, skip_all: bool) -> AWSResponse:
        """Sends half of the batch to DynamoDB, or nothing. The response reports the rest as unprocessed."""
        body = json.loads(request.body)
        if operation == "BatchExecuteStatement":
            statements = body["Statements"]
            kept = [] if skip_all else statements[::2]
            responses = iter(self._forward(request, body | {"Statements": kept})["Responses"] if kept else [])
            refused = {"Error": {"Code": "ThrottlingError", "Message": "Throughput exceeds the current capacity."}}
            parts = [refused if skip_all or position % 2 else next(responses) for position in range(len(statements))]
            return _make_response(request, 200, {"Responses": parts})
        ((table, wanted),) = body["RequestItems"].items()
        if operation == "BatchWriteItem":
            kept, rest = ([], wanted) if skip_all else (wanted[::2], wanted[1::2])
            left, kept_request = {table: rest}, {table: kept}
        else:
            kept, rest = ([], wanted["Keys"]) if skip_all else (wanted["Keys"][::2], wanted["Keys"][1::2])
            left, kept_request = {table: wanted | {"Keys": rest}}, {table: wanted | {"Keys": kept}}
        response = self._forward(request, body | {"RequestItems": kept_request}) if kept else {"Responses": {table: []}}
        name = "UnprocessedItems" if operation == "BatchWriteItem" else "UnprocessedKeys"
        return _make_response(request, 200, response | {name: left if rest else {}})

    def _forward(self, request: Any, body: dict[str, Any]) -> dict[str, Any]:
        request.body = json.dumps(body).encode()
        request.headers["Content-Length"] = str(len(request.body))
        response: dict[str, Any] = json.loads(self._session.send(request).content)
        return response


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
