"""Restoring a backup. `inbox.store.sqlite.backup`."""

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
    EVENTS,
    ask,
    crashed,
    damage,
    files_in,
    ignore,
    make_older,
    note_steps,
    put,
    stop_in_a_transaction,
)


@pytest.fixture
def file(tmp_path: Path, store: SQLiteStore, path: Path) -> Path:
    """A backup of 50 events. The store has 7 newer events, and is closed."""
    (tmp_path / "backups").mkdir()
    file = tmp_path / "backups" / "inbox-1.db"
    put(store, 50)
    back_up(path, file, ignore)
    put(store, 7)
    store.close()
    return file


@pytest.fixture
def crashed_store(file: Path, path: Path, tmp_path: Path) -> Path:
    """Replaces the store by one that a crash left, with 3 events, some of them in its log."""
    assert file.exists()
    path.unlink()
    crashed(path, tmp_path / "aside")
    return path


def test_previous_database_is_kept(file: Path, path: Path) -> None:
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

    # Restoring it undoes the restore.
    restore(path, kept, ignore)
    assert ask(path, EVENTS) == ask(kept, EVENTS) == 57


def test_restore_creates_a_missing_store_and_its_folders(file: Path, tmp_path: Path) -> None:
    new = tmp_path / "another" / "machine" / "inbox.db"
    assert restore(new, file, ignore) is None
    assert ask(new, EVENTS) == 50
    assert list(new.parent.iterdir()) == [new]


def test_store_created_during_a_restore_is_not_overwritten(file: Path, tmp_path: Path) -> None:
    new = tmp_path / "new.db"
    with pytest.raises(BackupFailed, match=r"new\.db already exists"):
        restore(new, file, lambda _done, _total: SQLiteStore(new, 3).close())
    assert ask(new, EVENTS) == 0


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
def test_file_that_is_no_whole_backup_changes_nothing(
    file: Path, path: Path, spoil: Callable[[Path], None], message: str
) -> None:
    spoil(file)
    before = files_in(path.parent) | files_in(file.parent)
    for target in (path, path.parent / "another" / "machine" / "inbox.db"):
        with pytest.raises(BackupFailed, match=message):
            restore(target, file, ignore)
    assert files_in(path.parent) | files_in(file.parent) == before
    assert len(list(path.parent.iterdir())) == 2


def test_store_is_not_restored_from_itself(file: Path, path: Path) -> None:
    link = file.with_name("link")
    link.hardlink_to(path)
    for itself in (path, link):
        with pytest.raises(BackupFailed, match="store itself"):
            restore(path, itself, ignore)


def test_interrupted_restore_changes_nothing(file: Path, path: Path) -> None:
    def interrupt(_done: int, _total: int) -> None:
        raise KeyboardInterrupt

    before = files_in(path.parent)
    with pytest.raises(KeyboardInterrupt):
        restore(path, file, interrupt)
    assert files_in(path.parent) == before
    assert len(list(path.parent.iterdir())) == 2


def test_backup_of_an_earlier_release_is_migrated(file: Path, path: Path) -> None:
    file.unlink()
    make_older(file, 2)
    restore(path, file, ignore)
    assert ask(path, "PRAGMA user_version") == len(_scripts())
    assert ask(file, "PRAGMA user_version") == 2


def test_damaged_store_is_replaced_and_kept(file: Path, path: Path) -> None:
    path.write_bytes(b"This is not a database. " * 100)
    kept = restore(path, file, ignore)
    assert kept is not None
    assert kept.read_bytes().startswith(b"This is not")
    assert ask(path, EVENTS) == 50


