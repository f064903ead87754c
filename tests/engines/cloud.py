"""What stands in for AWS and its tools: ministack (an emulator), AWS's own command line, and checkov.

Each wants other releases of botocore than the service has, so each gets a virtual environment of its own in `.cache/`.
`python -m tests.engines cloud` makes them, and says in one line where that cannot be done.
"""

import hashlib
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import requests

from tests.engines.processes import started
from tests.service import free_port

_HERE = Path(__file__).parent
_CACHE = _HERE.parents[1] / ".cache"
_TOOLS = ("awscli", "checkov", "ministack")

MISSING = (
    "Templates WERE NOT TRIED on an emulator: `make engines` says what is missing. What was not tried is not tested."
)


def is_available() -> bool:
    return all(_folder(tool).is_dir() for tool in _TOOLS)


def fetch() -> None:
    """Raises where one cannot be had."""
    uv = str(Path(sys.executable).with_name("uv"))
    for tool in _TOOLS:
        if _folder(tool).is_dir():
            continue
        _CACHE.mkdir(exist_ok=True)
        with tempfile.TemporaryDirectory(dir=_CACHE) as folder:
            made = Path(folder) / tool
            make = ["venv", "--relocatable", "--python", sys.executable, str(made)]
            fill = ["pip", "install", "--python", str(made), "--require-hashes", "-r", str(_pins(tool))]
            for command in (make, fill):
                subprocess.run([uv, "--quiet", *command], check=True, timeout=600, stdout=2)
            # In one step: a folder of that name is a whole one.
            made.rename(_folder(tool))


def program(tool: str, name: str) -> Path:
    return _folder(tool) / "bin" / name


@contextmanager
def running() -> Iterator[str]:
    """The URL of an AWS without anything in it, for as long as it runs."""
    port = free_port()
    command = [program("ministack", "python"), _HERE / "ministack_with_placeholders.py"]
    with tempfile.TemporaryDirectory() as folder:
        settings = {
            # It would be open to the network otherwise, and open more ports than this one.
            "BIND_HOST": "127.0.0.1",
            "GATEWAY_PORT": str(port),
            "IOT_MTLS_ENABLED": "0",
            "SFTP_ENABLED": "0",
            "S3_DATA_DIR": folder,
            "TMPDIR": folder,
            "LOG_LEVEL": "WARNING",
        }
        url = f"http://127.0.0.1:{port}"
        is_ready = partial(_answers, f"{url}/_ministack/ready")
        with started("ministack", command, Path(folder), is_ready, os.environ | settings):
            yield url


def _pins(tool: str) -> Path:
    return _HERE / "pins" / f"{tool}.txt"


def _folder(tool: str) -> Path:
    """Another one when the pins change, or the Python that it was made with."""
    what = sys.version.encode() + _pins(tool).read_bytes()
    return _CACHE / f"{tool}-{hashlib.sha256(what).hexdigest()[:12]}"


def _answers(url: str) -> bool:
    try:
        return requests.get(url, timeout=5).ok
    except requests.RequestException:
        return False
