"""The moment at which one database takes the place of another. `inbox.store.sqlite.replacing`."""

import fcntl
import os
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from inbox.errors import BackupFailed, StoreUnavailable
from inbox.store.sqlite import SQLiteStore
from inbox.store.sqlite.restore import restore
from tests.unit.databases import EVENTS, ask, back_up_50, crashed, files_in, ignore

HOLD = """
import apsw, sys
connection = apsw.Connection(sys.argv[1])
print(connection.execute("SELECT count(*) FROM events").fetchall(), flush=True)
sys.stdin.read()
"""


@pytest.fixture
def file(tmp_path: Path, store: SQLiteStore, path: Path) -> Path:
    """A backup of 50 events, and a store that a crash left with 3, some of them in its log."""
    backup = back_up_50(path, store, tmp_path / "backups")
    path.unlink()
    crashed(path, tmp_path / "aside")
    return backup


def fail_to_rename(monkeypatch: pytest.MonkeyPatch, after: int, failures: int, error: BaseException) -> None:
    rename, calls = Path.rename, []

    def fail(old: Path, new: Path) -> Path:
        calls.append(old)
        if after < len(calls) <= after + failures:
            raise error
        return rename(old, new)

    monkeypatch.setattr(Path, "rename", fail)


@pytest.mark.parametrize("renames", range(3))
def test_a_step_that_fails_puts_everything_back(
    file: Path, path: Path, renames: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = files_in(path.parent)
    fail_to_rename(monkeypatch, renames, 1, OSError("no more names"))
    with pytest.raises(BackupFailed, match="was not restored: no more names"):
        restore(path, file, ignore)
    assert files_in(path.parent) == before


def test_a_name_too_long_for_what_is_kept_changes_nothing(file: Path, path: Path, tmp_path: Path) -> None:
    long = path.with_name("x" * 215)
    crashed(long, tmp_path / "another")
    before = files_in(path.parent)
    with pytest.raises(BackupFailed, match="File name too long"):
        restore(long, file, ignore)
    assert files_in(path.parent) == before


@pytest.mark.parametrize("renames", range(4))
def test_a_crash_on_the_way_loses_nothing_and_starts_no_empty_store(
    file: Path, path: Path, renames: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        # Nothing is put back either.
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


@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_ctrl_c_between_the_steps_comes_too_late(
    file: Path, path: Path, stop: signal.Signals, monkeypatch: pytest.MonkeyPatch
) -> None:
    rename = Path.rename

    def interrupt(old: Path, new: Path) -> Path:
        signal.raise_signal(stop)
        return rename(old, new)

    monkeypatch.setattr(Path, "rename", interrupt)
    before = signal.signal(stop, signal.default_int_handler)
    try:
        restore(path, file, ignore)
    finally:
        signal.signal(stop, before)
    assert ask(path, EVENTS) == 50


def test_what_a_crash_left_of_somebody_else_is_in_nobodys_way(file: Path, path: Path) -> None:
    left = Path(f"{path}-shm")
    left.write_bytes(bytes(32_768))
    left.chmod(0o400)
    restore(path, file, ignore)
    assert (left.stat().st_size, left.stat().st_mode & 0o777) == (0, 0o600)


def test_after_a_power_cut_the_new_file_is_not_beside_the_old_log(
    file: Path, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps: list[str] = []
    rename, sync = Path.rename, os.fsync

    def note_rename(old: Path, new: Path) -> Path:
        steps.append(old.name)
        return rename(old, new)

    def note_sync(descriptor: int) -> None:
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            steps.append("sync")
        sync(descriptor)

    monkeypatch.setattr(Path, "rename", note_rename)
    monkeypatch.setattr(os, "fsync", note_sync)
    restore(path, file, ignore)
    assert steps == ["sync", "inbox.db", "inbox.db-wal", "sync", "copy.db", "sync"]


@contextmanager
def open_elsewhere(path: Path) -> Iterator[None]:
    """Locks do not keep a process out of what it has open itself."""
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "[(3,)]\n"
        yield
        process.communicate()


def test_who_may_not_write_the_store_does_not_replace_it_in_use(
    file: Path, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Where it cannot be opened for writing there is an error; for root it always can.
    monkeypatch.setattr(os, "access", lambda *_: False)
    with open_elsewhere(path), pytest.raises(BackupFailed, match=r"inbox\.db is in use"):
        restore(path, file, ignore)
    restore(path, file, ignore)
    assert ask(path, EVENTS) == 50


def test_of_two_restores_at_once_one_is_refused(file: Path, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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


def test_a_restore_that_fails_leaves_no_folder(file: Path, tmp_path: Path) -> None:
    file.write_bytes(b"This is not a database. " * 100)
    with pytest.raises(BackupFailed, match="not a database"):
        restore(tmp_path / "another" / "machine" / "inbox.db", file, ignore)
    assert not (tmp_path / "another").exists()
