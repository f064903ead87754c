"""Idle connections to DynamoDB: probes keep them open in NAT gateways and load balancers."""

import gc
import socket
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from botocore.httpsession import URLLib3Session
from structlog.testing import capture_logs

from inbox.store.dynamodb.connection import Connection
from tests.engines.aws import aws_environment

NAT_TIMEOUT_SECONDS = 350
if sys.platform == "darwin":
    IDLE_OPTION = socket.TCP_KEEPALIVE
else:
    IDLE_OPTION = socket.TCP_KEEPIDLE


class Handler(BaseHTTPRequestHandler):
    """Responds like a DynamoDB without tables and keeps the connection open."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        body = b'{"TableNames":[]}'
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def port(monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        for name, value in aws_environment(f"http://127.0.0.1:{server.server_port}").items():
            monkeypatch.setenv(name, value)
        yield server.server_port
        server.shutdown()
        thread.join()


def connected_sockets(port: int) -> list[socket.socket]:
    found = []
    for each in gc.get_objects():
        if isinstance(each, socket.socket) and each.fileno() != -1 and each.family == socket.AF_INET:
            try:
                found += [each] if each.getpeername()[1] == port else []
            except OSError:
                continue
    return found


def test_idle_connections_are_probed_before_nat_drops_them(port: int) -> None:
    connection = Connection("", 1)
    connection.call("list_tables")
    connection.call_once("list_tables")
    sockets = connected_sockets(port)
    assert len(sockets) == 2
    for each in sockets:
        assert each.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) != 0
        assert each.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY) != 0
        first, interval, probes = (
            each.getsockopt(socket.IPPROTO_TCP, option)
            for option in (IDLE_OPTION, socket.TCP_KEEPINTVL, socket.TCP_KEEPCNT)
        )
        assert first + interval * probes < NAT_TIMEOUT_SECONDS / 2
    connection.close()


@pytest.mark.usefixtures("port")
def test_unknown_botocore_works_without_probes(monkeypatch: pytest.MonkeyPatch) -> None:
    create = URLLib3Session.__init__

    def create_without_options(session: Any, **options: Any) -> None:
        create(session, **options)
        del session._socket_options

    monkeypatch.setattr(URLLib3Session, "__init__", create_without_options)
    with capture_logs() as logs:
        connection = Connection("", 1)
    assert {each["event"] for each in logs} == {"keep-alive times not set"}
    assert connection.call("list_tables")["TableNames"] == []
    connection.close()
