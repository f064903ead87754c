"""Which commands create or migrate the embedded store. An earlier release cannot open a store that was migrated."""

from contextlib import closing
from pathlib import Path

import apsw
import pytest
from click.testing import CliRunner, Result

from inbox.cli import inbox
from inbox.errors import InboxError, StoreUnavailable
from inbox.store.sqlite.migrations import _scripts
from tests.unit.databases import ask, files_in, make_older
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
    "inbox tenants shard": ["acme", "2"],
    "inbox keys create": ["acme"],
    "inbox keys revoke": ["key_0123456789abcdef"],
    "inbox keys rotate": ["key_0123456789abcdef"],
    "inbox purge": [],
}
MIGRATE = {"inbox init", "inbox serve", "inbox quickstart"}
# `copy` needs DynamoDB: tests/e2e/test_dynamodb.py.
OTHERS = {"inbox config", "inbox backup", "inbox restore", "inbox copy"}
OLDER = [*range(1, len(_scripts()))]


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


@pytest.mark.parametrize("version", OLDER)
def test_a_store_of_an_earlier_release_is_not_changed_by_any_command(
    path: Path, version: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    # `backup` would leave its signal handlers in this process.
    monkeypatch.setattr("inbox.cli.backup.stop_as_at_ctrl_c", lambda: None)
    make_older(path, version)
    before = files_in(path.parent)
    for words, arguments in (READ | WRITE).items():
        refused = run(path, words, arguments)
        assert isinstance(refused.exception, StoreUnavailable), words
        assert f"`inbox init` with INBOX_STORE=sqlite:///{path}" in str(refused.exception), words
        assert refused.stdout == ""
        assert files_in(path.parent) == before, words
    assert run(path, "inbox config", []).exit_code == 0
    assert run(path, "inbox backup", [str(path.parent / "backup.db")]).exit_code == 0
    assert ask(path.parent / "backup.db", VERSION) == ask(path, VERSION) == version
    assert path.read_bytes() == before[path.name]


def test_a_running_service_of_an_earlier_release_keeps_its_store(path: Path) -> None:
    make_older(path, OLDER[-1])
    with closing(apsw.Connection(str(path))) as service:
        # What it has written is in the log, and a migration would be too.
        service.execute("INSERT INTO clock VALUES ('boot', 1, 1, 1)")
        for words, arguments in (READ | WRITE).items():
            assert isinstance(run(path, words, arguments).exception, StoreUnavailable), words
        assert service.pragma("user_version") == OLDER[-1]
        assert service.execute("SELECT boot_id FROM clock").fetchall() == [("boot",)]


@pytest.mark.parametrize("version", OLDER)
def test_init_migrates_a_store_of_an_earlier_release(path: Path, version: int) -> None:
    make_older(path, version)
    assert run(path, "inbox init", []).exit_code == 0
    assert ask(path, VERSION) == len(_scripts())
    assert run(path, "inbox tenants create", ["acme"]).exit_code == 0


@pytest.mark.parametrize("words", READ)
def test_a_command_that_reads_creates_no_store(path: Path, words: str) -> None:
    refused = run(path, words, READ[words])
    assert isinstance(refused.exception, StoreUnavailable)
    assert str(refused.exception) == f"{path} does not exist. Run `inbox init` to create it, or check INBOX_STORE."
    assert files_in(path.parent) == {}


@pytest.mark.parametrize("words", WRITE)
def test_a_command_that_writes_may_create_a_store(path: Path, words: str) -> None:
    done = run(path, words, WRITE[words])
    assert done.exception is None or isinstance(done.exception, InboxError)
    assert not isinstance(done.exception, StoreUnavailable)
    assert ask(path, VERSION) == len(_scripts())