def test_restore_by_root_keeps_the_owner(file: Path, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    changed: list[tuple[str, int, int]] = []
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(os, "chown", lambda file, uid, gid: changed.append((Path(file).name, uid, gid)))
    owner = path.stat().st_uid, path.stat().st_gid
    restore(path, file, ignore)
    assert changed == [("inbox.db-shm", *owner), ("copy.db", *owner)]

    changed.clear()
    restore(path.parent / "made" / "anew" / "inbox.db", file, ignore)
    assert changed == [("made", *owner), ("anew", *owner), ("copy.db", *owner)]


def test_restore_keeps_the_mode(file: Path, path: Path) -> None:
    path.chmod(0o660)
    kept = restore(path, file, ignore)
    assert kept is not None
    assert {each.stat().st_mode & 0o777 for each in (path, kept, Path(f"{path}-shm"))} == {0o660}


def fail_to_rename(monkeypatch: pytest.MonkeyPatch, after: int, failures: int, error: BaseException) -> None:
    rename, calls = Path.rename, []

    def fail(old: Path, new: Path) -> Path:
        calls.append(old)
        if after < len(calls) <= after + failures:
            raise error
        return rename(old, new)

    monkeypatch.setattr(Path, "rename", fail)


@pytest.mark.parametrize("renames", range(3))
def test_failed_step_restores_the_previous_files(
    file: Path, crashed_store: Path, renames: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = files_in(crashed_store.parent)
    fail_to_rename(monkeypatch, renames, 1, OSError("no more names"))
    with pytest.raises(BackupFailed, match=r"The restore of .* failed: no more names"):
        restore(crashed_store, file, ignore)
    assert files_in(crashed_store.parent) == before


@pytest.mark.parametrize("renames", range(4))
def test_crash_between_the_steps_loses_nothing_and_starts_no_empty_store(
    file: Path, crashed_store: Path, renames: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = crashed_store
    with monkeypatch.context() as patch:
        # The renames that would restore the old files fail too.
        fail_to_rename(patch, renames, 1_000, KeyboardInterrupt())
        if renames < 3:
            with pytest.raises(KeyboardInterrupt):
                restore(path, file, ignore)
        else:
            restore(path, file, ignore)
    if renames in (1, 2):
        with pytest.raises(StoreUnavailable, match="missing or empty"):
            SQLiteStore(path, 3)
        (kept,) = (each for each in path.parent.glob("*.before-restore-*") if not each.name.endswith("-wal"))
        kept.rename(path)
        for log in path.parent.glob("*.before-restore-*-wal"):
            log.rename(f"{path}-wal")
    SQLiteStore(path, 3).close()
    assert ask(path, EVENTS) == (50 if renames == 3 else 3)


def test_power_cut_does_not_leave_the_new_file_with_the_old_log(
    file: Path, crashed_store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps = note_steps(monkeypatch)
    kept = restore(crashed_store, file, ignore)
    renames = ["rename inbox.db", "rename inbox.db-wal", "sync folder", "rename copy.db"]
    assert steps == ["sync folder", "sync file", *renames, "sync folder"]
    assert kept is not None
    assert ask(kept, EVENTS) == 3


def test_stop_signal_between_the_steps_does_not_undo_a_restore(
    file: Path, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rename = Path.rename

    def interrupt(old: Path, new: Path) -> Path:
        signal.raise_signal(signal.SIGINT)
        return rename(old, new)

    monkeypatch.setattr(Path, "rename", interrupt)
    restore(path, file, ignore)
    assert ask(path, EVENTS) == 50


def test_read_only_shm_that_a_crash_left_is_replaced(file: Path, crashed_store: Path) -> None:
    left = Path(f"{crashed_store}-shm")
    left.write_bytes(bytes(32_768))
    left.chmod(0o400)
    restore(crashed_store, file, ignore)
    assert (left.stat().st_size, left.stat().st_mode & 0o777) == (0, 0o600)


def test_one_of_two_restores_at_the_same_time_is_refused(
    file: Path, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock = fcntl.lockf

    def lock_too_late(opened: Any, *how: int) -> None:
        if Path(opened.name) == path:
            monkeypatch.setattr(fcntl, "lockf", lock)
            restore(path, file, ignore)
        lock(opened, *how)

    monkeypatch.setattr(fcntl, "lockf", lock_too_late)
    with pytest.raises(BackupFailed, match=r"inbox\.db is in use"):
        restore(path, file, ignore)
    assert len(list(path.parent.glob("*.before-restore-*Z"))) == 1
    assert ask(path, EVENTS) == 50


def test_log_of_another_database_is_left_out(store: SQLiteStore, path: Path, tmp_path: Path) -> None:
    put(store, 3)
    log = tmp_path / "early-wal"
    shutil.copy(f"{path}-wal", log)
    put(store, 40)
    file = tmp_path / "x.db"
    back_up(path, file, ignore)
    store.close()
    log.rename(f"{file}-wal")
    restore(path, file, ignore)
    assert ask(path, EVENTS) == 43


def test_copy_made_by_hand_is_restored_with_its_log(file: Path, path: Path, tmp_path: Path) -> None:
    file.unlink()
    crashed(file, tmp_path / "aside")
    before = files_in(file.parent)
    assert set(before) == {file.name, f"{file.name}-wal"}
    restore(path, file, ignore)
    assert ask(path, EVENTS) == 3
    assert files_in(file.parent) == before


def test_copy_made_by_hand_is_restored_without_uncommitted_changes(file: Path, path: Path, tmp_path: Path) -> None:
    stop_in_a_transaction(file, tmp_path / "aside")
    before = files_in(file.parent)
    assert set(before) == {file.name, f"{file.name}-journal"}
    restore(path, file, ignore)
    assert ask(path, EVENTS) == 50
    assert files_in(file.parent) == before


def test_previous_database_is_kept_with_its_journal(file: Path, path: Path, tmp_path: Path) -> None:
    stop_in_a_transaction(path, tmp_path / "aside")
    kept = restore(path, file, ignore)
    assert kept is not None
    assert not Path(f"{path}-journal").exists()
    assert ask(path, EVENTS) == 50
    assert ask(kept, EVENTS) == 57


@pytest.mark.parametrize("suffix", ["-wal", "-journal"])
def test_companions_without_a_database_are_not_ignored(file: Path, path: Path, suffix: str) -> None:
    path.rename(path.with_suffix(".away"))
    Path(f"{path}{suffix}").write_bytes(b"events")
    with pytest.raises(StoreUnavailable, match=f"inbox.db{suffix} beside it may hold events"):
        restore(path, file, ignore)
    with pytest.raises(StoreUnavailable, match="may hold events"):
        SQLiteStore(path, 3)
    assert not path.exists()
