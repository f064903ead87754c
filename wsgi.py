"""What gunicorn imports: `gunicorn --worker-class inbox.worker.InboxWorker --threads 32 wsgi:app`.

Half of INBOX_THREADS may wait in long polls, so --threads has to be the same number, 32 where the setting is not given.
Not with --preload: the store would be opened before the fork. Each process keeps to the limits by itself here, and
counts by itself for /metrics.
"""

import os
import sys

from gunicorn.errors import AppImportError

from inbox.app import Shared, create_app, start_background
from inbox.errors import InboxError
from inbox.logs import configure_logs
from inbox.settings import read_settings
from inbox.store.opening import open_store

try:
    settings = read_settings(os.environ, on_terminal=sys.stderr.isatty())
    configure_logs(settings.log_format)
    store = open_store(settings)
    app = create_app(settings, store, Shared())
    start_background(store)
except InboxError as error:
    # The one error that gunicorn prints in a line and does not try again.
    raise AppImportError(f"inbox: {error}") from None
