"""The integration in `zapier/`, run by Zapier's own code against a service on each engine."""

import os
import re
import subprocess
from pathlib import Path

from tests.e2e.consumers import ALL_SCOPES
from tests.service import Service


def test_zapier_is_content(zapier_folder: Path, on_each_engine: Service) -> None:
    service = on_each_engine
    # So that a revoked key is refused at once.
    service.variables["INBOX_KEY_CACHE_SECONDS"] = "0"
    key, slow_key = service.create_key("acme", *ALL_SCOPES), service.create_key("slow")
    assert service.run("tenants", "update", "slow", "--rate-limit", "1").returncode == 0
    service.start()

    files = [str(file.relative_to(zapier_folder)) for file in (zapier_folder / "test").glob("*.test.js")]
    ended = subprocess.run(
        ["node", "--test", "--test-reporter=tap", *files],
        cwd=zapier_folder,
        env=os.environ
        | {"INBOX_URL": service.url, "INBOX_API_KEY": key, "INBOX_SLOW_API_KEY": slow_key}
        # Without it, what Zapier's checks find would only be logged.
        | {"NODE_ENV": "test"},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    counts = dict(re.findall(r"^# (tests|pass|skipped|todo) (\d+)$", ended.stdout, re.MULTILINE))
    assert int(counts["pass"]) == int(counts["tests"]) > len(files), ended.stdout
    assert (counts["skipped"], counts["todo"]) == ("0", "0"), ended.stdout
