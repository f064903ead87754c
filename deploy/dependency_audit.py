"""The last step of `make check`: reads pip-audit's output, and names the packages that it could not look up.

pip-audit silently skips packages that its service does not know, and fails if it cannot reach the service. The check
must not pass silently if packages were not looked up, and must not fail because of the network.
"""

import json
import sys
from typing import Any

# A traceback of the request, an error response, or pip-audit's own message about a blocked service.
_OUT_OF_REACH = ("requests.exceptions.", "ServiceError", "Tip: your network may be blocking this service.")


def judge(output: str) -> tuple[bool, str]:
    """Returns True if the check passes, and the text to print. `output` is pip-audit's stdout and stderr."""
    found = [line for line in output.splitlines() if line.startswith('{"dependencies":')]
    if not found:
        if any(words in output for words in _OUT_OF_REACH):
            return True, "NOT AUDITED: the vulnerability service is out of reach, and no package was looked up."
        return False, output
    packages = json.loads(found[-1])["dependencies"]
    vulnerable = [_describe(package) for package in packages if package.get("vulns")]
    unknown = [package["name"] for package in packages if "skip_reason" in package]
    lines = [f"VULNERABLE: {each}" for each in vulnerable]
    if len(unknown) == len(packages):
        lines.append(f"NOT AUDITED: the vulnerability service knows none of the {len(packages)} packages.")
    elif unknown:
        lines.append(f"NOT AUDITED: {', '.join(unknown)}, of {len(packages)} packages.")
    elif not vulnerable:
        lines.append(f"No known vulnerability in {len(packages)} packages.")
    return not vulnerable, "\n".join(lines)


def _describe(package: dict[str, Any]) -> str:
    return f"{package['name']} {package['version']}: {', '.join(each['id'] for each in package['vulns'])}"


if __name__ == "__main__":
    passes, text = judge(sys.stdin.read())
    sys.stderr.write(f"{text}\n")
    sys.exit(not passes)
