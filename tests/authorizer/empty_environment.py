"""A Python environment with boto3 and its requirements only, as in Lambda."""

import json
import shutil
import subprocess
import sys
from importlib.metadata import distribution
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement


class EmptyEnvironment:
    """Imports the code in `task` first, as Lambda does."""

    def __init__(self, folder: Path, task: Path) -> None:
        self._task = task
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True, timeout=60)
        self._python = folder / "bin" / "python"
        (site_packages,) = folder.glob("lib/python*/site-packages")
        for name in _with_requirements("boto3"):
            _copy(name, site_packages)

    def run(self, code: str, stdin: Any = None, environment: dict[str, str] | None = None) -> Any:
        """Returns the JSON that `code` prints. `stdin` is a document that it reads as JSON."""
        code = f"import json, sys; sys.path.insert(0, {str(self._task)!r})\n{code}"
        # Isolated from this process's variables and working directory, which could lead to other packages.
        command = [str(self._python), "-I", "-W", "error", "-c", code]
        done = subprocess.run(
            command, input=json.dumps(stdin), env=environment or {}, capture_output=True, text=True, timeout=60
        )
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)


def _with_requirements(name: str) -> set[str]:
    found: set[str] = set()
    waiting = {name}
    while waiting:
        found.add(name := waiting.pop())
        needed = (Requirement(text) for text in distribution(name).requires or ())
        waiting |= {each.name for each in needed if each.marker is None or each.marker.evaluate({"extra": ""})} - found
    return found


def _copy(name: str, site_packages: Path) -> None:
    for file in distribution(name).files or ():
        # Not the scripts, which are outside of the packages.
        if ".." not in file.parts:
            target = site_packages / file
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(str(file.locate()), target)
