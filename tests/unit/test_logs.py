"""What other libraries log comes out in our form, and without keys."""

import json
import subprocess
import sys

import pytest

from authorizer import apikey

# In a process of its own: logs are configured once, for good.
PROGRAM = """
import logging, sys
from inbox.server.logs import configure_logs
configure_logs("json")
logging.getLogger("gunicorn.error").error("Error handling request GET /%s", sys.argv[1])
try:
    raise ValueError(sys.argv[1])
except ValueError:
    logging.getLogger("gunicorn.error").exception("Exception in worker process")
"""


NOBODY_READS = """
import logging, os, structlog, sys
from inbox.server.logs import configure_logs
read_end, write_end = os.pipe()
os.dup2(write_end, 2)
if sys.argv[1] == "hung up":
    os.close(read_end)
configure_logs("text")
for _ in range(2000):
    structlog.get_logger().info("request " + 200 * "x")
    logging.getLogger("gunicorn.error").error("error")
print("still there", os.get_blocking(2))
"""


@pytest.mark.parametrize("how", ["hung up", "does not read"])
def test_a_log_that_nobody_reads_is_no_reason_to_fail_or_to_wait(how: str) -> None:
    # An answer that fails now would be lost, with the events in it.
    program = [sys.executable, "-c", NOBODY_READS, how]
    done = subprocess.run(program, capture_output=True, text=True, check=True, timeout=30)

    assert done.stdout == "still there True\n"


BROKEN_OFF = """
import os, structlog
from inbox.server.logs import configure_logs
read_end, write_end = os.pipe()
os.dup2(write_end, 2)
configure_logs("json")
log = structlog.get_logger()
for _ in range(20):
    log.info("long", words=9000 * "x")
os.read(read_end, 1_000_000)
log.info("next")
log.info("last")
print(os.read(read_end, 1_000_000).decode(), end="")
"""


def test_a_line_that_breaks_off_spoils_no_other() -> None:
    program = [sys.executable, "-c", BROKEN_OFF]
    done = subprocess.run(program, capture_output=True, text=True, check=True, timeout=30)
    end_of_what_broke_off, *lines = done.stdout.splitlines()

    assert end_of_what_broke_off == ""
    assert [json.loads(line)["event"] for line in lines] == ["next", "last"]


def test_it_can_do_without_a_log() -> None:
    program = (
        "import os; os.close(2); from inbox.server.logs import configure_logs; configure_logs('json'); print('there')"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=30)

    assert done.stdout == "there\n"


def test_text_that_is_no_unicode_is_logged_all_the_same() -> None:
    program = r"""
import structlog
from inbox.server.logs import configure_logs
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
