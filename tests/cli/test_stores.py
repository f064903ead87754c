"""Which commands create or migrate the embedded store. An earlier release cannot open a store that was migrated."""

from contextlib import closing
from pathlib import Path

import apsw
import pytest
from click.testing import CliRunner, Result

from inbox.cli import inbox
from inbox.store.sqlite.migrations import _scripts
from tests.unit.databases import create_older, query, read_files
from tests.unit.test_docs import commands_of

VERSION = "PRAGMA user_version"
READ = {
    "inbox tenants list": [],
    "inbox tenants show": ["acme"],
    "inbox tenants audit": ["acme"],
    "inbox keys list": ["acme"],
    "inbox backlog": [],
    "inbox recount": [],
}
WRITE = {
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
MIGRATE = {"inbox init", "inbox serve", "inbox quickstart"}
# SQLite has no shards, and `copy` needs DynamoDB: tests/e2e/test_dynamodb.py.
OTHERS = {"inbox config", "inbox backup", "inbox restore", "inbox copy", "inbox tenants shard"}
OLDER_VERSIONS = [*range(1, len(_scripts()))]


def run(path: Path, words: str, arguments: list[str]) -> Result:
    environment = {"INBOX_STORE": f"sqlite:///{path}"}
    return CliRunner().invoke(inbox, [*words.split()[1:], *arguments], env=environment)


def test_every_command_is_in_one_of_the_lists() -> None:
    on_store = {
        words
        for words, command in commands_of(inbox, "inbox").items()
        if not any(p.name == "url" for p in command.params)
    }
    assert on_store == READ.keys() | WRITE.keys() | MIGRATE | OTHERS


@pytest.mark.parametrize("version", OLDER_VERSIONS)
def test_no_command_changes_a_store_of_an_earlier_release(
    path: Path, version: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    # `backup` would leave its signal handlers in this process.
    monkeypatch.setattr("inbox.cli.store.interrupt_on_stop_signals", lambda: None)
    create_older(path, version)
    before = read_files(path.parent)
    for words, arguments in (READ | WRITE).items():
        refused = run(path, words, arguments)
        assert (refused.exit_code, refused.stdout) == (1, ""), words
        assert f"`inbox init` with INBOX_STORE=sqlite:///{path}" in refused.stderr, words
        assert read_files(path.parent) == before, words
    assert run(path, "inbox config", []).exit_code == 0
    assert run(path, "inbox backup", [str(path.parent / "backup.db")]).exit_code == 0
    assert query(path.parent / "backup.db", VERSION) == query(path, VERSION) == version
    assert path.read_bytes() == before[path.name]


def test_commands_do_not_migrate_the_store_of_a_running_service(path: Path) -> None:
    create_older(path, OLDER_VERSIONS[-1])
    with closing(apsw.Connection(str(path))) as service:
        # The write stays in the log, and so would a migration.
        service.execute("INSERT INTO clock VALUES ('boot', 1, 1, 1)")
        for words, arguments in (READ | WRITE).items():
            assert run(path, words, arguments).exit_code == 1, words
        assert service.pragma("user_version") == OLDER_VERSIONS[-1]
        assert service.execute("SELECT boot_id FROM clock").fetchall() == [("boot",)]


@pytest.mark.parametrize("version", OLDER_VERSIONS)
def test_init_migrates_a_store_of_an_earlier_release(path: Path, version: int) -> None:
    create_older(path, version)
    assert run(path, "inbox init", []).exit_code == 0
    assert query(path, VERSION) == len(_scripts())
    assert run(path, "inbox tenants create", ["acme"]).exit_code == 0


@pytest.mark.parametrize("words", (READ | WRITE).keys() - {"inbox tenants create"})
def test_missing_store_is_an_error(path: Path, words: str) -> None:
    refused = run(path, words, (READ | WRITE)[words])
    expected = f"error: {path} does not exist. Check INBOX_STORE, or run `inbox init` to create it.\n"
    assert (refused.exit_code, refused.stdout, refused.stderr) == (1, "", expected)
    assert read_files(path.parent) == {}


def test_creating_a_tenant_creates_a_missing_store(path: Path) -> None:
    created = run(path, "inbox tenants create", ["acme"])
    assert (created.exit_code, created.stdout) == (0, "acme\n")
    assert created.stderr == f"Creating the store {path}.\n"
    assert query(path, VERSION) == len(_scripts())
    assert run(path, "inbox tenants create", ["globex"]).stderr == ""
