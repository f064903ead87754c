"""Structured logs on stderr: ours, and gunicorn's in the same form."""

import logging
import os
import re
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
    structlog.configure(
        processors=[*shared, render],
        wrapper_class=structlog.make_filtering_bound_logger(logging.INFO),
        logger_factory=lambda *_: _Stderr(),
        cache_logger_on_first_use=True,
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=[*shared, structlog.processors.format_exc_info],
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, _hide_keys, render],
        )
    )
    logging.basicConfig(handlers=[handler], level=logging.INFO, force=True)
    # It tells at each start where it found its credentials.
    logging.getLogger("botocore").setLevel(logging.WARNING)


class _Stderr:
    """One call to the system for a line, and no lock that threads would wait for."""

    def msg(self, line: str) -> None:
        # A log that nobody takes any more is no reason to keep an answer back: its events are delivered by now.
        with suppress(OSError):
            os.write(2, f"{line}\n".encode(errors="backslashreplace"))

    debug = info = warning = error = critical = msg


class GunicornLogger(glogging.Logger):  # type: ignore[misc]
    """Leaves gunicorn's messages to the root logger. Its access log stays off: `request_trail` writes one line."""

    def setup(self, _cfg: Any) -> None:
        self.error_log.handlers.clear()
        self.error_log.propagate = True


def _hide_keys(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
    # Words of gunicorn's and of other libraries, which know nothing of keys: the path of a request may hold one.
    return {name: _KEY.sub("ibx_…", str(value)) for name, value in event.items()}
