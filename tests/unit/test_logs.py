"""The log on stderr: pipes without a reader, messages of other libraries, and keys."""

import json
import subprocess
import sys

import pytest

from authorizer import apikey

SETUP = """
import logging, os, structlog, sys
from inbox.server.logs import configure_logs
"""
STDERR_IS_A_PIPE = """
read_end, write_end = os.pipe()
os.dup2(write_end, 2)
"""


def run(program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Returns the output of a program. It runs in its own process, because a process can configure logs only once."""
    command = [sys.executable, "-c", SETUP + program, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=30)


@pytest.mark.parametrize("reader", ["hung up", "does not read"])
def test_log_without_a_reader_neither_fails_nor_waits(reader: str) -> None:
    # If logging failed or blocked here, the response and its events would be lost.
    done = run(
        f"""{STDERR_IS_A_PIPE}
if sys.argv[1] == "hung up":
    os.close(read_end)
configure_logs("text")
for _ in range(2000):
    structlog.get_logger().info("request " + 200 * "x")
    logging.getLogger("gunicorn.error").error("error")
print("end", os.get_blocking(2))
""",
        reader,
    )
    assert done.stdout == "end True\n"


def test_incomplete_line_does_not_damage_the_next_one() -> None:
    done = run(f"""{STDERR_IS_A_PIPE}
configure_logs("json")
log = structlog.get_logger()
for _ in range(20):
    log.info("long", words=9000 * "x")
os.read(read_end, 1_000_000)
log.info("next")
log.info("last")
print(os.read(read_end, 1_000_000).decode(), end="")
""")
    end_of_incomplete_line, *lines = done.stdout.splitlines()
    assert end_of_incomplete_line == ""
    assert [json.loads(line)["event"] for line in lines] == ["next", "last"]


def test_service_runs_without_stderr() -> None:
    assert run("os.close(2); configure_logs('json'); print('end')").stdout == "end\n"


def test_text_that_is_not_unicode_is_escaped() -> None:
    done = run(r"""
configure_logs("text")
structlog.get_logger().info("odd \udc80")
""")
    assert r"odd \udc80" in done.stderr


def test_messages_of_other_libraries_contain_no_key() -> None:
    key = apikey.mint()
    done = run(
        """
configure_logs("json")
logging.getLogger("gunicorn.error").error("Error handling request GET /%s", sys.argv[1])
try:
    raise ValueError(sys.argv[1])
except ValueError:
    logging.getLogger("gunicorn.error").exception("Exception in worker process")
""",
        key,
    )
    first, second = (json.loads(line) for line in done.stderr.splitlines())
    assert (first["event"], first["level"]) == ("Error handling request GET /ibx_…", "error")
    assert second["exception"].endswith("ValueError: ibx_…")
    assert key not in done.stderr
