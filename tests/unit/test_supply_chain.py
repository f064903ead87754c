"""Only pinned versions are installed, and `make check` names the packages that it could not look up."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from deploy.dependency_audit import judge

ROOT = Path(__file__).parents[2]
REQUIREMENTS = ["requirements.txt", "requirements-dev.txt", "bench/requirements.txt"]

CURRENT: dict[str, Any] = {"name": "flask", "version": "3.1.2", "vulns": []}
UNKNOWN: dict[str, Any] = {
    "name": "gunicorn-h1c",
    "skip_reason": "Dependency not found on PyPI and could not be audited",
}
VULNERABLE: dict[str, Any] = {
    "name": "requests",
    "version": "2.0",
    "vulns": [{"id": "PYSEC-1", "fix_versions": ["2.1"]}, {"id": "PYSEC-2", "fix_versions": []}],
}


def make_audit_output(*packages: dict[str, Any]) -> str:
    return f"Some words\n{json.dumps({'dependencies': packages, 'fixes': []})}\n"


@pytest.mark.parametrize(
    ("packages", "verdict"),
    [
        ([CURRENT], (True, "No known vulnerability in 1 packages.")),
        ([CURRENT, VULNERABLE], (False, "VULNERABLE: requests 2.0: PYSEC-1, PYSEC-2")),
        ([CURRENT, UNKNOWN], (True, "NOT AUDITED: gunicorn-h1c, of 2 packages.")),
        ([UNKNOWN, UNKNOWN], (True, "NOT AUDITED: the vulnerability service knows none of the 2 packages.")),
        (
            [VULNERABLE, UNKNOWN],
            (False, "VULNERABLE: requests 2.0: PYSEC-1, PYSEC-2\nNOT AUDITED: gunicorn-h1c, of 2 packages."),
        ),
        ([], (True, "NOT AUDITED: the vulnerability service knows none of the 0 packages.")),
    ],
)
def test_audit_names_vulnerable_and_unknown_packages(packages: list[dict[str, Any]], verdict: tuple[bool, str]) -> None:
    assert judge(make_audit_output(*packages)) == verdict


@pytest.mark.parametrize(
    "output",
    [
        "Traceback (most recent call last):\nrequests.exceptions.ConnectionError: HTTPSConnectionPool(…)",
        "Traceback (most recent call last):\npip_audit._service.interface.ServiceError",
        "ERROR:pip_audit._cli:Could not connect to PyPI's vulnerability feed\n"
        "ERROR:pip_audit._cli:Tip: your network may be blocking this service. Try another service with `-s SERVICE`",
    ],
)
def test_audit_without_network_passes_with_a_warning(output: str) -> None:
    passes, message = judge(output)
    assert passes
    assert message.startswith("NOT AUDITED: ")
    assert message.count("\n") == 0


@pytest.mark.parametrize("output", ["", "ERROR:pip_audit._cli:requirement flask==3.0.0 does not contain a hash"])
def test_audit_that_fails_otherwise_fails_the_check(output: str) -> None:
    assert judge(output) == (False, output)


def test_every_requirement_is_pinned_with_hashes() -> None:
    hashed = re.compile(r"[a-z0-9._\[\]-]+==[^ ]+( ; [^\\]+)?( --hash=sha256:[0-9a-f]{64})+")
    for file in REQUIREMENTS:
        lines = [line for line in (ROOT / file).read_text().splitlines() if not line.lstrip().startswith("#")]
        requirements = re.sub(r" *\\\n *", " ", "\n".join(lines)).splitlines()
        assert requirements
        assert [line for line in requirements if not hashed.fullmatch(line)] == [], file


def test_every_install_checks_hashes() -> None:
    makefile, dockerfile = (ROOT / "Makefile").read_text(), (ROOT / "Dockerfile").read_text()
    installs = re.findall(r"^\t@\$\(PIP\) (.+)$", makefile, re.MULTILINE)
    installs += re.findall(r"pip install (?:--no-cache-dir )?(.+)$", dockerfile, re.MULTILINE)
    assert len(installs) == (makefile + dockerfile).count("$(PIP)") + dockerfile.count("pip install") == 6
    for install in installs:
        assert install.startswith("--require-hashes -r ") or install in ("--no-deps -e .", "--no-deps ."), install
    checked = re.findall(r"-r (\S+\.txt)", makefile[makefile.index("pip-audit") :].partition("|")[0])
    assert sorted(checked) == sorted(REQUIREMENTS)
