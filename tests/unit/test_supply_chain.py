"""What is installed is what was pinned, and `make check` cannot pass without having looked, or without saying so."""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from deploy.audit import judge

ROOT = Path(__file__).parents[2]
BIN = Path(sys.executable).parent
REQUIREMENTS = ["requirements.txt", "requirements-dev.txt", "bench/requirements.txt"]

FINE: dict[str, Any] = {"name": "flask", "version": "3.1.2", "vulns": []}
UNKNOWN: dict[str, Any] = {
    "name": "gunicorn-h1c",
    "skip_reason": "Dependency not found on PyPI and could not be audited",
}
VULNERABLE: dict[str, Any] = {
    "name": "requests",
    "version": "2.0",
    "vulns": [{"id": "PYSEC-1", "fix_versions": ["2.1"]}, {"id": "PYSEC-2", "fix_versions": []}],
}


def audited(*packages: dict[str, Any]) -> str:
    return f"Some words\n{json.dumps({'dependencies': packages, 'fixes': []})}\n"


@pytest.mark.parametrize(
    ("packages", "verdict"),
    [
        ([FINE], (True, "No known vulnerability in 1 packages.")),
        ([FINE, VULNERABLE], (False, "VULNERABLE: requests 2.0: PYSEC-1, PYSEC-2")),
        ([FINE, UNKNOWN], (True, "NOT AUDITED: gunicorn-h1c, of 2 packages.")),
        ([UNKNOWN, UNKNOWN], (True, "NOT AUDITED: the vulnerability service knows none of the 2 packages.")),
        (
            [VULNERABLE, UNKNOWN],
            (False, "VULNERABLE: requests 2.0: PYSEC-1, PYSEC-2\nNOT AUDITED: gunicorn-h1c, of 2 packages."),
        ),
        ([], (True, "NOT AUDITED: the vulnerability service knows none of the 0 packages.")),
    ],
)
def test_what_was_found_and_what_was_not_looked_at_is_said(
    packages: list[dict[str, Any]], verdict: tuple[bool, str]
) -> None:
    assert judge(audited(*packages)) == verdict


@pytest.mark.parametrize(
    "said",
    [
        "Traceback (most recent call last):\nrequests.exceptions.ConnectionError: HTTPSConnectionPool(…)",
        "Traceback (most recent call last):\npip_audit._service.interface.ServiceError",
        "ERROR:pip_audit._cli:Could not connect to PyPI's vulnerability feed\n"
        "ERROR:pip_audit._cli:Tip: your network may be blocking this service. Try another service with `-s SERVICE`",
    ],
)
def test_a_service_that_is_out_of_reach_is_said(said: str) -> None:
    passes, words = judge(said)
    assert passes
    assert words.startswith("NOT AUDITED: ")
    assert words.count("\n") == 0


@pytest.mark.parametrize("said", ["", "ERROR:pip_audit._cli:requirement flask==3.0.0 does not contain a hash"])
def test_an_audit_that_did_not_run_for_another_reason_fails(said: str) -> None:
    assert judge(said) == (False, said)


def test_the_audit_itself_wants_hashes(tmp_path: Path) -> None:
    (tmp_path / "requirements.txt").write_text("flask==3.0.0\n")
    options = ["--require-hashes", "--disable-pip", "--progress-spinner", "off", "--format", "json"]
    run = subprocess.run(
        [BIN / "pip-audit", *options, "-r", tmp_path / "requirements.txt"],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=60,
        check=False,
    )
    passes, words = judge(run.stdout)
    assert not passes
    assert "does not contain a hash" in words


def test_every_requirement_is_pinned_and_has_hashes() -> None:
    hashed = re.compile(r"[a-z0-9._\[\]-]+==[^ ]+( ; [^\\]+)?( --hash=sha256:[0-9a-f]{64})+")
    for file in REQUIREMENTS:
        lines = [line for line in (ROOT / file).read_text().splitlines() if not line.lstrip().startswith("#")]
        requirements = re.sub(r" *\\\n *", " ", "\n".join(lines)).splitlines()
        assert requirements
        assert [line for line in requirements if not hashed.fullmatch(line)] == [], file


def test_nothing_is_installed_without_its_hash() -> None:
    makefile, dockerfile = (ROOT / "Makefile").read_text(), (ROOT / "Dockerfile").read_text()
    installs = re.findall(r"^\t@\$\(PIP\) (.+)$", makefile, re.MULTILINE)
    installs += re.findall(r"pip install (?:--no-cache-dir )?(.+)$", dockerfile, re.MULTILINE)
    assert len(installs) == (makefile + dockerfile).count("$(PIP)") + dockerfile.count("pip install") == 6
    for install in installs:
        assert install.startswith("--require-hashes -r ") or install in ("--no-deps -e .", "--no-deps ."), install
    checked = re.findall(r"-r (\S+\.txt)", makefile[makefile.index("pip-audit") :].partition("|")[0])
    assert sorted(checked) == sorted(REQUIREMENTS)


def test_bandit_sees_what_is_planted(tmp_path: Path) -> None:
    planted = tmp_path / "planted.py"
    planted.write_text("import hashlib\n\n\ndef key(text: bytes) -> str:\n    return hashlib.md5(text).hexdigest()\n")
    command: list[str | Path] = [
        BIN / "bandit",
        "--quiet",
        "--configfile",
        ROOT / "pyproject.toml",
        "--recursive",
        tmp_path,
    ]
    run = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert run.returncode == 1
    assert "B324" in run.stdout
