"""Runs the tests of the integration in `zapier/` against a service on each engine."""

import os
import re
import subprocess
from pathlib import Path

from tests.e2e.consumers import ALL_SCOPES
from tests.service import Service


def test_zapier_integration_passes_its_tests(zapier_folder: Path, service_on_each_engine: Service) -> None:
    service = service_on_each_engine
    # Revoked keys stop working at once.
    service.variables["INBOX_KEY_CACHE_SECONDS"] = "0"
    key, limited_key = service.create_key("acme", *ALL_SCOPES), service.create_key("limited")
    assert service.run("tenants", "update", "limited", "--rate-limit", "1").returncode == 0
    service.start()

    files = [str(file.relative_to(zapier_folder)) for file in (zapier_folder / "test").glob("*.test.js")]
    result = subprocess.run(
        ["node", "--test", "--test-reporter=tap", *files],
        cwd=zapier_folder,
        env=os.environ
        | {"INBOX_URL": service.url, "INBOX_API_KEY": key, "INBOX_RATE_LIMITED_API_KEY": limited_key}
        # Makes Zapier's checks raise instead of log.
        | {"NODE_ENV": "test"},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert result.returncode == 0, result.stdout + result.stderr
    counts = dict(re.findall(r"^# (tests|pass|skipped|todo) (\d+)$", result.stdout, re.MULTILINE))
    assert int(counts["pass"]) == int(counts["tests"]) > len(files), result.stdout
    assert (counts["skipped"], counts["todo"]) == ("0", "0"), result.stdout
