"""Errors of commands: the exit status, and one `error: …` on stderr."""

import re
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from authorizer import apikey
from tests.cli.conftest import Tenant
from tests.service import Service

EVENT_ID = "6f7dd7a3-6f0c-4c1e-9a53-0d7b1f0c6a55"


@pytest.mark.parametrize(
    "arguments",
    [
        ["nonsense"],
        ["serve", "--port", "http"],
        ["serve", "--port", "70000"],
        ["tenants", "create"],
        ["tenants", "create", ""],
        ["tenants", "create", "bad id"],
        ["tenants", "create", "acme", "--email", "nobody"],
        ["tenants", "create", "acme", "--name", "x" * 201],
        ["tenants", "create", "acme", "--name", "\x1b[31mred\nnew line"],
        ["tenants", "create", "acme", "--name", ""],
        ["tenants", "show", "bad id"],
        ["tenants", "update", "acme", "--email", "nobody"],
        ["tenants", "update", "acme", "--destination-email", "nobody"],
        ["tenants", "update", "acme"],
        ["tenants", "update", "acme", "--rate-limit", "-1"],
        ["keys", "create", "acme", "--name", "x" * 201],
        ["keys", "create", "acme", "--scope", "everything"],
        ["keys", "create", "acme", "--expires-in", "soon"],
        ["keys", "create", "acme", "--expires-in", "36501d"],
        ["keys", "create", "acme", "--expires-in", "0s"],
        ["keys", "rotate", "key_none", "--overlap", "a day"],
        ["init", "--streams"],
        ["copy"],
        ["copy", "--from", "sqlite:///inbox.db"],
        ["copy", "--from", "sqlite:///nothing.db", "--to", "dynamodb://"],
        ["copy", "--from", "dynamodb://", "--to", "sqlite:///nothing.db"],
        ["copy", "--from", "dynamodb://", "--to", "dynamodb://"],
        ["copy", "--from", "dynamodb://prod-", "--to", "dynamodb://prod-"],
        ["copy", "--from", "dynamodb://", "--to", "dynamodb://two words"],
        ["copy", "--from", "dynamodb://", "--to", "postgres://"],
        ["send", "[1]"],
        ["send", "{not json"],
        ["poll", "--limit", "501"],
        ["poll", "--follow", "--limit", "0"],
        ["poll", "--follow", "--peek"],
        ["poll", "--key", ""],
        ["poll", "--key", "ibx_secret\nkey"],
        ["poll", "--url", ""],
        ["poll", "--url", "127.0.0.1:8080"],
        ["poll", "--inbox", "../me"],
        ["poll", "--inbox", "Crm"],
        ["replay"],
        ["replay", "--inbox", "crm"],
        ["replay", "not-an-id"],
        ["replay", EVENT_ID, "--all"],
        ["replay", EVENT_ID, "--since", "0"],
        ["replay", "--all", "--type", "a"],
        ["replay", "--all"],
        ["replay", "--since", "yesterday"],
        ["replay", "--status", "leased"],
        ["inboxes", "create"],
        ["inboxes", "create", "Crm"],
        ["inboxes", "create", "default"],
        ["inboxes", "show", ".."],
        ["inboxes", "disable"],
        ["inboxes", "disable", "crm"],
        ["inboxes", "enable", "crm"],
        ["inboxes", "delete", ""],
        ["inboxes", "list", "crm"],
        ["purge", "everything"],
    ],
)
def test_wrong_usage_exits_with_2_and_shows_the_usage(service: Service, arguments: list[str]) -> None:
    done = service.invoke(*arguments, INBOX_API_KEY="k", INBOX_URL="http://127.0.0.1:1")
    assert (done.returncode, done.stdout) == (2, "")
    assert re.fullmatch(r"error: .+\nUsage: inbox .+\nRun `inbox [a-z ]*--help`.\n", done.stderr, re.DOTALL)
    assert "secret" not in done.stderr
    assert list(service.folder.iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["serve", "--port", "http"], "Invalid value for '--port': must be a whole number from 1 to 65535."),
        (["serve", "--port", "0"], "Invalid value for '--port': must be a whole number from 1 to 65535."),
        (["inboxes", "disable", "crm"], "Only the inbox `default` can be disabled."),
        (["inboxes", "enable", "crm"], "Only the inbox `default` can be enabled."),
        (
            ["copy", "--from", "dynamodb://", "--to", "sqlite:///nothing.db"],
            "Invalid value for '--to': nothing.db is not a file. Check the path, or create it: "
            "INBOX_STORE=sqlite:///nothing.db inbox init",
        ),
        (
            ["copy", "--from", "dynamodb:/", "--to", "dynamodb://"],
            "Invalid value for '--from': 'dynamodb:/' is none of sqlite:///PATH, dynamodb:// and dynamodb://PREFIX.",
        ),
        (["copy", "--from", "dynamodb://", "--to", "dynamodb://"], "--from and --to are the same store."),
        (["poll", "--follow", "--peek"], "--follow and --peek cannot be used together."),
        (
            ["replay", "--inbox", "crm"],
            "Use an event ID, --all, or filters: --since, --until, --type, --status. --inbox is no filter.",
        ),
    ],
)
def test_wrong_usage_is_explained(service: Service, arguments: list[str], message: str) -> None:
    done = service.invoke(*arguments, INBOX_API_KEY="k")
    assert done.stderr.startswith(f"error: {message}\nUsage: ")


