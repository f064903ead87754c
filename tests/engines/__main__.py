"""`python -m tests.engines NAME…` installs these engines, and prints one line for each that it cannot install."""

import subprocess
import sys
from importlib import import_module


def main(names: list[str]) -> int:
    failures = 0
    for name in names:
        try:
            import_module(f"tests.engines.{name}").fetch()
        except (OSError, RuntimeError, subprocess.SubprocessError) as error:
            print(f"error: {name} could not be installed: {error}.", file=sys.stderr)  # noqa: T201 - a command
            failures += 1
    return min(failures, 1)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
