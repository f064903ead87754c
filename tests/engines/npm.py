"""Packages for Node, just as a lock file pins them."""

import subprocess
from pathlib import Path

from tests.engines import system_packages


def install(folder: Path) -> None:
    """What the lock file in this folder pins, into its node_modules. Raises where it cannot be had."""
    system_packages.need("node", "nodejs")
    system_packages.need("npm", "npm")
    options = ["--ignore-scripts", "--no-audit", "--no-fund", "--silent"]
    subprocess.run(["npm", "ci", *options], cwd=folder, check=True, timeout=600, stdout=2)
