"""Backups of a database that is in use. `inbox.store.sqlite.backup`."""

import errno
import os
import signal
import stat
from pathlib import Path

import apsw
import pytest

from inbox.errors import BackupFailed
from inbox.store.sqlite import SQLiteStore, backup
from inbox.store.sqlite.backup import back_up
from tests.unit.databases import (
    COUNT_EVENTS,
    create_older,
    damage,
    ignore_progress,
    put,
    query,
    read_files,
    record_steps,
)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A path in a new folder, so that tests see every file that a backup leaves."""
    folder = tmp_path / "backups"
    folder.mkdir()
    return folder / "inbox-1.db"


def test_backup_is_one_file_with_all_events(store: SQLiteStore, store_path: Path, file: Path) -> None:
    put(store)
    progress: list[tuple[int, int]] = []
    back_up(store_path, file, lambda done, total: progress.append((done, total)))
    assert progress
    assert progress[-1][0] == progress[-1][1]
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert query(file, "PRAGMA journal_mode") == "delete"
    assert query(file, "PRAGMA integrity_check") == "ok"
    assert query(file, COUNT_EVENTS) == 50
    assert list(file.parent.iterdir()) == [file]
    put(store)


def test_backup_ends_under_constant_writes(
    store: SQLiteStore, store_path: Path, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(store)
    monkeypatch.setattr(backup, "_PAGES_PER_STEP", 1)
    steps: list[int] = []

    def write(done: int, _total: int) -> None:
        assert done == len(steps) + 1, "The backup started over."
        steps.append(done)
        put(store, 1)

    back_up(store_path, file, write)
    assert len(steps) > 20
    assert query(file, COUNT_EVENTS) == 50
    assert query(file, "PRAGMA integrity_check") == "ok"


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (KeyboardInterrupt(), "^$"),
        (apsw.FullError(), r"inbox-1\.db cannot be written: the disk is full\.$"),
        (apsw.IOError("disk I/O error"), r"inbox\.db cannot be copied to .*inbox-1\.db: disk I/O error\.$"),
        (OSError(errno.ENOSPC, "No space"), r"inbox-1\.db cannot be written: No space\.$"),
    ],
    ids=["interrupt", "full", "I/O error", "system"],
)
def test_backup_that_ends_early_leaves_nothing(
    store: SQLiteStore, store_path: Path, file: Path, error: BaseException, message: str
) -> None:
    put(store)

    def fail(_done: int, _total: int) -> None:
        (folder,) = file.parent.iterdir()
        assert folder.name.startswith("partial-backup-")
        raise error

    with pytest.raises((KeyboardInterrupt, BackupFailed), match=message):
        back_up(store_path, file, fail)
    assert list(file.parent.iterdir()) == []


@pytest.mark.parametrize("suffix", ["", "-wal", "-shm", "-journal"])
def test_backup_is_refused_if_its_file_or_a_companion_exists(
    store: SQLiteStore, store_path: Path, file: Path, suffix: str
) -> None:
    put(store)
    existing = Path(f"{file}{suffix}")
    # The file appears during the backup.
    with pytest.raises(BackupFailed, match=f"{existing.name} already exists"):
        back_up(store_path, file, lambda _done, _total: existing.write_text("mine") and None)
    assert read_files(file.parent) == {existing.name: b"mine"}
    existing.unlink()
    for target in ("nowhere", existing.name):
        existing.symlink_to(target)
        with pytest.raises(BackupFailed, match=f"{existing.name} already exists"):
            back_up(store_path, file, ignore_progress)
        assert list(file.parent.iterdir()) == [existing]
        existing.unlink()


def test_backup_does_not_overwrite_a_file_created_at_the_last_moment(
    store: SQLiteStore, store_path: Path, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(store)
    monkeypatch.setattr(backup, "_refuse_existing", lambda file: file.write_text("mine"))
    with pytest.raises(BackupFailed, match="File exists"):
        back_up(store_path, file, ignore_progress)
    assert read_files(file.parent) == {file.name: b"mine"}


@pytest.mark.parametrize("suffix", ["", "-wal", "-shm", "-journal"])
def test_store_is_not_backed_up_onto_itself(store: SQLiteStore, store_path: Path, suffix: str) -> None:
    store.close()
    (store_path.parent / "sub").mkdir()
    with pytest.raises(BackupFailed, match="store itself"):
        back_up(store_path, store_path.parent / "sub" / ".." / f"{store_path.name}{suffix}", ignore_progress)
    assert SQLiteStore(store_path, 3).tenants.all() == []


def test_damaged_store_is_not_backed_up(store: SQLiteStore, store_path: Path, file: Path) -> None:
    put(store)
    store.close()
    damage(store_path)
    with pytest.raises(BackupFailed, match=r"inbox\.db is damaged\. Restore a backup with `inbox restore`\.$"):
        back_up(store_path, file, ignore_progress)
    assert list(file.parent.iterdir()) == []


def test_file_that_is_not_a_store_is_not_backed_up(store_path: Path, file: Path) -> None:
    with pytest.raises(BackupFailed, match=r"inbox\.db does not exist\. Check INBOX_STORE\.$"):
        back_up(store_path, file, ignore_progress)
    store_path.touch()
    with pytest.raises(BackupFailed, match="is not a SQLite database"):
        back_up(store_path, file, ignore_progress)
    store_path.write_bytes(b"This is not a database. " * 100)
    with pytest.raises(BackupFailed, match=r"inbox\.db is not a SQLite database\. Check INBOX_STORE"):
        back_up(store_path, file, ignore_progress)
    store_path.unlink()
    query(store_path, "PRAGMA user_version = 3; CREATE TABLE tenants (a); SELECT 1")
    with pytest.raises(BackupFailed, match=r"inbox\.db is not a database of Polling Inbox\. Check INBOX_STORE\.$"):
        back_up(store_path, file, ignore_progress)
    store_path.unlink()
    store_path.symlink_to(store_path)
    with pytest.raises(BackupFailed, match="symbolic links"):
        back_up(store_path, file, ignore_progress)
    assert list(file.parent.iterdir()) == []


def test_store_of_an_earlier_release_is_backed_up_unchanged(store_path: Path, file: Path) -> None:
    create_older(store_path, 3)
    back_up(store_path, file, ignore_progress)
    assert query(file, "PRAGMA user_version") == query(store_path, "PRAGMA user_version") == 3


def test_backup_is_synced_before_and_after_it_gets_its_name(
    store: SQLiteStore, store_path: Path, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(store)
    steps = record_steps(monkeypatch)
    back_up(store_path, file, ignore_progress)
    assert steps == ["sync folder", "sync file", "link copy.db", "sync folder"]


def test_folder_that_cannot_be_synced_gets_no_backup(
    store: SQLiteStore, store_path: Path, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_descriptor: int) -> None:
        raise OSError(errno.EIO, "no sync")

    put(store)
    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(BackupFailed, match=r"inbox-1\.db cannot be written: no sync\.$"):
        back_up(store_path, file, ignore_progress)
    assert list(file.parent.iterdir()) == []


def test_backup_needs_no_hard_links(
    store: SQLiteStore, store_path: Path, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_old: Path, _new: Path) -> None:
        raise PermissionError(errno.EPERM, "no links")

    put(store)
    monkeypatch.setattr(os, "link", refuse)
    back_up(store_path, file, ignore_progress)
    assert list(file.parent.iterdir()) == [file]
    assert query(file, COUNT_EVENTS) == 50


def test_stop_signal_at_the_last_step_does_not_undo_a_backup(
    store: SQLiteStore, store_path: Path, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    link = os.link

    def interrupt(old: Path, new: Path) -> None:
        link(old, new)
        signal.raise_signal(signal.SIGINT)

    put(store)
    monkeypatch.setattr(os, "link", interrupt)
    back_up(store_path, file, ignore_progress)
    assert list(file.parent.iterdir()) == [file]


def test_stop_signal_while_the_temporary_folder_is_created_leaves_no_folder(
    store: SQLiteStore, store_path: Path, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mkdir = os.mkdir

    def interrupt(folder: str, mode: int) -> None:
        mkdir(folder, mode)
        signal.raise_signal(signal.SIGINT)

    put(store)
    monkeypatch.setattr(os, "mkdir", interrupt)
    with pytest.raises(KeyboardInterrupt):
        back_up(store_path, file, ignore_progress)
    assert list(file.parent.iterdir()) == []
