"""checkov's findings, answered one by one: what is not mended has its reason beside it."""

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


# checkov has no rule for anything in them.
_WITHOUT_RULES = {"bill.yaml"}


# One test for all of it: checkov takes its time.
@pytest.mark.usefixtures("cloud_tools")
def test_nothing_is_left_unanswered_and_every_answer_has_its_reason() -> None:
    found = findings()
    results = found["results"]
    assert results["failed_checks"] == []
    assert found["summary"]["parsing_errors"] == 0
    files = {file.name: templates.read(file)["Resources"] for file in templates.FOLDER.glob("*.yaml")}
    assert {
        _file(each) for each in [*results["passed_checks"], *results["skipped_checks"]]
    } | _WITHOUT_RULES == files.keys()

    answers = {
        (name, logical_id, skip["id"])
        for name, resources in files.items()
        for logical_id, resource in resources.items()
        for skip in resource.get("Metadata", {}).get("checkov", {}).get("skip", [])
    }
    # An answer to what checkov does not ask any more would stand there for nothing.
    assert answers == {
        (_file(each), each["resource"].rpartition(".")[2], each["check_id"]) for each in results["skipped_checks"]
    }
    assert all(len(each["check_result"]["suppress_comment"]) > 40 for each in results["skipped_checks"])


def _file(check: dict[str, Any]) -> str:
    path: str = check["file_path"]
    return path.strip("/")
