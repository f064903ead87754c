"""A Python with boto3 and what it needs, and nothing else, as a Lambda has it."""

import json
import shutil
import subprocess
import sys
from importlib.metadata import distribution
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement


class EmptyEnvironment:
    """The code in `task` is imported as a Lambda's is, from the first place on the path."""

    def __init__(self, folder: Path, task: Path) -> None:
        self._task = task
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True, timeout=60)
        self._python = folder / "bin" / "python"
        (site_packages,) = folder.glob("lib/python*/site-packages")
        for name in _with_requirements("boto3"):
            _copy(name, site_packages)

    def run(self, code: str, given: Any = None, environment: dict[str, str] | None = None) -> Any:
        """What the code prints as JSON; `given` is what it finds in that form on stdin."""
        code = f"import json, sys; sys.path.insert(0, {str(self._task)!r})\n{code}"
        # Isolated: neither this process's variables nor its working directory lead to other packages.
        command = [str(self._python), "-I", "-W", "error", "-c", code]
        done = subprocess.run(
            command, input=json.dumps(given), env=environment or {}, capture_output=True, text=True, timeout=60
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
        # Scripts stay behind: they are outside of the packages.
        if ".." not in file.parts:
            target = site_packages / file
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(str(file.locate()), target)
