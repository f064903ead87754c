"""Logs and journals beside a store, beside a backup and beside nothing. `inbox.store.sqlite.companions`."""

import shutil
from pathlib import Path

import pytest

from inbox.errors import BackupFailed, StoreUnavailable
from inbox.store.sqlite import SQLiteStore
from inbox.store.sqlite.backup import back_up
from inbox.store.sqlite.restore import restore
from tests.unit.databases import EVENTS, ask, back_up_50, crashed, files_in, ignore, put, stop_in_a_transaction


@pytest.fixture
def file(tmp_path: Path, store: SQLiteStore, path: Path) -> Path:
    return back_up_50(path, store, tmp_path / "backups")


@pytest.mark.parametrize("suffix", ["-wal", "-shm", "-journal"])
def test_no_backup_is_put_beside_what_would_be_taken_for_a_part_of_it(
    store: SQLiteStore, path: Path, tmp_path: Path, suffix: str
) -> None:
    put(store)
    folder = tmp_path / "backups"
    folder.mkdir()
    file, stale = folder / "inbox-1.db", folder / f"inbox-1.db{suffix}"
    with pytest.raises(BackupFailed, match=f"inbox-1.db{suffix} is there already"):
        back_up(path, file, lambda _done, _total: stale.touch())
    assert list(folder.iterdir()) == [stale]
    stale.unlink()
    stale.symlink_to("nowhere")
    with pytest.raises(BackupFailed, match=f"inbox-1.db{suffix} is there already"):
        back_up(path, file, ignore)
    assert list(folder.iterdir()) == [stale]


def test_the_log_of_another_database_does_not_get_into_what_is_restored(
    store: SQLiteStore, path: Path, tmp_path: Path
) -> None:
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


def test_a_copy_that_was_made_by_hand_is_restored_with_its_log(file: Path, path: Path, tmp_path: Path) -> None:
    file.unlink()
    crashed(file, tmp_path / "aside")
    before = files_in(file.parent)
    assert set(before) == {file.name, f"{file.name}-wal"}
    restore(path, file, ignore)
    assert ask(path, EVENTS) == 3
    assert files_in(file.parent) == before


def test_a_copy_that_was_made_by_hand_is_restored_without_what_was_never_committed(
    file: Path, path: Path, tmp_path: Path
) -> None:
    stop_in_a_transaction(file, tmp_path / "aside")
    before = files_in(file.parent)
    assert set(before) == {file.name, f"{file.name}-journal"}
    restore(path, file, ignore)
    assert ask(path, EVENTS) == 50
    assert files_in(file.parent) == before


def test_what_a_crash_left_is_kept_with_its_log(file: Path, path: Path, tmp_path: Path) -> None:
    path.unlink()
    crashed(path, tmp_path / "aside")
    kept = restore(path, file, ignore)
    assert kept is not None
    assert ask(path, EVENTS) == 50
    assert ask(kept, EVENTS) == 3


def test_what_a_crash_left_is_kept_with_its_journal(file: Path, path: Path, tmp_path: Path) -> None:
    stop_in_a_transaction(path, tmp_path / "aside")
    kept = restore(path, file, ignore)
    assert kept is not None
    assert not Path(f"{path}-journal").exists()
    assert ask(path, EVENTS) == 50
    assert ask(kept, EVENTS) == 57


@pytest.mark.parametrize("suffix", ["-wal", "-journal"])
def test_what_is_left_of_a_store_is_not_passed_over(file: Path, path: Path, suffix: str) -> None:
    path.rename(path.with_suffix(".away"))
    Path(f"{path}{suffix}").write_bytes(b"events")
    with pytest.raises(StoreUnavailable, match=f"inbox.db{suffix} beside it may hold events"):
        restore(path, file, ignore)
    with pytest.raises(StoreUnavailable, match="may hold events"):
        SQLiteStore(path, 3)
    assert not path.exists()


def test_what_is_left_of_a_store_behind_a_link_is_not_passed_over(path: Path, tmp_path: Path) -> None:
    crashed(path, tmp_path / "aside")
    link = tmp_path / "link.db"
    link.symlink_to(path)
    aside = path.rename(path.with_suffix(".away"))
    with pytest.raises(StoreUnavailable, match=r"inbox.db-wal beside it may hold events"):
        SQLiteStore(link, 3)
    aside.rename(path)
    SQLiteStore(link, 3).close()
    assert ask(path, EVENTS) == 3


def test_a_store_that_is_just_being_replaced_is_not_begun_anew(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    crashed(path, tmp_path / "aside")
    touch = Path.touch

    def put_aside_first(file: Path, mode: int) -> None:
        touch(Path(f"{path}-shm"))
        path.rename(path.with_suffix(".away"))
        touch(file, mode)

    log = Path(f"{path}-wal").read_bytes()
    monkeypatch.setattr(Path, "touch", put_aside_first)
    with pytest.raises(StoreUnavailable, match="is missing or empty"):
        SQLiteStore(path, 3)
    assert Path(f"{path}-wal").read_bytes() == log


def test_a_store_that_another_process_is_just_making_is_opened(path: Path) -> None:
    path.touch()
    Path(f"{path}-journal").touch()
    SQLiteStore(path, 3).close()
    assert ask(path, EVENTS) == 0
