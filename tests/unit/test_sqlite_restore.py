"""A backup in the place of the database. `inbox.store.sqlite.restore`."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from inbox.errors import BackupFailed
from inbox.store.sqlite import SQLiteStore
from inbox.store.sqlite.migrations import _scripts
from inbox.store.sqlite.restore import restore
from tests.unit.databases import EVENTS, ask, back_up_50, damage, files_in, ignore, make_older, put


@pytest.fixture
def file(tmp_path: Path, store: SQLiteStore, path: Path) -> Path:
    """A backup of 50 events. There have come 7 more since, and the store is closed."""
    return back_up_50(path, store, tmp_path / "backups")


def test_what_was_there_is_kept_beside_what_is_restored(file: Path, path: Path) -> None:
    backup = file.read_bytes()
    kept = restore(path, file, ignore)
    assert kept is not None
    assert kept.name.startswith("inbox.db.before-restore-20")
    assert ask(path, EVENTS) == 50
    assert ask(kept, EVENTS) == 57
    assert path.stat().st_mode & 0o777 == 0o600
    assert files_in(file.parent) == {file.name: backup}
    store = SQLiteStore(path, 3)
    put(store)
    store.close()
    assert {each.name for each in path.parent.iterdir()} == {"backups", "inbox.db", kept.name}


def test_a_restore_is_taken_back_by_restoring_what_was_kept(file: Path, path: Path) -> None:
    kept = restore(path, file, ignore)
    assert kept is not None
    restore(path, kept, ignore)
    assert ask(path, EVENTS) == ask(kept, EVENTS) == 57


def test_there_need_not_be_a_store_before(file: Path, tmp_path: Path) -> None:
    new = tmp_path / "another" / "machine" / "inbox.db"
    assert restore(new, file, ignore) is None
    assert ask(new, EVENTS) == 50
    assert list(new.parent.iterdir()) == [new]


def cut(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-4_096])


def replace_by_text(file: Path) -> None:
    file.write_bytes(b"This is not a database. " * 100)


def replace_by_another_program(file: Path) -> None:
    file.unlink()
    ask(file, "PRAGMA user_version = 3; CREATE TABLE tenants (a); SELECT 1")


def make_newer(file: Path) -> None:
    ask(file, f"PRAGMA user_version = {len(_scripts()) + 1}; SELECT 1")


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (damage, "damaged"),
        (cut, "malformed"),
        (lambda file: file.write_bytes(b""), "not a database of Polling Inbox"),
        (replace_by_text, "not a database"),
        (replace_by_another_program, "not a database of Polling Inbox"),
        (make_newer, "newer release"),
    ],
)
def test_what_is_no_whole_backup_is_refused_and_changes_nothing(
    file: Path, path: Path, spoil: Callable[[Path], None], message: str
) -> None:
    spoil(file)
    before = files_in(path.parent) | files_in(file.parent)
    with pytest.raises(BackupFailed, match=message):
        restore(path, file, ignore)
    assert files_in(path.parent) | files_in(file.parent) == before
    assert len(list(path.parent.iterdir())) == 2


def test_the_store_is_not_restored_from_itself(file: Path, path: Path) -> None:
    link = file.with_name("link")
    link.hardlink_to(path)
    for itself in (path, link):
        with pytest.raises(BackupFailed, match="store itself"):
            restore(path, itself, ignore)


def test_ctrl_c_changes_nothing(file: Path, path: Path) -> None:
    before = files_in(path.parent)

    def interrupt(_done: int, _total: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        restore(path, file, interrupt)
    assert files_in(path.parent) == before
    assert len(list(path.parent.iterdir())) == 2


def test_the_backup_of_an_earlier_release_is_brought_up_to_date(file: Path, path: Path) -> None:
    file.unlink()
    make_older(file, 2)
    restore(path, file, ignore)
    assert ask(path, "PRAGMA user_version") == len(_scripts())
    assert ask(file, "PRAGMA user_version") == 2


def test_a_damaged_store_gives_way_and_is_kept(file: Path, path: Path) -> None:
    path.write_bytes(b"This is not a database. " * 100)
    kept = restore(path, file, ignore)
    assert kept is not None
    assert kept.read_bytes().startswith(b"This is not")
    assert ask(path, EVENTS) == 50


def test_the_administrator_restores_for_whom_the_store_belongs_to(
    file: Path, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[tuple[str, int, int]] = []
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(os, "chown", lambda file, uid, gid: given.append((Path(file).name, uid, gid)))
    owner = path.stat().st_uid, path.stat().st_gid
    restore(path, file, ignore)
    assert given == [("copy.db", *owner), ("inbox.db-shm", *owner)]

    given.clear()
    new = path.parent / "made" / "anew"
    restore(new / "inbox.db", file, ignore)
    assert given == [("made", *owner), ("anew", *owner), ("copy.db", *owner)]


def test_who_may_read_the_store_may_read_what_is_restored(file: Path, path: Path) -> None:
    path.chmod(0o660)
    kept = restore(path, file, ignore)
    assert kept is not None
    assert {each.stat().st_mode & 0o777 for each in (path, kept, Path(f"{path}-shm"))} == {0o660}
