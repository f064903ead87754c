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
from tests.unit.databases import EVENTS, ask, damage, files_in, ignore, make_older, note_steps, put


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A path in a new folder, so that tests see every file that a backup leaves."""
    folder = tmp_path / "backups"
    folder.mkdir()
    return folder / "inbox-1.db"


def test_backup_is_one_file_with_all_events(store: SQLiteStore, path: Path, file: Path) -> None:
    put(store)
    progress: list[tuple[int, int]] = []
    back_up(path, file, lambda done, total: progress.append((done, total)))
    assert progress
    assert progress[-1][0] == progress[-1][1]
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert ask(file, "PRAGMA journal_mode") == "delete"
    assert ask(file, "PRAGMA integrity_check") == "ok"
    assert ask(file, EVENTS) == 50
    assert list(file.parent.iterdir()) == [file]
    put(store)


def test_backup_ends_under_constant_writes(
    store: SQLiteStore, path: Path, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(store)
    monkeypatch.setattr(backup, "_PAGES_PER_STEP", 1)
    steps: list[int] = []

    def write(done: int, _total: int) -> None:
        assert done == len(steps) + 1, "The backup started over."
        steps.append(done)
        put(store, 1)

    back_up(path, file, write)
    assert len(steps) > 20
    assert ask(file, EVENTS) == 50
    assert ask(file, "PRAGMA integrity_check") == "ok"


@pytest.mark.parametrize("error", [KeyboardInterrupt, apsw.FullError, OSError])
def test_backup_that_ends_early_leaves_nothing(
    store: SQLiteStore, path: Path, file: Path, error: type[BaseException]
) -> None:
    put(store)

    def fail(_done: int, _total: int) -> None:
        (folder,) = file.parent.iterdir()
        assert folder.name.startswith("partial-backup-")
        raise error("the end")

    with pytest.raises(KeyboardInterrupt if error is KeyboardInterrupt else BackupFailed, match="the end"):
        back_up(path, file, fail)
    assert list(file.parent.iterdir()) == []


@pytest.mark.parametrize("suffix", ["", "-wal", "-shm", "-journal"])
def test_backup_overwrites_nothing_and_joins_no_companion(
    store: SQLiteStore, path: Path, file: Path, suffix: str
) -> None:
    put(store)
    existing = Path(f"{file}{suffix}")
    # The file appears during the backup.
    with pytest.raises(BackupFailed, match=f"{existing.name} already exists"):
        back_up(path, file, lambda _done, _total: existing.write_text("mine") and None)
    assert files_in(file.parent) == {existing.name: b"mine"}
    existing.unlink()
    for target in ("nowhere", existing.name):
        existing.symlink_to(target)
        with pytest.raises(BackupFailed, match=f"{existing.name} already exists"):
            back_up(path, file, ignore)
        assert list(file.parent.iterdir()) == [existing]
        existing.unlink()


def test_backup_does_not_overwrite_a_file_created_at_the_last_moment(
    store: SQLiteStore, path: Path, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(store)
    monkeypatch.setattr(backup, "_refuse_existing", lambda file: file.write_text("mine"))
    with pytest.raises(BackupFailed, match="File exists"):
        back_up(path, file, ignore)
    assert files_in(file.parent) == {file.name: b"mine"}


@pytest.mark.parametrize("suffix", ["", "-wal", "-shm", "-journal"])
def test_store_is_not_backed_up_onto_itself(store: SQLiteStore, path: Path, suffix: str) -> None:
    store.close()
    (path.parent / "sub").mkdir()
    with pytest.raises(BackupFailed, match="store itself"):
        back_up(path, path.parent / "sub" / ".." / f"{path.name}{suffix}", ignore)
    assert SQLiteStore(path, 3).tenants.all() == []


def test_damaged_store_is_not_backed_up(store: SQLiteStore, path: Path, file: Path) -> None:
    put(store)
    store.close()
    damage(path)
    with pytest.raises(BackupFailed, match="damaged"):
        back_up(path, file, ignore)
    assert list(file.parent.iterdir()) == []


def test_other_database_is_not_backed_up(path: Path, file: Path) -> None:
    with pytest.raises(BackupFailed, match="No such file"):
        back_up(path, file, ignore)
    path.touch()
    with pytest.raises(BackupFailed, match="is empty"):
        back_up(path, file, ignore)
    path.write_bytes(b"This is not a database. " * 100)
    with pytest.raises(BackupFailed, match="not a database"):
        back_up(path, file, ignore)
    path.unlink()
    ask(path, "PRAGMA user_version = 3; CREATE TABLE tenants (a); SELECT 1")
    with pytest.raises(BackupFailed, match="not a database of Polling Inbox"):
        back_up(path, file, ignore)
    path.unlink()
    path.symlink_to(path)
    with pytest.raises(BackupFailed, match="symbolic links"):
        back_up(path, file, ignore)
    assert list(file.parent.iterdir()) == []


def test_store_of_an_earlier_release_is_backed_up_unchanged(path: Path, file: Path) -> None:
    make_older(path, 3)
    back_up(path, file, ignore)
    assert ask(file, "PRAGMA user_version") == ask(path, "PRAGMA user_version") == 3


def test_backup_is_synced_before_and_after_it_gets_its_name(
    store: SQLiteStore, path: Path, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(store)
    steps = note_steps(monkeypatch)
    back_up(path, file, ignore)
    assert steps == ["sync folder", "sync file", "link copy.db", "sync folder"]


def test_folder_that_cannot_be_synced_gets_no_backup(
    store: SQLiteStore, path: Path, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_descriptor: int) -> None:
        raise OSError(errno.EIO, "no sync")

    put(store)
    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(BackupFailed, match=r"^The backup of .* failed: .*no sync"):
        back_up(path, file, ignore)
    assert list(file.parent.iterdir()) == []


def test_backup_needs_no_hard_links(
    store: SQLiteStore, path: Path, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_old: Path, _new: Path) -> None:
        raise PermissionError(errno.EPERM, "no links")

    put(store)
    monkeypatch.setattr(os, "link", refuse)
    back_up(path, file, ignore)
    assert list(file.parent.iterdir()) == [file]
    assert ask(file, EVENTS) == 50


def test_stop_signal_at_the_last_step_does_not_undo_a_backup(
    store: SQLiteStore, path: Path, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    link = os.link

    def interrupt(old: Path, new: Path) -> None:
        link(old, new)
        signal.raise_signal(signal.SIGINT)

    put(store)
    monkeypatch.setattr(os, "link", interrupt)
    back_up(path, file, ignore)
    assert list(file.parent.iterdir()) == [file]


def test_stop_signal_while_the_temporary_folder_is_created_leaves_none(
    store: SQLiteStore, path: Path, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mkdir = os.mkdir

    def interrupt(folder: str, mode: int) -> None:
        mkdir(folder, mode)
        signal.raise_signal(signal.SIGINT)

    put(store)
    monkeypatch.setattr(os, "mkdir", interrupt)
    with pytest.raises(KeyboardInterrupt):
        back_up(path, file, ignore)
    assert list(file.parent.iterdir()) == []
