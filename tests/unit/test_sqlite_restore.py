"""Restoring a backup. `inbox.store.sqlite.backup`."""

import errno
import fcntl
import os
import shutil
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from inbox.errors import BackupFailed, StoreUnavailable
from inbox.store.sqlite import SQLiteStore
from inbox.store.sqlite.backup import back_up, restore
from inbox.store.sqlite.migrations import _scripts
from tests.unit.databases import (
    COUNT_EVENTS,
    crash_in_transaction,
    create_crashed,
    create_older,
    damage,
    ignore_progress,
    put,
    query,
    read_files,
    record_steps,
)


@pytest.fixture
def backup_file(tmp_path: Path, store: SQLiteStore, store_path: Path) -> Path:
    """A backup of 50 events. The store has 7 newer events, and is closed."""
    (tmp_path / "backups").mkdir()
    file = tmp_path / "backups" / "inbox-1.db"
    put(store, 50)
    back_up(store_path, file, ignore_progress)
    put(store, 7)
    store.close()
    return file


@pytest.fixture
def crashed_store(backup_file: Path, store_path: Path) -> Path:
    """Replaces the store by one in the state after a crash, with 3 events in its log."""
    assert backup_file.exists()
    store_path.unlink()
    create_crashed(store_path)
    return store_path


def test_previous_database_is_kept(backup_file: Path, store_path: Path) -> None:
    backup = backup_file.read_bytes()
    kept = restore(store_path, backup_file, ignore_progress)
    assert kept is not None
    assert kept.name.startswith("inbox.db.before-restore-20")
    assert query(store_path, COUNT_EVENTS) == 50
    assert query(kept, COUNT_EVENTS) == 57
    assert store_path.stat().st_mode & 0o777 == 0o600
    assert read_files(backup_file.parent) == {backup_file.name: backup}
    store = SQLiteStore(store_path, 3)
    put(store)
    store.close()
    assert {each.name for each in store_path.parent.iterdir()} == {"backups", "inbox.db", kept.name}

    # Restoring it undoes the restore.
    restore(store_path, kept, ignore_progress)
    assert query(store_path, COUNT_EVENTS) == query(kept, COUNT_EVENTS) == 57


def test_restore_creates_a_missing_store_and_its_folders(backup_file: Path, tmp_path: Path) -> None:
    new = tmp_path / "another" / "machine" / "inbox.db"
    assert restore(new, backup_file, ignore_progress) is None
    assert query(new, COUNT_EVENTS) == 50
    assert list(new.parent.iterdir()) == [new]


def test_store_created_during_a_restore_is_not_overwritten(backup_file: Path, tmp_path: Path) -> None:
    new = tmp_path / "new.db"
    with pytest.raises(BackupFailed, match=r"new\.db already exists"):
        restore(new, backup_file, lambda _done, _total: SQLiteStore(new, 3).close())
    assert query(new, COUNT_EVENTS) == 0


def truncate(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-4_096])


def replace_by_text(file: Path) -> None:
    file.write_bytes(b"This is not a database. " * 100)


def replace_by_other_database(file: Path) -> None:
    file.unlink()
    query(file, "PRAGMA user_version = 3; CREATE TABLE tenants (a); SELECT 1")


def make_newer(file: Path) -> None:
    query(file, f"PRAGMA user_version = {len(_scripts()) + 1}; SELECT 1")


@pytest.mark.parametrize(
    ("corrupt", "message"),
    [
        (damage, "is damaged or incomplete. Nothing was changed."),
        (truncate, "is damaged or incomplete. Nothing was changed."),
        (lambda file: file.write_bytes(b""), "is not a backup of Polling Inbox."),
        (replace_by_text, "is not a backup of Polling Inbox."),
        (replace_by_other_database, "is not a backup of Polling Inbox."),
        (
            make_newer,
            "cannot be restored. A newer release of Polling Inbox created the database. Install that release.",
        ),
    ],
)
def test_invalid_backup_changes_nothing(
    backup_file: Path, store_path: Path, corrupt: Callable[[Path], None], message: str
) -> None:
    corrupt(backup_file)
    before = read_files(store_path.parent) | read_files(backup_file.parent)
    for target in (store_path, store_path.parent / "another" / "machine" / "inbox.db"):
        with pytest.raises(BackupFailed) as failed:
            restore(target, backup_file, ignore_progress)
        assert str(failed.value) == f"{backup_file} {message}"
    assert read_files(store_path.parent) | read_files(backup_file.parent) == before
    assert len(list(store_path.parent.iterdir())) == 2


