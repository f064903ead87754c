"""The system's Chromium, driven by Playwright, and axe-core, which checks the accessibility of a page."""

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
# Debian's Chromium without a user interface. Tests take half the time with it.
_SHELL = "chromium-headless-shell"
_NAMES = (_SHELL, "chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
# Chromium then sends no requests but those of the page.
_QUIET = [
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
]

MISSING = "NOT TESTED: the console in a browser. Run `make engines` to see what is missing."


def is_available() -> bool:
    return _AXE.exists() and _executable() is not None


def fetch() -> None:
    if _executable() is None:
        try:
            system_packages.install(_SHELL, _SHELL)
        except subprocess.SubprocessError:
            system_packages.install("chromium", "chromium")
    npm.fetch(_PINS)


def read_axe() -> str:
    return _AXE.read_text()


@contextmanager
def running() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=_executable(),
            args=_QUIET,
            # Chromium has no sandbox for root.
            chromium_sandbox=os.geteuid() != 0,
        )
        try:
            yield browser
        finally:
            browser.close()


def _executable() -> str | None:
    return next((path for path in map(shutil.which, _NAMES) if path is not None), None)
