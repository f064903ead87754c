"""The `inbox` command in a process: its start, its standard streams, its environment."""

import json
import re
import socket
import subprocess
from pathlib import Path

import pytest
import requests

from inbox import __version__
from tests.e2e.consumers import Client
from tests.service import INBOX, Service, bearer

SCOPES = ["events:read", "events:write", "inbox:read", "tenant:manage"]


def test_quickstart_prints_working_commands_and_shows_its_key_only_at_the_first_start(service: Service) -> None:
    with socket.create_server(("127.0.0.1", service.port)):
        failed = service.run("quickstart")
    reason = f"error: Cannot listen on 127.0.0.1:{service.port} (Address already in use)."
    hint = "Use another port: INBOX_PORT, or `inbox serve --port`."
    assert (failed.returncode, failed.stdout, failed.stderr) == (1, "", f"{reason} {hint}\n")

    for is_first in (True, False):
        service.start("quickstart")
        printed = service.log.read_text()
        assert f"{service.url}/" in printed
        # The failed start did not use up the key.
        assert printed.count("ibx_") == (3 if is_first else 0)
        lines = [line for line in printed.splitlines() if line.startswith("curl ")]
        responses = [
            json.loads(subprocess.run(["bash", "-c", line], capture_output=True, check=True, timeout=30).stdout)
            for line in lines
        ]
        if is_first:
            sent, polled = responses
            assert [(event["id"], event["payload"]) for event in polled] == [(sent["id"], {"order": 1001})]
        (command,) = re.findall(r"New key +\.venv/bin/inbox (keys create demo.*)", printed)
        key = service.invoke(*command.split()).stdout.strip()
        assert requests.get(f"{service.url}/me", headers=bearer(key), timeout=30).json()["scopes"] == SCOPES
        service.stop()
        service.log.unlink()
    keys = [json.loads(line) for line in service.invoke("keys", "list", "demo", "--json").stdout.splitlines()]
    assert [key["scopes"] for key in keys] == [SCOPES] * 3


def test_database_is_private_to_its_owner(running_service: Service) -> None:
    running_service.create_key("acme")
    assert {file.name: file.stat().st_mode & 0o077 for file in running_service.folder.glob("inbox.db*")} == {
        "inbox.db": 0,
        "inbox.db-wal": 0,
        "inbox.db-shm": 0,
    }


def test_credentials_in_netrc_are_ignored(running_service: Service, tmp_path: Path) -> None:
    (tmp_path / ".netrc").write_text("machine 127.0.0.1 login other password other\n")
    (tmp_path / ".netrc").chmod(0o600)
    environment = {"HOME": str(tmp_path), "INBOX_API_KEY": running_service.create_key("netrc")}
    assert running_service.run("send", "-", stdin='{"n": 1.0}', **environment).returncode == 0
    polled = running_service.run("poll", **environment)
    assert (polled.returncode, polled.stdout.count("\n"), polled.stderr) == (0, 1, "")
    assert '"payload":{"n":1.0}' in polled.stdout
    empty = running_service.run("poll", **environment)
    assert (empty.returncode, empty.stdout) == (0, "")


@pytest.mark.parametrize("command", ["serve", "quickstart"])
def test_service_does_not_start_on_a_store_that_cannot_be_opened(service: Service, command: str) -> None:
    (service.folder / "inbox.db").write_text("This is not a database. " * 100)
    done = service.run(command)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1)
    assert f" {service.folder}/inbox.db " in done.stderr


def test_argument_that_is_not_utf8_prints_one_line(service: Service) -> None:
    done = service.run("tenants", "create", "acme", "--name", "\udcff")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)


def test_full_stdout_prints_one_line(service: Service) -> None:
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            [INBOX, "config"], env=service.environment, stdout=full, stderr=subprocess.PIPE, check=False
        )
    assert (done.returncode, done.stderr.count(b"\n")) == (1, 1)


@pytest.mark.parametrize("worker_class", ["inbox.server.worker.InboxWorker", "gthread", "sync"])
def test_gunicorn_can_start_the_app(service: Service, worker_class: str) -> None:
    gunicorn = [str(INBOX.with_name("gunicorn")), "--no-control-socket", "--bind", f"127.0.0.1:{service.port}"]
    gunicorn += ["--worker-class", worker_class, "wsgi:app"]
    root = Path(__file__).parents[2]
    refused = subprocess.run(
        gunicorn, cwd=root, env=service.environment | {"INBOX_PORT": "x"}, capture_output=True, timeout=30, check=False
    )
    assert refused.returncode != 0
    assert b"inbox: INBOX_PORT is not valid" in refused.stderr
    assert b"Traceback" not in refused.stderr
    service.start_process(gunicorn, root)
    script = requests.get(
        f"{service.url}/static/vendor/swagger-ui/swagger-ui-bundle.js", headers={"Accept-Encoding": ""}, timeout=30
    )
    assert len(script.content) == int(script.headers["Content-Length"]) > 100_000
    client = Client(service, service.create_key("acme"))
    assert client.get("/inbox?wait=1") == []
    sent = client.send({"n": 1})
    assert [event["id"] for event in client.get("/inbox?wait=20")] == [sent]


def test_shell_completion_names_the_commands(service: Service) -> None:
    assert "complete -o nosort -F" in service.run(_INBOX_COMPLETE="bash_source").stdout
    disable = {"COMP_WORDS": "inbox inboxes disable d", "COMP_CWORD": "3"}
    assert service.run(_INBOX_COMPLETE="bash_complete", **disable).stdout == "plain,default\n"
    completed = service.run(_INBOX_COMPLETE="bash_complete", COMP_WORDS="inbox keys r", COMP_CWORD="2")
    assert completed.stdout == "plain,revoke\nplain,rotate\n"


def test_version_option_prints_name_and_version(service: Service) -> None:
    run = service.run("--version")
    assert (run.returncode, run.stdout) == (0, f"inbox {__version__}\n")


def test_command_runs_without_stderr(service: Service) -> None:
    run = subprocess.run(
        ["sh", "-c", '"$0" tenants create acme 2>&-', INBOX],
        env=service.environment,
        cwd=service.folder,
        stdout=subprocess.PIPE,
        text=True,
        timeout=30,
        check=False,
    )
    assert (run.returncode, run.stdout) == (0, "acme\n")
