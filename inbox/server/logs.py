"""Structured logs on stderr: ours, and gunicorn's in the same form."""

import logging
import os
import re
import stat
import sys
from contextlib import suppress
from typing import Any

import orjson
import structlog
from gunicorn import glogging
from structlog.typing import EventDict, WrappedLogger

_KEY = re.compile(r"ibx_[0-9A-Za-z]+")


def configure_logs(log_format: str) -> None:
    render: Any = (
        structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty())
        if log_format == "text"
        else structlog.processors.JSONRenderer(serializer=lambda event, **_: orjson.dumps(event).decode())
    )
    shared: list[Any] = [
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    stderr = _Stderr()
    structlog.configure(
        processors=[*shared, render],
        wrapper_class=structlog.make_filtering_bound_logger(logging.INFO),
        logger_factory=lambda *_: stderr,
        cache_logger_on_first_use=True,
    )
    handler = logging.StreamHandler(stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=[*shared, structlog.processors.format_exc_info],
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, _hide_keys, render],
        )
    )
    logging.basicConfig(handlers=[handler], level=logging.INFO, force=True)
    # botocore logs at INFO, at each start, where it found its credentials.
    logging.getLogger("botocore").setLevel(logging.WARNING)


class _Stderr:
    """Writes each line with one system call and without a lock.

    Drops lines if the pipe is full: a response must not wait for its log line.
    """

    def __init__(self) -> None:
        self._file = _open_nonblocking(2)
        self._ends_mid_line = False

    def write(self, text: str) -> None:
        line = text.encode(errors="backslashreplace")
        if self._ends_mid_line:
            line = b"\n" + line
        with suppress(OSError):
            # A pipe that is nearly full accepts a part of a long line.
            self._ends_mid_line = os.write(self._file, line) < len(line)

    def msg(self, line: str) -> None:
        self.write(f"{line}\n")

    debug = info = warning = error = critical = msg


def _open_nonblocking(file: int) -> int:
    """Returns `file`, or for a pipe a new, non-blocking descriptor, because other processes share `file`."""
    # Fails except on Linux, and for another user's pipe.
    with suppress(OSError):
        if stat.S_ISFIFO(os.fstat(file).st_mode):
            return os.open(f"/proc/self/fd/{file}", os.O_WRONLY | os.O_NONBLOCK)
    return file


class GunicornLogger(glogging.Logger):  # type: ignore[misc]
    """Passes gunicorn's messages to the root logger. Its access log stays off: `inbox.api.access_log` writes one line.

    Uses private parts of gunicorn: `setup` and `error_log`. tests/e2e/test_http.py notices if they change.
    """

    def setup(self, _cfg: Any) -> None:
        self.error_log.handlers.clear()
        self.error_log.propagate = True


def _hide_keys(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
    # gunicorn and other libraries may log the path of a request, which may contain a key.
    return {name: _KEY.sub("ibx_…", str(value)) for name, value in event.items()}