def test_store_is_not_restored_from_itself(backup_file: Path, store_path: Path) -> None:
    link = backup_file.with_name("link")
    link.hardlink_to(store_path)
    for itself in (store_path, link):
        with pytest.raises(BackupFailed, match="store itself"):
            restore(store_path, itself, ignore_progress)


def test_interrupted_restore_changes_nothing(backup_file: Path, store_path: Path) -> None:
    def interrupt(_done: int, _total: int) -> None:
        raise KeyboardInterrupt

    before = read_files(store_path.parent)
    with pytest.raises(KeyboardInterrupt):
        restore(store_path, backup_file, interrupt)
    assert read_files(store_path.parent) == before
    assert len(list(store_path.parent.iterdir())) == 2


def test_backup_of_an_earlier_release_is_migrated(backup_file: Path, store_path: Path) -> None:
    backup_file.unlink()
    create_older(backup_file, 2)
    restore(store_path, backup_file, ignore_progress)
    assert query(store_path, "PRAGMA user_version") == len(_scripts())
    assert query(backup_file, "PRAGMA user_version") == 2


def test_damaged_store_is_replaced_and_kept(backup_file: Path, store_path: Path) -> None:
    store_path.write_bytes(b"This is not a database. " * 100)
    kept = restore(store_path, backup_file, ignore_progress)
    assert kept is not None
    assert kept.read_bytes().startswith(b"This is not")
    assert query(store_path, COUNT_EVENTS) == 50


