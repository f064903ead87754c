"""moto's server, always there and not always right.

What it is known to do wrong, and what that means here:

- PartiQL: a statement with a false condition is carried out, and reported as a success. The store finds out and claims
  by single conditional updates, so it is those that are tested on moto, and the statements on DynamoDB Local.
- No locks: two requests at the same time can both find their condition true. They are let in one at a time here.
- Consumed capacity is made up. What things cost is tested on DynamoDB Local.
- Expiry deletes nothing, which is also true of DynamoDB Local.
"""

import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from moto.server import ThreadedMotoServer


@contextmanager
def running() -> Iterator[str]:
    """Its URL, for as long as it runs."""
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
    """In the order in which they came: a plain lock may pass over one of many for longer than its caller waits."""
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
