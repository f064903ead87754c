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


NOBODY_READS = """
import os, structlog
from inbox.logs import configure_logs
configure_logs("text")
read_end, write_end = os.pipe()
os.close(read_end)
os.dup2(write_end, 2)
structlog.get_logger().info("request")
print("still there")
"""


def test_a_log_that_nobody_reads_is_no_reason_to_fail() -> None:
    # An answer that fails now would be lost, with the events in it.
    done = subprocess.run([sys.executable, "-c", NOBODY_READS], capture_output=True, text=True, check=True, timeout=30)

    assert done.stdout == "still there\n"


def test_text_that_is_no_unicode_is_logged_all_the_same() -> None:
    program = r"""
import structlog
from inbox.logs import configure_logs
configure_logs("text")
structlog.get_logger().info("odd \udc80")
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=30)

    assert r"odd \udc80" in done.stderr


def test_the_words_of_other_libraries_hold_no_key() -> None:
    key = apikey.mint()
    done = subprocess.run([sys.executable, "-c", PROGRAM, key], capture_output=True, text=True, check=True, timeout=30)
    first, second = (json.loads(line) for line in done.stderr.splitlines())

    assert (first["event"], first["level"]) == ("Error handling request GET /ibx_…", "error")
    assert second["exception"].endswith("ValueError: ibx_…")
    assert key not in done.stderr
