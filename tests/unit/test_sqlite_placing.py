"""How a backup gets its name, or does not. `inbox.store.sqlite.placing`."""

import errno
import os
import signal
import stat
from pathlib import Path
from typing import Any

import pytest

from inbox.errors import BackupFailed
from inbox.store.sqlite import SQLiteStore, placing
from inbox.store.sqlite.backup import back_up
from inbox.store.sqlite.restore import restore
from tests.unit.databases import EVENTS, ask, files_in, ignore, put


@pytest.fixture
def file(tmp_path: Path, store: SQLiteStore) -> Path:
    """In a folder of its own, to see what is left there."""
    put(store)
    folder = tmp_path / "backups"
    folder.mkdir()
    return folder / "inbox-1.db"


def fail_to_sync_folders(monkeypatch: pytest.MonkeyPatch, after: int) -> None:
    sync, synced = os.fsync, []

    def fail(descriptor: int) -> None:
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            synced.append(descriptor)
            if len(synced) > after:
                raise OSError(errno.EIO, "no sync")
        sync(descriptor)

    monkeypatch.setattr(os, "fsync", fail)


def test_a_folder_that_cannot_be_synced_gets_no_backup(path: Path, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fail_to_sync_folders(monkeypatch, after=0)
    with pytest.raises(BackupFailed, match=r"^No backup of .* was made: .*no sync"):
        back_up(path, file, ignore)
    assert list(file.parent.iterdir()) == []


def test_a_backup_that_is_there_is_not_said_to_have_failed(
    path: Path, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fail_to_sync_folders(monkeypatch, after=1)
    with pytest.raises(BackupFailed, match=f"^{file} is made, but a power cut may undo it"):
        back_up(path, file, ignore)
    assert list(file.parent.iterdir()) == [file]
    assert ask(file, EVENTS) == 50


def test_a_restore_that_is_done_is_not_said_to_have_failed(
    store: SQLiteStore, path: Path, file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    back_up(path, file, ignore)
    store.close()
    fail_to_sync_folders(monkeypatch, after=2)
    with pytest.raises(BackupFailed, match=f"^{path} is restored and what was there is kept as .*, but a"):
        restore(path, file, ignore)
    monkeypatch.undo()
    fail_to_sync_folders(monkeypatch, after=1)
    with pytest.raises(BackupFailed, match=f"^{tmp_path}/new.db is restored, but a power cut"):
        restore(tmp_path / "new.db", file, ignore)
    assert ask(tmp_path / "new.db", EVENTS) == 50


def test_a_restore_that_cannot_order_its_steps_changes_nothing(
    store: SQLiteStore, path: Path, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    back_up(path, file, ignore)
    store.close()
    before = files_in(path.parent)
    fail_to_sync_folders(monkeypatch, after=1)
    with pytest.raises(BackupFailed, match=r"was not restored: .*no sync"):
        restore(path, file, ignore)
    assert files_in(path.parent) == before


def test_a_file_that_comes_up_at_the_last_moment_is_not_overwritten(
    path: Path, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(placing, "refuse_to_overwrite", lambda file: file.write_text("mine"))
    with pytest.raises(BackupFailed, match="is there already"):
        back_up(path, file, ignore)
    assert files_in(file.parent) == {file.name: b"mine"}


def test_a_file_system_without_links_will_do(path: Path, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_old: Path, _new: Path) -> None:
        raise PermissionError(errno.EPERM, "no links")

    monkeypatch.setattr(os, "link", refuse)
    back_up(path, file, ignore)
    assert list(file.parent.iterdir()) == [file]
    assert ask(file, EVENTS) == 50


def test_ctrl_c_at_the_last_step_comes_too_late(
    path: Path, file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    link = os.link

    def interrupt(old: Path, new: Path) -> None:
        link(old, new)
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(os, "link", interrupt)
    back_up(path, file, ignore)
    assert list(file.parent.iterdir()) == [file]
    restore(tmp_path / "new" / "inbox.db", file, ignore)
    assert files_in(tmp_path / "new").keys() == {"inbox.db"}


def test_ctrl_c_while_the_folder_of_what_is_unfinished_is_made_leaves_none(
    path: Path, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mkdir = os.mkdir

    def interrupt(folder: str, mode: int) -> None:
        mkdir(folder, mode)
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(os, "mkdir", interrupt)
    with pytest.raises(KeyboardInterrupt):
        back_up(path, file, ignore)
    assert list(file.parent.iterdir()) == []


def test_ctrl_c_while_that_folder_is_taken_away_comes_too_late(
    path: Path, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rmdir = os.rmdir

    def interrupt(folder: str, **options: Any) -> None:
        signal.raise_signal(signal.SIGINT)
        rmdir(folder, **options)

    monkeypatch.setattr(os, "rmdir", interrupt)
    back_up(path, file, ignore)
    assert list(file.parent.iterdir()) == [file]


def test_a_long_name_will_do(path: Path, file: Path) -> None:
    long = file.with_name("x" * 240)
    back_up(path, long, ignore)
    assert list(file.parent.iterdir()) == [long]


def test_a_loop_of_links_is_no_file_and_no_store(path: Path, file: Path) -> None:
    loop = file.with_name("loop")
    loop.symlink_to("loop")
    with pytest.raises(BackupFailed, match="is there already"):
        back_up(path, loop, ignore)
    with pytest.raises(BackupFailed, match="symbolic links"):
        back_up(loop, file, ignore)
    back_up(path, file, ignore)
    with pytest.raises(BackupFailed, match="is there already"):
        restore(loop, file, ignore)
    assert loop.is_symlink()
