"""Zapier's own code, which checks the integration in `zapier/`.

`python -m tests.engines zapier` fetches it into `zapier/node_modules`, and says in one line where that cannot be done.
"""

import shutil
from pathlib import Path

from tests.engines import npm

FOLDER = Path(__file__).parents[2] / "zapier"
_PINS = FOLDER / "package-lock.json"
# npm writes it last.
_INSTALLED = FOLDER / "node_modules" / ".package-lock.json"

MISSING = "Zapier's checks DID NOT RUN: `make engines` says what is missing. The integration in zapier/ is not tested."


def is_available() -> bool:
    is_current = _INSTALLED.exists() and _INSTALLED.stat().st_mtime >= _PINS.stat().st_mtime
    return is_current and shutil.which("node") is not None


def fetch() -> None:
    """Raises where it cannot be had."""
    if not is_available():
        npm.install(FOLDER)
