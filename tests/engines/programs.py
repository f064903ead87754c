"""Programs that the recipes in docs/how-to/recipes are written for, and proxies that stand in front of the service.

`python -m tests.engines programs` installs those that the machine does not have, and says in one line where it cannot.
"""

import shutil

from tests.engines import system_packages

# The command → the package that has it.
_PACKAGES = {
    "curl": "curl",
    "jq": "jq",
    "flock": "util-linux",
    "node": "nodejs",
    "nginx": "nginx-light",
    "haproxy": "haproxy",
}

MISSING = (
    "Recipes and proxies DID NOT RUN: `make engines` says which program is missing. What was not tried is not tested."
)


def is_available() -> bool:
    return all(shutil.which(name) is not None for name in _PACKAGES)


def fetch() -> None:
    """Raises where one cannot be had."""
    for name, package in _PACKAGES.items():
        system_packages.need(name, package)
