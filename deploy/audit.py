"""The end of `make check`: reads what pip-audit says, and says aloud what it could not look at.

pip-audit itself passes over packages that its service does not know, all of them if need be, and breaks off where the
service is out of reach. A check that passes in silence without having looked is worse than none.
"""

import json
import sys
from typing import Any

# A traceback of the request, of an answer that was an error, or its own words for a service that is blocked.
_OUT_OF_REACH = ("requests.exceptions.", "ServiceError", "Tip: your network may be blocking this service.")


def judge(said: str) -> tuple[bool, str]:
    """Whether the check passes, and what to tell; `said` is stdout and stderr of pip-audit with --format json."""
    found = [line for line in said.splitlines() if line.startswith('{"dependencies":')]
    if not found:
        if any(words in said for words in _OUT_OF_REACH):
            return True, "NOT AUDITED: the vulnerability service is out of reach, and no package was looked up."
        return False, said
    packages = json.loads(found[-1])["dependencies"]
    vulnerable = [_described(package) for package in packages if package.get("vulns")]
    unknown = [package["name"] for package in packages if "skip_reason" in package]
    told = [f"VULNERABLE: {each}" for each in vulnerable]
    if len(unknown) == len(packages):
        told.append(f"NOT AUDITED: the vulnerability service knows none of the {len(packages)} packages.")
    elif unknown:
        told.append(f"NOT AUDITED: {', '.join(unknown)}, of {len(packages)} packages.")
    elif not vulnerable:
        told.append(f"No known vulnerability in {len(packages)} packages.")
    return not vulnerable, "\n".join(told)


def _described(package: dict[str, Any]) -> str:
    return f"{package['name']} {package['version']}: {', '.join(each['id'] for each in package['vulns'])}"


if __name__ == "__main__":
    passes, words = judge(sys.stdin.read())
    sys.stderr.write(f"{words}\n")
    sys.exit(not passes)
