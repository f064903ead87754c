"""ministack (an AWS emulator), AWS's command line, and checkov.

They need other versions of botocore than the service, so each has its own virtual environment in `.cache/`.
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

MISSING = "NOT TESTED: the templates on an AWS emulator. Run `make engines` to see what is missing."


def is_available() -> bool:
    return all(_folder(tool).is_dir() for tool in _TOOLS)


def fetch() -> None:
    uv = str(Path(sys.executable).with_name("uv"))
    for tool in _TOOLS:
        if _folder(tool).is_dir():
            continue
        _CACHE.mkdir(exist_ok=True)
        with tempfile.TemporaryDirectory(dir=_CACHE) as folder:
            environment = Path(folder) / tool
            create = ["venv", "--relocatable", "--python", sys.executable, str(environment)]
            install = ["pip", "install", "--python", str(environment), "--require-hashes", "-r", str(_pins(tool))]
            for command in (create, install):
                subprocess.run([uv, "--quiet", *command], check=True, timeout=600, stdout=2)
            # Renamed when complete, so that an interrupted install leaves nothing incomplete.
            environment.rename(_folder(tool))


def program(tool: str, name: str) -> Path:
    return _folder(tool) / "bin" / name


@contextmanager
def running() -> Iterator[str]:
    """Starts the emulator with an empty account and yields its URL."""
    port = free_port()
    command = [program("ministack", "python"), _HERE / "ministack_with_placeholders.py"]
    with tempfile.TemporaryDirectory() as folder:
        settings = {
            # By default, ministack listens on every address and on more ports.
            "BIND_HOST": "127.0.0.1",
            "GATEWAY_PORT": str(port),
            "IOT_MTLS_ENABLED": "0",
            "SFTP_ENABLED": "0",
            "S3_DATA_DIR": folder,
            "TMPDIR": folder,
            "LOG_LEVEL": "WARNING",
        }
        url = f"http://127.0.0.1:{port}"
        is_ready = partial(_responds, f"{url}/_ministack/ready")
        with started("ministack", command, Path(folder), is_ready, os.environ | settings):
            yield url


def _pins(tool: str) -> Path:
    return _HERE / "pins" / f"{tool}.txt"


def _folder(tool: str) -> Path:
    """Returns the tool's folder, another one if the pins or the version of Python change."""
    versions = sys.version.encode() + _pins(tool).read_bytes()
    return _CACHE / f"{tool}-{hashlib.sha256(versions).hexdigest()[:12]}"


def _responds(url: str) -> bool:
    try:
        return requests.get(url, timeout=5).ok
    except requests.RequestException:
        return False
