"""The command `inbox`, as a person or a script types it."""

import json
import re
import socket
import subprocess
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
import requests

from authorizer import apikey
from inbox import __version__
from tests.e2e.consumers import Client
from tests.service import INBOX, Service, bearer


def test_the_first_start_prints_lines_that_work_as_they_stand(service: Service) -> None:
    service.start("quickstart")
    lines = [line for line in service.log.read_text().splitlines() if line.startswith("curl ")]
    assert len(lines) == 2
    sent, polled = (
        json.loads(subprocess.run(["bash", "-c", line], capture_output=True, check=True, timeout=30).stdout)
        for line in lines
    )
    assert [event["id"] for event in polled] == [sent["id"]]
    assert polled[0]["payload"] == {"order": 1001}
    assert f"{service.url}/" in service.log.read_text()


def test_the_key_is_printed_once(service: Service) -> None:
    service.start("quickstart")
    assert service.log.read_text().count("API key   ibx_") == 1
    service.stop()
    service.log.unlink()
    service.start("quickstart")
    assert "ibx_" not in service.log.read_text()


def test_both_starts_name_a_command_whose_key_can_do_everything_but_admin(service: Service) -> None:
    scopes = ["events:read", "events:write", "inbox:read", "tenant:manage"]
    for _ in range(2):
        service.start("quickstart")
        (command,) = re.findall(r"\.venv/bin/inbox (keys create demo[^)]*)\)", service.log.read_text())
        key = service.run(*command.split()).stdout.strip()
        assert requests.get(f"{service.url}/me", headers=bearer(key), timeout=30).json()["scopes"] == scopes
        service.stop()
        service.log.unlink()
    printed = [json.loads(line) for line in service.run("keys", "list", "demo", "--json").stdout.splitlines()]
    assert [key["scopes"] for key in printed] == [scopes] * 3


def test_a_start_that_fails_uses_up_no_key(service: Service) -> None:
    with socket.create_server(("127.0.0.1", service.port)):
        failed = service.run("quickstart")
    told = f"Cannot listen on 127.0.0.1:{service.port} (Address already in use). Set INBOX_PORT to use another port"
    assert (failed.returncode, failed.stdout, failed.stderr) == (1, "", f"error: {told}\n")
    service.start("quickstart")
    assert "API key   ibx_" in service.log.read_text()


def test_init_makes_the_database_and_may_be_repeated(service: Service) -> None:
    for _ in range(2):
        done = service.run("init")
        assert (done.returncode, done.stdout) == (0, "")
    assert (service.folder / "inbox.db").exists()


def test_events_are_sent_and_polled(service: Service) -> None:
    key = service.create_key("acme")
    service.start()
    sent = service.run("send", "--type", "order.created", '{"n": 1.0}', INBOX_API_KEY=key)
    assert (sent.returncode, json.loads(sent.stdout)["event_type"]) == (0, "order.created")
    assert sent.stdout.count("\n") == 1
    assert service.run("send", "--key", key, "-", stdin='{"n": 123456789012345678901234567890}').returncode == 0

    assert service.run("poll", "--peek", "--key", key).stdout.count("\n") == 2
    polled = service.run("poll", "--key", key).stdout.splitlines()
    assert ['"payload":{"n":1.0}' in polled[0], '"payload":{"n":123456789012345678901234567890}' in polled[1]] == [
        True,
        True,
    ]
    empty = service.run("poll", "--key", key)
    assert (empty.returncode, empty.stdout) == (0, "")


def test_the_deepest_event_can_be_polled(service: Service) -> None:
    key = service.create_key("acme")
    service.start()
    deepest = '{"a":' * 31 + "{}" + "}" * 31
    headers = bearer(key) | {"Content-Type": "application/json"}
    assert requests.post(f"{service.url}/events", data=deepest, headers=headers, timeout=30).status_code == 201
    polled = service.run("poll", "--key", key)
    assert (polled.returncode, deepest in polled.stdout) == (0, True)


def test_a_netrc_does_not_get_in_the_way(service: Service) -> None:
    key = service.create_key("acme")
    service.start()
    (service.folder / ".netrc").write_text("machine 127.0.0.1 login somebody password else\n")
    (service.folder / ".netrc").chmod(0o600)
    assert service.run("poll", "--key", key, HOME=str(service.folder)).returncode == 0


def test_the_database_is_for_its_owner_only(service: Service) -> None:
    service.create_key("acme")
    service.start()
    assert {file.name: file.stat().st_mode & 0o077 for file in service.folder.glob("inbox.db*")} == {
        "inbox.db": 0,
        "inbox.db-wal": 0,
        "inbox.db-shm": 0,
    }


def test_config_shows_every_setting_and_hides_secrets(service: Service) -> None:
    shown = service.run("config", INBOX_API_KEY="ibx_secret", INBOX_PORT="9999").stdout
    assert "INBOX_PORT=9999\n" in shown
    assert "INBOX_RETENTION_DAYS=30\n" in shown
    assert "INBOX_API_KEY=(hidden)\n" in shown
    assert "ibx_secret" not in shown


