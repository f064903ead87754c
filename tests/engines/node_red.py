"""Node-RED, in the version that `node-red/package-lock.json` pins, installed into `.cache/`."""

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

from tests.engines import npm, system_packages

_PINS = Path(__file__).with_name("node-red")
_FOLDER = npm.cached(_PINS)

MISSING = "NOT TESTED: the recipe in Node-RED. Run `python -m tests.engines node_red` to see what is missing."

# Without editor, admin API and HTTP nodes, Node-RED listens on no port.
_SETTINGS = """module.exports = {
    httpAdminRoot: false,
    httpNodeRoot: false,
    telemetry: { enabled: false, updateNotification: false },
    externalModules: { autoInstall: false },
};
"""


def is_available() -> bool:
    return _FOLDER.is_dir() and shutil.which("node") is not None


def fetch() -> None:
    system_packages.install("node", "nodejs")
    npm.fetch(_PINS)


class NodeRed:
    """A process with one flow file in its own folder."""

    def __init__(self, folder: Path, environment: dict[str, str]) -> None:
        self._folder = folder
        self.environment = environment
        self._process: subprocess.Popen[bytes] | None = None
        self.log = folder / "log"

    def start(self, flow: list[dict[str, Any]]) -> None:
        """Does not wait until Node-RED is ready."""
        (self._folder / "settings.js").write_text(_SETTINGS)
        (self._folder / "flows.json").write_text(json.dumps(flow))
        command: list[str | Path] = [
            "node",
            _FOLDER / "node_modules" / "node-red" / "red.js",
            "--userDir",
            self._folder,
            "flows.json",
        ]
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                command, env=self.environment, cwd=self._folder, stdout=log, stderr=log, start_new_session=True
            )

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait(10)
            self._process = None
