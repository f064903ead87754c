"""gunicorn's configuration for this service."""

import errno
import resource
import socket
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

from gunicorn.app.base import BaseApplication

from inbox.app import Shared, create_app, start_background
from inbox.errors import SettingsError
from inbox.metrics.folder import SHARED_MEMORY, create_metrics_folder, remove_gauges
from inbox.server.logs import GunicornLogger
from inbox.server.worker import InboxWorker
from inbox.settings import Settings
from inbox.store.factory import open_store

# Per worker process. Above it, the connections that are idle longest are closed.
_MAX_CONNECTIONS = 16_384


def serve(settings: Settings, when_ready: Callable[[], None] = lambda: None) -> None:
    """Runs the service until it receives a stop signal."""
    _raise_file_limit()
    # Before gunicorn, which would print a traceback.
    _try_to_listen(settings)
    with closing(open_store(settings)) as store:
        store.check()
    with create_metrics_folder() as metrics_folder:
        _GunicornApp(settings, metrics_folder, when_ready).run()


def _try_to_listen(settings: Settings) -> None:
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    try:
        with socket.socket(family) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind((settings.host, settings.port))
    except OSError as error:
        is_port_refused = error.errno in (errno.EACCES, errno.EADDRINUSE)
        hint = " Use another port: INBOX_PORT, or `inbox serve --port`." if is_port_refused else ""
        raise SettingsError(f"Cannot listen on {settings.address} ({error.strerror}).{hint}") from None


def _raise_file_limit() -> None:
    _, hard_limit = resource.getrlimit(resource.RLIMIT_NOFILE)
    # macOS rejects an unlimited number.
    with suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard_limit, hard_limit))


def _max_connections() -> int:
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    # The other half of the files is for the store.
    return _MAX_CONNECTIONS if files == resource.RLIM_INFINITY else min(_MAX_CONNECTIONS, files // 2)


class _GunicornApp(BaseApplication):  # type: ignore[misc]
    def __init__(self, settings: Settings, metrics_folder: Path, when_ready: Callable[[], None]) -> None:
        self._settings = settings
        self._when_ready = when_ready
        self._metrics_folder = metrics_folder
        self._shared = Shared(metrics_folder=metrics_folder)
        super().__init__()

    def load_config(self) -> None:
        options: dict[str, Any] = {
            "bind": self._settings.address,
            "workers": self._settings.workers,
            "threads": self._settings.threads,
            "worker_class": InboxWorker,
            "worker_connections": _max_connections(),
            "worker_tmp_dir": str(SHARED_MEMORY) if SHARED_MEMORY.is_dir() else None,
            "graceful_timeout": 8,
            "control_socket_disable": True,
            "proc_name": "inbox",
            "logger_class": GunicornLogger,
            "when_ready": lambda _server: self._when_ready(),
            "child_exit": lambda _server, worker: remove_gauges(self._metrics_folder, worker.pid),
        }
        for name, value in options.items():
            self.cfg.set(name, value)

    def load(self) -> Any:
        # Does not check the store: gunicorn stops the service if a worker fails to start, and a disk may recover.
        shared = self._shared
        store = open_store(self._settings, create=False, clock=shared.clock, needed_disk_bytes=shared.needed_disk_bytes)
        start_background(store)
        return create_app(self._settings, store, shared)
