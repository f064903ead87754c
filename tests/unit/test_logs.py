"""What other libraries log comes out in our form, and without keys."""

import json
import subprocess
import sys

from authorizer import apikey

# In a process of its own: logs are configured once, for good.
PROGRAM = """
import logging, sys
from inbox.logs import configure_logs
configure_logs("json")
logging.getLogger("gunicorn.error").error("Error handling request GET /%s", sys.argv[1])
try:
    raise ValueError(sys.argv[1])
except ValueError:
    logging.getLogger("gunicorn.error").exception("Exception in worker process")
"""


def test_the_words_of_other_libraries_hold_no_key() -> None:
    key = apikey.mint()
    done = subprocess.run([sys.executable, "-c", PROGRAM, key], capture_output=True, text=True, check=True, timeout=30)
    first, second = (json.loads(line) for line in done.stderr.splitlines())

    assert (first["event"], first["level"]) == ("Error handling request GET /ibx_…", "error")
    assert second["exception"].endswith("ValueError: ibx_…")
    assert key not in done.stderr
