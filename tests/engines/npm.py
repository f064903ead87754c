"""Installs Node packages from a lock file."""

import hashlib
import shutil
import subprocess
import tempfile
from pathlib import Path

from tests.engines import system_packages

_CACHE = Path(__file__).parents[2] / ".cache"


def install(folder: Path) -> None:
    """Installs the packages that the lock file in this folder pins into its node_modules."""
    system_packages.install("node", "nodejs")
    system_packages.install("npm", "npm")
    options = ["--ignore-scripts", "--no-audit", "--no-fund", "--silent"]
    subprocess.run(["npm", "ci", *options], cwd=folder, check=True, timeout=600, stdout=2)


def cached(pins: Path) -> Path:
    """Returns the folder in `.cache/` for these pins. It changes with the pins."""
    digest = hashlib.sha256((pins / "package-lock.json").read_bytes()).hexdigest()
    return _CACHE / f"{pins.name}-{digest[:12]}"


def fetch(pins: Path) -> None:
    place = cached(pins)
    if place.is_dir():
        return
    _CACHE.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=_CACHE) as folder:
        engine = shutil.copytree(pins, Path(folder) / "engine")
        install(engine)
        # Renamed when complete, so that an interrupted install leaves nothing incomplete.
        engine.rename(place)
