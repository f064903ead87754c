"""Commands that an engine needs, from the packages of the system."""

import os
import shutil
import subprocess


def need(command: str, package: str) -> None:
    """Raises where it is not there and cannot be installed."""
    if shutil.which(command) is not None:
        return
    if shutil.which("apt-get") is None or os.geteuid() != 0:
        raise RuntimeError(f"there is no {command}, and it cannot be installed here")
    for install in (["update", "-qq"], ["install", "-qq", "--no-install-recommends", package]):
        subprocess.run(["apt-get", *install], check=True, timeout=600, stdout=2)
