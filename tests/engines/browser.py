"""The system's own Chromium, and axe-core, which looks for what keeps people from using a page.

`python -m tests.engines browser` fetches what the machine does not have, and says in one line where it cannot.
Playwright, which drives the browser, never downloads one of its own.
"""

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Browser, sync_playwright

from tests.engines import npm, system_packages

_PINS = Path(__file__).with_name("axe-core")
_AXE = npm.cached(_PINS) / "node_modules" / "axe-core" / "axe.min.js"
# Chromium without the frame of a browser, as Debian has it: half of the work for each test.
_SHELL = "chromium-headless-shell"
_NAMES = (_SHELL, "chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
# It asks for nothing but what a page asks for.
_QUIET = [
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
]

MISSING = (
    "The console WAS NOT TRIED in a browser: `make engines` says what is missing. What was not tried is not tested."
)


def is_available() -> bool:
    return _AXE.exists() and _executable() is not None


def fetch() -> None:
    """Raises where it cannot be had."""
    if _executable() is None:
        try:
            system_packages.need(_SHELL, _SHELL)
        except subprocess.SubprocessError:
            system_packages.need("chromium", "chromium")
    npm.fetch(_PINS)


def axe() -> str:
    """As a script."""
    return _AXE.read_text()


@contextmanager
def running() -> Iterator[Browser]:
    """Without a window."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=_executable(),
            args=_QUIET,
            # Root cannot have it.
            chromium_sandbox=os.geteuid() != 0,
        )
        try:
            yield browser
        finally:
            browser.close()


def _executable() -> str | None:
    return next((path for path in map(shutil.which, _NAMES) if path is not None), None)
