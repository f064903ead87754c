"""Zapier's own code, installed into `zapier/node_modules`, which checks the integration in `zapier/`."""

import shutil
from pathlib import Path

from tests.engines import npm

FOLDER = Path(__file__).parents[2] / "zapier"
_PINS = FOLDER / "package-lock.json"
# npm writes this file last.
_INSTALLED = FOLDER / "node_modules" / ".package-lock.json"

MISSING = "NOT TESTED: the integration in zapier/. Run `make engines` to see what is missing."


def is_available() -> bool:
    is_current = _INSTALLED.exists() and _INSTALLED.stat().st_mtime >= _PINS.stat().st_mtime
    return is_current and shutil.which("node") is not None


def fetch() -> None:
    if not is_available():
        npm.install(FOLDER)
