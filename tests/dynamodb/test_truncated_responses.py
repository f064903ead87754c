"""Truncated responses of DynamoDB are errors."""

import socketserver
import threading
import zlib
from collections.abc import Iterator

import pytest
from botocore.exceptions import HTTPClientError

from inbox.errors import StoreUnavailable
from inbox.store.dynamodb.connection import Connection
from tests.engines.aws import aws_environment

BODY = b'{"Items":[],"Count":0,"UnprocessedItems":{"Events":[]}}'
HEAD = (
    "HTTP/1.1 200 OK",
    "Content-Type: application/x-amz-json-1.0",
    f"x-amz-crc32: {zlib.crc32(BODY)}",
    f"Content-Length: {len(BODY)}",
)
COMPLETE_RESPONSE = "".join(f"{line}\r\n" for line in [*HEAD, ""]).encode() + BODY


class TruncatingServer(socketserver.ThreadingTCPServer):
    daemon_threads = True
    response = COMPLETE_RESPONSE


class Handler(socketserver.StreamRequestHandler):
    server: TruncatingServer

    def handle(self) -> None:
        size = 0
        while (line := self.rfile.readline()) != b"\r\n":
            name, _, value = line.partition(b":")
            size = int(value) if name.lower() == b"content-length" else size
        self.rfile.read(size)
        self.wfile.write(self.server.response)


@pytest.fixture
def engine() -> Iterator[TruncatingServer]:
    with TruncatingServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}).start()
        yield server
        server.shutdown()


@pytest.fixture
def connection(engine: TruncatingServer, monkeypatch: pytest.MonkeyPatch) -> Iterator[Connection]:
    for name, value in aws_environment(f"http://127.0.0.1:{engine.server_address[1]}").items():
        monkeypatch.setenv(name, value)
    connection = Connection("", 1)
    yield connection
    connection.close()


@pytest.mark.parametrize("operation", ["query", "get_item"])
def test_truncated_response_is_an_error(engine: TruncatingServer, connection: Connection, operation: str) -> None:
    assert connection.call_once(operation, TableName="Events")["ResponseMetadata"]["HTTPStatusCode"] == 200
    for length in range(len(COMPLETE_RESPONSE)):
        engine.response = COMPLETE_RESPONSE[:length]
        with pytest.raises(HTTPClientError):
            connection.call_once(operation, TableName="Events")


@pytest.mark.parametrize("last_line", [b"x-amz-crc32:", b"x-amz-crc32: 12"])
def test_response_truncated_in_its_checksum_is_an_error(
    engine: TruncatingServer, connection: Connection, last_line: bytes
) -> None:
    """botocore verifies the checksum only in calls that it may retry."""
    engine.response = COMPLETE_RESPONSE[: COMPLETE_RESPONSE.index(b"x-amz-crc32")] + last_line
    with pytest.raises(StoreUnavailable):
        connection.call("query", TableName="Events")
