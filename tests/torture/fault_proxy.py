"""A proxy between the service and DynamoDB that delays, drops, cuts or refuses calls at random."""

import asyncio
import random
import threading
import zlib
from asyncio import IncompleteReadError, StreamReader, StreamWriter
from collections import Counter
from collections.abc import Callable, Coroutine, Iterator, Mapping
from contextlib import contextmanager, suppress
from enum import StrEnum
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import orjson

_MAX_SHORT_DELAY_SECONDS = 0.3
# Longer than the service's read timeout of 3 seconds.
_LATE_DELAY_SECONDS = (3.1, 6.0)
_ERROR_PREFIX = "com.amazonaws.dynamodb.v20120810#"
_THROTTLED = ("ProvisionedThroughputExceededException", "ThrottlingException")
_BATCH_OPERATIONS = ("BatchWriteItem", "BatchGetItem", "BatchExecuteStatement")


class Fault(StrEnum):
    SLOW = "a short delay"
    LATE = "executed after the service's timeout"
    DROPPED = "request dropped"
    RESPONSE_DROPPED = "executed, response dropped"
    CUT_BEFORE = "cut before the request"
    CUT_IN_REQUEST = "cut in the middle of the request"
    CUT_AFTER = "executed, then cut"
    CUT_IN_RESPONSE = "cut in the middle of the response"
    ERROR_BEFORE = "500, not executed"
    ERROR_AFTER = "500, executed"
    UNAVAILABLE_BEFORE = "503, not executed"
    UNAVAILABLE_AFTER = "503, executed"
    THROTTLED = "throttled"
    HALF_REFUSED = "half of a batch refused"


_ERRORS_AFTER_EXECUTION = (Fault.ERROR_AFTER, Fault.UNAVAILABLE_AFTER)

Odds = Mapping[Fault, float]
"""The probability of each fault per call."""


class _Message(NamedTuple):
    head: bytes
    body: bytes

    @property
    def operation(self) -> str:
        return _read_header(self.head, b"x-amz-target").rpartition(b".")[2].decode()