@pytest.mark.parametrize(
    "arguments",
    [
        ["nonsense"],
        ["serve", "--port", "http"],
        ["serve", "--port", "70000"],
        ["tenants", "create"],
        ["keys", "create", "acme", "--scope", "everything"],
        ["keys", "create", "acme", "--expires-in", "soon"],
        ["keys", "create", "acme", "--expires-in", "36501d"],
        ["keys", "create", "acme", "--expires-in", "0s"],
        ["keys", "rotate", "key_none", "--overlap", "a day"],
        ["tenants", "update", "acme"],
        ["tenants", "update", "acme", "--rate-limit", "-1"],
        ["send", "{not json"],
        ["send", "{}"],
        ["poll", "--limit", "501"],
    ],
)
def test_wrong_usage_ends_with_2_and_says_why(service: Service, arguments: list[str]) -> None:
    done = service.run(*arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert "error: " in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ["tenants", "create", "bad id"],
        ["tenants", "create", "taken"],
        ["keys", "create", "nobody"],
        ["keys", "create", "taken", "--scope", "admin"],
        ["keys", "list", "nobody"],
        ["keys", "revoke", "key_none"],
        ["keys", "rotate", "key_none"],
        ["keys", "create", "taken", "--name", "x" * 201],
        ["tenants", "create", "other", "--email", "OPS@taken.example"],
        ["tenants", "create", "other", "--email", "nobody"],
        ["tenants", "create", "other", "--name", "x" * 201],
        ["tenants", "create", "other", "--name", "\x1b[31mred\nnew line"],
        ["tenants", "create", "other", "--name", ""],
        ["tenants", "update", "taken", "--email", "nobody"],
        *[["tenants", verb, "nobody"] for verb in ("show", "suspend", "resume", "delete", "restore", "audit")],
        ["tenants", "suspend", "system"],
        ["tenants", "delete", "system"],
        ["poll", "--key", "nonsense", "--url", "http://127.0.0.1:1"],
    ],
)
def test_any_other_failure_ends_with_1_and_one_line(service: Service, arguments: list[str]) -> None:
    service.run("tenants", "create", "taken", "--email", "ops@taken.example")
    done = service.run(*arguments)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("arguments", [["serve"], ["init"], ["config"], ["tenants", "list"]])
@pytest.mark.parametrize(("name", "value"), [("INBOX_PORT", "x"), ("INBOX_SOMETHING", "1")])
def test_a_bad_setting_stops_the_start_with_one_line(
    service: Service, arguments: list[str], name: str, value: str
) -> None:
    done = service.run(*arguments, **{name: value})
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1)
    assert name in done.stderr


@pytest.mark.parametrize("command", ["serve", "init", "quickstart"])
@pytest.mark.parametrize("path", ["folder", "garbage", "garbage/inbox.db"])
def test_a_store_that_cannot_be_opened_is_one_line(service: Service, command: str, path: str) -> None:
    (service.folder / "folder").mkdir()
    (service.folder / "garbage").write_text("This is not a database. " * 100)
    done = service.run(command, INBOX_STORE=f"sqlite:///{path}")
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1)
    assert f" {path} " in done.stderr


def test_an_argument_that_is_not_utf8_is_one_line(service: Service) -> None:
    done = service.run("tenants", "create", "acme", "--name", "\udcff")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)


def test_a_full_stdout_is_one_line(service: Service) -> None:
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            [INBOX, "config"], env=service.environment, stdout=full, stderr=subprocess.PIPE, check=False
        )
    assert (done.returncode, done.stderr.count(b"\n")) == (1, 1)


@pytest.mark.parametrize("worker_class", ["inbox.server.worker.InboxWorker", "gthread", "sync"])
def test_gunicorn_can_start_it_too(service: Service, worker_class: str) -> None:
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


@pytest.mark.parametrize("body", [b"<html>", b"5", b'{"error": 1}'])
def test_an_answer_of_somebody_else_is_told(service: Service, body: bytes) -> None:
    class SomebodyElse(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Nothing to say."""

    with HTTPServer(("127.0.0.1", 0), SomebodyElse) as server:
        # Without a request, as when the command fails early, `join` would never return.
        server.timeout = 30
        thread = threading.Thread(target=server.handle_request)
        thread.start()
        done = service.run("poll", "--key", "k", "--url", f"http://127.0.0.1:{server.server_port}")
        thread.join()
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("error: What answered there is not a Polling Inbox. Check that ")


def test_an_empty_host_is_refused_and_not_every_address(service: Service) -> None:
    done = service.run("serve", "--host", "")
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)


def test_version_option_prints_name_and_version(service: Service) -> None:
    run = service.run("--version")
    assert (run.returncode, run.stdout) == (0, f"inbox {__version__}\n")


def test_a_refusal_by_the_service_is_told(service: Service) -> None:
    service.create_key("acme")
    service.start()
    refused = service.run("poll", "--key", apikey.mint())
    assert (refused.returncode, refused.stdout) == (1, "")
    assert "401" in refused.stderr


def test_without_a_stderr_a_command_does_its_work(service: Service) -> None:
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