def test_restore_by_root_keeps_the_owner(backup_file: Path, store_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    changed: list[tuple[str, int, int]] = []
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(os, "chown", lambda file, uid, gid: changed.append((Path(file).name, uid, gid)))
    owner = store_path.stat().st_uid, store_path.stat().st_gid
    restore(store_path, backup_file, ignore_progress)
    assert changed == [("inbox.db-shm", *owner), ("copy.db", *owner)]

    changed.clear()
    restore(store_path.parent / "outer" / "inner" / "inbox.db", backup_file, ignore_progress)
    assert changed == [("outer", *owner), ("inner", *owner), ("copy.db", *owner)]


def test_restore_keeps_the_mode(backup_file: Path, store_path: Path) -> None:
    store_path.chmod(0o660)
    kept = restore(store_path, backup_file, ignore_progress)
    assert kept is not None
    assert {each.stat().st_mode & 0o777 for each in (store_path, kept, Path(f"{store_path}-shm"))} == {0o660}


def fail_renames(monkeypatch: pytest.MonkeyPatch, successes: int, failures: int, error: BaseException) -> None:
    """Lets `successes` renames succeed, and the next `failures` fail."""
    rename, calls = Path.rename, []

    def fail(old: Path, new: Path) -> Path:
        calls.append(old)
        if successes < len(calls) <= successes + failures:
            raise error
        return rename(old, new)

    monkeypatch.setattr(Path, "rename", fail)


@pytest.mark.parametrize("renames", range(3))
def test_failed_step_restores_the_previous_files(
    backup_file: Path, crashed_store: Path, renames: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = read_files(crashed_store.parent)
    fail_renames(monkeypatch, renames, 1, OSError(errno.EIO, "no more names"))
    with pytest.raises(BackupFailed, match=r"inbox\.db cannot be restored from .*inbox-1\.db: no more names\.$"):
        restore(crashed_store, backup_file, ignore_progress)
    assert read_files(crashed_store.parent) == before


@pytest.mark.parametrize("renames", range(4))
def test_crash_between_the_steps_loses_nothing_and_creates_no_empty_store(
    backup_file: Path, crashed_store: Path, renames: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    store_path = crashed_store
    with monkeypatch.context() as patch:
        # The renames that would restore the old files fail too.
        fail_renames(patch, renames, 1_000, KeyboardInterrupt())
        if renames < 3:
            with pytest.raises(KeyboardInterrupt):
                restore(store_path, backup_file, ignore_progress)
        else:
            restore(store_path, backup_file, ignore_progress)
    if renames in (1, 2):
        with pytest.raises(StoreUnavailable, match="missing or empty"):
            SQLiteStore(store_path, 3)
        (kept,) = (each for each in store_path.parent.glob("*.before-restore-*") if not each.name.endswith("-wal"))
        kept.rename(store_path)
        for log in store_path.parent.glob("*.before-restore-*-wal"):
            log.rename(f"{store_path}-wal")
    SQLiteStore(store_path, 3).close()
    assert query(store_path, COUNT_EVENTS) == (50 if renames == 3 else 3)


def test_power_cut_does_not_leave_the_new_file_with_the_old_log(
    backup_file: Path, crashed_store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps = record_steps(monkeypatch)
    kept = restore(crashed_store, backup_file, ignore_progress)
    renames = ["rename inbox.db", "rename inbox.db-wal", "sync folder", "rename copy.db"]
    assert steps == ["sync folder", "sync file", *renames, "sync folder"]
    assert kept is not None
    assert query(kept, COUNT_EVENTS) == 3


def test_stop_signal_between_the_steps_does_not_undo_a_restore(
    backup_file: Path, store_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rename = Path.rename

    def interrupt(old: Path, new: Path) -> Path:
        signal.raise_signal(signal.SIGINT)
        return rename(old, new)

    monkeypatch.setattr(Path, "rename", interrupt)
    restore(store_path, backup_file, ignore_progress)
    assert query(store_path, COUNT_EVENTS) == 50


def test_read_only_shm_that_a_crash_left_is_replaced(backup_file: Path, crashed_store: Path) -> None:
    shared_memory = Path(f"{crashed_store}-shm")
    shared_memory.write_bytes(bytes(32_768))
    shared_memory.chmod(0o400)
    restore(crashed_store, backup_file, ignore_progress)
    assert (shared_memory.stat().st_size, shared_memory.stat().st_mode & 0o777) == (0, 0o600)


def test_one_of_two_restores_at_the_same_time_is_refused(
    backup_file: Path, store_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock = fcntl.lockf

    def lock_too_late(opened: Any, *arguments: int) -> None:
        if Path(opened.name) == store_path:
            monkeypatch.setattr(fcntl, "lockf", lock)
            restore(store_path, backup_file, ignore_progress)
        lock(opened, *arguments)

    monkeypatch.setattr(fcntl, "lockf", lock_too_late)
    with pytest.raises(BackupFailed, match=r"inbox\.db is in use"):
        restore(store_path, backup_file, ignore_progress)
    assert len(list(store_path.parent.glob("*.before-restore-*Z"))) == 1
    assert query(store_path, COUNT_EVENTS) == 50


def test_log_of_another_database_is_not_restored(store: SQLiteStore, store_path: Path, tmp_path: Path) -> None:
    put(store, 3)
    log = tmp_path / "early-wal"
    shutil.copy(f"{store_path}-wal", log)
    put(store, 40)
    file = tmp_path / "x.db"
    back_up(store_path, file, ignore_progress)
    store.close()
    log.rename(f"{file}-wal")
    restore(store_path, file, ignore_progress)
    assert query(store_path, COUNT_EVENTS) == 43


def test_copy_made_by_hand_is_restored_with_its_log(backup_file: Path, store_path: Path) -> None:
    backup_file.unlink()
    create_crashed(backup_file)
    before = read_files(backup_file.parent)
    assert set(before) == {backup_file.name, f"{backup_file.name}-wal"}
    restore(store_path, backup_file, ignore_progress)
    assert query(store_path, COUNT_EVENTS) == 3
    assert read_files(backup_file.parent) == before


def test_copy_made_by_hand_is_restored_without_uncommitted_changes(backup_file: Path, store_path: Path) -> None:
    crash_in_transaction(backup_file)
    before = read_files(backup_file.parent)
    assert set(before) == {backup_file.name, f"{backup_file.name}-journal"}
    restore(store_path, backup_file, ignore_progress)
    assert query(store_path, COUNT_EVENTS) == 50
    assert read_files(backup_file.parent) == before


def test_previous_database_is_kept_with_its_journal(backup_file: Path, store_path: Path) -> None:
    crash_in_transaction(store_path)
    kept = restore(store_path, backup_file, ignore_progress)
    assert kept is not None
    assert not Path(f"{store_path}-journal").exists()
    assert query(store_path, COUNT_EVENTS) == 50
    assert query(kept, COUNT_EVENTS) == 57


@pytest.mark.parametrize("suffix", ["-wal", "-journal"])
def test_log_without_a_database_is_refused(backup_file: Path, store_path: Path, suffix: str) -> None:
    store_path.rename(store_path.with_suffix(".away"))
    Path(f"{store_path}{suffix}").write_bytes(b"events")
    with pytest.raises(StoreUnavailable, match=f"inbox.db{suffix} beside it may hold events"):
        restore(store_path, backup_file, ignore_progress)
    with pytest.raises(StoreUnavailable, match="may hold events"):
        SQLiteStore(store_path, 3)
    assert not store_path.exists()