def test_values_that_the_service_refuses_are_wrong_usage(tenant: Tenant) -> None:
    for arguments in (("send", "--type", "a b", "{}"), ("inboxes", "create", "x", "--event-type", "a b")):
        refused = tenant.run(*arguments)
        assert (refused.returncode, refused.stdout) == (2, "")
        assert refused.stderr.startswith("error: 422 ")
        assert "\nUsage: inbox " in refused.stderr


def test_unreachable_service_is_named(service: Service) -> None:
    refused = service.invoke("poll", "--peek", "--key", "k", "--url", "http://127.0.0.1:1/")
    assert (refused.returncode, refused.stdout) == (1, "")
    assert refused.stderr == (
        "error: No connection to http://127.0.0.1:1. "
        "Check that the service is running and that INBOX_URL or --url is correct.\n"
    )


@pytest.mark.parametrize("group", [[], ["tenants"], ["keys"], ["inboxes"]])
def test_summaries_of_commands_are_not_cut(service: Service, group: list[str]) -> None:
    listed = service.invoke(*group, "--help").stdout.partition("Commands:\n")[2].splitlines()
    assert len(listed) > 3
    assert [line for line in listed if not line.endswith(".") or line.endswith("...")] == []


def test_service_call_without_a_key_exits_with_2(service: Service) -> None:
    done = service.invoke("send", "{}")
    assert (done.returncode, done.stderr.splitlines()[0]) == (
        2,
        "error: Missing API key. Set INBOX_API_KEY or use --key.",
    )


def test_group_without_a_command_prints_its_help_and_exits_with_2(service: Service) -> None:
    done = service.invoke("inboxes")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("Usage: inbox inboxes ")


@pytest.mark.parametrize(
    "arguments",
    [
        ["tenants", "create", "taken"],
        ["tenants", "create", "other", "--email", "OPS@taken.example"],
        *[["tenants", verb, "nobody"] for verb in ("show", "suspend", "resume", "delete", "restore", "audit")],
        ["tenants", "suspend", "system"],
        ["tenants", "delete", "system"],
        ["keys", "create", "nobody"],
        ["keys", "create", "taken", "--scope", "admin"],
        ["keys", "list", "nobody"],
        ["keys", "revoke", "key_none"],
        ["keys", "rotate", "key_none"],
        ["recount", "nobody"],
        ["serve", "--host", ""],
        ["poll", "--peek", "--key", "nonsense", "--url", "http://127.0.0.1:1"],
    ],
)
def test_other_errors_exit_with_1_and_print_one_line(service: Service, arguments: list[str]) -> None:
    service.invoke("tenants", "create", "taken", "--email", "ops@taken.example")
    done = service.invoke(*arguments)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("error: ")
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("arguments", [["serve"], ["init"], ["config"], ["tenants", "list"]])
@pytest.mark.parametrize(("name", "value"), [("INBOX_PORT", "x"), ("INBOX_SOMETHING", "1")])
def test_invalid_setting_prints_one_line(service: Service, arguments: list[str], name: str, value: str) -> None:
    done = service.invoke(*arguments, **{name: value})
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1)
    assert name in done.stderr


@pytest.mark.parametrize("name", ["folder", "garbage", "garbage/inbox.db"])
def test_store_that_cannot_be_opened_prints_one_line(service: Service, name: str) -> None:
    path = service.folder / name
    (service.folder / "folder").mkdir()
    (service.folder / "garbage").write_text("This is not a database. " * 100)
    done = service.invoke("init", INBOX_STORE=f"sqlite:///{path}")
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1)
    assert f" {path} " in done.stderr


@pytest.mark.parametrize("body", [b"<html>", b"5", b'{"error": 1}'])
def test_response_of_another_service_is_an_error(service: Service, body: bytes) -> None:
    class OtherService(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Prints nothing."""

    with HTTPServer(("127.0.0.1", 0), OtherService) as server:
        thread = threading.Thread(target=server.handle_request)
        thread.start()
        done = service.invoke("poll", "--peek", "--key", "k", "--url", f"http://127.0.0.1:{server.server_port}")
        thread.join()
    assert (done.returncode, done.stdout) == (1, "")
    url_hint = "Check that the service is running and that INBOX_URL or --url is correct.\n"
    assert done.stderr.endswith(f"is not a Polling Inbox. {url_hint}")


def test_refusals_of_the_service_are_printed(tenant: Tenant) -> None:
    for arguments, status in (
        (("poll", "--peek", "--key", apikey.mint()), "401"),
        (("poll", "--peek", "--inbox", "none"), "404"),
        (("inboxes", "show", "none"), "404"),
        (("inboxes", "delete", "none"), "404"),
    ):
        refused = tenant.run(*arguments)
        assert (refused.returncode, refused.stdout, refused.stderr.count("\n")) == (1, "", 1)
        assert refused.stderr.startswith(f"error: {status} ")
