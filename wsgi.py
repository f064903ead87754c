"""What gunicorn imports: `gunicorn --worker-class gthread --threads 16 wsgi:app`."""

import os
import sys

from inbox.app import create_app
from inbox.logs import configure_logs
from inbox.settings import read_settings
from inbox.store.opening import open_store

settings = read_settings(os.environ, on_terminal=sys.stderr.isatty())
configure_logs(settings.log_format)
app = create_app(settings, open_store(settings))
