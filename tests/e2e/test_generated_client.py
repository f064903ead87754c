"""A client that is generated from /openapi.json works."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.service import Service

BIN = Path(sys.executable).parent
PROGRAM = Path(__file__).with_name("generated_client_user.py")
NESTED = {"order": 1001, "lines": [{"sku": "a", "tags": ["new", None]}, {"sku": "b", "price": {"amount": 1.5}}]}


def generate(url: str, folder: Path) -> None:
    """Generates a client. Fails if the generator skips a part of the document."""
    command: list[str | Path] = [BIN / "openapi-python-client", "generate", "--url", url, "--meta", "none"]
    command += ["--output-path", folder / "generated_inbox", "--fail-on-warning"]
    # The generator formats its code with ruff.
    environment = os.environ | {"PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}"}
    generation = subprocess.run(
        command, env=environment, cwd=folder, capture_output=True, text=True, timeout=60, check=False
    )
    assert generation.returncode == 0, f"{generation.stdout}\n{generation.stderr}"


def run_program(service: Service, folder: Path, key: str) -> dict[str, Any]:
    """Runs the program that uses the client, and returns the documents that it prints."""
    environment = service.environment | {"PYTHONPATH": str(folder), "INBOX_URL": service.url, "INBOX_KEY": key}
    run = subprocess.run(
        [sys.executable, PROGRAM, json.dumps(NESTED)],
        env=environment,
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    documents: dict[str, Any] = json.loads(run.stdout)
    return documents


def test_generated_client_sends_polls_and_parses_problems(service: Service, tmp_path: Path) -> None:
    key = service.create_key("acme")
    service.start()
    generate(f"{service.url}/openapi.json", tmp_path)
    documents = run_program(service, tmp_path, key)

    ids = [event["id"] for event in documents["sent"]]
    assert [(event["event_type"], event["status"]) for event in documents["sent"]] == [
        ("order.created", "undelivered"),
        ("order.created", "undelivered"),
        (None, "undelivered"),
    ]
    assert [(event["id"], event["payload"]) for event in documents["peeked"]] == list(
        zip(ids, [NESTED, {"n": 2}, {"n": 3}], strict=True)
    )
    assert [(event["id"], event["status"], event["payload"]) for event in documents["leased"]] == [
        (ids[0], "leased", NESTED)
    ]
    assert documents["settled"] == {"acknowledged": ids[:1], "lost": []}
    assert [(event["id"], event["status"]) for event in documents["polled"]] == [
        (each, "delivered") for each in ids[1:]
    ]
    assert documents["more"] == "false"
    assert (documents["refused"]["type"], documents["refused"]["errors"][0]["pointer"]) == (
        "/problems/invalid-request",
        "/limit",
    )
    assert (documents["unauthorized"]["type"], documents["unauthorized"]["status"]) == ("/problems/unauthorized", 401)
    assert documents["kinds"] == ["Acknowledged", "PolledEvent", "ProblemDocument", "StoredEvent"]
