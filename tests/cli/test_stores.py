"""Commands that create or migrate the embedded store. An earlier release cannot open a store that was migrated."""

from contextlib import closing
from pathlib import Path

import apsw
import pytest
from click.testing import CliRunner, Result

from inbox.cli import inbox
from inbox.store.sqlite.migrations import _scripts
from tests.unit.databases import create_older, query, read_files
from tests.unit.test_docs import commands_of

USER_VERSION = "PRAGMA user_version"
READING_COMMANDS = {
    "inbox tenants list": [],
    "inbox tenants show": ["acme"],
    "inbox tenants audit": ["acme"],
    "inbox keys list": ["acme"],
    "inbox backlog": [],
    "inbox recount": [],
}
WRITING_COMMANDS = {
    "inbox tenants create": ["globex"],
    "inbox tenants update": ["acme", "--rate-limit", "5"],
    "inbox tenants suspend": ["acme"],
    "inbox tenants resume": ["acme"],
    "inbox tenants delete": ["acme"],
    "inbox tenants restore": ["acme"],
    "inbox keys create": ["acme"],
    "inbox keys revoke": ["key_0123456789abcdef"],
    "inbox keys rotate": ["key_0123456789abcdef"],
    "inbox purge": [],
}
MIGRATING_COMMANDS = {"inbox init", "inbox serve", "inbox quickstart"}
# SQLite has no shards. `copy` ignores INBOX_STORE.
OTHER_COMMANDS = {"inbox config", "inbox backup", "inbox restore", "inbox copy", "inbox tenants shard"}
OLDER_VERSIONS = [*range(1, len(_scripts()))]


def run(database_path: Path, command: str, arguments: list[str]) -> Result:
    environment = {"INBOX_STORE": f"sqlite:///{database_path}"}
    return CliRunner().invoke(inbox, [*command.split()[1:], *arguments], env=environment)


def test_every_command_is_in_one_of_the_lists() -> None:
    on_store = {
        name
        for name, command in commands_of(inbox, "inbox").items()
        if not any(parameter.name == "url" for parameter in command.params)
    }
    assert on_store == READING_COMMANDS.keys() | WRITING_COMMANDS.keys() | MIGRATING_COMMANDS | OTHER_COMMANDS


@pytest.mark.parametrize("version", OLDER_VERSIONS)
def test_no_command_changes_a_store_of_an_earlier_release(
    database_path: Path, version: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    # `backup` would leave its signal handlers in this process.
    monkeypatch.setattr("inbox.cli.store.interrupt_on_stop_signals", lambda: None)
    create_older(database_path, version)
    before = read_files(database_path.parent)
    for command, arguments in (READING_COMMANDS | WRITING_COMMANDS).items():
        refused = run(database_path, command, arguments)
        assert (refused.exit_code, refused.stdout) == (1, ""), command
        assert f"`inbox init` with INBOX_STORE=sqlite:///{database_path}" in refused.stderr, command
        assert read_files(database_path.parent) == before, command
    assert run(database_path, "inbox config", []).exit_code == 0
    assert run(database_path, "inbox backup", [str(database_path.parent / "backup.db")]).exit_code == 0
    assert query(database_path.parent / "backup.db", USER_VERSION) == query(database_path, USER_VERSION) == version
    assert database_path.read_bytes() == before[database_path.name]


def test_commands_do_not_migrate_the_store_of_a_running_service(database_path: Path) -> None:
    create_older(database_path, OLDER_VERSIONS[-1])
    with closing(apsw.Connection(str(database_path))) as service:
        # While this connection is open, its write stays in the write-ahead log, and so would a migration.
        service.execute("INSERT INTO disabled_default_inboxes VALUES ('acme')")
        for command, arguments in (READING_COMMANDS | WRITING_COMMANDS).items():
            assert run(database_path, command, arguments).exit_code == 1, command
        assert service.pragma("user_version") == OLDER_VERSIONS[-1]
        assert service.execute("SELECT tenant_id FROM disabled_default_inboxes").fetchall() == [("acme",)]


@pytest.mark.parametrize("version", OLDER_VERSIONS)
def test_init_migrates_a_store_of_an_earlier_release(database_path: Path, version: int) -> None:
    create_older(database_path, version)
    assert run(database_path, "inbox init", []).exit_code == 0
    assert query(database_path, USER_VERSION) == len(_scripts())
    assert run(database_path, "inbox tenants create", ["acme"]).exit_code == 0


@pytest.mark.parametrize("command", (READING_COMMANDS | WRITING_COMMANDS).keys() - {"inbox tenants create"})
def test_missing_store_is_an_error(database_path: Path, command: str) -> None:
    refused = run(database_path, command, (READING_COMMANDS | WRITING_COMMANDS)[command])
    expected = f"error: {database_path} does not exist. Check INBOX_STORE, or run `inbox init` to create it.\n"
    assert (refused.exit_code, refused.stdout, refused.stderr) == (1, "", expected)
    assert read_files(database_path.parent) == {}


def test_copy_migrates_neither_store(database_path: Path, tmp_path: Path) -> None:
    older_path = tmp_path / "older.db"
    create_older(older_path, OLDER_VERSIONS[-1])
    assert run(database_path, "inbox init", []).exit_code == 0
    before = older_path.read_bytes()
    urls = {database_path: f"sqlite:///{database_path}", older_path: f"sqlite:///{older_path}"}
    for source, target in ((older_path, database_path), (database_path, older_path)):
        refused = run(database_path, "inbox copy", ["--from", urls[source], "--to", urls[target]])
        assert (refused.exit_code, refused.stdout) == (1, "")
        option = "--from" if source == older_path else "--to"
        assert refused.stderr.startswith(f"error: {option}: {older_path} has the schema of an earlier release.")
        assert f"run `inbox init` with INBOX_STORE={urls[older_path]}" in refused.stderr
    assert older_path.read_bytes() == before


def test_creating_a_tenant_creates_a_missing_store(database_path: Path) -> None:
    created = run(database_path, "inbox tenants create", ["acme"])
    assert (created.exit_code, created.stdout) == (0, "acme\n")
    assert created.stderr == f"Creating the store {database_path}.\n"
    assert query(database_path, USER_VERSION) == len(_scripts())
    assert run(database_path, "inbox tenants create", ["globex"]).stderr == ""
