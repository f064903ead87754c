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
    """Runs code in a virtual environment that, like Lambda, looks for modules in `task_folder` first."""

    def __init__(self, folder: Path, task_folder: Path) -> None:
        self._task_folder = task_folder
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True, timeout=60)
        self._python = folder / "bin" / "python"
        (site_packages,) = folder.glob("lib/python*/site-packages")
        for name in _find_requirements("boto3"):
            _copy_package(name, site_packages)

    def run(self, code: str, stdin: Any = None, environment: dict[str, str] | None = None) -> Any:
        """Runs `code` with the document `stdin` as JSON on its stdin. Returns the JSON that it prints."""
        code = f"import json, sys; sys.path.insert(0, {str(self._task_folder)!r})\n{code}"
        # `-I` ignores Python's variables and the working directory, through which code could import other packages.
        command = [str(self._python), "-I", "-W", "error", "-c", code]
        done = subprocess.run(
            command, input=json.dumps(stdin), env=environment or {}, capture_output=True, text=True, timeout=60
        )
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)


def _find_requirements(name: str) -> set[str]:
    """Returns the names of the package and of all packages that it requires, directly or not."""
    found: set[str] = set()
    unresolved = {name}
    while unresolved:
        found.add(name := unresolved.pop())
        needed = (Requirement(text) for text in distribution(name).requires or ())
        unresolved |= {
            each.name for each in needed if each.marker is None or each.marker.evaluate({"extra": ""})
        } - found
    return found


def _copy_package(name: str, site_packages: Path) -> None:
    for file in distribution(name).files or ():
        # Scripts are not needed. Their paths lead out of site-packages.
        if ".." not in file.parts:
            target = site_packages / file
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(str(file.locate()), target)
