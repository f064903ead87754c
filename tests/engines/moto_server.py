"""moto's server. It needs no installation, and differs from DynamoDB in these points:

- PartiQL: moto carries out a statement whose condition is false and reports success. The store detects that and claims
  by single conditional updates, so moto tests those and DynamoDB Local tests the statements.
- No locks: two requests at the same time can both find their condition true. So requests run one at a time here.
- Consumed capacity is invented. Costs are tested on DynamoDB Local.
- A transaction that botocore repeats is carried out twice.
- Expired items are never deleted.
"""

import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from moto.server import ThreadedMotoServer


@contextmanager
def running() -> Iterator[str]:
    """Starts the server and yields its URL."""
    server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    try:
        wsgi_server: Any = server._server
        wsgi_server.app = _one_at_a_time(wsgi_server.app)
        host, port = server.get_host_and_port()
        yield f"http://{host}:{port}"
    finally:
        server.stop()


def _one_at_a_time(app: Any) -> Any:
    """Returns the app, which then serves one request at a time, in order.

    With a plain lock, one of many threads may wait longer than its client's timeout.
    """
    mutex = threading.Lock()
    turns: deque[threading.Lock] = deque()

    def in_turn(environ: Any, start_response: Any) -> Any:
        turn = threading.Lock()
        turn.acquire()
        with mutex:
            turns.append(turn)
            if len(turns) == 1:
                turn.release()
        turn.acquire()
        try:
            return app(environ, start_response)
        finally:
            with mutex:
                turns.popleft()
                if turns:
                    turns[0].release()

    return in_turn
