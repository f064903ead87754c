"""The programs that the recipes in docs/how-to/recipes use, and the proxies that run in front of the service."""

import shutil

from tests.engines import system_packages

# Command → package.
_PACKAGES = {
    "curl": "curl",
    "jq": "jq",
    "flock": "util-linux",
    "node": "nodejs",
    "nginx": "nginx-light",
    "haproxy": "haproxy",
}

MISSING = "NOT TESTED: recipes and proxies. Run `make engines` to see which program is missing."


def is_available() -> bool:
    return all(shutil.which(name) is not None for name in _PACKAGES)


def fetch() -> None:
    for name, package in _PACKAGES.items():
        system_packages.install(name, package)
