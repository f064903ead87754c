"""schemathesis generates requests for every operation of /openapi.json and checks the responses."""

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import requests

from tests.e2e.consumers import ALL_SCOPES, Client
from tests.service import Service

ROOT = Path(__file__).parents[2]
SCHEMATHESIS = Path(sys.executable).with_name("schemathesis")
# Two halves of equal size, for two cores. Operations that use each other's results are in the same half.
HALVES = [("events", "history", "inbox", "inboxes"), ("stats", "keys", "admin", "service")]
ROUNDS, CASES = 1, 50
CALLER, ADMIN, EXISTING = "caller", "system", "fuzzed"
# Each round has its own store: once a tenant has its maximum of keys and inboxes, most requests would be refused.
LONG_RUN_ROUNDS, LONG_RUN_CASES = 5, 100


def list_operations(spec: dict[str, Any], tags: tuple[str, ...]) -> set[str]:
    return {
        f"{method.upper()} {path}"
        for path, item in spec["paths"].items()
        for method, operation in item.items()
        if method != "parameters" and operation["tags"][0] in tags
    }


def fuzz(service: Service, tags: tuple[str, ...], cases: int) -> Path:
    """Runs schemathesis against a new service. Returns the path of its report in NDJSON."""
    # Requests without a key must not block the address, which also sends requests with keys.
    service.variables["INBOX_AUTH_FAILURE_LIMIT"] = "0"
    admin_key = service.create_key(ADMIN, "--scope", "admin")
    key = service.create_key(CALLER, *ALL_SCOPES)
    service.invoke("tenants", "create", EXISTING)
    service.start()
    client = Client(service, key)
    client.call("PUT", f"/inboxes/{EXISTING}").raise_for_status()
    key_id = client.call("GET", "/me").json()["key_id"]
    known = {
        "keys": {"admin": admin_key, "others": key},
        "own": {"key_id": [key_id], "tenant_id": [CALLER, ADMIN]},
        "existing": EXISTING,
    }

    report = service.folder / "report"
    command: list[str | Path] = [SCHEMATHESIS, "--config-file", ROOT / "tests" / "torture" / "schemathesis.toml"]
    command += ["run", f"{service.url}/openapi.json", "--checks", "all", "--max-examples", str(cases)]
    command += ["--report-ndjson-path", report, *(f"--include-tag={tag}" for tag in tags)]
    run = subprocess.run(
        command,
        env=os.environ
        | {
            "PYTHONPATH": str(ROOT),
            "SCHEMATHESIS_HOOKS": "tests.torture.fuzzing_hooks",
            "FUZZING": json.dumps(known),
        },
        cwd=service.folder,
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    assert run.returncode == 0, f"{run.stdout}\n{run.stderr}"
    return report


def count_cases(report: Path, cases: Counter[str], responses: Counter[int]) -> None:
    """Adds the number of cases per operation, and of responses per status."""
    for line in report.read_text().splitlines():
        scenario = json.loads(line).get("ScenarioFinished", {"recorder": {}})
        recorder = scenario["recorder"]
        for case_id, case in recorder.get("cases", {}).items():
            # Checks that send another request, such as one without a key, have a `parent_id`.
            if scenario["phase"] != "fuzzing" or "parent_id" in case:
                continue
            cases[f"{case['value']['method']} {case['value']['path']}"] += 1
            responses[recorder["interactions"][case_id]["response"]["status_code"]] += 1


@pytest.mark.parametrize("tags", HALVES, ids="-".join)
def test_generated_requests_get_documented_responses_only(
    new_service: Callable[[], Service],
    tags: tuple[str, ...],
    torture: bool,
    record_property: Callable[[str, object], None],
) -> None:
    rounds, cases_per_round = (LONG_RUN_ROUNDS, LONG_RUN_CASES) if torture else (ROUNDS, CASES)
    cases: Counter[str] = Counter()
    responses: Counter[int] = Counter()
    for _ in range(rounds):
        service = new_service()
        count_cases(fuzz(service, tags, cases_per_round), cases, responses)
        spec = requests.get(f"{service.url}/openapi.json", timeout=30).json()
        service.kill()

    record_property("operations", len(cases))
    record_property("cases", sum(cases.values()))
    record_property("responses", dict(sorted(responses.items())))
    expected = list_operations(spec, tags)
    assert {tag for half in HALVES for tag in half} == {tag["name"] for tag in spec["tags"]}
    assert {name: cases[name] for name in expected if cases[name] < rounds * cases_per_round} == {}
    assert set(cases) == expected
    # Otherwise the run has disabled its own key or tenant, or exceeded a limit, and tested only refusals.
    assert {401, 429}.isdisjoint(responses)
