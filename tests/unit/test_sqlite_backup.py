"""A copy of a database that is in use. `inbox.store.sqlite.backup`."""

import stat
from pathlib import Path

import apsw
import pytest

from inbox.errors import BackupFailed
from inbox.store.sqlite import SQLiteStore, backup
from inbox.store.sqlite.backup import back_up
from tests.unit.databases import ask, damage, ignore, make_older, put


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """In a folder of its own, to see what is left there."""
    folder = tmp_path / "backups"
    folder.mkdir()
    return folder / "inbox-1.db"


def test_a_backup_is_one_file_that_holds_everything_and_is_nobody_elses(
    store: SQLiteStore, path: Path, file: Path
) -> None:
    put(store)
    seen: list[tuple[int, int]] = []
    back_up(path, file, lambda done, total: seen.append((done, total)))
    assert seen
    assert seen[-1][0] == seen[-1][1]
    assert list(file.parent.iterdir()) == [file]
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert ask(file, "PRAGMA journal_mode") == "delete"
    assert ask(file, "PRAGMA integrity_check") == "ok"
    assert ask(file, "SELECT count(*) FROM events") == 50
    assert list(file.parent.iterdir()) == [file]
    put(store)


def test_a_backup_ends_however_much_is_written_meanwhile(
    store: SQLiteStore, path: Path, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(store)
    monkeypatch.setattr(backup, "_PAGES_A_STEP", 1)
    steps: list[int] = []

    def write(done: int, _total: int) -> None:
        assert done == len(steps) + 1, "It has begun anew."
        steps.append(done)
        put(store, 1)

    back_up(path, file, write)
    assert len(steps) > 20
    assert ask(file, "SELECT count(*) FROM events") == 50
    assert ask(file, "PRAGMA integrity_check") == "ok"


@pytest.mark.parametrize("error", [KeyboardInterrupt, apsw.FullError, OSError])
def test_a_backup_that_ends_early_leaves_nothing(
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


def test_nothing_is_overwritten(store: SQLiteStore, path: Path, file: Path) -> None:
    file.write_text("mine")
    with pytest.raises(BackupFailed, match="is there already"):
        back_up(path, file, ignore)
    file.unlink()
    file.symlink_to("nowhere")
    with pytest.raises(BackupFailed, match="is there already"):
        back_up(path, file, ignore)
    file.unlink()
    with pytest.raises(BackupFailed, match="is there already"):
        back_up(path, file, lambda _done, _total: file.write_text("mine") and None)
    assert file.read_text() == "mine"
    assert list(file.parent.iterdir()) == [file]
    store.check()


@pytest.mark.parametrize("suffix", ["", "-wal", "-shm", "-journal"])
def test_the_store_is_not_backed_up_onto_itself(store: SQLiteStore, path: Path, suffix: str) -> None:
    store.close()
    detour = path.parent / "sub" / ".." / f"{path.name}{suffix}"
    (path.parent / "sub").mkdir()
    with pytest.raises(BackupFailed, match="store itself"):
        back_up(path, detour, ignore)
    assert SQLiteStore(path, 3).tenants.all() == []


def test_a_damaged_store_makes_no_backup(store: SQLiteStore, path: Path, file: Path) -> None:
    put(store)
    store.close()
    damage(path)
    with pytest.raises(BackupFailed, match="damaged"):
        back_up(path, file, ignore)
    assert list(file.parent.iterdir()) == []


def test_what_is_no_store_makes_no_backup(path: Path, file: Path) -> None:
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
    assert list(file.parent.iterdir()) == []


def test_the_store_of_an_earlier_release_is_backed_up_as_it_is(path: Path, file: Path) -> None:
    make_older(path, 3)
    back_up(path, file, ignore)
    assert ask(file, "PRAGMA user_version") == ask(path, "PRAGMA user_version") == 3


def test_a_folder_that_is_not_there_is_said_so(store: SQLiteStore, path: Path, file: Path) -> None:
    put(store)
    file.parent.rmdir()
    with pytest.raises(BackupFailed, match="There is no folder"):
        back_up(path, file, ignore)
