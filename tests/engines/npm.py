"""Packages for Node, just as a lock file pins them."""

import hashlib
import shutil
import subprocess
import tempfile
from pathlib import Path

from tests.engines import system_packages

_CACHE = Path(__file__).parents[2] / ".cache"


def install(folder: Path) -> None:
    """What the lock file in this folder pins, into its node_modules. Raises where it cannot be had."""
    system_packages.need("node", "nodejs")
    system_packages.need("npm", "npm")
    options = ["--ignore-scripts", "--no-audit", "--no-fund", "--silent"]
    subprocess.run(["npm", "ci", *options], cwd=folder, check=True, timeout=600, stdout=2)


def cached(pins: Path) -> Path:
    """Where what is pinned in this folder is kept, once it was fetched: another place when the pins change."""
    digest = hashlib.sha256((pins / "package-lock.json").read_bytes()).hexdigest()
    return _CACHE / f"{pins.name}-{digest[:12]}"


def fetch(pins: Path) -> None:
    """Raises where it cannot be had."""
    place = cached(pins)
    if place.is_dir():
        return
    _CACHE.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=_CACHE) as folder:
        engine = shutil.copytree(pins, Path(folder) / "engine")
        install(engine)
        # In one step: a folder of that name is a whole one.
        engine.rename(place)
