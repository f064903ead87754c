"""The app for gunicorn.

    gunicorn --worker-class inbox.server.worker.InboxWorker --threads 12 --worker-connections 16384 wsgi:app

Any other worker or WSGI server works too, but each waiting poll then blocks a thread and delays a stop. Do not use
--preload: it would open the store before the fork. Each process has its own rate limits and metrics.
"""

import os
import sys

from gunicorn.errors import AppImportError

from inbox.app import Shared, create_app, start_background
from inbox.errors import InboxError
from inbox.server.logs import configure_logs
from inbox.settings import read_settings
from inbox.store.factory import open_store

try:
    settings = read_settings(os.environ, on_terminal=sys.stderr.isatty())
    configure_logs(settings.log_format)
    store = open_store(settings)
    app = create_app(settings, store, Shared())
    start_background(store)
except InboxError as error:
    # gunicorn prints this error in one line and does not restart the worker.
    raise AppImportError(f"inbox: {error}") from None
