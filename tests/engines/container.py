"""Containers without a container engine: Linux namespaces, without root if the kernel allows user namespaces.

The machine's own file system replaces the base image; an overlay in a folder of the test takes all writes.
"""

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

_CHECKOUT = Path(__file__).parents[2]
_SCRIPT = Path(__file__).with_name("container.sh")
_NEW_NAMESPACES = ["unshare", "--user", "--map-root-user", "--mount", "--pid", "--fork"]
# The loopback device of a new network namespace is down (SIOCSIFFLAGS, IFF_UP).
_LOOPBACK_UP = (
    "import fcntl, os, socket, struct, sys;"
    "fcntl.ioctl(socket.socket(), 0x8914, struct.pack('16sh14x', b'lo', 1));"
    "os.execvp(sys.argv[1], sys.argv[1:])"
)

# Building an image installs packages into /opt and compiles the standard library of this machine's Python.
WRITTEN_TO = ("/opt", str(Path(os.__file__).resolve().parent))
_WRITE = "import os, sys; [os.mkdir(f'{folder}/written') for folder in sys.argv[1:]]"

MISSING = (
    "NOT TESTED: the container image. This machine does not allow user namespaces with an overlay over its Python "
    "(unshare --user --map-root-user --mount --pid --net)."
)


def is_available() -> bool:
    python = str(Path(sys.executable).resolve())
    with tempfile.TemporaryDirectory() as folder:
        layer = Layer(Path(folder))
        try:
            run(layer, [python, "-c", _WRITE, *WRITTEN_TO], {"PATH": os.environ["PATH"]}, "/")
        except OSError:
            return False
        return all(layer.path(f"{place}/written").is_dir() for place in WRITTEN_TO)


@dataclass(frozen=True)
class Layer:
    """The files that a container wrote."""

    folder: Path

    def path(self, inside: str) -> Path:
        """Returns the path on this machine of a path inside the container."""
        first = Path(inside).parts[1]
        return self.folder / ("upper" if (self.folder / "upper" / first).is_dir() else "root") / inside[1:]

    def written(self) -> set[str]:
        """Returns the paths inside the container of every file, link and empty folder."""
        upper, root = self.folder / "upper", self.folder / "root"
        mounted = {"dev", "proc", "tmp", *(place.name for place in upper.iterdir())}
        found = [(upper, entry) for entry in upper.rglob("*") if _is_leaf(entry)]
        found += [(root, entry) for entry in root.rglob("*") if _is_leaf(entry)]
        paths = [entry.relative_to(place) for place, entry in found]
        return {f"/{path}" for path in paths if len(path.parts) > 1 or path.name not in mounted}


def _is_leaf(entry: Path) -> bool:
    return entry.is_symlink() or not entry.is_dir() or not any(entry.iterdir())


def run(
    layer: Layer, command: Sequence[str], environment: Mapping[str, str], folder: str
) -> subprocess.CompletedProcess[str]:
    """Runs a build step as root, on a writable file system, with the machine's network."""
    return subprocess.run(
        [*_NEW_NAMESPACES, *_make_command(layer, "rw", "0", folder, (), environment, command)],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def _make_command(
    layer: Layer,
    mode: str,
    user: str,
    folder: str,
    volumes: Sequence[str],
    environment: Mapping[str, str],
    command: Sequence[str],
) -> list[str]:
    arguments = [str(layer.folder), mode, user, folder, str(_CHECKOUT), " ".join(volumes)]
    return ["sh", str(_SCRIPT), *arguments, *_with_environment(environment), *command]


def _with_environment(environment: Mapping[str, str]) -> list[str]:
    return ["env", "-i", *(f"{name}={value}" for name, value in environment.items())]


@dataclass
class Container:
    """Runs a command as process 1, with its own network. Only volumes, /tmp and /dev/shm are writable."""

    layer: Layer
    command: Sequence[str]
    environment: Mapping[str, str]
    user: str
    volumes: Sequence[str] = ()
    log: Path = field(init=False)

    def __enter__(self) -> "Container":
        inside = _make_command(self.layer, "ro", self.user, "/", self.volumes, self.environment, self.command)
        self.log = self.layer.folder / "log"
        with self.log.open("wb") as log:
            loopback = [sys.executable, "-c", _LOOPBACK_UP]
            self._process = subprocess.Popen([*_NEW_NAMESPACES, "--net", *loopback, *inside], stdout=log, stderr=log)
        pid = self._process.pid
        while not (children := Path(f"/proc/{pid}/task/{pid}/children").read_text()):
            if self._process.poll() is not None:
                raise OSError(self.log.read_text())
            time.sleep(0.01)
        # The ID of process 1 outside the namespace.
        self._init_pid = int(children)
        return self

    def __exit__(self, *_: object) -> None:
        if self.is_running:
            self.signal(signal.SIGKILL)
            self._process.wait(15)

    def signal(self, number: signal.Signals) -> None:
        """Sends a signal to process 1, which receives only SIGKILL and signals that it handles."""
        os.kill(self._init_pid, number)

    @property
    def is_running(self) -> bool:
        return self._process.poll() is None

    def wait(self) -> int:
        return self._process.wait(30)

    def run(self, command: Sequence[str]) -> subprocess.CompletedProcess[str]:
        """Runs another command in the container as the same user."""
        user = ["unshare", "--user", f"--map-user={self.user}", f"--map-group={self.user}", "--"]
        namespaces = ["--mount", f"--pid=/proc/{self._init_pid}/ns/pid"]
        return self._enter(namespaces, [*user, *_with_environment(self.environment), *command])

    def run_beside(self, command: Sequence[str], **environment: str) -> subprocess.CompletedProcess[str]:
        """Runs a command of this machine on the container's network."""
        return self._enter([], ["env", *(f"{name}={value}" for name, value in environment.items()), *command])

    def _enter(self, namespaces: Sequence[str], command: Sequence[str]) -> subprocess.CompletedProcess[str]:
        target = [f"--target={self._process.pid}", "--user", "--net", "--preserve-credentials"]
        return subprocess.run(
            ["nsenter", *target, *namespaces, *command], capture_output=True, text=True, timeout=60, check=False
        )