class FaultProxy:
    """Passes calls on with faults. A change of `odds` applies to later calls."""

    def __init__(self, engine_url: str, seed: int) -> None:
        self._engine = urlsplit(engine_url)
        self.seed = seed
        self._random = random.Random(seed)
        self.odds: Odds = {}
        self.injected: Counter[Fault] = Counter()
        self.url = ""
        self._loop = asyncio.new_event_loop()
        self._tasks: set[asyncio.Task[None]] = set()

    @contextmanager
    def run(self) -> Iterator[None]:
        thread = threading.Thread(target=self._loop.run_forever, name="fault proxy")
        thread.start()
        try:
            server = self._run_in_loop(asyncio.start_server(self._serve, self._engine.hostname))
            self.url = f"http://{self._engine.hostname}:{server.sockets[0].getsockname()[1]}"
            yield
            self._run_in_loop(self._close(server))
        finally:
            self._loop.call_soon_threadsafe(self._loop.stop)
            thread.join(10)
            self._loop.close()

    def _run_in_loop(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(30)

    async def _close(self, server: asyncio.Server) -> None:
        server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks)

    async def _serve(self, reader: StreamReader, writer: StreamWriter) -> None:
        """Serves a connection of the service, through a connection of its own to the engine."""
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        writers = [writer]
        # Either side may close its connection, and the end of the test cancels the task.
        with suppress(OSError, IncompleteReadError, asyncio.CancelledError):
            from_engine, to_engine = await asyncio.open_connection(self._engine.hostname, self._engine.port)
            writers.append(to_engine)
            while await self._pass_on(reader, writer, _Engine(from_engine, to_engine)):
                pass
        for each in writers:
            each.close()
        self._tasks.discard(task)

    async def _pass_on(self, reader: StreamReader, writer: StreamWriter, engine: "_Engine") -> bool:
        """Passes a call on. Returns True if the connection stays open."""
        request = _Message(await reader.readuntil(b"\r\n\r\n"), b"")
        size = int(_read_header(request.head, b"content-length"))
        fault = self._choose_fault(request.operation)
        if fault is Fault.CUT_BEFORE:
            return False
        if fault is Fault.CUT_IN_REQUEST:
            await engine.send(request._replace(body=await reader.readexactly(size // 2)))
            return False
        request = request._replace(body=await reader.readexactly(size))
        if fault is Fault.DROPPED:
            return await _wait_until_closed(reader)
        # The engine gets the call even if the service has closed the connection meanwhile, as on a real network.
        await asyncio.sleep(self._draw_delay(fault))
        response = self._make_error_response(fault)
        if response is None or fault in _ERRORS_AFTER_EXECUTION:
            execute = engine.execute_half if fault is Fault.HALF_REFUSED else engine.execute
            executed = await execute(request)
            response = response or executed
        if fault is Fault.RESPONSE_DROPPED:
            return await _wait_until_closed(reader)
        if fault is Fault.CUT_AFTER:
            return False
        sent = response.head + response.body
        if fault is Fault.CUT_IN_RESPONSE:
            sent = sent[: self._random.randrange(1, len(sent))]
        writer.write(sent)
        await writer.drain()
        return fault is not Fault.CUT_IN_RESPONSE

    def _choose_fault(self, operation: str) -> Fault | None:
        drawn = self._random.random()
        for fault, probability in self.odds.items():
            drawn -= probability
            if drawn < 0 and (fault is not Fault.HALF_REFUSED or operation in _BATCH_OPERATIONS):
                self.injected[fault] += 1
                return fault
        return None

    def _draw_delay(self, fault: Fault | None) -> float:
        if fault is Fault.LATE:
            return self._random.uniform(*_LATE_DELAY_SECONDS)
        return self._random.uniform(0, _MAX_SHORT_DELAY_SECONDS) if fault is Fault.SLOW else 0

    def _make_error_response(self, fault: Fault | None) -> _Message | None:
        """Returns None if the fault is not an error response."""
        match fault:
            case Fault.ERROR_BEFORE | Fault.ERROR_AFTER:
                status, code = 500, "InternalServerError"
            case Fault.UNAVAILABLE_BEFORE | Fault.UNAVAILABLE_AFTER:
                # Like a load balancer in front of DynamoDB, whose errors are not JSON.
                return _format_response(503, b"<html>made up</html>")
            case Fault.THROTTLED:
                status, code = 400, self._random.choice(_THROTTLED)
            case _:
                return None
        body = orjson.dumps({"__type": _ERROR_PREFIX + code, "message": "made up"})
        return _format_response(status, body, has_checksum=self._random.random() < 0.5)


class _Engine:
    """A connection to the engine."""

    def __init__(self, reader: StreamReader, writer: StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    async def send(self, request: _Message) -> None:
        self._writer.write(request.head + request.body)
        await self._writer.drain()

    async def execute(self, request: _Message) -> _Message:
        await self.send(request)
        head = await self._reader.readuntil(b"\r\n\r\n")
        return _Message(head, await self._reader.readexactly(int(_read_header(head, b"content-length"))))

    async def execute_half(self, request: _Message) -> _Message:
        """Executes every second item of a batch, and returns the response, which reports the others as refused."""
        kept, add_refused = _halve(request.operation, orjson.loads(request.body))
        body = orjson.dumps(kept)
        length = b"content-length: %d\r\n" % len(body)
        lines = [line for line in request.head.splitlines(True) if not line.lower().startswith(b"content-length:")]
        response = await self.execute(_Message(b"".join([lines[0], length, *lines[1:]]), body))
        if response.head.split()[1] != b"200":
            return response
        return _format_response(200, orjson.dumps(add_refused(orjson.loads(response.body))))


Document = dict[str, Any]


def _halve(operation: str, document: Document) -> tuple[Document, Callable[[Document], Document]]:
    """Returns a batch with every second item, and a function that adds the others to the response as refused."""
    if operation == "BatchExecuteStatement":
        statements = document["Statements"]
        refused = {"Error": {"Code": "ThrottlingError", "Message": "made up"}}

        def insert_refused(response: Document) -> Document:
            responses = iter(response["Responses"])
            return {"Responses": [refused if place % 2 else next(responses) for place in range(len(statements))]}

        return document | {"Statements": statements[::2]}, insert_refused
    ((table, wanted),) = document["RequestItems"].items()
    if operation == "BatchWriteItem":
        name, kept, refused = "UnprocessedItems", wanted[::2], wanted[1::2]
        unprocessed = {table: refused} if refused else {}
    else:
        name, kept, refused = "UnprocessedKeys", wanted | {"Keys": wanted["Keys"][::2]}, wanted["Keys"][1::2]
        unprocessed = {table: wanted | {"Keys": refused}} if refused else {}
    return document | {"RequestItems": {table: kept}}, lambda response: response | {name: unprocessed}


def _read_header(head: bytes, name: bytes) -> bytes:
    for line in head.splitlines():
        header_name, _, value = line.partition(b":")
        if header_name.lower() == name:
            return value.strip()
    raise AssertionError(f"no {name.decode()} in {head!r}")


def _format_response(status: int, body: bytes, *, has_checksum: bool = False) -> _Message:
    lines = [f"HTTP/1.1 {status} made up", f"content-length: {len(body)}"]
    if has_checksum:
        lines.append(f"x-amz-crc32: {zlib.crc32(body)}")
    return _Message("".join(f"{line}\r\n" for line in [*lines, ""]).encode(), body)


async def _wait_until_closed(reader: StreamReader) -> bool:
    """Returns False, because the connection does not stay open."""
    await reader.read()
    return False
