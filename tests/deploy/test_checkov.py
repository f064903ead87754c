"""Every finding of checkov is fixed, or suppressed in the template with a reason."""

import json
import subprocess
from typing import Any

import pytest

from tests.deploy import templates
from tests.engines import cloud


def findings() -> dict[str, Any]:
    options = ["--framework", "cloudformation", "--output", "json", "--skip-download"]
    told = subprocess.run(
        [cloud.program("checkov", "checkov"), "--directory", templates.FOLDER, *options],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    found: dict[str, Any] = json.loads(told.stdout)
    return found


# Templates for which checkov has no rule.
_WITHOUT_RULES = {"bill.yaml"}


# One test: checkov takes seconds to start.
@pytest.mark.usefixtures("cloud_tools")
def test_every_finding_is_fixed_or_suppressed_with_a_reason() -> None:
    found = findings()
    results = found["results"]
    assert results["failed_checks"] == []
    assert found["summary"]["parsing_errors"] == 0
    files = {file.name: templates.read(file)["Resources"] for file in templates.FOLDER.glob("*.yaml")}
    assert {
        _file(each) for each in [*results["passed_checks"], *results["skipped_checks"]]
    } | _WITHOUT_RULES == files.keys()

    suppressions = {
        (name, logical_id, skip["id"])
        for name, resources in files.items()
        for logical_id, resource in resources.items()
        for skip in resource.get("Metadata", {}).get("checkov", {}).get("skip", [])
    }
    # No suppression is left over.
    assert suppressions == {
        (_file(each), each["resource"].rpartition(".")[2], each["check_id"]) for each in results["skipped_checks"]
    }
    assert all(len(each["check_result"]["suppress_comment"]) > 40 for each in results["skipped_checks"])


def _file(check: dict[str, Any]) -> str:
    path: str = check["file_path"]
    return path.strip("/")
