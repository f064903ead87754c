"""Installs commands that an engine needs, with apt-get."""

import os
import shutil
import subprocess


def install(command: str, package: str) -> None:
    """Installs the package if the command is missing. Raises RuntimeError if that is not possible."""
    if shutil.which(command) is not None:
        return
    if shutil.which("apt-get") is None or os.geteuid() != 0:
        raise RuntimeError(f"{command} is missing, and only root can install it, with apt-get")
    for install in (["update", "-qq"], ["install", "-qq", "--no-install-recommends", package]):
        subprocess.run(["apt-get", *install], check=True, timeout=600, stdout=2)
