"""Every finding of checkov is fixed, or suppressed in the template with a reason."""

import json
import subprocess
from typing import Any

import pytest

from tests.deploy import stacks
from tests.engines import cloud


def run_checkov() -> dict[str, Any]:
    options = ["--framework", "cloudformation", "--output", "json", "--skip-download"]
    run = subprocess.run(
        [cloud.program("checkov", "checkov"), "--directory", stacks.TEMPLATES, *options],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    found: dict[str, Any] = json.loads(run.stdout)
    return found


# Templates without a resource that checkov has rules for.
_WITHOUT_RULES = {"bill.yaml"}


# One test: checkov takes seconds to start.
@pytest.mark.usefixtures("cloud_tools")
def test_every_finding_is_fixed_or_suppressed_with_a_reason() -> None:
    found = run_checkov()
    results = found["results"]
    assert results["failed_checks"] == []
    assert found["summary"]["parsing_errors"] == 0
    templates = {file.name: stacks.read_template(file.stem)["Resources"] for file in stacks.TEMPLATES.glob("*.yaml")}
    assert {
        _template_of(each) for each in [*results["passed_checks"], *results["skipped_checks"]]
    } | _WITHOUT_RULES == templates.keys()

    suppressions = {
        (name, logical_id, skip["id"])
        for name, resources in templates.items()
        for logical_id, resource in resources.items()
        for skip in resource.get("Metadata", {}).get("checkov", {}).get("skip", [])
    }
    # Every suppression has a finding.
    assert suppressions == {
        (_template_of(each), each["resource"].rpartition(".")[2], each["check_id"])
        for each in results["skipped_checks"]
    }
    assert all(len(each["check_result"]["suppress_comment"]) > 40 for each in results["skipped_checks"])


def _template_of(check: dict[str, Any]) -> str:
    path: str = check["file_path"]
    return path.strip("/")
